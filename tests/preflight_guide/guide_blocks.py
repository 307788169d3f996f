"""The blocks of the user guide, in the order of the page, and its commands with placeholders filled in."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from tests import tools

ROOT: Final = Path(__file__).resolve().parents[2]
GUIDE: Final = ROOT / "docs" / "preflight" / "guide.md"
CHART: Final = ROOT / "charts" / "preflight"
#: What the guide says stands for a reader's own names.
PLACEHOLDERS: Final = ("NAMESPACE", "POD", "NODE", "SECRET")


@dataclass(frozen=True)
class Block:
    """A fenced block: the heading above it, its language and text."""

    heading: str
    language: str
    text: str
    line: int

    @property
    def id(self) -> str:
        """For a test's name."""
        return f"line{self.line}"

    def document(self, names: Mapping[str, str] | None = None) -> dict[str, Any]:
        """A YAML block's content."""
        found: dict[str, Any] = yaml.safe_load(filled(self.text, names or {}))
        return found


def blocks(language: str) -> list[Block]:
    """All blocks of one language."""
    found, heading, opened = [], "", None
    for number, line in enumerate(GUIDE.read_text(encoding="utf-8").splitlines(), 1):
        if opened is None and line.startswith("#"):
            heading = line.lstrip("# ")
        if not line.startswith("```"):
            continue
        if opened is None:
            opened = (line[3:], number)
        else:
            lines = GUIDE.read_text(encoding="utf-8").splitlines()[opened[1] : number - 1]
            found.append(Block(heading, opened[0], "\n".join(lines) + "\n", opened[1] + 1))
            opened = None
    return [block for block in found if block.language == language]


def commands() -> list[tuple[str, str]]:
    """(heading, command) of every `sh` block; a line that ends in a backslash goes on."""
    return [
        (block.heading, command)
        for block in blocks("sh")
        for command in re.split(r"(?<!\\)\n", block.text)
        if command.strip()
    ]


def filled(text: str, names: Mapping[str, str]) -> str:
    """*text* with the placeholders replaced."""
    return re.sub(rf"\b({'|'.join(PLACEHOLDERS)})\b", lambda m: names.get(m[1], m[1]), text)


def programs(folder: Path) -> Path:
    """A folder with helm, kubectl and aicr, to put first in PATH."""
    place = folder / "bin"
    place.mkdir()
    (place / "helm").symlink_to(tools.helm())
    (place / "kubectl").symlink_to(tools.kubectl())
    script = place / "aicr"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m aicr "$@"\n')
    script.chmod(0o755)
    return place


def run(command: str, folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """Exit status and output of a command of the page, as a reader's shell runs it."""
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=600,
    )
    return done.returncode, done.stdout
