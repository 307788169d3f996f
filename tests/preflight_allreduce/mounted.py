"""A gang's ConfigMap as a pod finds it mounted: written as the kubelet writes it, with what the real
coordination decides."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.preflight_gang.builders import Story, pod

from aicr.preflight.gang import configmap as cm


class Mounted:
    """A folder with one link, `..data`, that turns to a new version as a whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self.versions = 0

    def write(self, data: Mapping[str, str]) -> None:
        """The next version."""
        self.versions += 1
        folder = self.path / f"..v{self.versions}"
        folder.mkdir()
        for key, text in data.items():
            (folder / key).write_text(text)
            link = self.path / key
            if not link.is_symlink():
                link.symlink_to(Path("..data") / key)
        turned = self.path / "..data_tmp"
        turned.symlink_to(folder.name)
        turned.replace(self.path / "..data")
        old = self.path / f"..v{self.versions - 1}"
        shutil.rmtree(old, ignore_errors=True)


def names_of(number: int) -> list[str]:
    """Pods of a gang."""
    return [f"w-{n}" for n in range(number)]


def formed(
    number: int,
    *,
    present: int | None = None,
    checks: Mapping[str, str] | None = None,
    ip: str = "",
) -> dict[str, str]:
    """Data of a gang of *number* of which *present* have an address, as the controller decides it."""
    here = number if present is None else present
    members = [
        pod(
            name,
            (ip or f"10.0.0.{n + 1}") if n < here else "",
            checks=(checks or {}).get(name),
        )
        for n, name in enumerate(names_of(number))
    ]
    story = Story(number)
    story.step(*members)
    return story.data


def with_port(data: Mapping[str, str], port: int) -> dict[str, str]:
    """The same with another master port."""
    return {**data, cm.MASTER_PORT: str(port)}
