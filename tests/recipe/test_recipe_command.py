"""``aicr recipe``: what criteria flags do, and what each wrong one gets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.recipe.conftest import Install
from tests.recipe.trees import command, overlay, refused
from tests.recipe.world import KUBEFLOW, TRAINING, WORLD

from aicr.yamlio.read import load

NO_CRITERIA = (
    "no criteria provided: specify at least one of --service, --accelerator, --intent, --os, "
    "--platform, --nodes, --criteria, or use --snapshot to load from a snapshot file"
)


@pytest.mark.covers("R11-1", "R11-2", "R11-8")
@pytest.mark.parametrize(
    "flags",
    [
        (),
        ("--service", "any"),
        ("--service", "ANY", "--os", "  "),
        ("--service", ""),
        ("--nodes", "-3"),
        ("--nodes", "0"),
    ],
)
def test_stating_nothing_is_refused(
    installed: Install, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    """Wildcards, blanks and node counts that are not positive state nothing: exit 2, no file."""
    installed(WORLD)
    target = tmp_path / "recipe.yaml"
    ran = refused("recipe", *flags, "-o", str(target))
    assert ran.status == 2
    assert "[INVALID_REQUEST] " + NO_CRITERIA in ran.err
    assert not target.exists()


@pytest.mark.covers("R11-3")
@pytest.mark.parametrize(
    ("flag", "raw", "label", "message"),
    [
        ("--service", "foo", "service", "invalid service type: foo"),
        ("--service", "FOO", "service", "invalid service type: FOO"),
        ("--accelerator", "zzz", "accelerator", "invalid accelerator type: zzz"),
        ("--gpu", "zzz", "accelerator", "invalid accelerator type: zzz"),
        ("--intent", "play", "intent", "invalid intent type: play"),
        ("--os", "beos", "OS", "invalid os type: beos"),
        ("--platform", "cobol", "platform", "invalid platform type: cobol"),
    ],
)
def test_an_unknown_word_is_refused_with_the_words_there_are(
    installed: Install, tmp_path: Path, flag: str, raw: str, label: str, message: str
) -> None:
    """The raw word is repeated, the allowed ones are listed, and nothing is written."""
    installed(WORLD)
    target = tmp_path / "recipe.yaml"
    ran = refused("recipe", flag, raw, "-o", str(target))
    assert ran.status == 2
    assert f"failed to parse {label} type" in ran.err
    assert message in ran.err
    assert "allowed: " in ran.err
    assert not target.exists()


@pytest.mark.covers("R11-4", "E4")
@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--service", " EKS "), {"service": "eks"}),
        (("--service", "eks", "--accelerator", "H100", "--intent", "Training", "--os", " Ubuntu"),
         {"service": "eks", "accelerator": "h100", "intent": "training", "os": "ubuntu"}),
    ],
)  # fmt: skip
def test_case_and_blanks_are_folded(
    installed: Install, flags: tuple[str, ...], expected: dict[str, str]
) -> None:
    """Spelling differs, criteria do not: the document shows the folded words."""
    installed(WORLD)
    ran = command("recipe", *flags)
    assert ran.status == 0
    criteria = load(ran.out, source="out")["criteria"]
    assert {key: value for key, value in criteria.items() if value != "any"} == expected


@pytest.mark.covers("E4")
@pytest.mark.parametrize(
    ("word", "near"), [("h1oo", "h100"), ("h10", "h100"), ("gb30", "gb300"), ("l40ss", "l40s")]
)
def test_a_misspelt_accelerator_names_the_nearest(installed: Install, word: str, near: str) -> None:
    """A typo is answered with what was probably meant."""
    installed(WORLD)
    ran = refused("recipe", "--service", "eks", "--accelerator", word)
    assert ran.status == 2
    assert f'did you mean "{near}"?' in ran.err


@pytest.mark.covers("E4")
def test_a_known_accelerator_without_recipe_lists_what_resolves_for_the_service(
    installed: Install,
) -> None:
    """gb300 is a word we know; with no recipe for it on eks, the eks combinations are named."""
    installed(WORLD)
    ran = refused("recipe", "--service", "eks", "--accelerator", "gb300", "--intent", "training")
    assert ran.status == 2
    assert "no recipe provides accelerator 'gb300' for criteria(" in ran.err
    assert "nearest that resolve: " in ran.err
    assert "--service eks --accelerator gb200 --intent training" in ran.err


@pytest.mark.covers("R11-5")
def test_openshift_is_another_word_for_ocp(installed: Install) -> None:
    """The alias is accepted, and the document says ocp."""
    installed({**WORLD, "overlays/ocp.yaml": overlay("ocp", {"service": "ocp"})})
    ran = command("recipe", "--service", "openshift")
    assert ran.status == 0
    document = load(ran.out, source="out")
    assert document["criteria"]["service"] == "ocp"
    assert document["metadata"]["appliedOverlays"][-1] == "ocp"


@pytest.mark.covers("R11-6")
@pytest.mark.parametrize("word", ["vanilla", "self", "self-managed", "Generic"])
def test_vanilla_is_the_concrete_service_generic(installed: Install, word: str) -> None:
    """Self-managed is a service of its own, not a wildcard: without a recipe it is refused."""
    installed(WORLD)
    ran = refused("recipe", "--service", word)
    assert ran.status == 2
    assert "no recipe provides service 'generic' for criteria(service=generic)" in ran.err


@pytest.mark.covers("R11-7")
def test_a_node_count_alone_resolves_what_applies_to_everyone(installed: Install) -> None:
    """The count is metadata: base and the overlay for any intent, all criteria any."""
    installed(WORLD)
    ran = command("recipe", "--nodes", "5")
    assert ran.status == 0
    document = load(ran.out, source="out")
    assert document["metadata"]["appliedOverlays"] == ["base", "monitoring-hpa"]
    assert document["criteria"] == {
        "service": "any",
        "accelerator": "any",
        "intent": "any",
        "os": "any",
        "platform": "any",
        "nodes": 5,
    }


@pytest.mark.covers("R11-7")
def test_the_node_count_changes_nothing_but_itself(installed: Install) -> None:
    """With or without --nodes the recipe is the same, apart from criteria.nodes."""
    installed(WORLD)
    without = load(command("recipe", *TRAINING).out, source="out")
    with_nodes = load(command("recipe", *TRAINING, "--nodes", "8").out, source="out")
    assert with_nodes["criteria"].pop("nodes") == 8
    assert "nodes" not in without["criteria"]
    assert with_nodes == without


@pytest.mark.covers("R11-9")
@pytest.mark.parametrize(
    ("argv", "flag"),
    [
        (("recipe", "--service", "eks", "--service", "gke"), "--service"),
        (("recipe", "--service", "eks", "--service", "eks"), "--service"),
        (("recipe", "--accelerator", "h100", "--gpu", "h100"), "--accelerator"),
        (("recipe", "--nodes", "1", "--nodes", "2"), "--nodes"),
        (("query", "--selector", "a", "--selector", "b"), "--selector"),
    ],
)
def test_a_flag_with_one_value_is_given_once(
    installed: Install, argv: tuple[str, ...], flag: str
) -> None:
    """The second value never wins in silence, not even under the flag's other name."""
    installed(WORLD)
    ran = refused(*argv)
    assert ran.status == 2
    assert f"flag {flag} can only be specified once" in ran.err


@pytest.mark.covers("R11-10")
@pytest.mark.parametrize("chosen", ["xml", "YAML", ""])
def test_an_unknown_format_lists_the_formats(
    installed: Install, tmp_path: Path, chosen: str
) -> None:
    """Formats are yaml, json and table, spelt so; nothing is written."""
    installed(WORLD)
    target = tmp_path / "out"
    ran = refused("recipe", "--service", "eks", "--format", chosen, "-o", str(target))
    assert ran.status == 2
    expected = f'unknown output format: "{chosen}", valid formats are: yaml, json, table'
    assert expected in ran.err
    assert not target.exists()


def test_the_table_lists_flattened_fields_in_order(installed: Install) -> None:
    """The table has a header, capitalised paths with indexes, and is sorted."""
    installed(WORLD)
    ran = command("recipe", "--service", "eks", "--format", "table")
    lines = ran.out.splitlines()
    assert lines[0].split() == ["FIELD", "VALUE"]
    names = [line.split()[0] for line in lines[2:]]
    assert names == sorted(names)
    assert "ComponentRefs.[0].Chart" in names
    assert "Criteria.Service" in names


@pytest.mark.covers("R11-78")
def test_json_escapes_angle_brackets_and_ampersands(installed: Install) -> None:
    """As the original's encoder: > is written \\u003e, and reads back as it was."""
    installed(WORLD)
    ran = command("recipe", "--service", "eks", "--format", "json")
    assert ran.status == 0
    assert '"value": "\\u003e= 1.32"' in ran.out
    assert ">" not in ran.out
    assert json.loads(ran.out)["constraints"][0]["value"] == ">= 1.32"


@pytest.mark.covers("R11-17")
def test_an_accelerator_that_no_overlay_of_the_service_has_is_refused(installed: Install) -> None:
    """kind with gb200 is no recipe: the accelerator is never ignored."""
    installed(WORLD)
    ran = refused(
        "recipe", "--service", "kind", "--accelerator", "gb200", "--intent", "inference"
    )  # fmt: skip
    assert ran.status == 2
    assert (
        "no recipe provides accelerator 'gb200' for "
        "criteria(service=kind, accelerator=gb200, intent=inference)"
    ) in ran.err


@pytest.mark.covers("R11-18")
def test_a_service_whose_overlays_all_name_an_os_asks_for_it(installed: Install) -> None:
    """gke without os is incomplete, and the one valid os is named."""
    installed(WORLD)
    ran = refused("recipe", "--service", "gke")
    assert ran.status == 2
    assert "service 'gke' for criteria(service=gke) requires os (valid: cos)" in ran.err


@pytest.mark.covers("R11-19")
def test_a_platform_alone_lists_the_combinations_that_complete_it(installed: Install) -> None:
    """kubeflow needs four more words, and they are all named."""
    installed(WORLD)
    ran = refused("recipe", "--platform", "kubeflow")
    assert ran.status == 2
    assert (
        "platform 'kubeflow' requires additional criteria; supported combinations: "
        "(service=eks, accelerator=h100, intent=training, os=ubuntu)"
    ) in ran.err


@pytest.mark.covers("R11-20")
def test_two_overlays_that_never_meet_ask_for_the_os_that_joins_them(installed: Install) -> None:
    """eks and h100 apply apart; an os that would reach a joint overlay is demanded."""
    joint = overlay("joint", {"service": "eks", "accelerator": "h100", "os": "ubuntu"}, base="eks")
    installed({**WORLD, "overlays/joint.yaml": joint})
    ran = refused("recipe", "--service", "eks", "--accelerator", "h100")
    assert ran.status == 2
    assert (
        "criteria(service=eks, accelerator=h100) has no recipe covering that combination; "
        "specify os (valid: ubuntu)"
    ) in ran.err


@pytest.mark.covers("R11-20")
def test_two_overlays_that_never_meet_are_fine_when_no_os_joins_them(installed: Install) -> None:
    """Without a joint overlay to reach, the separate ones are the recipe."""
    installed(WORLD)
    ran = command("recipe", "--service", "eks", "--accelerator", "h100")
    assert ran.status == 0
    applied = load(ran.out, source="out")["metadata"]["appliedOverlays"]
    assert applied == ["base", "monitoring-hpa", "eks", "h100-any"]


@pytest.mark.covers("R11-21")
def test_an_os_that_the_service_does_not_have_is_refused(installed: Install) -> None:
    """rhel is a word we know and eks has no recipe for."""
    installed(WORLD)
    ran = refused("recipe", "--service", "eks", "--os", "rhel")
    assert ran.status == 2
    assert "no recipe provides os 'rhel' for criteria(service=eks, os=rhel)" in ran.err


@pytest.mark.covers("E3")
def test_an_os_alone_is_incomplete_and_not_the_base_recipe(installed: Install) -> None:
    """Nothing is resolved from base alone; the missing words and the nearest recipes are named."""
    installed(WORLD)
    ran = refused("recipe", "--os", "ubuntu")
    assert ran.status == 2
    assert "os 'ubuntu' requires additional criteria; supported combinations: (" in ran.err
    assert "nearest that resolve: --service eks --accelerator h100 --intent training" in ran.err


def test_the_whole_chain_is_applied_root_first(installed: Install) -> None:
    """appliedOverlays lists every merged ancestor, the least specific leaf first."""
    installed(WORLD)
    document = load(command("recipe", *KUBEFLOW).out, source="out")
    assert document["metadata"]["appliedOverlays"] == [
        "base",
        "monitoring-hpa",
        "h100-any",
        "eks",
        "eks-training",
        "h100-eks-training",
        "h100-eks-ubuntu-training",
        "h100-eks-ubuntu-training-kubeflow",
    ]


def test_a_recipe_file_is_written_whole_and_says_the_same_as_stdout(
    installed: Install, tmp_path: Path
) -> None:
    """-o writes the bytes that stdout would have got, and stdout gets none."""
    installed(WORLD)
    target = tmp_path / "recipe.yaml"
    shown = command("recipe", *KUBEFLOW)
    written = command("recipe", *KUBEFLOW, "-o", str(target))
    assert written.status == 0
    assert written.out == ""
    assert target.read_text() == shown.out
    assert list(tmp_path.glob("recipe.yaml*")) == [target]
