"""`--snapshot`: criteria read from a cluster, overlays that it rules out, and how both are told."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.program import CRITERIA, aicr
from tests.cli.sample_snapshot import KERNEL, SNAPSHOT
from tests.upgrades.test_upgrade_check_command import KUBECONFIG, config_map_served


def changed(type_: str, subtype: str, **data: Any) -> dict[str, Any]:
    """The snapshot with some readings changed."""
    found = copy.deepcopy(SNAPSHOT)
    for measurement in found["measurements"]:
        for entry in measurement["subtypes"]:
            if (measurement["type"], entry["subtype"]) == (type_, subtype):
                entry["data"].update(data)
    return found


def without(type_: str, subtype: str) -> dict[str, Any]:
    """The snapshot without one of its subtypes."""
    found = copy.deepcopy(SNAPSHOT)
    for measurement in found["measurements"]:
        measurement["subtypes"] = [
            entry
            for entry in measurement["subtypes"]
            if (measurement["type"], entry["subtype"]) != (type_, subtype)
        ]
    return found


def saved(folder: Path, snapshot: Any, name: str = "snapshot.yaml") -> Path:
    """The snapshot in a file."""
    path = folder / name
    dump = json.dumps if name.endswith("json") else yaml.safe_dump
    path.write_text(dump(snapshot), encoding="utf-8")
    return path


@pytest.mark.covers("R11-57")
@pytest.mark.parametrize("name", ["snapshot.yaml", "snapshot.json"])
def test_a_snapshot_gives_the_criteria_that_it_shows(name: str, tmp_path: Path) -> None:
    """Recipe spec 1.10: service, accelerator, OS and nodes are read; intent is the person's."""
    path = saved(tmp_path, SNAPSHOT, name)
    found = aicr("recipe", "--snapshot", path, "--intent", "training")
    assert found.status == 0, found.err
    document = yaml.safe_load(found.out)
    assert document["criteria"] == {**CRITERIA, "platform": "any", "nodes": 4}
    assert "h100-eks-ubuntu-training" in document["metadata"]["appliedOverlays"]
    assert found.lines[0] == (f"snapshot {path}: service=eks, accelerator=h100, os=ubuntu, nodes=4")


@pytest.mark.covers("R11-56")
def test_a_failing_constraint_is_told_with_what_was_wanted_and_found(tmp_path: Path) -> None:
    """Row 56: Ubuntu 22.04 rules the Ubuntu overlays out; the refusal says so and what to do."""
    path = saved(tmp_path, changed("OS", "release", VERSION_ID="22.04"))
    found = aicr("recipe", "--snapshot", path, "--intent", "training")
    found.refused(2, "service 'eks' for criteria(", "next: the overlays above would cover it: ")
    assert (
        "warning: overlay h100-eks-ubuntu-training left out: OS.release.VERSION_ID wants 24.04, "
        "and the snapshot says 22.04"
    ) in found.lines


@pytest.mark.covers("R11-61")
def test_a_missing_reading_is_told_as_such(tmp_path: Path) -> None:
    """Row 61: what the snapshot does not hold rules an overlay out, in words without codes."""
    path = saved(tmp_path, without("OS", "sysctl"))
    found = aicr("recipe", "--snapshot", path, "--intent", "training")
    found.refused(2)
    assert (
        f"warning: overlay h100-eks-ubuntu-training left out: OS.sysctl.{KERNEL} wants >= 6.8, "
        "and the snapshot has no such reading"
    ) in found.lines
    assert "NOT_FOUND" not in found.err


@pytest.mark.covers("R11-60")
def test_a_reading_that_cannot_be_compared_stops_the_build(tmp_path: Path) -> None:
    """Row 60: could-not-tell is not a no."""
    path = saved(tmp_path, changed("OS", "sysctl", **{KERNEL: "abc"}))
    found = aicr("recipe", "--snapshot", path, "--intent", "training")
    found.refused(2, f"OS.sysctl.{KERNEL}", "abc")


def test_a_flag_that_contradicts_the_snapshot_wins_and_is_told(tmp_path: Path) -> None:
    """Recipe spec 1.10: flags win over what was measured, with a line that says so."""
    path = saved(tmp_path, SNAPSHOT)
    found = aicr("recipe", "--snapshot", path, "--intent", "training", "--accelerator", "gb200")
    assert "warning: --accelerator gb200 overrides what the snapshot says (h100)" in found.lines


def test_what_the_snapshot_only_implies_may_be_dropped_and_is_told(tmp_path: Path) -> None:
    """Recipe spec 1.10: an OS nobody asked for and no recipe covers is not insisted on."""
    path = saved(tmp_path, changed("OS", "release", ID="rhel", VERSION_ID="9.4"))
    found = aicr("recipe", "-s", path, "--intent", "training")
    assert found.status == 0, found.err
    assert yaml.safe_load(found.out)["criteria"]["os"] == "any"
    assert (
        "warning: os 'rhel' was read from the snapshot, and no recipe covers it: resolved without it"
    ) in found.lines
    aicr("recipe", "-s", path, "--intent", "training", "--os", "rhel").refused(2, "os 'rhel'")


def test_query_takes_the_same_inputs(tmp_path: Path) -> None:
    """A script can ask for one version of what a cluster should run."""
    path = saved(tmp_path, SNAPSHOT)
    found = aicr("query", "-s", path, "--intent", "training", "--selector", "criteria.service")
    assert (found.status, found.out) == (0, "eks\n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["snapshot is empty"]),
        ("kind: Snapshot\napiVersion: aicr.run/v1\n", ["snapshot has no measurements"]),
        ("kind: Foo\n", ['invalid kind "Foo", expected "Snapshot"']),
        ("kind: Snapshot\nkind: Snapshot\n", ["line 1", "line 2", "snapshot.yaml:2:1"]),
        ("kind: 'Snapshot\n", ["invalid YAML", "snapshot.yaml:1:7"]),
        (
            "measurements: [{type: k8s}]\n",
            ['invalid measurement type "k8s"', "measurements[0].type"],
        ),
        ('{"kind": "Snapshot",}', ["snapshot.yaml:1:"]),
        ("- a\n", ["expected a Snapshot document, found a list"]),
    ],
)
def test_a_wrong_snapshot_is_refused_with_its_place(
    text: str, words: list[str], tmp_path: Path
) -> None:
    """The file and the place in it, whatever is wrong."""
    path = tmp_path / "snapshot.yaml"
    path.write_text(text)
    aicr("recipe", "-s", path, "--intent", "training").refused(2, *words, "snapshot.yaml")


def test_a_config_map_that_is_none_is_refused_with_the_form() -> None:
    """Before a cluster is looked for."""
    aicr("recipe", "-s", "cm://aicr").refused(2, '"cm://aicr" does not name a ConfigMap')


def test_a_snapshot_is_read_from_the_cluster_that_a_flag_names(tmp_path: Path) -> None:
    """--kubeconfig chooses the cluster of cm:// for recipe and query (recipe spec 6)."""
    text = saved(tmp_path, SNAPSHOT).read_text()
    kubeconfig = tmp_path / "config"
    with config_map_served("aicr", "snapshot", {"snapshot.yaml": text}) as address:
        kubeconfig.write_text(KUBECONFIG.format(address=address))
        words = ("-s", "cm://aicr/snapshot", "-k", kubeconfig, "--intent", "training")
        served = aicr("recipe", *words)
        assert served.status == 0, served.err
        version = aicr("query", *words, "--selector", "components.gpu-operator.version")
        assert version.status == 0, version.err
    local = aicr("recipe", "-s", tmp_path / "snapshot.yaml", "--intent", "training")
    assert served.out == local.out


def test_an_absent_snapshot_is_not_found_and_the_nearest_name_given(tmp_path: Path) -> None:
    """A typing mistake in a path is answered with the file that is there."""
    saved(tmp_path, SNAPSHOT)
    found = aicr("recipe", "-s", tmp_path / "snapshto.yaml")
    found.refused(3, "snapshot file not found", f"did you mean {tmp_path / 'snapshot.yaml'}?")
