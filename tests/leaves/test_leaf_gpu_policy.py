"""Each recipe of the catalogue hands out its GPUs in one way, as its own validation demands."""

from __future__ import annotations

from typing import Any

import pytest
from tests.leaves.conftest import Outcomes
from tools.leaf_table import Leaf

import aicr
from aicr.recipe.document import load_recipe
from aicr.recipe.hydrate import resolve_values
from aicr.validate.affinity import enabled_components
from aicr.validate.gpu_policy import resolve_policy
from tools import leaf_table


@pytest.mark.covers("V-245", "G7")
@pytest.mark.parametrize("row", leaf_table.leaves(), ids=lambda row: row.name)
def test_no_recipe_hands_out_a_gpu_twice(plain: Outcomes, row: Leaf) -> None:
    """A recipe that its own validation refuses could never be proven right (validators spec 5.5)."""
    path = plain[row.name].recipe
    if not path.exists():
        assert row.exit
        return
    catalog: Any = aicr.Catalog.builtin()
    recipe = load_recipe(path.read_text(encoding="utf-8"), path.name, catalog)
    document: Any = recipe.document
    if not any("gpu-operator" in name for name in enabled_components(document)):
        return
    values = {
        name: resolve_values(ref, catalog.tree)  # type: ignore[arg-type]
        for name, ref in enabled_components(document).items()
    }
    profile = document["metadata"].get("selectedProfile") or {}
    policy, _ = resolve_policy(values, advertiser=profile.get("advertiser") or "")
    assert policy == "device-plugin-extended-resource"
