"""CNCF pages of a report: which there are, what is on them, and when there are none."""

from __future__ import annotations

import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.evidence.evidence_bundles import report

from aicr.contract import ctrf
from aicr.errors import AicrError
from aicr.validate import evidence
from aicr.validate.evidence import cncf_files, cncf_pages
from aicr.validate.evidence.bounded import Deadline

WHEN = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def entry(name: str, status: str = "passed", **more: Any) -> dict[str, Any]:
    """A test of the conformance phase."""
    return ctrf.entry(name, status, phase="conformance", duration_ms=1500, **more)


def rendered(folder: Path, *entries: dict[str, Any]) -> dict[str, str]:
    """Page → text."""
    cncf_files.render(report(*entries), str(folder), clock=lambda: WHEN)
    if not folder.exists():
        return {}
    return {path.name: path.read_text() for path in folder.iterdir()}


ANSWERS = [
    ("dra-support", "dra_support", "dra-support.md"),
    ("gang-scheduling", "gang_scheduling", "gang-scheduling.md"),
    ("accelerator-metrics", "accelerator_metrics", "accelerator-metrics.md"),
    ("ai-service-metrics", "accelerator_metrics", "accelerator-metrics.md"),
    ("inference-gateway", "ai_inference", "inference-gateway.md"),
    ("pod-autoscaling", "pod_autoscaling", "pod-autoscaling.md"),
    ("cluster-autoscaling", "cluster_autoscaling", "cluster-autoscaling.md"),
    ("robust-controller", "robust_controller", "robust-operator.md"),
    ("secure-accelerator-access", "secure_accelerator_access", "secure-accelerator-access.md"),
]


@pytest.mark.parametrize(("check", "requirement", "page"), ANSWERS, ids=[a[0] for a in ANSWERS])
def test_each_check_answers_one_requirement_on_one_page(
    tmp_path: Path, check: str, requirement: str, page: str
) -> None:
    """The table of the specification."""
    pages = rendered(tmp_path / "e", entry(check))
    assert set(pages) == {page, "index.md"}
    assert f"**Requirement:** `{requirement}`" in pages[page]
    assert f"| 1 | `{requirement}` | " in pages["index.md"]
    assert f"[{page}]({page}) |" in pages["index.md"]


def test_other_checks_have_no_page(tmp_path: Path) -> None:
    """Deployment, performance, slurm and the health checks of operators."""
    names = ["gpu-operator-health", "platform-health", "slinky-slurm-health", "operator-health"]
    assert rendered(tmp_path / "e", *(entry(name) for name in names)) == {}


@pytest.mark.covers("V10-84")
def test_a_requirement_with_only_other_reads_as_passed(tmp_path: Path) -> None:
    """The original's quirk, kept; the status of the check is on the page."""
    pages = rendered(tmp_path / "e", entry("dra-support", "other", message="out of time"))
    assert "**Result:** PASSED" in pages["dra-support.md"]
    assert "- **Status:** OTHER" in pages["dra-support.md"]
    assert "| PASSED |" in pages["index.md"]


@pytest.mark.covers("V10-85", "V-059")
def test_a_skipped_check_has_neither_a_page_nor_a_row(tmp_path: Path) -> None:
    """Skipped entries are dropped before grouping, so they cannot name a group either."""
    pages = rendered(
        tmp_path / "e",
        entry("gang-scheduling", "skipped"),
        entry("accelerator-metrics", "skipped"),
        entry("ai-service-metrics"),
    )
    assert set(pages) == {"accelerator-metrics.md", "index.md"}
    assert "gang" not in pages["index.md"]
    assert "### accelerator-metrics" not in pages["accelerator-metrics.md"]


def test_one_failed_check_fails_its_page(tmp_path: Path) -> None:
    """Two checks share a page; rows follow the order in which pages first appear."""
    pages = rendered(
        tmp_path / "e",
        entry("ai-service-metrics"),
        entry("dra-support"),
        entry("accelerator-metrics", "failed", message="no series"),
    )
    assert "**Result:** FAILED" in pages["accelerator-metrics.md"]
    rows = [line for line in pages["index.md"].splitlines() if line.startswith(("| 1", "| 2"))]
    assert [row.split(" | ")[1] for row in rows] == ["`accelerator_metrics`", "`dra_support`"]


def test_a_page_has_time_requirement_result_and_what_was_seen(tmp_path: Path) -> None:
    """Error and evidence are fenced, the latter unredacted; a fence in the text cannot end it."""
    pages = rendered(
        tmp_path / "e",
        entry("dra-support", "failed", message="no slice", stdout=["gpu-node-17", "```", "x"]),
    )
    assert pages["dra-support.md"].splitlines() == [
        "# DRA Support (Dynamic Resource Allocation)",
        "",
        "**Generated:** 2026-03-04T05:06:07Z",
        "**Requirement:** `dra_support`",
        "**Result:** FAILED",
        "",
        "---",
        "",
        "The cluster serves the resource.k8s.io API, and a driver publishes GPUs that pods can claim.",
        "",
        "## Checks",
        "",
        "### dra-support",
        "",
        "- **Status:** FAILED",
        "- **Duration:** 1500ms",
        "",
        "**Error:**",
        "",
        "```",
        "no slice",
        "```",
        "",
        "**Evidence Output:**",
        "",
        "````",
        "gpu-node-17",
        "```",
        "x",
        "````",
    ]
    assert "**Generated:** 2026-03-04T05:06:07Z" in pages["index.md"]


@pytest.mark.parametrize(
    "given", [None, {}, {"results": {"tests": []}}], ids=["none", "empty", "0"]
)
def test_nothing_relevant_is_a_warning_and_no_file(tmp_path: Path, given: Any) -> None:
    """It succeeds."""
    lines = cncf_files.render(given, str(tmp_path / "e"))
    assert [line.startswith("warning: ") for line in lines] == [True]
    assert not (tmp_path / "e").exists()


def test_without_a_folder_nothing_is_rendered() -> None:
    """The specification's words."""
    with pytest.raises(AicrError) as caught:
        evidence.render_cncf(report(entry("dra-support")), " ")
    assert (caught.value.code, caught.value.message) == (
        "INVALID_REQUEST",
        "evidence output directory not set",
    )


def test_rendering_has_a_bound(tmp_path: Path) -> None:
    """Past it a TIMEOUT, and no page."""
    moments = iter([0.0, 31.0])
    deadline = Deadline(30.0, "rendering evidence", now=lambda: next(moments))
    with pytest.raises(AicrError) as caught:
        cncf_files.render(report(entry("dra-support")), str(tmp_path / "e"), deadline=deadline)
    assert caught.value.code == "TIMEOUT"
    assert not (tmp_path / "e").exists()


def test_the_folder_is_made_for_all_to_read(tmp_path: Path) -> None:
    """0755, whatever the umask; a file in its place is refused."""
    rendered(tmp_path / "a" / "b", entry("dra-support"))
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o755
    (tmp_path / "file").write_text("")
    with pytest.raises(AicrError) as caught:
        rendered(tmp_path / "file", entry("dra-support"))
    assert caught.value.code == "INVALID_REQUEST"


def test_titles_of_the_pages() -> None:
    """Those of the specification."""
    titles = {about.file: about.title for about in cncf_pages.REQUIREMENTS.values()}
    assert titles == {
        "dra-support.md": "DRA Support (Dynamic Resource Allocation)",
        "gang-scheduling.md": "Gang Scheduling (KAI Scheduler)",
        "accelerator-metrics.md": "Accelerator & AI Service Metrics",
        "inference-gateway.md": "Inference API Gateway",
        "pod-autoscaling.md": "Pod Autoscaling (HPA)",
        "cluster-autoscaling.md": "Cluster Autoscaling",
        "robust-operator.md": "Robust AI Operator",
        "secure-accelerator-access.md": "Secure Accelerator Access",
    }
