"""`aicr checks` and the generated page: what checks say about themselves."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from aicr.checks import describe, registry
from aicr.checks.sdk import Check, Setting
from aicr.cli.console import Console
from aicr.cli.main import main
from aicr.values import durations
from tools import gen_checks_page

ROOT = Path(__file__).resolve().parents[2]


def aicr(*argv: str) -> tuple[int, str, str]:
    """Status, stdout and stderr of one command line."""
    out, err = io.StringIO(), io.StringIO()
    status = main(["checks", *argv], Console(out, err))
    return status, out.getvalue(), err.getvalue()


def catalogue() -> list[dict[str, Any]]:
    """The entries of the shipped validator catalogue."""
    text = (ROOT / "recipes/validators/catalog.yaml").read_text(encoding="utf-8")
    found: list[dict[str, Any]] = yaml.safe_load(text)["validators"]
    return found


@pytest.mark.covers("V-089")
def test_registry_and_shipped_catalogue_agree() -> None:
    """Every entry dispatches to a check of its phase, with the timeout that the check states."""
    entries = catalogue()
    assert sorted(entry["name"] for entry in entries) == sorted(registry.names())
    for entry in entries:
        check = registry.load(entry["args"][0])
        assert (entry["name"], entry["phase"]) == (check.name, check.phase)
        assert durations.parse(entry["timeout"]) == durations.parse(check.timeout), check.name


def test_the_order_within_a_phase_is_that_of_the_catalogue() -> None:
    """A phase runs its checks in catalogue order."""
    for phase in ("deployment", "conformance", "performance"):
        listed = [entry["name"] for entry in catalogue() if entry["phase"] == phase]
        assert sorted(registry.names(phase)) == sorted(listed)
    assert registry.names("deployment") == [
        entry["name"] for entry in catalogue() if entry["phase"] == "deployment"
    ]


def test_the_list_has_all_checks_or_those_of_a_phase() -> None:
    """As a table, JSON and markdown."""
    status, out, _ = aicr("list")
    assert status == 0
    lines = out.splitlines()
    assert lines[0].split() == ["NAME", "PHASE", "TIMEOUT", "SUMMARY"]
    assert [line.split()[0] for line in lines[1:]] == registry.names()
    assert all(line == line.rstrip() for line in lines)

    status, out, _ = aicr("list", "--phase", "deployment", "--format", "json")
    found = json.loads(out)
    assert [check["name"] for check in found] == registry.names("deployment")
    assert found[0]["reads"] == ["pods in the namespace of the component"]

    status, out, _ = aicr("list", "--phase", "deployment", "-t", "markdown")
    assert out.splitlines()[2].startswith("| `operator-health` | deployment | 2m | ")


@pytest.mark.parametrize(
    ("argv", "status", "said"),
    [
        (("list", "--phase", "readiness"), 2, 'unknown phase "readiness"'),
        (("list", "--phase", "conformanc"), 2, "did you mean conformance?"),
        (("list", "--format", "xml"), 2, "unknown output format"),
        (("show",), 2, "name a check"),
        (("show", "operator-helth"), 3, "did you mean operator-health?"),
        (("show", "operator-health", "-t", "table"), 2, "unknown output format"),
        ((), 2, "name a sub-command"),
        (("lst",), 2, "did you mean checks list?"),
        (("inspect",), 2, "unknown sub-command 'inspect'"),
    ],
)
def test_a_wrong_command_line_says_what_to_write(
    argv: tuple[str, ...], status: int, said: str
) -> None:
    """Usage is 2, an unknown check 3; nothing on stdout."""
    found, out, err = aicr(*argv)
    assert (found, out) == (status, "")
    assert said in err


def test_one_check_is_shown_with_everything_it_declares(tmp_path: Path) -> None:
    """Markdown by default, to a file too; JSON and YAML have the same."""
    status, out, _ = aicr("show", "operator-health")
    assert status == 0
    assert out.startswith("# operator-health\n")
    assert "- Reads: pods in the namespace of the component.\n- Writes: nothing.\n" in out
    target = tmp_path / "one.md"
    assert aicr("show", "operator-health", "-o", str(target))[:2] == (0, "")
    assert target.read_text(encoding="utf-8") == out
    as_json = json.loads(aicr("show", "operator-health", "-t", "json")[1])
    assert as_json == yaml.safe_load(aicr("show", "operator-health", "-t", "yaml")[1])
    assert as_json == describe.document(registry.load("operator-health"))


async def nothing(context: Any) -> None:
    """A check that passes."""


def test_settings_and_capabilities_are_part_of_the_description() -> None:
    """A bar in a cell is escaped."""
    check = Check(
        *("c", "performance", "one | two.", nothing, "5m", "Details.\n", ("a", "b")),
        writes=("pods",),
        capabilities=("kai-scheduler",),
        settings=(Setting("AICR_X", "a|b", "what\nit is"),),
    )
    assert describe.markdown(check, 3) == (
        "### c\n\nOne | two. Phase performance, timeout 5m.\n\nDetails.\n\n"
        "- Reads: a; b.\n- Writes: pods.\n"
        "- Skips unless the recipe declares it or the cluster has it: kai-scheduler.\n\n"
        "| variable | default | meaning |\n|---|---|---|\n| `AICR_X` | a\\|b | what it is |\n"
    )
    assert "one \\| two." in describe.table([check])
    assert describe.document(check)["settings"] == [
        {"name": "AICR_X", "default": "a|b", "meaning": "what\nit is"}
    ]


def test_the_page_of_checks_is_current() -> None:
    """docs/checks.md is what the checks say."""
    assert gen_checks_page.PAGE.read_text(encoding="utf-8") == gen_checks_page.page()


def test_listing_checks_needs_no_extra() -> None:
    """Check modules import without aiohttp, the official client, rich and Jinja2 (decision 39)."""
    code = (
        "import sys\n"
        "for name in ('aiohttp', 'kubernetes', 'rich', 'jinja2', 'cryptography'):\n"
        "    sys.modules[name] = None\n"
        "from aicr.cli.main import main\n"
        "sys.exit(main(['checks', 'list']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "operator-health" in done.stdout
