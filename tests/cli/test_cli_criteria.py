"""`aicr recipe` and `aicr query`: criteria from flags and files, and what wrong ones are answered with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from tests.cli.program import CRITERIA, EKS, aicr

GOOD = "kind: RecipeCriteria\napiVersion: aicr.run/v1\nmetadata: {name: mine}\nspec:\n"


def criteria_file(folder: Path, body: str, name: str = "criteria.yaml") -> Path:
    """A file with the given text."""
    path = folder / name
    path.write_text(body, encoding="utf-8")
    return path


@pytest.mark.covers("R11-1", "R11-2", "R11-8")
@pytest.mark.parametrize(
    "flags", [(), ("--service", "any"), ("--nodes", "-3"), ("--nodes=0",)], ids=" ".join
)
def test_stating_nothing_is_refused_with_what_could_be_stated(flags: tuple[str, ...]) -> None:
    """Rows 1, 2 and 8: no criteria is a usage error that lists the flags and shows an example."""
    aicr("recipe", *flags).refused(
        2,
        "no criteria provided: specify at least one of --service, --accelerator, --intent, --os, "
        "--platform, --nodes, --criteria, or use --snapshot to load from a snapshot file",
        "next: for example: --service eks",
    )


@pytest.mark.covers("R11-3")
@pytest.mark.parametrize(
    ("flag", "word", "near", "some"),
    [
        ("--service", "ekss", "eks", "allowed: aks, bcm, eks"),
        ("--accelerator", "h1OO", "h100", "gb200"),
        ("--gpu", "b2000", "b200", "h100"),
        ("--intent", "trainng", "training", "inference"),
        ("--os", "ubunut", "ubuntu", "cos"),
        ("--platform", "kubflow", "kubeflow", "slurm"),
    ],
)
def test_an_unknown_value_is_answered_with_the_nearest_and_all_allowed(
    flag: str, word: str, near: str, some: str
) -> None:
    """Row 3: the words of the specification, the flag, the nearest value and the list of values."""
    found = aicr("recipe", flag, word)
    field = {"--gpu": "accelerator", "--os": "OS"}.get(flag, flag[2:])
    inner = "os" if flag == "--os" else field
    found.refused(2, f"failed to parse {field} type", f"invalid {inner} type: {word}")
    assert f"where: --{inner}" in found.err
    assert f'did you mean "{near}"? allowed: ' in found.err
    assert some in found.err


@pytest.mark.parametrize(
    ("flag", "word", "meant"),
    [
        ("--service", "AWS", "eks"),
        ("--service", "azure", "aks"),
        ("--service", "gcp", "gke"),
        ("--service", "oracle", "oke"),
        ("--os", "redhat", "rhel"),
        ("--intent", "train", "training"),
    ],
)
def test_the_name_of_a_cloud_is_answered_with_its_service(flag: str, word: str, meant: str) -> None:
    """By spelling alone aws is nearest to aks, which is another cloud's."""
    found = aicr("recipe", flag, word)
    found.refused(2, f"invalid {flag[2:]} type: {word}", f'did you mean "{meant}"? allowed: ')


def test_a_value_near_to_nothing_gets_the_list_alone() -> None:
    """An unrelated word is not answered with a guess."""
    found = aicr("recipe", "--service", "mainframe")
    found.refused(2, "invalid service type: mainframe", "next: allowed: aks")
    assert "did you mean" not in found.err


@pytest.mark.covers("R11-4")
@pytest.mark.parametrize(
    ("field", "word"),
    [("service", " EKS "), ("accelerator", "H100"), ("intent", "TRAINING\n"), ("os", "Ubuntu")],
)
def test_words_are_trimmed_and_lowered(field: str, word: str) -> None:
    """Row 4: what a person types is normalised, and printed in its normal form."""
    flags = {**CRITERIA, field: word}
    found = aicr("recipe", *(part for key, value in flags.items() for part in (f"--{key}", value)))
    assert found.status == 0, found.err
    assert yaml.safe_load(found.out)["criteria"] == {**CRITERIA, "platform": "any"}


@pytest.mark.covers("R11-5")
def test_an_alias_is_answered_under_its_real_name() -> None:
    """Row 5: openshift is ocp, in what is printed and in what is matched."""
    real = aicr("recipe", "--service", "ocp")
    assert (real.status, real.err.count("error")) == (0, 0)
    assert aicr("recipe", "--service", "OpenShift") == real


@pytest.mark.covers("R11-6")
def test_vanilla_is_a_service_like_others() -> None:
    """Row 6: it means generic, for which there is no recipe, and not any service at all."""
    aicr("recipe", "--service", "vanilla").refused(2, "service 'generic'")


@pytest.mark.covers("R11-7")
def test_a_node_count_alone_selects_nothing() -> None:
    """Row 7: nodes is recorded; the recipe is the base with what holds for any intent."""
    found = aicr("recipe", "--nodes", "5")
    document = yaml.safe_load(found.out)
    assert found.status == 0
    assert document["metadata"]["appliedOverlays"] == ["base", "monitoring-hpa"]
    assert document["criteria"] == {
        **dict.fromkeys(("service", "accelerator", "intent", "os", "platform"), "any"),
        "nodes": 5,
    }


@pytest.mark.covers("R11-9")
@pytest.mark.parametrize(
    ("argv", "flag"),
    [
        (["recipe", "--service", "eks", "--service", "gke"], "--service"),
        (["recipe", "--accelerator", "h100", "--gpu", "h100"], "--accelerator"),
        (["recipe", "-o", "a", "--output", "b"], "--output"),
        (["query", "--selector", "a", "--selector=b"], "--selector"),
        (["bundle", "-r", "a", "-r", "a"], "--recipe"),
        (["bundle", "--storage-class", "a", "--storage-class", "b"], "--storage-class"),
    ],
)
def test_a_single_value_flag_given_twice_is_refused(argv: list[str], flag: str) -> None:
    """Row 9: the second value is never silently preferred."""
    aicr(*argv).refused(
        2, f"flag {flag} can only be specified once", f"where: {flag}\n  next: keep one of the two"
    )


@pytest.mark.covers("R11-10")
def test_an_unknown_output_format_lists_the_formats() -> None:
    """Row 10: the text of the specification, and the nearest."""
    aicr("recipe", *EKS, "--format", "jsn").refused(
        2, 'unknown output format: "jsn", valid formats are: yaml, json, table', "json?"
    )
    aicr("recipe", *EKS, "--format", "xml").refused(
        2, 'unknown output format: "xml", valid formats are: yaml, json, table'
    )


@pytest.mark.covers("R11-11")
def test_a_query_without_selector_is_a_usage_error() -> None:
    """Row 11 as decision 46 has it: exit 2, with an example of a selector."""
    aicr("query", *EKS).refused(2, 'Required flag "selector" not set', "--selector components.")


@pytest.mark.covers("R11-12", "R11-14", "R11-16")
@pytest.mark.parametrize(
    ("selector", "words"),
    [
        ("foo", ['key "foo" not found, available keys: apiVersion, components,']),
        ("components.gpu-operatr", ['key "gpu-operatr" not found', 'did you mean "gpu-operator"?']),
        ("deploymentOrder.0", ['cannot descend into non-map value at "0"']),
        ("components.cert-manager.dependencyRefs", ['key "dependencyRefs" not found']),
        ("components..version", ['key "" not found']),
    ],
)
def test_a_selector_that_leads_nowhere_says_what_there_is(selector: str, words: list[str]) -> None:
    """Rows 12, 14 and 16: NOT_FOUND, exit 3, nothing on stdout."""
    aicr("query", *EKS, "--selector", selector).refused(3, f'selector "{selector}"', *words)


@pytest.mark.covers("R11-13", "R11-15")
def test_a_scalar_is_printed_bare_and_json_quotes_it() -> None:
    """Row 13: one leading dot is allowed; a script gets the value without quotes."""
    path = ".components.gpu-operator.version"
    bare = aicr("query", *EKS, "--selector", path)
    quoted = aicr("query", *EKS, "--selector", path, "--format", "json")
    assert (bare.status, quoted.status) == (0, 0)
    assert bare.out.startswith("v")
    assert json.loads(quoted.out) == bare.out.strip()


@pytest.mark.covers("R11-15")
@pytest.mark.parametrize("selector", ["", "."])
def test_an_empty_selector_is_the_whole_document(selector: str) -> None:
    """Row 15: everything, with all six criteria and values filled in."""
    found = aicr("query", *EKS, "--selector", selector)
    document = yaml.safe_load(found.out)
    assert found.status == 0
    assert document["criteria"] == {**CRITERIA, "platform": "any", "nodes": 0}
    assert document["components"]["gpu-operator"]["values"]["driver"]


@pytest.mark.covers("R11-18", "R11-19", "R11-21")
@pytest.mark.parametrize(
    ("flags", "message", "hint"),
    [
        (
            ["--service", "gke"],
            "service 'gke' for criteria(service=gke) requires os (valid: cos)",
            "nearest that resolve: --service gke",
        ),
        (
            ["--platform", "kubeflow"],
            "platform 'kubeflow' requires additional criteria; supported combinations: (",
            "nearest that resolve: --service ",
        ),
        (
            ["--service", "eks", "--os", "rhel"],
            "no recipe provides os 'rhel' for criteria(service=eks, os=rhel)",
            "nearest that resolve: --service eks",
        ),
    ],
)
def test_an_unsupported_combination_names_the_nearest_that_resolve(
    flags: list[str], message: str, hint: str
) -> None:
    """Rows 18 to 21: the refusal is a way on, as flags that can be pasted."""
    found = aicr("recipe", *flags)
    found.refused(2, message, hint)
    offered = next(line for line in found.lines if "nearest that resolve: " in line)
    for choice in offered.partition("nearest that resolve: ")[2].split(" | "):
        assert aicr("recipe", *choice.split()).status == 0, choice


@pytest.mark.covers("R11-22", "R11-23", "R11-24")
@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            GOOD + "  accelerator: zzz\n",
            ["invalid accelerator in criteria spec", "invalid accelerator type: zzz", ":5:16"],
        ),
        (GOOD + "  nodes: -1\n", ["invalid nodes count: -1 (must be >= 0)", ":5:10"]),
        (GOOD + "  os: 24.04\n", ["os must be a string", ":5:7", 'quote it: "24.04"']),
        (GOOD + "  service: [eks]\n", ["service must be a string", ":5:"]),
        (GOOD.replace("spec:", "spec: [eks]"), ["criteria must be a map", ":4:"]),
        (GOOD.replace("RecipeCriteria", "Foo"), ['invalid kind "Foo", expected "RecipeCriteria"']),
        (
            GOOD.replace("aicr.run/v1", "aicr.run/v1alpha2"),
            ['invalid apiVersion "aicr.run/v1alpha2", expected "aicr.run/v1"', "retired"],
        ),
        (GOOD + "  service: eks\n  service: gke\n", ["line 5", "line 6", ":6:3"]),
        (GOOD + "  service: 'eks\n", ["invalid YAML", "criteria.yaml:5:12", "close the quotes"]),
        (GOOD + "\tservice: eks\n", ["criteria.yaml:5:1", "spaces, not tabs"]),
        (GOOD + "  service: eks\n---\na: b\n", ["criteria.yaml:6:"]),
        ("- a\n", ["expected a RecipeCriteria document, found a list"]),
        ("", ["expected a RecipeCriteria document, found nothing"]),
    ],
)
def test_a_wrong_criteria_file_is_refused_with_its_place(
    body: str, words: list[str], tmp_path: Path
) -> None:
    """Rows 22 to 24, and every way to write YAML that is not what was meant."""
    found = aicr("recipe", "--criteria", criteria_file(tmp_path, body))
    found.refused(2, *words, "criteria.yaml")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"kind": "RecipeCriteria"\n "a": 1}', ["not valid JSON", "criteria.json:2:2"]),
        (
            '{"kind": "RecipeCriteria", "apiVersion": "aicr.run/v1",\n "spec": {"os": "cos",\n'
            '  "os": "ubuntu"}}',
            ['duplicate key "os": already set on line 2, again on line 3', "criteria.json:3:3"],
        ),
        (
            '{\n\t"kind": "RecipeCriteria",\n\t"apiVersion": "aicr.run/v1",\n\t"spec": '
            '{"os": "beos"}\n}',
            ["invalid os in criteria spec", "invalid os type: beos", "criteria.json:4:17"],
        ),
        ('{"kind": NaN}', ["NaN is not JSON", "criteria.json:1:10"]),
        ('{"kind": "\\ud800"}', ["half a surrogate pair"]),
        ("kind: RecipeCriteria\n", ["not valid JSON", "criteria.json:1:1"]),
    ],
)
def test_a_wrong_json_criteria_file_is_refused_with_its_place(
    body: str, words: list[str], tmp_path: Path
) -> None:
    """JSON is held to what YAML is held to: places, both lines of a duplicate key, no NaN."""
    aicr("recipe", "--criteria", criteria_file(tmp_path, body, "criteria.json")).refused(2, *words)


@pytest.mark.covers("R11-25", "R11-26")
def test_flags_win_over_the_file_field_by_field(tmp_path: Path) -> None:
    """Rows 25 and 26: an unknown key is ignored, and a flag replaces one field only."""
    path = criteria_file(
        tmp_path,
        GOOD + "  service: eks\n  accelerator: H100\n  intent: training\n  bogus: 1\n  nodes: 8\n",
    )
    found = aicr("recipe", "--criteria", path, "--service", "gke", "--os", "cos")
    assert found.status == 0
    document = yaml.safe_load(found.out)
    assert document["criteria"] == {
        "service": "gke",
        "accelerator": "h100",
        "intent": "training",
        "os": "cos",
        "platform": "any",
        "nodes": 8,
    }
    assert "h100-gke-cos-training" in document["metadata"]["appliedOverlays"]


@pytest.mark.parametrize("name", ["criteria.yml", "criteria", "criteria.json"])
def test_yaml_and_json_files_give_the_same_recipe(name: str, tmp_path: Path) -> None:
    """The format goes by the name; a name without extension is YAML, of which JSON is a part."""
    body = GOOD + "".join(f"  {key}: {value}\n" for key, value in CRITERIA.items())
    if name.endswith("json"):
        body = json.dumps(yaml.safe_load(body), indent="\t")
    found = aicr("recipe", "--criteria", criteria_file(tmp_path, body, name))
    assert found.status == 0, found.err
    assert found.out == aicr("recipe", *EKS).out


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            GOOD + "  acelerator: h100\n",
            'criteria.yaml:5:15: unknown key "acelerator" is ignored; did you mean "accelerator"?',
        ),
        (GOOD + "  cloud: x\n", 'unknown key "cloud" is ignored; known: service, accelerator'),
        (GOOD.replace("spec:", "os: cos\nspec:"), '"os" is ignored at the top of the file'),
    ],
    ids=["misspelt", "unknown", "not under spec"],
)
def test_a_key_of_a_criteria_file_that_counts_for_nothing_is_said(
    body: str, said: str, tmp_path: Path
) -> None:
    """Ignored in silence, it would give a wider recipe than was meant."""
    file = criteria_file(tmp_path, body)
    found = aicr("recipe", "--criteria", file, "--service", "eks", "--intent", "training")
    assert found.status == 0, found.err
    assert [said in line for line in found.lines if line.startswith("warning: ")] == [True]


def test_a_criteria_file_of_another_format_is_refused(tmp_path: Path) -> None:
    """A table or a text file cannot be read back; the name says so before anything is read."""
    aicr("recipe", "--criteria", tmp_path / "criteria.txt").refused(
        2, "cannot tell the format of criteria file", ".yaml, .yml or .json"
    )


def test_an_old_criteria_file_is_read_with_one_notice(tmp_path: Path) -> None:
    """Decision 1: what v0.11.1 wrote is accepted, and one line says that it will not always be."""
    body = GOOD.replace("aicr.run/v1", "aicr.nvidia.com/v1alpha1") + "  service: eks\n"
    found = aicr("recipe", "--criteria", criteria_file(tmp_path, body), *EKS[2:])
    assert found.status == 0
    assert [line for line in found.lines if "aicr.nvidia.com" in line] == [
        f'warning: {tmp_path}/criteria.yaml: RecipeCriteria has apiVersion "aicr.nvidia.com/v1alpha1"'
        f', read as "aicr.run/v1"; rewrite it with aicr migrate'
    ]


@pytest.mark.covers("R11-80")
@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--slurm-accounting-mode", "x"], ["only be set when recipe platform is slurm"]),
        (["--runtime-inventory", "maybe"], ['invalid runtime inventory "maybe"', "enabled"]),
        (["--gke-tcpxo-interfaces", "eth1"], ["invalid interface mapping", "eth1=<network>"]),
        (["--profile", "gpuStack"], ["name=value", "--profile gpuStack="]),
        (["--profile", "a=b"], ["profile"]),
    ],
)
def test_a_typed_choice_that_cannot_be_made_names_its_flag(
    flags: list[str], words: list[str]
) -> None:
    """Row 80 and its siblings: the flag is named and the form is shown."""
    aicr("recipe", *EKS, *flags).refused(2, *words)


def test_strict_criteria_come_from_the_flag_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 40: a word that only --data teaches is refused when strict."""
    (tmp_path / "registry.yaml").write_text(
        "kind: ComponentRegistry\napiVersion: aicr.run/v1beta1\ncomponents: []\n"
    )
    overlays = tmp_path / "overlays"
    overlays.mkdir()
    (overlays / "mine.yaml").write_text(
        "kind: RecipeMetadata\napiVersion: aicr.run/v1beta1\nmetadata: {name: mine}\n"
        "spec: {criteria: {service: mycloud}}\n"
    )
    flags = ("recipe", "--data", tmp_path, "--service", "mycloud")
    assert aicr(*flags).status == 0
    aicr(*flags, "--criteria-strict").refused(2, "invalid service type: mycloud")
    monkeypatch.setenv("AICR_CRITERIA_STRICT", "1")
    aicr(*flags).refused(2, "invalid service type: mycloud")
