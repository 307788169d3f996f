"""The HTML report as a browser sees it."""

from __future__ import annotations

import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.report.test_report_html import check, report

from aicr.validate.report_html import render

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), "")
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed")


class Seen(HTMLParser):
    """The attributes of the elements that carry facts, in the order of the document."""

    def __init__(self) -> None:
        super().__init__()
        self.marks: list[dict[str, str | None]] = []
        self.open: list[str] = []
        self.widths: list[float] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what tests ask for."""
        found = dict(attrs)
        if any(key.startswith("data-") for key in found):
            self.marks.append(found)
        if tag == "details" and "open" in found:
            self.open.append(str(found["data-check"]))
        if tag == "rect":
            self.widths.append(float(str(found["width"])))


def browse(page: str, folder: Path, *flags: str) -> str:
    """What headless Chromium makes of a page."""
    file = folder / "report.html"
    file.write_text(page, encoding="utf-8")
    done = subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={folder / 'profile'}",
            *flags,
            file.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout


def test_the_dom_of_a_report_holds_every_check(tmp_path: Path) -> None:
    """A browser finds the verdict, each phase, each check with its status, and failures unfolded."""
    page = render(
        report(
            check("operator-health", "passed", stdout=["Running: 2/2"]),
            check("check-nvidia-smi", "failed", message="node-7: no device", stdout=["a", "b"]),
            check("dra-support", "skipped", "conformance", message="not declared"),
            check("gang", "other", "conformance", message="OOMKilled", stdout=["<b>x</b>"]),
        ),
        {"recipe": "h100-eks", "cluster": "demo"},
    )
    seen = Seen()
    seen.feed(browse(page, tmp_path, "--dump-dom"))
    assert seen.marks[0]["data-verdict"] == "failed"
    assert [
        mark.get("data-phase") or (mark["data-check"], mark["data-status"])
        for mark in seen.marks[1:]
    ] == [
        "deployment",
        ("check-nvidia-smi", "failed"),
        ("operator-health", "passed"),
        "conformance",
        ("gang", "other"),
        ("dra-support", "skipped"),
    ]
    assert seen.open == ["check-nvidia-smi", "gang"]
    assert sum(seen.widths) == pytest.approx(100, abs=0.01)


def test_a_report_with_hostile_text_runs_nothing(tmp_path: Path) -> None:
    """Script in a check's output stays text: the title that it would set is not set."""
    evil = "</pre><script>document.title = 'taken'</script>"
    seen = browse(render(report(check("a", "failed", stdout=[evil]))), tmp_path, "--dump-dom")
    assert "<title>failed: 1 of 1 checks ran, 1 failed</title>" in seen
    assert "<script" not in seen
