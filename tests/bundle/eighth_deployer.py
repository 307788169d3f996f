"""A deployer as another package would bring it."""

from __future__ import annotations

from aicr.bundle.layout import Folder
from aicr.bundle.plan import Plan

BUILD_TYPE = "eighth-bundle"
STEPS = ("cat install.txt",)


def generate(plan: Plan, folders: list[Folder]) -> dict[str, tuple[bytes, int]]:
    """One line for each folder, and the first component's name."""
    lines = [f"{each.dir}\n" for each in folders]
    return {"install.txt": ("".join([*lines, plan.components[0].name, "\n"]).encode(), 0o644)}
