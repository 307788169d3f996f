"""Facts of upstream charts: the record, the constants that rest on it, and the recorder."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests import tools
from tests.bundle.chart_repository import helm
from tools.chart_constants import Constant, Pin, RecordError

from aicr.bundle import crd_groups, dra
from aicr.bundle.deployers import helm_install
from tools import chart_constants, record_chart_facts

RELIED_ON = chart_constants.constants()
PINS = chart_constants.pins()
NODEWRIGHT = crd_groups.NODEWRIGHT


def crd(group: str, kind: str, plural: str, *versions: str) -> str:
    """A CRD as charts ship it, with one more version that is not served."""
    rows = [f"    - {{name: {name}, served: true, storage: false}}\n" for name in versions]
    return (
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
        f"metadata: {{name: {plural}.{group}}}\n"
        f"spec:\n  group: {group}\n  names: {{kind: {kind}, plural: {plural}}}\n"
        f"  versions:\n{''.join(rows)}    - {{name: v0old, served: false}}\n"
    )


def workload(kind: str, name: str, env: str = "[]") -> str:
    """A workload template, labelled as controller managers are."""
    return (
        f"apiVersion: apps/v1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec:\n"
        "  selector: {matchLabels: {control-plane: controller-manager, tier: one}}\n"
        "  template:\n    metadata: {labels: {control-plane: controller-manager, tier: one}}\n"
        f"    spec: {{containers: [{{name: a, image: b, args: [--probe=:8081], env: {env}}}]}}\n"
    )


#: Shaped like the published charts: the names follow the values of the base overlay.
CHARTS = {
    NODEWRIGHT: {
        "crds/skyhook.yaml": crd("skyhook.nvidia.com", "Skyhook", "skyhooks", "v1alpha1"),
        "values.yaml": "taint: skyhook.nvidia.com=runtime-required:NoSchedule\n",
        "templates/manager.yaml": workload(
            "Deployment",
            "{{ .Values.fullnameOverride }}-controller-manager",
            "[{name: RUNTIME_REQUIRED_TAINT, value: {{ .Values.taint | quote }}}]",
        ),
    },
    dra.OPERATOR: {
        "crds/policy.yaml": crd("nvidia.com", "ClusterPolicy", "clusterpolicies", "v1"),
        "crds/driver.yaml": crd("nvidia.com", "NVIDIADriver", "nvidiadrivers", "v1alpha1"),
        "templates/domain.yaml": crd(
            "resource.nvidia.com", "ComputeDomain", "computedomains", "v1beta1"
        ),
        "templates/operator.yaml": workload("Deployment", "gpu-operator"),
    },
    dra.DRIVER: {
        "crds/domain.yaml": crd(
            "resource.nvidia.com", "ComputeDomain", "computedomains", "v1beta1"
        ),
        "templates/plugin.yaml": workload(
            "DaemonSet", "{{ .Values.fullnameOverride }}-kubelet-plugin"
        ),
    },
}


def chart(folder: Path, component: str, *, version: str = "", **changes: str) -> Path:
    """The folder of a chart of our own under the name and version that the registry pins."""
    pin = PINS[component]
    top = folder / pin.chart
    head = f"apiVersion: v2\nname: {pin.chart}\nversion: {version or pin.version}\n"
    for path, text in {"Chart.yaml": head, **CHARTS[component]}.items():
        for before, after in changes.items():
            text = text.replace(before, after)
        target = top / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return top


def recorded(at_hand: Path, record: dict[str, Any] | None = None) -> dict[str, Any]:
    """The record after the recorder has seen this chart."""
    return record_chart_facts.recorded(
        record or record_chart_facts.load(),
        at_hand,
        helm=Path(tools.helm()),
        now=PINS,
        relied_on=RELIED_ON,
    )


def entry(record: dict[str, Any], component: str) -> dict[str, Any]:
    """One chart's entry."""
    found: dict[str, Any] = next(e for e in record["charts"] if e["component"] == component)
    return found


def problems(record: dict[str, Any]) -> list[str]:
    """What disagrees."""
    return record_chart_facts.disagreements(record, RELIED_ON)


# -- the record in the repository --------------------------------------------------------------------


@pytest.mark.covers("V-428")
def test_every_constant_is_in_the_record_and_every_fact_of_it_is_used() -> None:
    """Each constant in code, manifests and checks agrees with what is recorded of its chart."""
    assert problems(record_chart_facts.load()) == []


@pytest.mark.covers("V-429")
def test_no_rendered_chart_has_moved_since_it_was_recorded() -> None:
    """A pin or base values that changed ask for another rendering."""
    assert record_chart_facts.stale(record_chart_facts.load(), PINS) == []


def test_the_record_is_as_the_tool_writes_it() -> None:
    """Reading and writing it again changes no byte, and each entry says where its facts are from."""
    record = record_chart_facts.load()
    text = record_chart_facts.RECORD.read_text(encoding="utf-8")
    assert record_chart_facts.text_of(record) == text
    assert all(entry["source"] for entry in record["charts"])
    assert {entry["rendered"] for entry in record["charts"]} <= {
        "yes",
        record_chart_facts.NOT_AT_HAND,
    }


@pytest.mark.covers("V-428")
def test_the_four_facts_of_the_requirement_are_among_the_constants() -> None:
    """CR group, version and kind, default taint, selector labels and the plugin's suffix."""
    held = {(c.component, c.fact, str(c.value)) for c in RELIED_ON}
    kind = {"group": "skyhook.nvidia.com", "version": "v1alpha1", "kind": "Skyhook"}
    labels = {
        "name": "skyhook-operator-controller-manager",
        "labels": {"control-plane": "controller-manager"},
    }
    assert {
        (NODEWRIGHT, "customResources", str(kind)),
        (NODEWRIGHT, "taints", crd_groups.NODEWRIGHT_TAINT),
        (NODEWRIGHT, "selectors", str(labels)),
        (dra.DRIVER, "daemonSets", "-kubelet-plugin"),
    } <= held
    groups = {c.component for c in RELIED_ON if c.place.endswith(":CRD_GROUPS")}
    assert groups == set(crd_groups.CRD_GROUPS)


def test_a_script_that_lost_its_constant_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table of constants cannot silently miss one whose text changed."""
    text = helm_install.INSTALL.replace("-kubelet-plugin$", "-plugin-of-kubelet.*")
    monkeypatch.setattr(helm_install, "INSTALL", text)
    with pytest.raises(RecordError, match=r"helm_install\.INSTALL holds \[\] for"):
        chart_constants.constants()


# -- a constant that disagrees -----------------------------------------------------------------------


@pytest.mark.covers("V-428")
@pytest.mark.parametrize(
    ("component", "fact", "value"),
    [
        (NODEWRIGHT, "taints", ["nodewright.nvidia.com=runtime-required:NoSchedule"]),
        (
            NODEWRIGHT,
            "customResources",
            [{"group": "skyhook.nvidia.com", "version": "v1", "kind": "Skyhook"}],
        ),
        (
            NODEWRIGHT,
            "selectors",
            [{"name": "skyhook-operator-controller-manager", "labels": {"app": "x"}}],
        ),
        (dra.DRIVER, "daemonSets", ["nvidia-dra-driver-gpu-node"]),
        (dra.OPERATOR, "runtime", [{"driverUpgradeLabel": "nvidia.com/upgrade"}]),
        ("nfd", "customResources", []),
        (NODEWRIGHT, "taints", [crd_groups.NODEWRIGHT_TAINT, "a.example/b:NoExecute"]),
    ],
    ids=["taint", "version", "labels", "suffix", "runtime", "group", "unused"],
)
def test_a_doctored_fact_is_a_disagreement(component: str, fact: str, value: Any) -> None:
    """A fact that changed, is gone, or that nothing uses is named with its component."""
    record = copy.deepcopy(record_chart_facts.load())
    entry(record, component)["facts"][fact] = value
    found = problems(record)
    assert found
    assert all(line.startswith(f"{component}: ") and fact in line for line in found)


@pytest.mark.covers("V-428")
@pytest.mark.parametrize(
    "constant",
    [
        Constant(NODEWRIGHT, "taints", "here", "other.example/x:NoSchedule"),
        Constant(dra.DRIVER, "daemonSets", "here", "-node-plugin"),
        Constant("kai-scheduler", "customResources", "here", {"group": "scheduling.run.ai"}),
    ],
    ids=lambda constant: constant.fact,
)
def test_a_constant_that_the_record_does_not_hold_is_named(constant: Constant) -> None:
    """A changed constant, or one of a chart without a record, says where it is used."""
    found = record_chart_facts.disagreements(record_chart_facts.load(), [*RELIED_ON, constant])
    assert any(f"{constant.component}: here relies on" in line for line in found)


def test_a_place_that_the_record_does_not_list_is_named() -> None:
    """`usedBy` says who has to be changed when a chart changes, so it is kept right."""
    record = copy.deepcopy(record_chart_facts.load())
    entry(record, "nfd")["usedBy"] = {}
    assert problems(record) == [
        "nfd: usedBy is out of date; run: python -m tools.record_chart_facts --refresh"
    ]


# -- recording with the real helm --------------------------------------------------------------------


@pytest.mark.covers("V-428")
@pytest.mark.parametrize("component", sorted(CHARTS))
def test_a_chart_that_is_as_we_think_agrees_once_rendered(tmp_path: Path, component: str) -> None:
    """The recorder renders with our base values, and our constants are borne out."""
    record = recorded(chart(tmp_path, component))
    made = entry(record, component)
    assert made["rendered"] == "yes"
    assert made["values"] == PINS[component].digest
    assert problems(record) == []
    assert record_chart_facts.stale(record, PINS) == []


def test_the_facts_come_out_of_the_rendered_objects(tmp_path: Path) -> None:
    """CRDs of `crds/` with their served versions, labels, the taint, names from our values."""
    made = entry(recorded(chart(tmp_path, NODEWRIGHT)), NODEWRIGHT)
    assert made["facts"] == {
        "customResources": [
            {
                "group": "skyhook.nvidia.com",
                "version": "v1alpha1",
                "kind": "Skyhook",
                "resource": "skyhooks",
            }
        ],
        "selectors": [
            {
                "name": "skyhook-operator-controller-manager",
                "labels": {"control-plane": "controller-manager", "tier": "one"},
            }
        ],
        "taints": ["skyhook.nvidia.com=runtime-required:NoSchedule"],
    }


def test_an_archive_is_recorded_as_its_folder_is(tmp_path: Path) -> None:
    """helm reads both, and so does the recorder."""
    folder = chart(tmp_path, NODEWRIGHT)
    helm(tmp_path, "package", str(folder), "--destination", str(tmp_path))
    (archive,) = tmp_path.glob("*.tgz")
    assert recorded(archive) == recorded(folder)


def test_what_an_operator_does_at_run_time_is_kept(tmp_path: Path) -> None:
    """No rendering shows it, so it stays as it was written; other entries are not touched."""
    before = record_chart_facts.load()
    after = recorded(chart(tmp_path, dra.OPERATOR), before)
    assert (
        entry(after, dra.OPERATOR)["facts"]["runtime"]
        == entry(before, dra.OPERATOR)["facts"]["runtime"]
    )
    assert [e for e in after["charts"] if e["component"] != dra.OPERATOR] == [
        e for e in before["charts"] if e["component"] != dra.OPERATOR
    ]


@pytest.mark.covers("V-428")
@pytest.mark.parametrize(
    ("component", "changes", "fact"),
    [
        (NODEWRIGHT, {"skyhook.nvidia.com": "nodewright.nvidia.com"}, "customResources"),
        (NODEWRIGHT, {"=runtime-required:": "=not-ready:"}, "taints"),
        (NODEWRIGHT, {"control-plane:": "role:"}, "selectors"),
        (dra.DRIVER, {"-kubelet-plugin": "-plugin"}, "daemonSets"),
        (dra.DRIVER, {"v1beta1": "v1"}, "customResources"),
    ],
    ids=["group", "taint", "labels", "suffix", "version"],
)
def test_a_chart_that_changed_disagrees_once_rendered(
    tmp_path: Path, component: str, changes: dict[str, str], fact: str
) -> None:
    """Each of the facts is found to have changed, and the places that rely on it are named."""
    found = problems(recorded(chart(tmp_path, component, **changes)))
    assert any(f"relies on {fact}" in line and PINS[component].chart in line for line in found)


# -- pins and values that moved ----------------------------------------------------------------------


@pytest.mark.covers("V-429")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": "v99.0.0"}, "and the registry pins"),
        ({"values": b"other: true\n"}, "its base values changed"),
        ({"chart": "renamed"}, "and the registry pins renamed"),
        (None, "the registry pins no such chart any more"),
    ],
    ids=["version", "values", "chart", "gone"],
)
def test_a_rendered_entry_fails_when_its_inputs_move(
    change: dict[str, Any] | None, words: str
) -> None:
    """The failure names the component, what changed and the command to run."""
    record = copy.deepcopy(record_chart_facts.load())
    entry(record, "nfd")["rendered"] = "yes"
    now: dict[str, Pin] = {**PINS}
    pin = now.pop("nfd")
    if change is not None:
        now["nfd"] = replace(pin, **change)
    (line,) = record_chart_facts.stale(record, now)
    assert line.startswith("nfd: ")
    assert words in line
    assert "run: python -m tools.record_chart_facts CHART" in line


@pytest.mark.covers("V-429")
def test_an_entry_that_was_never_rendered_is_counted_and_does_not_fail() -> None:
    """There is no rendering that could be out of date; the table shows what moved."""
    record = copy.deepcopy(record_chart_facts.load())
    for held in record["charts"]:
        held["rendered"] = record_chart_facts.NOT_AT_HAND
    now = {**PINS, "nfd": replace(PINS["nfd"], version="99.0.0")}
    assert record_chart_facts.stale(record, now) == []
    shown = record_chart_facts.report(record, now)
    assert "and the registry pins node-feature-discovery 99.0.0 |" in shown
    every = len(record["charts"])
    assert shown.endswith(f"\n0 of {every} charts rendered; {every} not at hand, facts unproven")
    fresh = record_chart_facts.refreshed(record, now, RELIED_ON)
    assert entry(fresh, "nfd")["version"] == "99.0.0"


# -- what is refused, and the command ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("component", "changes", "words"),
    [
        (NODEWRIGHT, {"version": "v0.1.0"}, "nodewright is v0.1.0 here, and the registry pins"),
        (dra.DRIVER, {"dra-driver-nvidia-gpu": "other"}, "relies on facts of the chart other"),
        (dra.DRIVER, {"kind: DaemonSet": "kind: {{ fail `no` }}"}, "helm template failed"),
        (dra.DRIVER, {"plural:": "plurals:"}, "an object that is not whole: KeyError"),
    ],
    ids=["version", "foreign", "broken", "half"],
)
def test_a_chart_that_cannot_be_recorded_says_why(
    tmp_path: Path, component: str, changes: dict[str, str], words: str
) -> None:
    """Another version, a chart that nothing relies on, one that helm refuses, half a CRD."""
    with pytest.raises(RecordError, match=words):
        recorded(chart(tmp_path, component, **changes))


def test_the_command_records_reports_and_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder that is no chart changes nothing; a chart is written down; the table counts it."""
    path = tmp_path / "facts.yaml"
    path.write_text(record_chart_facts.RECORD.read_text(encoding="utf-8"))
    before = path.read_text()
    common = ["--record", str(path), "--helm", tools.helm()]
    assert record_chart_facts.main([str(tmp_path / "none"), *common]) == 1
    assert "error: helm show failed" in capsys.readouterr().err
    assert path.read_text() == before
    assert record_chart_facts.main([str(chart(tmp_path, dra.DRIVER)), *common]) == 0
    assert path.read_text() != before
    assert record_chart_facts.main(["--report", *common]) == 0
    version = PINS[dra.DRIVER].version
    assert f"| dra-driver-nvidia-gpu | {version} | yes | " in capsys.readouterr().out
    changed = chart(tmp_path, dra.DRIVER, **{"-kubelet-plugin": "-plugin"})
    assert record_chart_facts.main([str(changed), *common]) == 1
    assert "relies on daemonSets '-kubelet-plugin'" in capsys.readouterr().err
