"""A deployer as another package would bring it."""

from __future__ import annotations

from typing import Any

from aicr.bundle import layout
from aicr.bundle.layout import Folder
from aicr.bundle.options import BundleOptions
from aicr.bundle.plan import Plan

BUILD_TYPE = "eighth-bundle"
STEPS = ("cat install.txt",)


def generate(
    recipe: dict[str, Any],
    plan: Plan,
    *,
    options: BundleOptions | None = None,
    folders: list[Folder] | None = None,
) -> dict[str, tuple[bytes, int]]:
    """One line for each folder."""
    made = layout.folders(plan) if folders is None else folders
    return {"install.txt": ("".join(f"{each.dir}\n" for each in made).encode(), 0o644)}
