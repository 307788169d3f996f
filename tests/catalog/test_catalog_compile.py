"""The build step: what it writes is what was loaded, and a stale build says so."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.recipe.trees import catalog, command, entry, overlay, refusal, registry, tree
from tests.recipe.world import WORLD

from aicr.catalog import catalog as catalog_module
from aicr.catalog.catalog import Catalog
from aicr.catalog.compile import compile_tree, digest

FILES = {
    **WORLD,
    "registry.yaml": registry(
        entry("nfd", healthCheck={"assertFile": "checks/nfd/health-check.yaml"}),
        entry("gpu-operator", helm={"defaultRepository": "https://h.example.com",
                                    "defaultChart": "c", "defaultVersion": "1"}),
    ),
    "checks/nfd/health-check.yaml": "kind: Test\nname: 'é'\n",
    "components/gpu-operator/values-eks.yaml": "a: [1, 2.5, null, 'x: y', {b: \"\\u2028\"}]\n",
    "components/gpu-operator/manifests/values.yaml": "{{ a template }}\n",
}  # fmt: skip


def namespace_of(text: str) -> dict[str, Any]:
    """What a generated module defines."""
    found: dict[str, Any] = {}
    exec(compile(text, "generated", "exec"), found)
    return found


def test_the_generated_modules_hold_what_the_loader_found(tmp_path: Path) -> None:
    """Overlays, mixins, registry, vocabulary, values and texts survive the round trip."""
    root = tree(tmp_path, FILES)
    loaded = Catalog.from_dir(str(root))
    texts = compile_tree(str(root))
    main = namespace_of(texts["_builtin/__init__.py"])
    assert main["BASE"] == loaded.base
    assert main["OVERLAYS"] == loaded.overlays
    assert list(main["OVERLAYS"]) == list(loaded.overlays)
    assert main["MIXINS"] == loaded.mixins
    assert main["REGISTRY"] == loaded.registry.entries
    assert main["TAUGHT"] == loaded.taught
    assert list(main["FILES"]) == loaded.tree.paths()
    values = namespace_of(texts["_builtin/values.py"])["VALUES"]
    assert values == {path: loaded.tree.values(path) for path in (
        "components/gpu-operator/values-eks.yaml", "components/gpu-operator/values.yaml"
    )}  # fmt: skip
    asserts = namespace_of(texts["_builtin/asserts.py"])["ASSERTS"]
    assert asserts == {"checks/nfd/health-check.yaml": "kind: Test\nname: 'é'\n"}


def test_the_same_tree_gives_the_same_bytes(tmp_path: Path) -> None:
    """Neither the place nor the order of writing shows."""
    one = tree(tmp_path / "one", FILES)
    other = tree(tmp_path / "other", dict(reversed(FILES.items())))
    assert compile_tree(str(one)) == compile_tree(str(other))


def test_the_digest_sees_names_and_bytes(tmp_path: Path) -> None:
    """Moving bytes between files changes it; touching times does not."""
    root = tree(tmp_path, {"a.txt": "ab", "b.txt": ""})
    first = digest(str(root))
    os.utime(root / "a.txt", (1, 1))
    assert digest(str(root)) == first
    (root / "a.txt").write_text("a")
    (root / "b.txt").write_text("b")
    assert digest(str(root)) != first


def test_a_tree_that_does_not_load_does_not_compile(tmp_path: Path) -> None:
    """What ships has passed the loader."""
    root = tree(tmp_path, {"overlays/x.yaml": overlay("x", constraints=[{"name": "a"}])})
    assert refusal(lambda: compile_tree(str(root))).code == "INVALID_REQUEST"


def checkout(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Any]:
    """A source checkout whose build is up to date, and its generated module."""
    package = folder / "src/aicr/catalog"
    (package / "_builtin").mkdir(parents=True)
    (package / "_builtin/__init__.py").write_text("")
    root = tree(folder / "recipes", FILES)
    monkeypatch.setattr(catalog_module, "__file__", str(package / "catalog.py"))
    return root, SimpleNamespace(DIGEST=digest(str(root)))


def test_a_checkout_that_changed_since_the_build_is_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decision 38: newer files are compared by content, and only a difference is an error."""
    root, builtin = checkout(tmp_path, monkeypatch)
    assert catalog_module._source_root(builtin) == str(root)
    later = (2**31, 2**31)
    os.utime(root / "components/gpu-operator/values.yaml", later)
    assert catalog_module._source_root(builtin) == str(root)
    (root / "components/gpu-operator/values.yaml").write_text("driver: {}\n")
    os.utime(root / "components/gpu-operator/values.yaml", later)
    error = refusal(lambda: catalog_module._source_root(builtin))
    assert error.code == "INTERNAL"
    assert "stale" in error.message
    assert "reinstall" in error.hint


def test_an_installation_without_sources_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And one with its sources beside it asks no further."""
    root, builtin = checkout(tmp_path, monkeypatch)
    (root / "registry.yaml").unlink()
    error = refusal(lambda: catalog_module._source_root(builtin))
    assert (error.code, error.hint) == ("INTERNAL", "reinstall aicr")
    shipped = tmp_path / "src/aicr/catalog/_recipes"
    shipped.mkdir()
    assert catalog_module._source_root(builtin) == str(shipped)


def test_an_installation_that_was_never_built_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit 8 with the command to run, not an import error."""
    import aicr.catalog as package

    monkeypatch.setitem(sys.modules, "aicr.catalog._builtin", None)
    monkeypatch.delattr(package, "_builtin", raising=False)
    error = refusal(Catalog.builtin)
    assert error.code == "INTERNAL"
    assert "the build step did not run" in error.message
    ran = command("recipe", "--service", "eks")
    assert ran.status == 8
    assert "pip install" in ran.err


def test_the_built_in_catalogue_equals_its_sources() -> None:
    """The generated package and the directory it was made from are one catalogue."""
    built = Catalog.builtin()
    loaded = Catalog.from_dir(built.tree.root)  # type: ignore[attr-defined]
    assert built.overlays == loaded.overlays
    assert built.base == loaded.base
    assert built.mixins == loaded.mixins
    assert built.registry.entries == loaded.registry.entries
    assert built.taught == loaded.taught
    assert built.tree.paths() == loaded.tree.paths()
    for path in built.tree.paths():
        if path.startswith("components/") and path.endswith("/values.yaml"):
            assert built.tree.values(path) == loaded.tree.values(path)


def test_a_built_catalogue_resolves_like_its_directory(tmp_path: Path) -> None:
    """Nothing of resolution depends on which of the two it got."""
    from aicr import resolve
    from aicr.recipe.criteria import Criteria

    built = Catalog.builtin()
    loaded = Catalog.from_dir(built.tree.root)  # type: ignore[attr-defined]
    criteria = Criteria(service="eks", accelerator="h100", intent="training", os="ubuntu")
    assert resolve(built, criteria).to_yaml() == resolve(loaded, criteria).to_yaml()
    assert catalog(tmp_path, FILES).notices == []
