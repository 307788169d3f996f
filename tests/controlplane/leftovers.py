"""Folders of planes: whose they are, which stay when a plane has ended, and how many.

A plane that ended well removes its folder. One that failed keeps it for its logs and says where; the
newest few of those stay. A run that was killed can neither remove nor say anything, so the next plane
does it: a folder whose owner is dead and that was not kept on purpose goes.

It must not know: what is in the folders.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.controlplane.network import owner_lives, owner_tag

PREFIX: Final = "aicr-plane-"
OWNER: Final = "owner"
KEPT: Final = "kept"
#: How many folders of failed planes stay.
MOST: Final = 5
#: A folder without an owner this young is one that is being made.
SECONDS: Final = 60.0


def make() -> Path:
    """A new folder of this process, after those that nobody needs have gone."""
    sweep(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    (folder / OWNER).write_text(owner_tag(os.getpid()))
    return folder


def keep(folder: Path) -> None:
    """Let *folder* stay when its owner is gone."""
    (folder / KEPT).touch()


def sweep(parent: Path) -> list[Path]:
    """Remove folders of dead owners under *parent*, but the newest `MOST` that were kept; those removed.

    Folders of an earlier version of this module name no owner, and count as kept.
    """
    kept: list[tuple[float, Path]] = []
    gone: list[Path] = []
    for folder in parent.glob(f"{PREFIX}*"):
        try:
            changed = folder.stat().st_mtime
            owner = (folder / OWNER).read_text() if (folder / OWNER).exists() else ""
        except OSError:
            continue  # somebody else sweeps too
        if owner and owner_lives(owner):
            continue
        if not owner and time.time() - changed < SECONDS:
            continue
        if not owner or (folder / KEPT).exists():
            kept.append((changed, folder))
        else:
            gone.append(folder)
    gone += [folder for _, folder in sorted(kept)[:-MOST]]
    for folder in gone:
        shutil.rmtree(folder, ignore_errors=True)
    return gone
