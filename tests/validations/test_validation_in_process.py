"""Bundle-time validations run inside ``aicr bundle``: nothing else is started, asked or needed."""

from __future__ import annotations

import io
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from aicr.bundle.validations import selectors
from aicr.bundle.validations.effective import Context, Finding
from aicr.cli.console import Console
from aicr.cli.main import main
from aicr.errors import AicrError

CRITERIA = ("--service", "eks", "--accelerator", "h100", "--intent", "training", "--os", "ubuntu")
#: A RuntimeClass that nobody creates.
BROKEN = ("--set", "nvsentinel:metadata-collector.runtimeClassName=other")


def run(*words: object) -> tuple[int, str]:
    """Exit status and stderr of a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    return main([str(word) for word in words], Console(out, err)), err.getvalue()


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """A recipe file."""
    path = tmp_path / "recipe.yaml"
    status, said = run("recipe", *CRITERIA, "-o", path)
    assert status == 0, said
    return path


@pytest.mark.covers("V-004", "V-343")
@pytest.mark.parametrize(("flags", "status"), [((), 0), (BROKEN, 2)], ids=["sound", "broken"])
def test_a_bundle_is_judged_without_network_or_another_process(
    flags: tuple[str, ...],
    status: int,
    recipe: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No socket, no child, no kubeconfig; what is refused leaves no bundle."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a validation must not leave this process")

    for name in ("socket", "create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    for name in ("fork", "posix_spawn", "system"):
        monkeypatch.setattr(os, name, refuse)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    found, said = run("bundle", "-r", recipe, "-o", tmp_path / "bundle", *flags)
    assert found == status, said
    assert ("CheckNVSentinelRuntimeClassCoherence refuses" in said) is (status == 2)
    assert (tmp_path / "bundle").exists() is (status == 0)


@pytest.mark.covers("V-343")
def test_a_bundle_imports_no_client_of_a_cluster(recipe: Path, tmp_path: Path) -> None:
    """Offline by construction: what could ask a cluster is not even loaded."""
    code = (
        "import io, sys\nfrom aicr.cli.console import Console\nfrom aicr.cli.main import main\n"
        "status = main(sys.argv[1:], Console(io.StringIO(), io.StringIO()))\n"
        "print(status, *sorted(n for n in sys.modules if n.startswith(('aicr.kube', 'aiohttp', "
        "'kubernetes', 'asyncio'))))\n"
    )
    words = ["bundle", "-r", str(recipe), "-o", str(tmp_path / "bundle")]
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.split()) == (0, ["0"]), done.stderr


@pytest.mark.covers("V-355")
def test_a_validation_gets_name_recipe_flags_and_final_values(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And returns findings and errors; its conditions have been held against the recipe before."""
    seen: list[Context] = []

    def remember(context: Context) -> tuple[list[Finding], list[AicrError]]:
        seen.append(context)
        return [Finding("it leans", "prop it up")], []

    monkeypatch.setattr(selectors, "workload_selector", remember)
    flags = ("--nodes", "7", "--set", "nodewright-customizations:customised=true")
    status, said = run("bundle", "-r", recipe, "-o", tmp_path / "a", *flags)
    assert status == 0, said
    (context,) = seen
    assert context.name == "nodewright-customizations"
    assert context.criteria["intent"] == "training"
    assert context.recipe["kind"] == "RecipeResult"
    assert context.options.nodes == 7
    assert context.options.set == ("nodewright-customizations:customised=true",)
    assert context.values()["customised"] is True
    assert "intent" in context.values()
    assert "it leans" in said

    seen.clear()
    other = tmp_path / "other.yaml"
    words = [word if word != "training" else "inference" for word in CRITERIA]
    assert run("recipe", *words, "-o", other)[0] == 0
    assert run("bundle", "-r", other, "-o", tmp_path / "b")[0] == 0
    assert seen == []
