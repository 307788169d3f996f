"""The container file of agent, checks and gate: what they start exists, and nothing else gets in."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("aicr-agent", "aicr-checks", "aicr-gate")
IMAGES: dict[str, list[str]] = yaml.safe_load(
    (ROOT / "tests/controlplane/images.yaml").read_text(encoding="utf-8")
)


def instructions(target: str) -> list[tuple[str, str]]:
    """Instruction and argument of each line that makes *target*: its stage, and those it builds on."""
    every = _lines((ROOT / "containers" / "Dockerfile").read_text(encoding="utf-8"))
    stages: dict[str, list[tuple[str, str]]] = {"": []}
    for word, rest in every:
        if word == "FROM":
            name = rest.rpartition(" AS ")[2]
            assert name not in stages, name
            stages[name] = []
        list(stages.values())[-1].append((word, rest))
    wanted = [target]
    for stage in wanted:
        named = [rest.split()[0] for word, rest in stages[stage] if word == "FROM"]
        named += re.findall(r"--from=(\S+)", " ".join(rest for _, rest in stages[stage]))
        wanted += [name for name in named if name in stages and name not in wanted]
    kept = ["", *(name for name in stages if name in wanted)]
    return [line for name in kept for line in stages[name]]


def _lines(text: str) -> list[tuple[str, str]]:
    """Instruction and argument of each line, continuation lines joined."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    found = []
    for line in joined.splitlines():
        word, _, rest = line.partition(" ")
        found.append((word, rest.strip()))
    return found


def entry(name: str) -> list[str]:
    """The entry point's words."""
    (text,) = [rest for word, rest in instructions(name) if word == "ENTRYPOINT"]
    words: list[str] = json.loads(text)
    return words


@pytest.mark.parametrize("name", NAMES)
def test_the_base_is_an_argument(name: str) -> None:
    """Whoever builds chooses the registry; every stage starts from the one argument or a stage."""
    lines = instructions(name)
    assert lines[0][0] == "ARG"
    assert lines[0][1].startswith("PYTHON_IMAGE=python:")
    bases = [rest.split()[0] for word, rest in lines if word == "FROM"]
    assert bases == ["${PYTHON_IMAGE}", "${PYTHON_IMAGE}", "package"]


@pytest.mark.parametrize("name", NAMES)
def test_no_host_is_named(name: str) -> None:
    """No registry and no index: what is needed is the wheel and what its constraints pin."""
    for word, rest in instructions(name):
        assert not re.search(r"https?://|\b[a-z0-9-]+\.(io|com|org|net)\b", rest), (word, rest)


@pytest.mark.parametrize("name", NAMES)
def test_the_wheel_is_what_is_installed(name: str) -> None:
    """With the pinned versions, and nothing of the sources."""
    lines = instructions(name)
    copied = [rest for word, rest in lines if word == "COPY" and "--from" not in rest]
    assert copied == ["constraints.txt /", "dist/aicr-*.whl /wheels/"]
    (run,) = [rest for word, rest in lines if word == "RUN"]
    assert "--constraint /constraints.txt" in run
    assert run.endswith("/wheels/*.whl aiohttp")


@pytest.mark.parametrize("name", NAMES)
def test_the_user_is_a_number_that_is_not_root(name: str) -> None:
    """runAsNonRoot refuses names."""
    (user,) = [rest for word, rest in instructions(name) if word == "USER"]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)


@pytest.mark.parametrize("name", NAMES)
def test_the_entry_point_is_a_module_of_the_package(name: str) -> None:
    """And the same one that the test nodes run under the image's name."""
    python, flag, module, *rest = entry(name)
    assert (python, flag) == ("python3", "-m")
    assert importlib.util.find_spec(module) is not None
    ours = [argv for image, argv in IMAGES.items() if image.split("/")[-1].startswith(name)]
    assert ours
    for argv in ours:
        assert [word for word in argv[1:] if word != "-u"] == ["-m", module, *rest]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_installed_is_not_imported(name: str) -> None:
    """The program starts without the official client, Jinja2 and rich."""
    module = entry(name)[2]
    code = (
        "import sys\n"
        "for absent in ('kubernetes', 'jinja2', 'rich', 'cryptography', 'uvicorn', 'grpc'):\n"
        "    sys.modules[absent] = None\n"
        f"import importlib; importlib.import_module({module!r})\n"
        "from aicr.kube import connect_to\n"
        "from aicr.kube.config import ClusterConfig\n"
        "connect_to(ClusterConfig('https://127.0.0.1:1'))\n"
    )
    if module == "aicr":
        code = code.replace("import_module('aicr')", "import_module('aicr.cli.gate')")
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
