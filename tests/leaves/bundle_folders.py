"""What lies in a written bundle, found without the code that wrote it."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any, NamedTuple

from aicr import yamlio


class Folder(NamedTuple):
    """One numbered folder of a bundle and the release that it installs."""

    path: Path
    release: str
    component: str
    namespace: str

    @property
    def is_chart(self) -> bool:
        """Whether it holds a chart of ours and not a reference to one."""
        return (self.path / "Chart.yaml").is_file()

    @property
    def order(self) -> int:
        """Number of the folder."""
        return int(self.path.name.partition("-")[0])


def document(path: Path) -> Any:
    """The one document of a file, as helm reads it."""
    return yamlio.read_fast(path.read_text(encoding="utf-8"), source=path.name)


def folders(bundle: Path) -> list[Folder]:
    """The numbered folders in their order; what is in them is told by bundle-info.yaml."""
    releases = document(bundle / "bundle-info.yaml")["layout"]["releases"]
    told = {release["path"]: release for release in releases}
    found = sorted(path for path in bundle.iterdir() if re.match(r"\d{3}-", path.name))
    assert {path.name for path in found} == set(told)
    return [
        Folder(path, told[path.name]["name"], told[path.name]["component"], namespace)
        for path in found
        for namespace in [told[path.name]["namespace"]]
    ]


def planned_text(template: Path) -> str:
    """A manifest as it was before the two braces in it were escaped from helm."""
    return template.read_text(encoding="utf-8").replace('{{ "{{" }}', "{{")


def digest(path: Path) -> str:
    """Content of a file, or of all files below a folder, as one short text."""
    total = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            total.update(f"{file.relative_to(path)}\0".encode())
            total.update(hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()


def distinct(paths: list[Path]) -> list[Path]:
    """One path of each content, the first that has it."""
    seen: dict[str, Path] = {}
    for path in paths:
        seen.setdefault(digest(path), path)
    return list(seen.values())


def tree(root: Path) -> dict[str, tuple[str, int, bytes]]:
    """Relative path → (kind, permission bits, content) of everything below *root*."""
    found = {}
    for path in sorted(root.rglob("*")):
        assert not path.is_symlink()
        kind, data = ("folder", b"") if path.is_dir() else ("file", path.read_bytes())
        found[path.relative_to(root).as_posix()] = (kind, path.stat().st_mode & 0o7777, data)
    return found
