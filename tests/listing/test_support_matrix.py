"""The support matrix: rows are found out by resolving, and told for people and programs."""

from __future__ import annotations

import io
import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests import tools
from tests.cli.program import ROOT, aicr
from tests.explain.test_explain_output import Terminal
from tests.leaves.leaf_cases import ROWS
from tests.recipe import trees

from aicr.catalog.catalog import Catalog
from aicr.cli.console import Console
from aicr.cli.main import main
from aicr.recipe.listing import NEEDS_FLAGS, OK, REFUSED, compact, support_matrix

PAGE = Path(__file__).resolve().parents[2] / "docs" / "support-matrix.md"


@pytest.fixture(scope="module")
def builtin() -> list[dict[str, Any]]:
    """The rows of the built-in catalogue."""
    return [dict(row) for row in support_matrix(Catalog.builtin())]


def rows_of(root: Path, files: dict[str, str], **options: Any) -> dict[str, dict[str, Any]]:
    """The rows of a small catalogue, by name."""
    return {row["name"]: dict(row) for row in support_matrix(trees.catalog(root, files), **options)}


def test_there_is_a_row_for_every_overlay_that_criteria_select(
    builtin: list[dict[str, Any]],
) -> None:
    """All overlays with criteria and no others, each once, in a stable order."""
    catalog = Catalog.builtin()
    wanted = [n for n, o in catalog.overlays.items() if o["spec"].get("criteria") is not None]
    names = [row["name"] for row in builtin]
    assert sorted(names) == sorted(wanted)
    assert names == [row["name"] for row in support_matrix(Catalog.builtin())]
    fields = ("service", "accelerator", "intent", "os", "platform")
    keys = [([row["criteria"].get(f, "") for f in fields], row["name"]) for row in builtin]
    assert keys == sorted(keys)


def test_the_matrix_agrees_with_the_table_of_leaves(builtin: list[dict[str, Any]]) -> None:
    """What `aicr recipe` answers to exactly the criteria of a row is what the row says (52)."""
    rows = {row["name"]: row for row in builtin}
    compared = 0
    for leaf in ROWS:
        row = rows.get(leaf.overlay)
        words = [
            word for f, v in (row or {"criteria": {}})["criteria"].items() for word in (f"--{f}", v)
        ]
        if row is None or list(leaf.recipe) != words:
            continue  # not selectable, or asked for in another way
        compared += 1
        refused = leaf.exit != 0 and leaf.bundle is None
        assert (row["health"]["status"] != OK) == refused, leaf.name
    assert compared > 100


def test_every_row_that_is_ok_is_what_the_command_answers(builtin: list[dict[str, Any]]) -> None:
    """Three rows of each status, asked for with the criteria that they show."""
    asked = 0
    for status in (OK, NEEDS_FLAGS, REFUSED):
        for row in [row for row in builtin if row["health"]["status"] == status][:3]:
            flags = [word for f, v in row["criteria"].items() for word in (f"--{f}", v)]
            if not flags:
                continue  # part of every recipe, and not to be asked for alone
            asked += 1
            found = aicr("recipe", *flags)
            assert (found.status == 0) == (status == OK), found.err
            if status == OK:
                recipe = yaml.safe_load(found.out)
                assert len(recipe["deploymentOrder"]) == row["components"]
                assert row["name"] in recipe["metadata"]["appliedOverlays"]
            else:
                assert row["health"]["reason"] in found.err
    assert asked >= 3


def test_a_recipe_that_lacks_a_choice_needs_flags(builtin: list[dict[str, Any]]) -> None:
    """The row names the flag, has the refusal's words, and counts what would come out."""
    (row,) = [row for row in builtin if row["name"] == "h100-gke-cos-training-kubeflow"]
    health = row["health"]
    assert (health["status"], health["flags"]) == (NEEDS_FLAGS, ["--gke-tcpxo-interfaces"])
    assert health["reason"].startswith("this recipe ships torch-distributed-tcpxo and requires")
    assert health["coverage"]["deployment"]["declared"]
    assert row["components"] > 0


def test_what_does_not_resolve_is_refused_with_the_reason(tmp_path: Path) -> None:
    """Incoherent components, circles and missing parents are found out, and each has its own row."""
    rows = rows_of(
        tmp_path,
        {
            "overlays/good.yaml": trees.overlay(
                "good", {"service": "eks"}, componentRefs=[trees.chart("a")]
            ),
            "overlays/orphan.yaml": trees.overlay("orphan", {"service": "gke"}, base="absent"),
            "overlays/bad.yaml": trees.overlay(
                "bad", {"service": "aks"}, componentRefs=[trees.chart("a", version="")]
            ),
            "overlays/lost.yaml": trees.overlay(
                "lost",
                {"service": "oke"},
                componentRefs=[trees.chart("a", valuesFile="components/a/absent.yaml")],
            ),
        },
    )
    assert rows["good"]["health"]["status"] == OK
    assert rows["good"]["components"] == 1
    orphan = rows["orphan"]["health"]
    assert orphan["status"] == REFUSED
    assert 'recipe "absent" not found' in orphan["reason"]
    assert "components" not in rows["orphan"]
    assert 'Helm component "a" has no chart version' in rows["bad"]["health"]["reason"]
    lost = rows["lost"]["health"]
    assert lost["dimensions"] == {"resolves": OK, "values": REFUSED}
    assert "absent.yaml" in lost["reason"]
    assert "coverage" not in lost


def test_an_overlay_whose_criteria_are_not_enough_is_refused(tmp_path: Path) -> None:
    """The operating system is strict: without one, an overlay above another is no answer (4.9)."""
    rows = rows_of(
        tmp_path,
        {
            "overlays/a.yaml": trees.overlay("a", {"service": "eks"}),
            "overlays/b.yaml": trees.overlay("b", {"accelerator": "h100", "os": "ubuntu"}),
            "overlays/c.yaml": trees.overlay(
                "c", {"service": "eks", "accelerator": "h100", "os": "ubuntu"}, base="a"
            ),
            "overlays/d.yaml": trees.overlay("d", {"service": "gke", "os": "cos"}),
        },
    )
    assert {name: row["health"]["status"] for name, row in rows.items()} == {
        "a": OK,
        "b": OK,
        "c": OK,
        "d": OK,
    }
    assert {name: row["is_leaf"] for name, row in rows.items()} == {
        "a": False,
        "b": True,
        "c": True,
        "d": True,
    }


def test_coverage_counts_what_the_recipe_declares(tmp_path: Path) -> None:
    """Checks by name and constraints by number, of the whole recipe and not of the overlay alone."""
    rows = rows_of(
        tmp_path,
        {
            "overlays/a.yaml": trees.overlay(
                "a", {"service": "eks"}, validation={"deployment": {"checks": ["y", "x"]}}
            ),
            "overlays/b.yaml": trees.overlay(
                "b",
                {"service": "eks", "intent": "training"},
                base="a",
                validation={
                    "performance": {
                        "checks": ["z"],
                        "constraints": [trees.constraint("nccl-all-reduce-bw", ">= 300")],
                    }
                },
            ),
        },
    )
    coverage = rows["b"]["health"]["coverage"]
    assert coverage["deployment"] == {"declared": True, "checks": ["x", "y"], "constraints": 0}
    assert coverage["performance"] == {"declared": True, "checks": ["z"], "constraints": 1}
    assert coverage["conformance"] == {"declared": False, "checks": [], "constraints": 0}
    assert compact(coverage) == "R:0 D:2 P:1 C:0"


PROFILE = {
    "name": "stack",
    "description": "who brings the driver",
    "default": "mine",
    "values": {
        value: {"componentRefs": [{"name": "a", "overrides": {"driver": flag}}]}
        for value, flag in (("mine", True), ("theirs", False))
    },
}


@pytest.mark.parametrize("health", [True, False])
def test_a_profile_is_shown_where_it_is_inherited(health: bool, tmp_path: Path) -> None:
    """The choice of an overlay below is the choice of the overlay above; other rows have none."""
    files = {
        "overlays/a.yaml": trees.overlay(
            "a", {"service": "eks"}, componentRefs=[trees.chart("a")], profile=PROFILE
        ),
        "overlays/b.yaml": trees.overlay("b", {"service": "eks", "intent": "training"}, base="a"),
        "overlays/c.yaml": trees.overlay("c", {"service": "gke"}),
    }
    rows = rows_of(tmp_path, files, health=health)
    assert rows["b"]["profile"] == {
        "name": "stack",
        "description": "who brings the driver",
        "default": "mine",
        "values": ["mine", "theirs"],
    }
    assert "profile" not in rows["c"]
    assert ("health" in rows["c"], "components" in rows["c"]) == (health, health)


def test_files_of_a_directory_are_external_and_resolved_too(tmp_path: Path) -> None:
    """--data adds its overlays, with their source, and its criteria values as filters."""
    data = trees.data(
        tmp_path,
        {"overlays/mine.yaml": trees.overlay("mine", {"service": "mycloud", "intent": "training"})},
    )
    found = aicr("recipe", "list", "--data", data, "--service", "MyCloud", "--format", "json")
    (row,) = json.loads(found.out)
    assert row["criteria"] == {"service": "mycloud", "intent": "training"}
    assert (row["source"], row["is_leaf"], row["health"]["status"]) == ("external", True, OK)
    strict = ("--data", data, "--service", "mycloud", "--criteria-strict")
    aicr("recipe", "list", *strict).refused(2, "invalid service type: mycloud")


def test_filters_keep_the_rows_that_state_the_word() -> None:
    """Exact words, all of them; a row that states nothing about a field is not kept."""
    words = ("--accelerator", "h100", "--intent", "TRAINING ", "--platform", "any")
    rows = json.loads(aicr("recipe", "list", *words, "--format", "json", "--no-health").out)
    assert len(rows) > 5
    assert all(row["criteria"]["accelerator"] == "h100" for row in rows)
    assert all(row["criteria"]["intent"] == "training" for row in rows)
    assert "h100-any" not in [row["name"] for row in rows]


def test_nothing_found_is_said_and_is_no_failure() -> None:
    """An empty list for programs, a line for people."""
    words = ("recipe", "list", "--service", "kind", "--os", "cos")
    found = aicr(*words, "--format", "json")
    assert (found.status, json.loads(found.out)) == (0, [])
    assert found.lines == ["0 overlays with service=kind os=cos"]
    assert aicr(*words).out == ""


def test_the_forms_say_the_same_and_the_bytes_are_stable(builtin: list[dict[str, Any]]) -> None:
    """JSON and YAML hold the rows; two runs print the same."""
    printed = aicr("recipe", "list", "--format", "json")
    assert json.loads(printed.out) == builtin
    assert printed == aicr("recipe", "list", "--format", "json")
    assert yaml.safe_load(aicr("recipe", "list", "--format", "yaml").out) == builtin


def test_the_manual_names_every_key_and_status(builtin: list[dict[str, Any]]) -> None:
    """Programs find the keys that the manual lists."""
    page = PAGE.read_text(encoding="utf-8")
    for row in builtin:
        for key in row:
            assert f"`{key}`" in page or f"`{key}." in page, key
        for key in row["health"]:
            assert f"`health.{key}`" in page, key
    for status in (OK, NEEDS_FLAGS, REFUSED):
        assert f"`{status}`" in page


def test_the_table_lines_up_and_tells_reasons_below() -> None:
    """A header as the specification has it, columns under it, reasons once for all their rows."""
    found = aicr("recipe", "list", "--service", "gke")
    head, *lines = found.out.splitlines()
    assert head.split()[:10] == [
        *("NAME", "SERVICE", "ACCELERATOR", "INTENT", "OS", "PLATFORM"),
        *("IS_LEAF", "STATUS", "COVERAGE", "COMPONENTS"),
    ]
    starts = [match.start() for match in re.finditer(r"\S+", head)]
    rows = lines[: lines.index("")]
    for row in rows:
        assert all(row[start - 1] == " " and row[start] != " " for start in starts[1:]), row
        assert not row.endswith(" ")
    assert lines[len(rows) + 1] == "needs-flags: h100-gke-cos-training-kubeflow"
    assert lines[len(rows) + 2].startswith("  this recipe ships torch-distributed-tcpxo")
    counts = {status: sum(status in row.split() for row in rows) for status in (OK, NEEDS_FLAGS)}
    assert found.lines == [
        f"{len(rows)} overlays with service=gke: {counts[OK]} ok, {counts[NEEDS_FLAGS]} needs-flags"
    ]


def test_without_health_the_table_has_neither_status_nor_coverage() -> None:
    """--no-health and --skip-health resolve nothing."""
    found = aicr("recipe", "list", "--service", "kind", "--no-health")
    assert found == aicr("recipe", "list", "--service", "kind", "--skip-health")
    assert found.out.splitlines()[0].split()[-2:] == ["IS_LEAF", "SOURCE"]
    assert re.fullmatch(r"\d+ overlays with service=kind", found.lines[0])


def test_colour_is_for_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The words are the same with and without colour."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    words = ["recipe", "list", "--service", "gke"]
    plain, terminal = io.StringIO(), Terminal()
    assert main(words, Console(plain, io.StringIO())) == 0
    assert main(words, Console(terminal, io.StringIO())) == 0
    assert "\033" not in plain.getvalue()
    shown = terminal.getvalue()
    assert "\033[32mok\033[0m" in shown
    assert "\033[33mneeds-flags\033[0m" in shown
    assert re.sub(r"\033\[\d+m", "", shown) == plain.getvalue()


def test_a_name_cannot_write_over_the_terminal(tmp_path: Path) -> None:
    """Names of a data directory are shown, not obeyed."""
    name = "mine\x1b[2J"
    data = trees.data(tmp_path, {"overlays/mine.yaml": trees.overlay(name, {"service": "mycloud"})})
    found = aicr("recipe", "list", "--data", data, "--service", "mycloud")
    assert "\x1b" not in found.out + found.err
    assert "mine\\x1b[2J  mycloud" in found.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--service", "ekss"), "invalid service type: ekss"),
        (("--format", "tabel"), 'unknown output format: "tabel", valid formats are: table, json'),
        (("--service", "eks", "--service", "gke"), "can only be specified once"),
        (("--nodes", "3"), "unknown flag --nodes"),
        (("eks",), "unexpected argument 'eks'"),
        (("--no-health=1",), "flag --no-health takes no value"),
    ],
)
def test_wrong_flags_are_refused(words: tuple[str, ...], said: str) -> None:
    """As for every command, with the nearest word."""
    aicr("recipe", "list", *words).refused(2, said)


def test_a_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """The list has the errors of --data."""
    assert aicr("recipe", "list", "--data", tmp_path / "absent").status != 0


def test_the_sub_command_is_found_and_its_neighbour_named() -> None:
    """`recipe lits` gets the hint; another word is refused as before."""
    aicr("recipe", "lits").refused(2, "unknown sub-command 'lits'", "did you mean recipe list?")
    aicr("recipe", "everything").refused(2, "unexpected argument 'everything'")
    assert "\n  recipe list " in aicr("--help").out
    help_text = aicr("help", "recipe", "list").out
    assert help_text.startswith("usage: aicr recipe list")
    assert help_text == aicr("recipe", "list", "-h").out


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("aicr recipe li", "list"),
        ("aicr recipe list --no-he", "--no-health"),
        ("aicr recipe list --service ek", "eks"),
        ("aicr recipe list --format ta", "table"),
        ("aicr recipe --graph sv", "svg"),
        ("aicr recipe --service ek", "eks"),
    ],
)
def test_bash_completes_the_sub_command_and_its_flags(line: str, offered: str) -> None:
    """The shell finds the list below its command, and the command as it was."""
    script = f"""
    source {shlex.quote(str(ROOT / "src/aicr/cli/completions/aicr.bash"))}
    COMP_WORDS=({shlex.join(line.split())}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
    function_name=$(complete -p aicr | sed 's/.*-F \\([^ ]*\\).*/\\1/')
    $function_name aicr "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD - 1]}}"
    printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    bash = tools.program("bash", "install the package bash")
    done = subprocess.run([bash, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (0, [offered]), done.stderr
