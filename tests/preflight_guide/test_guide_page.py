"""The user guide without a cluster: its values render, pods are judged as it says, its rules are there."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests import tools
from tests.fabric.tables import Measured, table
from tests.preflight_guide.guide_blocks import (
    CHART,
    GUIDE,
    ROOT,
    Block,
    blocks,
    commands,
    programs,
    run,
)

from aicr.kube.kinds import Resource
from aicr.preflight.config import load
from aicr.preflight.gang.groups import Anchor
from aicr.preflight.gang.native import NativeDiscoverer, Served
from aicr.preflight.names import CHECKS_ANNOTATION, OPT_IN_LABEL, OPT_IN_VALUE

VALUES = set(yaml.safe_load((CHART / "values.yaml").read_text()))
SETTINGS = [
    block for block in blocks("yaml") if set(block.document()) <= VALUES and block.document()
]
PARENT = [block for block in blocks("yaml") if "preflight" in block.document()]
OBJECTS = [block for block in blocks("yaml") if "apiVersion" in block.document()]
PARTS = [
    block
    for block in blocks("yaml")
    if set(block.document()) <= {"metadata", "spec"} and block not in OBJECTS
]
#: Commands that ask no cluster → exit status and words of the answer.
OFFLINE = {
    "aicr preflight explain --file pod.yaml": (0, "gets checks (injected)"),
    "aicr preflight gangs --discovery volcano": (0, "scheduling.k8s.io/group-name"),
    "aicr preflight gangs --discovery osmo-with-kai": (0, "osmo.group_uuid"),
    "helm show values charts/preflight": (0, "initContainerPlacement: append"),
    # This machine has no GPU to test.
    "aicr preflight run nccl-loopback --threshold 15": (6, "nvidia-smi"),
    "aicr preflight thresholds --check nccl-loopback": (0, "nccl-loopback"),
}


def text() -> str:
    """The page, its lines joined."""
    return " ".join(GUIDE.read_text(encoding="utf-8").split())


def gpu_pod(part: dict[str, Any] | None = None) -> dict[str, Any]:
    """A GPU pod with what a block of the page says of pods."""
    part = part or {}
    container = {"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "train-0", "namespace": "team-a", **part.get("metadata", {})},
        "spec": {"containers": [container], **part.get("spec", {})},
    }


def rendered(values: dict[str, Any], folder: Path, chart: Path = CHART) -> list[dict[str, Any]]:
    """The objects that the chart makes of these values."""
    (folder / "values.yaml").write_text(yaml.safe_dump(values))
    done = subprocess.run(
        [tools.helm(), "template", "preflight", str(chart), "-f", str(folder / "values.yaml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one]


def test_every_block_is_of_a_kind_that_is_run() -> None:
    """No block is only for show: values, objects and parts of pods; commands; one line of a log."""
    counted = [*SETTINGS, *PARENT, *OBJECTS, *PARTS]
    assert sorted(one.line for one in counted) == [one.line for one in blocks("yaml")]
    fences = [line for line in GUIDE.read_text().splitlines() if line.startswith("```")]
    known = [*blocks("yaml"), *blocks("sh"), *blocks("json")]
    assert len(known) == len(fences) / 2


@pytest.mark.covers("P-006", "P-010", "P-071")
@pytest.mark.parametrize("block", SETTINGS, ids=lambda block: block.id)
def test_values_of_the_page_render_and_the_webhook_takes_them(block: Block, tmp_path: Path) -> None:
    """As they stand; lists replace the chart's, maps are merged; nothing is warned of."""
    objects = rendered(block.document(), tmp_path)
    [found] = [
        one
        for one in objects
        if (one["kind"], one["metadata"]["name"]) == ("ConfigMap", "preflight")
    ]
    config, warnings = load(found["data"]["config.yaml"], source="config.yaml")
    assert warnings == []
    given = block.document()
    if "initContainers" in given:
        assert [one.name for one in config.checks] == [
            one["name"] for one in given["initContainers"]
        ]
        written = yaml.safe_load(found["data"]["config.yaml"])["initContainers"]
        for before, after in zip(given["initContainers"], written, strict=True):
            assert after.get("env", []) == before.get("env", [])
            if isinstance(before["image"], str):
                assert after["image"] == before["image"]
    else:
        assert len(config.checks) == 3


@pytest.mark.covers("P-004", "P-010")
def test_in_a_parent_chart_the_switch_and_the_values_below_preflight_count(tmp_path: Path) -> None:
    """Off until the parent says so; then its values are merged into the defaults."""
    parent = tmp_path / "parent"
    (parent / "charts").mkdir(parents=True)
    (parent / "charts" / "preflight").symlink_to(CHART)
    chart = {
        "apiVersion": "v2",
        "name": "parent",
        "version": "0.1.0",
        "dependencies": [
            {"name": "preflight", "version": "*", "condition": "global.preflight.enabled"}
        ],
    }
    (parent / "Chart.yaml").write_text(yaml.safe_dump(chart))
    (parent / "values.yaml").write_text("global: {preflight: {enabled: false}}\n")
    assert rendered({}, tmp_path, parent) == []
    [block] = PARENT
    objects = rendered(block.document(), tmp_path, parent)
    [webhook] = [one for one in objects if one["kind"] == "MutatingWebhookConfiguration"]
    assert webhook["webhooks"][0]["failurePolicy"] == "Ignore"
    assert webhook["webhooks"][0]["timeoutSeconds"] == 10


@pytest.mark.parametrize("block", PARTS, ids=lambda block: block.id)
def test_parts_of_pods_do_what_the_page_says(block: Block, tmp_path: Path) -> None:
    """The annotation chooses and orders; an anchor makes a gang of it."""
    part = block.document()
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(gpu_pod(part)))
    path = f"{programs(tmp_path)}:{os.environ['PATH']}"
    command = "aicr preflight explain --file pod.yaml --format json"
    status, answer = run(command, tmp_path, {"PATH": path})
    assert status == 0, answer
    [found] = json.loads(answer) if answer.startswith("[") else [json.loads(answer)]
    if "metadata" in part:
        chosen = part["metadata"]["annotations"][CHECKS_ANNOTATION]
        assert found.get("checks", []) == [name for name in chosen.split(",") if name]
    else:
        name = part["spec"].get("schedulingGroup", {}).get("podGroupName") or "training-job-workers"
        assert f"kubernetes-team-a-{name}" in answer


@pytest.mark.covers("P-098")
def test_the_workload_of_the_page_is_read_as_the_page_says() -> None:
    """The test plane serves the kinds of 1.36; the one of 1.35 goes through its reader."""
    [block] = [one for one in OBJECTS if one.document()["kind"] == "Workload"]
    document = block.document()

    class Holding:
        async def get(self, *_: object, **__: object) -> dict[str, Any]:
            return document

    group, _, version = document["apiVersion"].partition("/")
    kind = Resource(group, version, "workloads", "Workload", namespaced=True)
    served = Served(pod_group=None, workload=kind, composite=None)
    reader = NativeDiscoverer(Holding(), served)  # type: ignore[arg-type]
    anchor = Anchor("kubernetes", "team-a", "training-job", "workers", workload=True)
    assert asyncio.run(reader.read(anchor)).minimum == 2


@pytest.mark.covers("P-212")
def test_an_event_alone_says_what_failed_where(tmp_path: Path) -> None:
    """Without the container and its log: check, code, what was measured and wanted; the node is P-211's."""
    place = programs(tmp_path)
    printed = table(Measured(busbw="9.87"))
    scripts = {
        "nvidia-smi": f"#!/bin/sh\n{'echo NVIDIA L40S;' * 8}\n",
        "all_reduce_perf": f"#!/bin/sh\ncat <<'END'\n{printed}END\n",
    }
    for name, script in scripts.items():
        (place / name).write_text(script)
        (place / name).chmod(0o755)
    command = (
        f"aicr preflight run nccl-loopback --threshold 15 --node n --format json "
        f"--binary {place}/all_reduce_perf 2>/dev/null"
    )
    status, answer = run(command, tmp_path, {"PATH": f"{place}:/usr/bin:/bin"})
    assert status == 8, answer
    [event] = json.loads(answer)["events"]
    assert (event["checkName"], event["errorCode"]) == ("NCCLLoopbackTest", ["NCCL_BW_DEGRADED"])
    assert "9.87" in event["message"]
    assert "15.00" in event["message"]


ANCHORED = {"spec": {"schedulingGroup": {"podGroupName": "train"}}}
VOLCANO = next(one.document() for one in SETTINGS if "gangDiscovery" in one.document())


@pytest.mark.covers("P-007")
@pytest.mark.parametrize(
    ("values", "gang"),
    [({}, True), ({"gangCoordination": {"enabled": False}}, False), (VOLCANO, False)],
    ids=["both fit", "no coordination", "another scheduler's discovery"],
)
def test_gang_checks_need_coordination_and_a_discovery_that_fits(
    tmp_path: Path, values: dict[str, Any], gang: bool
) -> None:
    """A pod of a gang of Kubernetes, under the chart's configuration: with the gang check or without."""
    objects = rendered(values, tmp_path)
    [found] = [
        one["data"]["config.yaml"]
        for one in objects
        if (one["kind"], one["metadata"]["name"]) == ("ConfigMap", "preflight")
    ]
    (tmp_path / "config.yaml").write_text(found)
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(gpu_pod(ANCHORED)))
    path = f"{programs(tmp_path)}:/usr/bin:/bin"
    command = "aicr preflight explain --file pod.yaml --config config.yaml --format json"
    status, answer = run(command, tmp_path, {"PATH": path})
    assert status == 0, answer
    [judged] = json.loads(answer) if answer.startswith("[") else [json.loads(answer)]
    assert ("preflight-nccl-allreduce" in judged["checks"]) is gang


def test_commands_that_ask_no_cluster(tmp_path: Path) -> None:
    """Each as it stands on the page, and all of those that are listed here stand on it."""
    (tmp_path / "charts").symlink_to(ROOT / "charts")
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(gpu_pod()))
    path = f"{programs(tmp_path)}:/usr/bin:/bin"
    ran = set()
    for _, command in commands():
        if command in OFFLINE:
            status, words = OFFLINE[command]
            ended, answer = run(command, tmp_path, {"PATH": path, "HOME": str(tmp_path)})
            assert (ended, words in answer) == (status, True), (command, answer)
            ran.add(command)
    assert ran == set(OFFLINE)


@pytest.mark.covers("P-016")
def test_the_line_of_the_log_is_the_programs() -> None:
    """One JSON object, with the texts that the program has."""
    [block] = blocks("json")
    line = json.loads(block.text)
    assert (line["level"], line["msg"]) == ("ERROR", "Fatal error")
    source = (ROOT / "src" / "aicr" / "preflight" / "gang" / "resolver.py").read_text()
    native = (ROOT / "src" / "aicr" / "preflight" / "gang" / "native.py").read_text()
    resolver, default, cause = line["error"].split(": ")
    joined = source.replace('"\n', "") + native.replace('"\n            "', "")
    for words in (resolver, default):
        assert words in joined
    assert cause.startswith("kubernetes native gang API not available")


@pytest.mark.covers("P-005", "P-011", "P-012")
def test_the_page_says_what_is_needed_and_where_to_look() -> None:
    """Certificates, coordination with a discovery, the label; events and node when a log is gone."""
    page = text()
    assert "**cert-manager**, or OpenShift's service CA" in page
    assert (
        "[gang coordination](#gang-coordination), and a [discovery](#gang-discovery) that" in page
    )
    assert f"{OPT_IN_LABEL}={OPT_IN_VALUE}" in page
    assert "when the pod and its logs are gone, at the node" in page


@pytest.mark.covers("P-213", "P-214", "P-215")
def test_the_page_has_the_three_rules_for_acting_on_a_failure() -> None:
    """Decision 78: repair for DCGM; a realistic threshold first; then one repetition and no lower bar."""
    page = text()
    act = page[page.index("### 3. Act") : page.index("## Taking it off")]
    assert "The GPU or its node is bad" in act
    assert "reboot it, or terminate and replace it" in act
    assert "150 for loopback and 100 for all-reduce, assume NVLink" in act
    assert "an L40S sustains about 20 GB/s" in act
    assert "they can never be reached" in act
    assert "do not lower it to get a pass" in act
    assert "Run the check again once" in act
    assert "If it fails again, read the event and act on the node" in act
