"""Small catalogues in memory, and plans made from them, for tests of the planner."""

from __future__ import annotations

from typing import Any, cast

import pytest
import yaml

from aicr.bundle.options import BundleOptions
from aicr.bundle.plan import Component, Plan, plan
from aicr.catalog.catalog import Catalog
from aicr.catalog.registry import Registry
from aicr.errors import AicrError, not_found


class MemoryTree:
    """A catalogue tree in memory."""

    def __init__(self, files: dict[str, str]) -> None:
        self.files = files

    def paths(self) -> list[str]:
        """All files, sorted."""
        return sorted(self.files)

    def exists(self, path: str) -> bool:
        """Whether a file is there."""
        return path in self.files

    def read_text(self, path: str) -> str:
        """The text of a file."""
        if path not in self.files:
            raise not_found(path)
        return self.files[path]

    def values(self, path: str) -> dict[str, Any]:
        """A values file as a fresh map."""
        return yaml.safe_load(self.read_text(path)) or {}

    def label(self, path: str) -> str:
        """The origin of a path."""
        return "embedded"

    def place(self, path: str) -> str:
        """The path to print."""
        return path


class World:
    """A registry, files, and the recipe made of refs that are given by name.

    A component without an entry gets a plain one; a ref may be given as a map.
    """

    def __init__(
        self,
        *refs: str | dict[str, Any],
        entries: dict[str, dict[str, Any]] | None = None,
        files: dict[str, str] | None = None,
        **parts: Any,
    ) -> None:
        maps = [{"name": ref} if isinstance(ref, str) else ref for ref in refs]
        known = entries or {}
        self.registry = Registry(
            cast("Any", [entry(item["name"], **known.get(item["name"], {})) for item in maps])
        )
        self.tree = MemoryTree(files or {})
        self.recipe: dict[str, Any] = {
            "kind": "RecipeResult",
            "apiVersion": "aicr.run/v1",
            "metadata": {"version": "1.0.0"},
            "criteria": {"service": "eks"},
            "componentRefs": [{"type": "Helm", **item} for item in maps],
            "deploymentOrder": [item["name"] for item in maps],
            **parts,
        }

    def catalog(self) -> Catalog:
        """The catalogue of this world."""
        return Catalog(
            base=cast("Any", {}),
            overlays={},
            mixins={},
            registry=self.registry,
            tree=self.tree,
            taught={},
        )

    def plan(self, **flags: Any) -> Plan:
        """The plan under these flags."""
        return plan(cast("Any", self.recipe), self.catalog(), BundleOptions(**flags))

    def component(self, name: str, **flags: Any) -> Component:
        """One component of the plan under these flags."""
        return next(item for item in self.plan(**flags).components if item.name == name)

    def refused(self, **flags: Any) -> AicrError:
        """The error that the plan is refused with."""
        with pytest.raises(AicrError) as caught:
            self.plan(**flags)
        assert caught.value.code == "INVALID_REQUEST"
        return caught.value


def entry(name: str, *, local: bool = False, **more: Any) -> dict[str, Any]:
    """A registry entry: with a chart of its own name, or without (*local*)."""
    helm = {
        "defaultRepository": "https://charts.example.com",
        "defaultChart": name,
        "defaultVersion": "1.2.3",
    }
    return {"name": name, "displayName": name, "helm": {} if local else helm, **more}
