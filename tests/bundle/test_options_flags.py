"""Placement, storage and deployer flags: what each text means, and what is refused."""

from __future__ import annotations

from typing import Any, cast

import pytest

from aicr.bundle import options
from aicr.errors import INVALID_REQUEST, AicrError

FLAG = "--accelerated-node-toleration"


@pytest.mark.covers("D1", "B10-26", "C-036")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "nvidia.com/gpu=present:NoSchedule",
            {
                "key": "nvidia.com/gpu",
                "operator": "Equal",
                "value": "present",
                "effect": "NoSchedule",
            },
        ),
        (
            "nvidia.com/gpu:NoSchedule",
            {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        ),
        (
            "nvidia.com/gpu=:NoSchedule",
            {"key": "nvidia.com/gpu", "operator": "Equal", "effect": "NoSchedule"},
        ),
        ("nvidia.com/gpu", {"key": "nvidia.com/gpu", "operator": "Exists"}),
        (
            "nvidia.com/gpu=present",
            {"key": "nvidia.com/gpu", "operator": "Equal", "value": "present"},
        ),
        (
            "gpu=true:NoSchedule",
            {"key": "gpu", "operator": "Equal", "value": "true", "effect": "NoSchedule"},
        ),
        ("k:PreferNoSchedule", {"key": "k", "operator": "Exists", "effect": "PreferNoSchedule"}),
        ("k:NoExecute", {"key": "k", "operator": "Exists", "effect": "NoExecute"}),
    ],
)
def test_a_toleration_is_read_as_kubectl_reads_a_taint(text: str, expected: dict[str, Any]) -> None:
    """Value, existence, empty value and missing effect are four different tolerations."""
    assert options.parse_tolerations([text], FLAG) == [expected]


@pytest.mark.covers("D1", "B10-27")
@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (":NoSchedule", ""),
        ("*:NoSchedule", "without wildcards"),
        ("=b:NoSchedule", ""),
        ("", ""),
        ("a=b:noschedule", "write a=b:NoSchedule"),
        ("gpu:Foo", ""),
        ("a=b:", ""),
        ("a:b:NoSchedule", "key[=value][:Effect]"),
        ("a=b:NoSchedule:60", ""),
        ("a=b=c:NoSchedule", ""),
        ("a=b:NoSchedule,c:NoExecute", "repeat the flag"),
        ("a=b,c", "repeat the flag"),
        ("a b:NoSchedule", ""),
        ("a=b :NoSchedule", ""),
        ("a:NoSchedule\n", ""),
        ("a\n:NoSchedule", ""),
        ("-a:NoSchedule", ""),
        ("UPPER.example/a:NoSchedule", ""),
        ("ａ:NoSchedule", ""),
        ("a=" + "v" * 64, "at most 63"),
    ],
)
def test_a_toleration_no_taint_can_match_is_refused(text: str, hint: str) -> None:
    """Wildcards, lower-case effects, extra colons and lists are errors that say what to write."""
    with pytest.raises(AicrError) as caught:
        options.parse_tolerations([text], FLAG)
    assert caught.value.code == INVALID_REQUEST
    assert caught.value.where == FLAG
    assert FLAG in caught.value.message
    assert hint in caught.value.hint


def test_a_repeated_toleration_counts_once_and_order_is_kept() -> None:
    """A flag given twice with one text is harmless."""
    parsed = options.parse_tolerations(["b", "a", "b"], FLAG)
    assert [entry["key"] for entry in parsed] == ["b", "a"]


def test_no_toleration_flag_gives_no_entries() -> None:
    """The tolerate-all default is placement's business, so that it can tell flag from default."""
    assert options.parse_tolerations([], FLAG) == []


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([], {}),
        (["a=b"], {"a": "b"}),
        (["a="], {"a": ""}),
        (["a=b", "c.io/d=e"], {"a": "b", "c.io/d": "e"}),
        (["a=b", "a=b"], {"a": "b"}),
    ],
)
def test_a_selector_is_a_map_of_labels(entries: list[str], expected: dict[str, str]) -> None:
    """Each text is split at its first equals sign, and an empty value is a value."""
    assert options.parse_selector(entries, "--system-node-selector") == expected


@pytest.mark.parametrize(
    "entries",
    [["a"], ["=b"], ["a=b=c"], ["a=b,c=d"], ["a=b c"], ["a=b", "a=c"], ["a/b/c=d"], ["/a=b"], [""]],
)
def test_a_selector_that_matches_no_node_is_refused(entries: list[str]) -> None:
    """A missing equals sign, a malformed label or two values for one key name the flag."""
    with pytest.raises(AicrError) as caught:
        options.parse_selector(entries, "--system-node-selector")
    assert caught.value.code == INVALID_REQUEST
    assert caught.value.where == "--system-node-selector"


@pytest.mark.parametrize(
    ("text", "taint", "line"),
    [
        (
            "a.io/b=c:NoSchedule",
            {"key": "a.io/b", "value": "c", "effect": "NoSchedule"},
            "a.io/b=c:NoSchedule",
        ),
        ("a:NoExecute", {"key": "a", "effect": "NoExecute"}, "a:NoExecute"),
        ("a=:NoExecute", {"key": "a", "effect": "NoExecute"}, "a:NoExecute"),
    ],
)
def test_a_taint_goes_back_to_one_line(text: str, taint: dict[str, Any], line: str) -> None:
    """The workload gate is kept as fields and written as key, value and effect in one string."""
    parsed = options.parse_taint(text, "--workload-gate")
    assert parsed == taint
    assert options.taint_text(taint) == line


@pytest.mark.parametrize("text", ["a", "a=b", ":NoSchedule", "a:Nope", " "])
def test_a_taint_needs_key_and_effect(text: str) -> None:
    """Unlike a toleration, a taint without an effect is nothing."""
    with pytest.raises(AicrError, match="--workload-gate"):
        options.parse_taint(text, "--workload-gate")


def test_an_empty_workload_gate_is_no_gate() -> None:
    """An empty flag masks what a configuration file says."""
    assert options.parse_taint("", "--workload-gate") is None


@pytest.mark.covers("B10-3")
@pytest.mark.parametrize("text", ["helm", "HELM ", " Helm", ""])
def test_the_deployer_is_read_in_any_letter_case(text: str) -> None:
    """Blanks and letter case do not matter, and empty means helm."""
    assert options.parse_deployer(text) == "helm"


@pytest.mark.covers("B10-4")
def test_an_unknown_deployer_lists_the_valid_ones_in_order() -> None:
    """The message holds every valid name, sorted."""
    with pytest.raises(AicrError, match="must be one of flux, helm, terraform") as caught:
        options.parse_deployer("kustomize", ("terraform", "helm", "flux"))
    assert caught.value.code == INVALID_REQUEST


def test_a_mistyped_deployer_gets_the_nearest_name() -> None:
    """A typo is helped."""
    with pytest.raises(AicrError) as caught:
        options.parse_deployer("hlem")
    assert caught.value.hint == "did you mean helm?"


@pytest.mark.covers("B10-82")
@pytest.mark.parametrize("value", [-1, True, 1.5, "3"])
def test_a_node_estimate_is_a_whole_number_from_zero(value: Any) -> None:
    """Negative figures and other types are refused."""
    with pytest.raises(AicrError, match="invalid --nodes"):
        options.parse_nodes(value)


@pytest.mark.covers("B10-39")
@pytest.mark.parametrize("text", [" ", "\t", "", "Gp3", "gp3,io2", "gp3\n x", "a" * 254])
def test_a_storage_class_is_a_non_blank_object_name(text: str) -> None:
    """A flag that is given must name a class that can exist."""
    with pytest.raises(AicrError) as caught:
        options.parse_storage_class(text, "--storage-class")
    assert caught.value.code == INVALID_REQUEST


def test_a_storage_class_is_trimmed() -> None:
    """Blanks around the name are not part of it."""
    assert options.parse_storage_class(" gp3 ", "--storage-class") == "gp3"


@pytest.mark.covers("B10-39")
@pytest.mark.parametrize("field", ["storage_class", "shared_storage_class"])
def test_blank_storage_classes_are_refused_with_their_flag(field: str) -> None:
    """Each of the two flags is checked under its own name."""
    with pytest.raises(AicrError) as caught:
        options.parse_scheduling(options.BundleOptions(**cast("Any", {field: " "})))
    assert caught.value.where == "--" + field.replace("_", "-")


def test_options_that_were_not_given_are_empty() -> None:
    """Without flags nothing is scheduled, gated or classed."""
    scheduling = options.parse_scheduling(options.BundleOptions())
    assert [getattr(scheduling, name) for name in scheduling.__slots__] == [
        {},
        [],
        0,
        "",
        "",
        {},
        [],
        None,
        {},
    ]


def test_every_flag_reaches_its_field() -> None:
    """The two node classes and the two storage classes are not mixed up."""
    scheduling = options.parse_scheduling(
        options.BundleOptions(
            system_node_selector=["s=1"],
            system_node_tolerations=["st"],
            accelerated_node_selector=["a=1"],
            accelerated_node_tolerations=["at"],
            workload_selector=["w=1"],
            workload_gate="g:NoSchedule",
            nodes=4,
            storage_class="block",
            shared_storage_class="shared",
        )
    )
    assert scheduling.system_selector == {"s": "1"}
    assert scheduling.system_tolerations == [{"key": "st", "operator": "Exists"}]
    assert scheduling.accelerated_selector == {"a": "1"}
    assert scheduling.accelerated_tolerations == [{"key": "at", "operator": "Exists"}]
    assert scheduling.workload_selector == {"w": "1"}
    assert scheduling.workload_gate == {"key": "g", "effect": "NoSchedule"}
    assert scheduling.nodes == 4
    assert scheduling.storage_class == "block"
    assert scheduling.shared_storage_class == "shared"
