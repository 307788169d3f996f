"""Measurement paths: grammar, refusals, fetching a reading, rendering it."""

from __future__ import annotations

from typing import Any

import pytest

from aicr.constraints import paths
from aicr.errors import CONFLICT, INVALID_REQUEST, NOT_FOUND, AicrError

SNAPSHOT: dict[str, Any] = {
    "metadata": {"source-node": "node-a"},
    "measurements": [
        {
            "type": "OS",
            "subtypes": [
                {"subtype": "release", "data": {"ID": "first", "VERSION_ID": "24.04"}},
                {"subtype": "release", "data": {"ID": "second", "LATE": "x"}},
                {"subtype": "sysctl", "data": {"/proc/sys/kernel/osrelease": "6.8.0-1028-aws"}},
                {"subtype": "grub", "data": {"nokaslr": "", "nothing": None}},
            ],
        },
        {"type": "OS", "subtypes": [{"subtype": "other", "data": {"KEY": "late"}}]},
        {
            "type": "SystemD",
            "subtypes": [{"subtype": "containerd.service", "data": {"ActiveState": "active"}}],
        },
        {
            "type": "NetworkTopology",
            "subtypes": [
                {
                    "subtype": "pfs",
                    "items": [
                        {
                            "context": {"traffic": "east-west", "rail": "ignored"},
                            "data": {"rail": 0, "pciAddress": "0000:03:00.0"},
                        },
                        {"context": {"traffic": "east-west"}, "data": {"rail": 1, "up": True}},
                        {"context": {"traffic": "north-south"}},
                    ],
                },
                {"subtype": "identity", "data": {"pf-count": 3}},
            ],
        },
    ],
}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("K8s.server.version", ("K8s", "server", "version", None)),
        (
            "OS.sysctl./proc/sys/kernel/osrelease",
            ("OS", "sysctl", "/proc/sys/kernel/osrelease", None),
        ),
        ("GPU.smi.gpu.model", ("GPU", "smi", "gpu.model", None)),
        ("NetworkTopology.pfs[0].rail", ("NetworkTopology", "pfs", "rail", 0)),
        ("NetworkTopology.pfs[12].a.b", ("NetworkTopology", "pfs", "a.b", 12)),
        (
            "NetworkTopology.pfs[pciAddress=0000:03:00.0].rail",
            ("NetworkTopology", "pfs", "rail", ("pciAddress", "0000:03:00.0")),
        ),
        ("K8s.x[a=b=c].k", ("K8s", "x", "k", ("a", "b=c"))),
        ("OS.kmod.a[0]", ("OS", "kmod", "a[0]", None)),
    ],
)
def test_a_path_is_type_subtype_and_key(text: str, parts: tuple[Any, ...]) -> None:
    """The subtype ends at the first dot; a bracket before it selects an item (8.2)."""
    path = paths.parse(text)
    assert (path.type, path.subtype, path.key, path.selector) == parts
    assert path.text == text


@pytest.mark.covers("R11-63")
@pytest.mark.parametrize(
    ("text", "subtype", "key"),
    [
        ("SystemD.containerd.service.ActiveState", "containerd.service", "ActiveState"),
        ("SystemD.kubelet.SubState", "kubelet", "SubState"),
    ],
)
def test_a_systemd_unit_keeps_its_dots(text: str, subtype: str, key: str) -> None:
    """SystemD paths are split at the last dot, because unit names have dots."""
    path = paths.parse(text)
    assert (path.subtype, path.key) == (subtype, key)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "constraint path cannot be empty"),
        ("  ", "constraint path cannot be empty"),
        (
            "K8s",
            "invalid constraint path: expected format {Type}.{Subtype}[selector].{Key}",
        ),
        ("K8s.server", "invalid constraint path: expected format {Type}.{Subtype}.{Key}"),
        ("K8s.", "invalid constraint path: expected format {Type}.{Subtype}.{Key}"),
        ("Foo.a.b", "invalid measurement type in constraint path"),
        ("k8s.server.version", "invalid measurement type in constraint path"),
        (".server.version", "invalid measurement type in constraint path"),
        ("Deployment.gpu-operator.version", "invalid measurement type in constraint path"),
        ("K8s..x", "invalid constraint path: subtype or key is empty"),
        ("K8s.a.", "invalid constraint path: subtype or key is empty"),
        ("SystemD..x", "invalid constraint path: subtype or key is empty"),
        ("NetworkTopology.[0].x", "invalid constraint path: subtype before '[' is empty"),
        ("NetworkTopology.pfs[0.x", "invalid constraint path: unclosed item selector bracket"),
        ("NetworkTopology.pfs[].x", "invalid constraint path: item selector is empty"),
        (
            "NetworkTopology.pfs[=3].x",
            "invalid constraint path: predicate selector requires non-empty key and value",
        ),
        (
            "NetworkTopology.pfs[rail=].x",
            "invalid constraint path: predicate selector requires non-empty key and value",
        ),
        (
            "NetworkTopology.pfs[abc].x",
            "invalid constraint path: item selector must be an integer index "
            "or 'key=value' predicate",
        ),
        (
            "NetworkTopology.pfs[１].x",
            "invalid constraint path: item selector must be an integer index "
            "or 'key=value' predicate",
        ),
        (
            "NetworkTopology.pfs[99999999999].x",
            "invalid constraint path: item selector must be an integer index "
            "or 'key=value' predicate",
        ),
        (
            "NetworkTopology.pfs[-].x",
            "invalid constraint path: item selector must be an integer index "
            "or 'key=value' predicate",
        ),
        ("NetworkTopology.pfs[-1].x", "invalid constraint path: item index cannot be negative"),
        ("NetworkTopology.pfs[0]", "invalid constraint path: missing key after item selector"),
        ("NetworkTopology.pfs[0].", "invalid constraint path: missing key after item selector"),
        ("NetworkTopology.pfs[0]x", "invalid constraint path: expected '.' after item selector"),
    ],
)
def test_a_malformed_path_is_refused_with_its_message(text: str, message: str) -> None:
    """The messages of the table in recipe spec 8.2, word for word."""
    with pytest.raises(AicrError) as caught:
        paths.parse(text)
    assert (caught.value.code, caught.value.message) == (INVALID_REQUEST, message)
    assert caught.value.hint


def test_an_unknown_type_lists_the_valid_ones() -> None:
    """Programs get the valid types as data, people as a hint."""
    with pytest.raises(AicrError) as caught:
        paths.parse("Foo.a.b")
    assert caught.value.context["validTypes"] == list(paths.TYPES)
    assert "NodeTopology" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "reading"),
    [
        ("OS.release.ID", "first"),
        ("OS.sysctl./proc/sys/kernel/osrelease", "6.8.0-1028-aws"),
        ("OS.grub.nokaslr", ""),
        ("SystemD.containerd.service.ActiveState", "active"),
        ("NetworkTopology.pfs[0].rail", "0"),
        ("NetworkTopology.pfs[rail=1].up", "true"),
        ("NetworkTopology.pfs[rail=0].traffic", "east-west"),
        ("NetworkTopology.pfs[traffic=north-south].traffic", "north-south"),
        ("NetworkTopology.identity.pf-count", "3"),
    ],
)
def test_a_reading_is_fetched_from_the_first_of_each_name(text: str, reading: str) -> None:
    """First measurement and first subtype win; items prefer data over context (8.2)."""
    assert paths.extract(SNAPSHOT, paths.parse(text)) == reading


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("GPU.smi.driver-version", NOT_FOUND, "measurement type not found in snapshot"),
        ("OS.other.KEY", NOT_FOUND, "subtype not found in measurement"),
        ("OS.release.LATE", NOT_FOUND, "key not found in subtype"),
        ("OS.grub.nothing", NOT_FOUND, "key not found in subtype"),
        ("NetworkTopology.pfs.rail", NOT_FOUND, "key not found in subtype"),
        (
            "OS.release[0].ID",
            NOT_FOUND,
            "subtype has no items but path uses an item selector",
        ),
        ("NetworkTopology.pfs[3].rail", NOT_FOUND, "item index out of bounds"),
        ("NetworkTopology.pfs[rail=9].up", NOT_FOUND, "no item matches predicate"),
        ("NetworkTopology.pfs[rail=ignored].up", NOT_FOUND, "no item matches predicate"),
        ("NetworkTopology.pfs[2].rail", NOT_FOUND, "key not found in item"),
        (
            "NetworkTopology.pfs[traffic=east-west].rail",
            CONFLICT,
            "item predicate matches multiple entries",
        ),
    ],
)
def test_what_is_absent_or_ambiguous_is_said_step_by_step(
    text: str, code: str, message: str
) -> None:
    """Codes and messages of recipe spec 8.2; absence is never an empty text."""
    with pytest.raises(AicrError) as caught:
        paths.extract(SNAPSHOT, paths.parse(text))
    assert (caught.value.code, caught.value.message) == (code, message)
    assert caught.value.hint


def test_no_snapshot_at_all_is_an_invalid_request() -> None:
    """Asking nothing is a mistake of the caller, not a missing reading."""
    with pytest.raises(AicrError, match="snapshot is nil") as caught:
        paths.extract(None, paths.parse("K8s.server.version"))
    assert caught.value.code == INVALID_REQUEST


def test_a_document_without_measurements_has_no_reading() -> None:
    """An empty snapshot answers every path with NOT_FOUND."""
    with pytest.raises(AicrError, match="measurement type not found"):
        paths.extract({}, paths.parse("K8s.server.version"))


@pytest.mark.parametrize(
    ("reading", "text"),
    [
        ("x", "x"),
        (True, "true"),
        (False, "false"),
        (8, "8"),
        (-3, "-3"),
        (2**63, "9223372036854775808"),
        (4.0, "4"),
        (1.5, "1.5"),
        (24.10, "24.1"),
        (-0.25, "-0.25"),
        (0.0, "0"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (100000.0, "100000"),
        (1000000.0, "1e+06"),
        (1234567.5, "1.2345675e+06"),
        (1e21, "1e+21"),
        (float("inf"), "+Inf"),
        (float("-inf"), "-Inf"),
        (float("nan"), "NaN"),
        (["a", 1, True], "[a 1 true]"),
        ({"b": 2, "a": 1.0}, "map[a:1 b:2]"),
        (None, "<nil>"),
    ],
)
def test_readings_render_as_the_original_prints_them(reading: object, text: str) -> None:
    """Whole numbers in decimal, booleans as words, floats in their shortest form (8.1)."""
    assert paths.render(reading) == text
