"""`aicr check-health`: which checks run, what is printed when, and the exit status."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.assertions.fake_cluster import check
from tests.assertions.served_api import Served, served
from tests.cli.program import Result, aicr, checked
from tests.kube import fakeapi

from aicr.assertions import selection
from aicr.catalog.catalog import Catalog
from aicr.checks.sdk.timeouts import Timeouts
from aicr.cli import check_health
from aicr.cli.console import Console
from aicr.cli.main import main
from aicr.errors import INVALID_REQUEST, NOT_FOUND, SERVICE_UNAVAILABLE, AicrError
from aicr.kube import kinds

REGISTRY = (
    "apiVersion: aicr.run/v1beta1\nkind: ComponentRegistry\ncomponents:\n"
    "  - name: app\n    displayName: App\n    valueOverrideKeys: [app]\n"
    "    helm: {defaultRepository: 'https://x.example', defaultChart: x/app, defaultVersion: 1.0.0}\n"
    "    healthCheck: {assertFile: checks/app/health-check.yaml}\n"
    "  - name: plain\n    displayName: Plain\n    valueOverrideKeys: [plain]\n"
    "    helm: {defaultRepository: 'https://x.example', defaultChart: x/plain, defaultVersion: 1.0.0}\n"
)
RUNNING = check("assert", "{apiVersion: v1, kind: Pod, status: {phase: Running}}")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with a linked check, an opt-in and a component without."""
    folder = tmp_path / "data"
    for name in ("app", "opt-in"):
        (folder / "checks" / name).mkdir(parents=True)
        (folder / "checks" / name / "health-check.yaml").write_text(RUNNING, encoding="utf-8")
    (folder / "registry.yaml").write_text(REGISTRY, encoding="utf-8")
    return folder


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    """An API server without objects."""
    with served(tmp_path) as found:
        yield found


def pod(phase: str, name: str = "p") -> dict[str, Any]:
    """A pod in a phase."""
    metadata = {"name": name, "namespace": "ns"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"phase": phase}}


def run(server: Served, data: Path, *words: str, timeout: str = "1s") -> Result:
    """Run the command on the server with short times; what is healthy is not waited for."""
    return aicr(
        *("check-health", *words, "--data", data, "--kubeconfig", server.config),
        *("--timeout", timeout, "--poll-interval", "50ms"),
    )


@pytest.mark.covers("V-379", "V-005")
def test_a_healthy_component_is_said_and_exits_0(server: Served, data: Path) -> None:
    """Cluster first, then the component, then the table (decision 13)."""
    server.store("ADDED", kinds.POD, pod("Running"))
    done = run(server, data, "app", timeout="60s")
    assert done.status == 0
    assert done.lines[0].startswith("check-health: context test, server http://127.0.0.1:")
    assert any(re.fullmatch(r"app: healthy after \d+ s", line) for line in done.lines)
    assert done.lines[-1] == "check-health: 1 of 1 healthy"
    assert [cell.strip() for cell in done.out.splitlines()[2].split("│")][:2] == ["app", "pass"]


@pytest.mark.parametrize(
    ("phase", "status", "word"), [("Pending", 8, "not healthy"), (None, 8, "not healthy")]
)
def test_an_unhealthy_component_exits_8_with_reason_and_next_step(
    server: Served, data: Path, phase: str | None, status: int, word: str
) -> None:
    """A mismatch and an absence are findings (decision 46)."""
    if phase:
        server.store("ADDED", kinds.POD, pod(phase))
    done = run(server, data, "app")
    assert done.status == status
    assert any(line.startswith(f"app: {word} after ") for line in done.lines)
    assert done.lines[-1] == "check-health: 0 of 1 healthy"
    assert "app: no Pod in" in done.out


def test_an_unknown_state_exits_6_and_is_no_verdict(server: Served, data: Path) -> None:
    """A forbidden read says nothing of the component."""
    server.api.next(
        "GET .*/pods", fakeapi.refuse(403, "Forbidden", "pods is forbidden: no"), times=1000
    )
    done = run(server, data, "app", "--format", "json")
    assert done.status == 6
    found = json.loads(done.out)
    assert found["healthy"] is False
    assert found["summary"] == {"total": 1, "pass": 0, "fail": 0, "unknown": 1}
    (component,) = found["components"]
    assert (component["verdict"], component["code"]) == ("unknown", SERVICE_UNAVAILABLE)
    assert "HTTP 403" in component["message"]
    assert list(component) == [
        *("component", "verdict", "code", "message", "hint", "where", "output", "seconds")
    ]


def test_a_check_that_cannot_be_evaluated_exits_2(server: Served, data: Path) -> None:
    """The check is wrong, not the component."""
    text = check("assert", "{apiVersion: v1, kind: Pod, status: {phase: 3}}")
    (data / "checks/app/health-check.yaml").write_text(text, encoding="utf-8")
    server.store("ADDED", kinds.POD, pod("Running"))
    done = run(server, data, "app")
    assert done.status == 2
    assert "types are not comparable" in done.out


def test_a_cluster_that_does_not_answer_ends_at_once(data: Path, tmp_path: Path) -> None:
    """Not after the timeout of every component."""
    with served(tmp_path) as gone:
        config = gone.config
    done = aicr("check-health", "app", "--data", data, "--kubeconfig", config)
    assert done.status == 6
    assert done.out == ""


def test_a_component_that_becomes_healthy_is_told_while_others_wait(
    server: Served, data: Path
) -> None:
    """Its line is there before the command ends; what it waited for was said once."""
    text = check("assert", "{apiVersion: v1, kind: Pod, status: {phase: Failed}}")
    (data / "checks/opt-in/health-check.yaml").write_text(text, encoding="utf-8")
    server.store("ADDED", kinds.POD, pod("Pending"))
    out = io.StringIO()
    seen: list[str] = []

    class Heard(io.StringIO):
        """Makes the pod run as soon as the command says what it waits for."""

        def write(self, line: str) -> int:
            seen.append(line)
            if line.startswith("app: no Pod"):
                server.store("MODIFIED", kinds.POD, pod("Running"))
            return super().write(line)

    err = Heard()
    words = ["check-health", "app", "opt-in", "--data", str(data)]
    words += ["--kubeconfig", str(server.config), "--timeout", "3s", "--poll-interval", "50ms"]
    status = main(words, Console(out, err))
    checked(Result(status, out.getvalue(), err.getvalue()))
    assert status == 8
    assert sum(line.startswith("app: no Pod") for line in seen) == 1
    healthy = next(i for i, line in enumerate(seen) if line.startswith("app: healthy after "))
    other = next(i for i, line in enumerate(seen) if line.startswith("opt-in: not healthy"))
    assert healthy < other


def test_a_look_comes_often_enough_to_tell_within_five_seconds() -> None:
    """Two pauses fit: one that has just begun, and the answer."""
    parsed = check_health.parser().parse(["app"])
    timing = check_health._timing(Timeouts(), parsed)
    assert (timing.budget, timing.retry, timing.absent_grace) == (450.0, 2.0, 30.0)
    assert check_health._timing(Timeouts().scaled(0.5), parsed).retry == 1.0


@pytest.mark.covers("V-380")
def test_all_means_what_the_registry_links_and_an_opt_in_runs_by_name(data: Path) -> None:
    """A file that nothing links is not swept; it is found when it is asked for."""
    catalog = Catalog.builtin().overlay(str(data))
    swept = [found["name"] for found in selection.from_catalog(catalog)]
    assert "app" in swept
    assert not {"opt-in", "plain"} & set(swept)
    assert len(swept) == len(set(swept)) > 40
    (found,) = selection.from_catalog(catalog, ["opt-in"])
    assert found == {
        "name": "opt-in",
        "yaml": RUNNING,
        "source": "checks/opt-in/health-check.yaml",
    }


@pytest.mark.covers("V-377")
def test_a_registry_link_is_relative_to_the_data_root(data: Path) -> None:
    """The entry's assertFile is the file that runs."""
    catalog = Catalog.builtin().overlay(str(data))
    (found,) = selection.from_catalog(catalog, ["app", "app"])
    assert (found["source"], found["yaml"]) == ("checks/app/health-check.yaml", RUNNING)


def recipe(*refs: dict[str, Any]) -> dict[str, Any]:
    """A recipe document."""
    return {"componentRefs": list(refs)}


@pytest.mark.covers("V-378")
def test_a_recipes_own_text_is_what_runs(data: Path) -> None:
    """Enabled components with a check; the text is that of the recipe."""
    catalog = Catalog.builtin().overlay(str(data))
    document = recipe(
        {"name": "app", "healthCheckAsserts": "mine"},
        {"name": "off", "healthCheckAsserts": "x", "overrides": {"enabled": False}},
        {"name": "plain"},
    )
    found = selection.from_recipe(document, catalog)
    assert [(each["name"], each["yaml"]) for each in found] == [("app", "mine")]
    named = selection.from_recipe(document, catalog, ["app", "opt-in"])
    assert [each["yaml"] for each in named] == ["mine", RUNNING]
    skipped = recipe({"name": "app", "healthCheckSkip": True})
    assert selection.from_recipe(skipped, catalog) == []
    assert selection.from_recipe(skipped, catalog, ["app"])[0]["yaml"] == RUNNING


@pytest.mark.parametrize(
    ("names", "code", "words"),
    [
        (["ap"], NOT_FOUND, ("no component", 'did you mean "app"?')),
        (["off"], INVALID_REQUEST, ("switched off", "enabled: false")),
        (["plain"], NOT_FOUND, ("has no health check", "checks/plain/health-check.yaml")),
    ],
)
def test_names_that_a_recipe_cannot_serve_are_refused(
    data: Path, names: list[str], code: str, words: tuple[str, str]
) -> None:
    """With the nearest name, or what to do."""
    catalog = Catalog.builtin().overlay(str(data))
    document = recipe(
        {"name": "app", "healthCheckAsserts": "x"},
        {"name": "plain"},
        {"name": "off", "overrides": {"enabled": False}},
    )
    with pytest.raises(AicrError, match=words[0]) as caught:
        selection.from_recipe(document, catalog, names)
    assert (caught.value.code, words[1] in caught.value.hint) == (code, True)


def test_the_check_of_a_component_of_the_catalogue_comes_with_a_recipe(
    server: Served, tmp_path: Path
) -> None:
    """What `aicr recipe` wrote is enough: each enabled component is judged."""
    made = aicr("recipe", "--service", "kind", "--intent", "training", "--accelerator", "h100")
    path = tmp_path / "r.yaml"
    path.write_text(made.out, encoding="utf-8")
    done = aicr(
        *("check-health", "--all", "-r", path, "--kubeconfig", server.config, "-t", "json"),
        *("--timeout", "1s", "--poll-interval", "50ms"),
    )
    assert done.status == 8
    found = json.loads(done.out)
    assert found["summary"]["total"] > 3
    assert found["summary"]["pass"] == 0


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ([], 2, "name components, or pass --all"),
        (["--all", "app"], 2, "exclude each other"),
        (["ap"], 3, 'did you mean "app"?'),
        (["app", "--timeout", "5"], 2, "--timeout"),
        (["app", "--timeout", "0s"], 2, "no time to wait"),
        (["app", "--poll-interval=-1s"], 2, "no time to wait"),
        (["app", "--format", "xml"], 2, "unknown output format"),
        (["app", "--kubeconfig", "nope"], 2, "does not exist"),
        (["app", "-r", "nope.yaml"], 3, "recipe file not found"),
    ],
)
def test_a_wrong_command_line_is_refused_before_the_cluster_is_asked(
    data: Path, words: list[str], status: int, said: str
) -> None:
    """Exit 2 or 3, nothing on stdout."""
    aicr("check-health", *words, "--data", data).refused(status, said)


@pytest.mark.parametrize(
    ("results", "status"),
    [
        ([("pass", "")], 0),
        ([("fail", "INTERNAL"), ("unknown", "SERVICE_UNAVAILABLE")], 8),
        ([("fail", "NOT_FOUND"), ("fail", "INVALID_REQUEST")], 8),
        ([("fail", "INVALID_REQUEST"), ("unknown", "SERVICE_UNAVAILABLE")], 2),
        ([("pass", ""), ("unknown", "SERVICE_UNAVAILABLE")], 6),
        ([("unknown", "INTERNAL")], 5),
    ],
)
def test_the_exit_status_is_that_of_the_worst(results: list[tuple[str, str]], status: int) -> None:
    """A finding, else a check that is wrong, else what nobody knows (decision 46)."""
    rows = [
        {"verdict": verdict, "code": code, "passed": verdict == "pass"} for verdict, code in results
    ]
    assert check_health.status_of(rows) == status
