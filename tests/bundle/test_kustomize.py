from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests import tools
from tests.bundle.sample_plans import CONFIG_MAP

from aicr.bundle import kustomize
from aicr.errors import AicrError

REF = {"name": "k", "source": "https://git.example.com/k", "path": "deploy/base", "tag": "v1.0"}
OK = (0, CONFIG_MAP.encode(), b"")


def only(program: str) -> kustomize.Find:
    """A PATH that holds one program."""
    return lambda name: f"/bin/{name}" if name == program else None


def failure(run: kustomize.Run, ref: dict[str, Any] = REF) -> AicrError:
    """The error of a build whose process behaves so."""
    with pytest.raises(AicrError) as caught:
        kustomize.build(ref, run=run, find=only("kubectl"))
    assert caught.value.where == "k"
    return caught.value


@pytest.mark.parametrize(
    ("change", "target"),
    [
        ({}, "https://git.example.com/k//deploy/base?ref=v1.0"),
        ({"tag": ""}, "https://git.example.com/k//deploy/base"),
        ({"source": "https://git.example.com/k/", "path": "/deploy/"}, None),
        ({"source": "", "tag": "", "path": "./local"}, "./local"),
    ],
)
def test_the_target_is_source_path_and_tag(change: dict[str, str], target: str | None) -> None:
    """`<repo>//<path>?ref=<tag>`; a path alone is local (bundler spec 2.2)."""
    expected = target or "https://git.example.com/k//deploy?ref=v1.0"
    assert kustomize.target({**REF, **change}) == expected


@pytest.mark.parametrize(
    "change",
    [{"path": "--enable-helm"}, {"source": "-x"}, {"path": "a b"}, {"tag": "v1\n"}, {"path": ""}],
)
def test_a_target_that_would_be_an_option_is_refused(change: dict[str, str]) -> None:
    """No ref field becomes another argument of the command."""
    with pytest.raises(AicrError) as caught:
        kustomize.target({**REF, **change})
    assert caught.value.code == "INVALID_REQUEST"


@pytest.mark.covers("C-010")
@pytest.mark.parametrize(
    ("program", "command"),
    [("kubectl", ["/bin/kubectl", "kustomize"]), ("kustomize", ["/bin/kustomize", "build"])],
)
def test_either_tool_builds(program: str, command: list[str]) -> None:
    """kubectl kustomize, or kustomize build where there is no kubectl."""
    seen: list[list[str]] = []

    def run(argv: list[str], _seconds: float) -> tuple[int, bytes, bytes]:
        seen.append(argv)
        return OK

    assert kustomize.build(REF, run=run, find=only(program)) == CONFIG_MAP
    assert seen == [[*command, kustomize.target(REF)]]


def test_without_a_tool_the_error_says_what_to_install() -> None:
    """A missing tool is the caller's to mend, and nothing is run."""
    with pytest.raises(AicrError) as caught:
        kustomize.build(REF, run=lambda _argv, _seconds: OK, find=lambda _name: None)
    assert caught.value.code == "INVALID_REQUEST"
    assert "neither kubectl nor kustomize" in caught.value.message
    assert "--set k:enabled=false" in caught.value.hint


def test_a_failed_build_is_internal_and_quotes_the_tool() -> None:
    """The last lines of stderr say why (2.2)."""
    error = failure(lambda _argv, _seconds: (1, b"", b"fatal: repository not found\n"))
    assert error.code == "INTERNAL"
    assert "fatal: repository not found" in error.message
    assert "kubectl kustomize https://git.example.com/k//deploy/base?ref=v1.0" in error.hint


def test_a_build_that_takes_too_long_is_a_timeout() -> None:
    """The error says how long it may take (2.2)."""

    def run(_argv: list[str], seconds: float) -> tuple[int, bytes, bytes]:
        raise TimeoutError(f"{seconds}")

    error = failure(run)
    assert error.code == "TIMEOUT"
    assert "300 s" in error.message


def test_a_build_that_was_killed_is_canceled() -> None:
    """A signal is neither a failure of the source nor a result."""
    assert failure(lambda _argv, _seconds: (-15, b"", b"")).code == "CANCELED"


def test_a_tool_that_cannot_start_is_internal() -> None:
    """The system's reason is passed on."""

    def run(_argv: list[str], _seconds: float) -> tuple[int, bytes, bytes]:
        raise PermissionError(13, "Permission denied")

    error = failure(run)
    assert error.code == "INTERNAL"
    assert "Permission denied" in error.message


@pytest.mark.parametrize(("out", "code"), [(b"", "INVALID_REQUEST"), (b"\xff", "INTERNAL")])
def test_an_unusable_result_is_an_error(out: bytes, code: str) -> None:
    """No objects, or no text, is never an empty component."""
    assert failure(lambda _argv, _seconds: (0, out, b"")).code == code


def test_run_process_gives_status_and_both_streams() -> None:
    """Without input, and with git told not to ask."""
    code = (
        "import os,sys; print(os.environ['GIT_TERMINAL_PROMPT'] + sys.stdin.read()); "
        "sys.exit('bad')"
    )
    assert kustomize.run_process([sys.executable, "-c", code], 60) == (1, b"0\n", b"bad\n")


def test_run_process_ends_what_it_started(tmp_path: Path) -> None:
    """A child of the tool does not outlive the time limit."""
    code = (
        "import subprocess,sys,time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))\n"
        "time.sleep(600)\n"
    )
    with pytest.raises(TimeoutError):
        kustomize.run_process([sys.executable, "-c", code], 3)
    pid = int((tmp_path / "pid").read_text())
    for _ in range(100):
        if not alive(pid):
            break
        time.sleep(0.05)
    assert not alive(pid)


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and is not collected yet does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_real_tool_builds_a_local_kustomization(tmp_path: Path) -> None:
    """kubectl's own kustomize, no network: the output is the built object."""
    (tmp_path / "m.yaml").write_text(CONFIG_MAP)
    (tmp_path / "kustomization.yaml").write_text("namePrefix: team-\nresources: [m.yaml]\n")
    kubectl = tools.kubectl()
    ref = {"name": "k", "path": str(tmp_path)}
    text = kustomize.build(ref, find=lambda name: kubectl if name == "kubectl" else None)
    assert "name: team-settings" in text


def test_the_real_tool_says_why_it_fails(tmp_path: Path) -> None:
    """A folder without a kustomization is an error with the tool's words."""
    kubectl = tools.kubectl()
    with pytest.raises(AicrError, match="kustomization"):
        kustomize.build(
            {"name": "k", "path": str(tmp_path)},
            find=lambda name: kubectl if name == "kubectl" else None,
        )
