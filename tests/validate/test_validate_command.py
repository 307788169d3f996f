"""The command line: refusals in their order, gates, exit codes, and what goes where."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from aicr.cli import validate as command
from aicr.cli.config import COMMANDS, Configured
from aicr.cli.console import Console
from aicr.cli.main import main
from aicr.cli.validate_flags import Options
from aicr.cli.validate_report import plain_table, show
from aicr.contract import ctrf
from aicr.contract.config import load as load_config
from aicr.validate.results import PhaseResult

CATALOG = {
    "apiVersion": "validator.nvidia.com/v1alpha1",
    "kind": "ValidatorCatalog",
    "validators": [],
}
READY = {"name": "K8s.server.version", "value": ">= 1.32.4"}


class Ended:
    """Exit status and both streams."""

    def __init__(self, status: int, out: str, err: str) -> None:
        self.status, self.out, self.err = status, out, err

    def refused(self, *parts: str, status: int = 2) -> None:
        """It ended with *status*, and the words are on stderr."""
        assert self.status == status, self.err
        for part in parts:
            assert part in self.err
        assert self.out == ""


class Files:
    """Recipe, snapshot and configuration in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.recipe(deployment=["operator-health", "gpu-operator-version"])
        self.snapshot("v1.33.5-eks-3025e55")

    def recipe(self, **checks: list[str]) -> None:
        """Write a recipe that declares checks."""
        document = {
            "kind": "RecipeResult",
            "apiVersion": "aicr.run/v1",
            "constraints": [READY],
            "componentRefs": [
                {
                    "name": "gpu-operator",
                    "namespace": "gpu-operator",
                    "type": "Helm",
                    "chart": "gpu-operator",
                    "source": "https://helm.ngc.nvidia.com/nvidia",
                    "version": "v25.3.0",
                }
            ],
            "validation": {phase: {"checks": names} for phase, names in checks.items()},
        }
        self.write("recipe.yaml", document)

    def snapshot(self, version: str) -> None:
        """Write a snapshot of a cluster."""
        subtype = {"subtype": "server", "data": {"version": version}}
        measurements = [{"type": "K8s", "subtypes": [subtype]}]
        self.write(
            "snapshot.yaml",
            {"kind": "Snapshot", "apiVersion": "aicr.run/v1", "measurements": measurements},
        )

    def config(self, **validate: Any) -> None:
        """Write a configuration file."""
        document = {
            "kind": "AICRConfig",
            "apiVersion": "aicr.run/v1beta1",
            "spec": {"validate": validate},
        }
        self.write("config.yaml", document)

    def write(self, name: str, document: Any) -> None:
        """Write a document."""
        (self.folder / name).write_text(yaml.safe_dump(document, sort_keys=False))

    def run(self, *flags: str) -> Ended:
        """Run the command with some flags."""
        out, err = io.StringIO(), io.StringIO()
        status = main(["validate", *flags], Console(out, err))
        return Ended(status, out.getvalue(), err.getvalue())

    def both(self, *flags: str) -> Ended:
        """Run it on the recipe and the snapshot."""
        return self.run(
            "-r", str(self.folder / "recipe.yaml"), "-s", str(self.folder / "snapshot.yaml"), *flags
        )


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    """A folder with a recipe and a snapshot, and no cluster that could be meant."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "AICR_NAMESPACE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return Files(tmp_path)


@pytest.mark.covers("V10-1")
def test_a_recipe_is_needed(files: Files) -> None:
    """The message names the flag and the key of the configuration file."""
    files.run().refused("--recipe is required (or set spec.validate.input.recipe in --config)")


@pytest.mark.covers("V10-2", "V10-3", "V10-12", "V10-13", "V10-14", "V10-15", "V-060")
@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--cncf-submission"], "--cncf-submission requires --evidence-dir"),
        (["--feature", "dra"], "--feature requires --cncf-submission"),
        (
            ["--cncf-submission", "--evidence-dir", "d", "--no-cluster"],
            "--cncf-submission cannot be used with --no-cluster",
        ),
        (
            ["--evidence-dir", "d", "--skip-check", "x"],
            "--evidence-dir cannot be used with --skip-check",
        ),
        (
            ["--no-cluster", "--emit-attestation", "d", "-s", "x"],
            "--no-cluster cannot be used with --emit-attestation",
        ),
        (["--no-cluster", "--push", "r/x"], "--no-cluster cannot be used with --push"),
        (["--no-cluster"], "--no-cluster requires a snapshot"),
        (
            ["--cncf-submission", "--evidence-dir", "d", "--feature", "drra"],
            'unknown feature "drra"',
        ),
        (["--phase", "all", "--phase", "deployment"], 'phase "all" excludes every other'),
        (["--phase", "readiness"], 'unknown phase "readiness"'),
        (["--runner", "locl"], 'unknown runner "locl"'),
        (["--parallel", "0"], "0 checks at once are not possible"),
        (["--parallel", "51"], "51 checks at once are not possible"),
        (["--timeout", "5 minutes"], 'invalid timeout "5 minutes"'),
        (["--timeout", "0s"], "leaves no time"),
        (["--fail-on-error=maybe"], "neither true nor false"),
        (["--toleration", "a=b:Never"], "--toleration"),
        (["--node-selector", "a"], "expected key=value"),
        (["--full"], "--full requires --emit-attestation"),
        (["--namespace", "a", "--namespace", "b"], "can only be specified once"),
        (["--skip-chek", "a"], "did you mean --skip-check?"),
        (["-o", "no/such/folder/r.json"], "no/such/folder does not exist"),
        (["--report", "."], ". is a folder"),
        (["--report", "cm://a/b"], "a page is not written to a ConfigMap"),
        (["-o", "cm://a"], "does not name a ConfigMap"),
    ],
)
def test_flags_that_exclude_each_other(files: Files, flags: list[str], said: str) -> None:
    """Refused before anything is read or contacted: the recipe does not even exist."""
    files.run("-r", "no-such-file", *flags).refused(said)


def test_refusals_come_in_their_order(files: Files) -> None:
    """Of several, the first of the list is said."""
    every = ["--cncf-submission", "--feature", "x", "--no-cluster", "--phase", "y"]
    files.run(*every).refused("--cncf-submission requires --evidence-dir")
    files.run("--evidence-dir", "d", *every).refused("cannot be used with --no-cluster")


@pytest.mark.covers("V10-5", "V-050", "V-051", "V-052")
@pytest.mark.parametrize("flags", [["--no-cluster"], [], ["--fail-on-error=false"]])
def test_a_misplaced_check_ends_the_run_before_a_cluster_is_looked_for(
    files: Files, flags: list[str]
) -> None:
    """There is no cluster here, and none is missed: the name is judged first."""
    files.recipe(deployment=["nccl-all-reduce-bw"])
    files.both(*flags).refused("(found under phase: performance)")


@pytest.mark.covers("V10-8", "V10-9")
@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--skip-check", "typo"], 'skipChecks entry "typo" matches no validator in the catalog'),
        (
            ["--skip-check", "operator-health", "--skip-check", "gpu-operator-version"],
            "skipChecks removes every declared check from phase deployment",
        ),
    ],
)
def test_a_wrong_skip_list_ends_the_run(files: Files, flags: list[str], said: str) -> None:
    """Before an agent is deployed: no snapshot is given here."""
    files.run("-r", str(files.folder / "recipe.yaml"), *flags).refused(said)


@pytest.mark.covers("V10-10")
def test_an_inert_skip_warns_and_the_run_goes_on(files: Files) -> None:
    """A known check that no requested phase declares."""
    ended = files.both("--no-cluster", "--phase", "deployment", "--skip-check", "dra-support")
    assert ended.status == 0
    assert "--skip-check dra-support changes nothing" in ended.err


@pytest.mark.covers("V10-16", "V-438")
def test_without_a_cluster_the_report_lists_every_check_as_skipped(files: Files) -> None:
    """JSON on stdout, words on stderr, exit 0; the counts say that nothing ran."""
    ended = files.both("--no-cluster")
    assert ended.status == 0
    report = json.loads(ended.out)
    summary = report["results"]["summary"]
    assert (summary["tests"], summary["skipped"]) == (26, 26)
    assert "phase result: deployment skipped, 0 of 6 ran" in ended.err
    assert "readiness: K8s.server.version holds" in ended.err


def test_strict_makes_a_skipped_declared_check_a_failure(files: Files) -> None:
    """Decision 8: exit 8, and the names; the report is written all the same."""
    ended = files.both("--no-cluster", "--strict")
    assert ended.status == 8
    assert (
        "declared checks were skipped (--strict): operator-health, gpu-operator-version"
        in ended.err
    )
    assert json.loads(ended.out)["results"]["summary"]["skipped"] == 26
    assert files.both("--no-cluster", "--strict", "--fail-on-error=false").status == 0


@pytest.mark.covers("V10-17", "V10-18", "G12")
@pytest.mark.parametrize("flags", [[], ["--fail-on-error=false"]])
def test_readiness_is_not_covered_by_fail_on_error(files: Files, flags: list[str]) -> None:
    """Exit 2 either way, no report, and --help says so."""
    files.snapshot("v1.31.0")
    files.both("--no-cluster", *flags).refused(
        "readiness check failed: K8s.server.version expected >= 1.32.4, got v1.31.0"
    )
    files.snapshot("v1.x-unknown")
    files.both("--no-cluster", *flags).refused("readiness check could not evaluate")
    assert "readiness is not covered" in " ".join(files.run("--help").out.split())


def test_a_cluster_that_cannot_be_found_is_said(files: Files) -> None:
    """No kubeconfig anywhere: exit 2, and what was looked at."""
    ended = files.both()
    assert ended.status == 2
    assert "kubeconfig" in ended.err.lower()


def test_the_report_goes_to_a_file_and_a_page(files: Files) -> None:
    """--output has the JSON, --report the page; stdout stays empty."""
    report, page = files.folder / "report.json", files.folder / "report.html"
    ended = files.both("--no-cluster", "-o", str(report), "--report", str(page))
    assert (ended.status, ended.out) == (0, "")
    assert json.loads(report.read_text())["reportFormat"] == "CTRF"
    assert page.read_text().lstrip().lower().startswith("<!doctype html")


@pytest.mark.covers("V10-14")
def test_the_configuration_file_gives_what_flags_do_not(files: Files) -> None:
    """Attestation from the file alone is left out with --no-cluster; lists and switches count."""
    files.config(
        input={
            "recipe": str(files.folder / "recipe.yaml"),
            "snapshot": str(files.folder / "snapshot.yaml"),
        },
        execution={"noCluster": True, "phases": ["deployment"], "failOnError": False},
        evidence={"attestation": {"out": str(files.folder / "bundle")}},
    )
    ended = files.run("--config", str(files.folder / "config.yaml"))
    assert ended.status == 0, ended.err
    assert json.loads(ended.out)["results"]["summary"]["tests"] == 6
    assert not (files.folder / "bundle").exists()


def test_the_skip_list_of_the_file_counts_as_one(files: Files) -> None:
    """Refusal 4 looks at the file as well."""
    files.config(execution={"skipChecks": ["operator-health"]})
    ended = files.both("--config", str(files.folder / "config.yaml"), "--evidence-dir", "d")
    assert ended.status == 2
    assert "evidence" in ended.err


@pytest.mark.parametrize(
    ("validation", "said"),
    [
        ({"deploymnt": {"checks": []}}, 'unknown validation phase "deploymnt"'),
        ({"deployment": {"checks": "operator-health"}}, "must be a list"),
        ({"deployment": {"checks": [3]}}, "an entry of checks must be text, found a number"),
        ({"deployment": ["operator-health"]}, "must be a map"),
        ({"readiness": {"checks": ["operator-health"]}}, "readiness runs none"),
        ({"readiness": {"constraints": [{"value": "1"}]}}, "needs a name"),
    ],
)
def test_a_validation_block_of_another_shape_is_refused(
    files: Files, validation: dict[str, Any], said: str
) -> None:
    """Recipes are edited by people."""
    document = yaml.safe_load((files.folder / "recipe.yaml").read_text())
    document["validation"] = validation
    files.write("recipe.yaml", document)
    files.both("--no-cluster").refused(said)


def test_a_phase_the_recipe_does_not_configure_is_warned_about(files: Files) -> None:
    """Asked for by name and not there."""
    ended = files.both("--no-cluster", "--phase", "performance")
    assert ended.status == 0
    assert "the recipe says nothing about phase performance" in ended.err


def test_documents_of_another_version_are_warned_about(files: Files) -> None:
    """Advisory."""
    document = yaml.safe_load((files.folder / "recipe.yaml").read_text())
    document["metadata"] = {"version": "v9.9.9"}
    files.write("recipe.yaml", document)
    assert "the recipe was made by aicr v9.9.9" in files.both("--no-cluster").err


def test_dumps_that_a_given_snapshot_makes_useless_are_named(files: Files) -> None:
    """A flag is an intention."""
    ended = files.both("--no-cluster", "--aks-gpu-pools", "pools.json")
    assert "--aks-gpu-pools is ignored" in ended.err


@pytest.mark.covers("V-127", "V-129")
def test_evidence_of_tags_that_move_is_refused_before_checks_run(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edge tag is refused; the flag for evidence that is thrown away lets it pass."""
    import sys
    import types

    monkeypatch.setitem(sys.modules, "aicr.validate.evidence", types.ModuleType("evidence"))
    monkeypatch.setenv("AICR_VALIDATOR_IMAGE_TAG", "edge")
    flags = ["--emit-attestation", str(files.folder / "bundle")]
    files.both(*flags).refused("these tags can move", "aicr-checks-deployment:edge")
    ended = files.both(*flags, "--allow-mutable-validator-tags")
    assert "these tags can move" not in ended.err
    # Allowed, it is a warning (validators spec 9.6).
    assert "this evidence is to be thrown away" in ended.err
    assert "aicr-checks-deployment:edge" in ended.err
    monkeypatch.setenv("AICR_VALIDATOR_IMAGE_TAG", "sha-abc1234")
    assert "these tags can move" not in files.both(*flags).err


def options(words: list[str], configured: dict[str, Any] | None = None, **environ: str) -> Options:
    """The options of a command line, with a configuration file and variables."""
    arguments = command.parser().parse(["-r", "x", *words])
    if configured is not None:
        document = {"kind": "AICRConfig", "apiVersion": "aicr.run/v1beta1"}
        text = yaml.safe_dump({**document, "spec": {"validate": configured}})
        found = Configured(load_config(text, "c.yaml"))
        for flag, place in COMMANDS["validate"][0].items():
            found.fill(arguments, flag, place)
        arguments.configured = found
    return Options(arguments, environ)


def test_a_flag_wins_over_a_variable_and_a_variable_over_the_file() -> None:
    """Then comes the default."""
    file = {"agent": {"namespace": "file", "requireGpu": True}}
    assert options([], file).namespace == "file"
    assert options([], file, AICR_NAMESPACE="variable").namespace == "variable"
    assert options(["-n", "flag"], file, AICR_NAMESPACE="variable").namespace == "flag"
    assert options([]).namespace == "aicr-validation"
    assert options([], file).require_gpu
    assert not options([], file, AICR_REQUIRE_GPU="false").require_gpu
    assert options([], AICR_VALIDATOR_IMAGE="r/agent:v1").image == "r/agent:v1"


def test_nothing_said_about_nodes_is_not_the_same_as_nothing() -> None:
    """Absent is the default; an empty map or list of the file clears."""
    assert options([]).node_selector is None
    assert options([]).tolerations is None
    cleared = options([], {"agent": {"nodeSelector": {}, "tolerations": []}})
    assert (cleared.node_selector, cleared.tolerations) == ({}, [])
    said = options(["--node-selector", "a=b", "--toleration", "*", "--toleration", "k:NoExecute"])
    assert said.node_selector == {"a": "b"}
    assert said.tolerations == [
        {"operator": "Exists"},
        {"key": "k", "operator": "Exists", "effect": "NoExecute"},
    ]
    listed = options([], {"agent": {"tolerations": ["k=v:NoSchedule"]}}).tolerations
    assert listed == [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}]


def test_features_have_short_names() -> None:
    """Aliases, and `all` for everything."""
    flags = ["--cncf-submission", "--evidence-dir", "d"]
    assert options([*flags, "-f", "dra", "-f", "hpa"]).feature == [
        "dra-support",
        "pod-autoscaling",
    ]
    assert options([*flags, "-f", "all"]).feature == []


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Yes."""
        return True


@pytest.mark.parametrize("plain", [False, True], ids=["colour", "NO_COLOR"])
def test_a_terminal_gets_a_table_and_colour_only_where_it_is_wanted(
    monkeypatch: pytest.MonkeyPatch, plain: bool
) -> None:
    """Text of checks is shown as it is, whatever it looks like."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("NO_COLOR", raising=False)
    if plain:
        monkeypatch.setenv("NO_COLOR", "1")
    test = ctrf.entry(
        "a", "failed", phase="deployment", message="[red]no\x1b[2J", extra={"code": "TIMEOUT"}
    )
    report = ctrf.report([test], start_ms=0, stop_ms=1, timestamp="t")
    out, err = io.StringIO(), Terminal()
    show([PhaseResult("deployment", report, "failed", 1.5)], Console(out, err))
    text = err.getvalue()
    assert ("\x1b[31m" in text) is not plain
    assert "[TIMEOUT] [red]no" in text
    assert "\x1b[2J" not in text
    assert "phase result: deployment failed, 1 of 1 ran, 1.5s" in text
    assert out.getvalue() == ""


def test_the_table_is_in_columns() -> None:
    """Headings, then a row for each check."""
    lines = plain_table([("deployment", "operator-health", "passed", "1.0s", "")])
    assert lines[0].split() == ["PHASE", "CHECK", "STATUS", "TIME", "WHY"]
    assert lines[1] == "deployment  operator-health  passed  1.0s"
