"""Every overlay of the catalogue is reached by the arguments that the table of leaves gives."""

from __future__ import annotations

from typing import Any

import pytest
from tests.catalogue.catalogue_files import LEAVES, RECIPES, load, overlays

from aicr.catalog.catalog import Catalog
from aicr.errors import AicrError
from aicr.recipe.configuration import parse_interfaces
from aicr.recipe.criteria import Criteria
from aicr.recipe.hydrate import hydrate
from aicr.recipe.resolve import resolve

ROWS: list[dict[str, Any]] = load(LEAVES)["leaves"]
WORDS = ("service", "accelerator", "intent", "os", "platform")


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """The tree of this checkout, whatever is installed."""
    return Catalog.from_dir(str(RECIPES))


def _resolve(catalog: Catalog, arguments: list[str]) -> Any:
    flags = dict(zip(arguments[::2], arguments[1::2], strict=True))
    criteria: dict[str, Any] = {
        word: flags.pop(f"--{word}") for word in WORDS if f"--{word}" in flags
    }
    if "--nodes" in flags:
        criteria["nodes"] = int(flags.pop("--nodes"))
    configuration: dict[str, Any] = {}
    if "--gke-tcpxo-interfaces" in flags:
        interfaces = parse_interfaces(flags.pop("--gke-tcpxo-interfaces"))
        configuration = {"gke": {"tcpxoInterfaces": interfaces}}
    if "--slurm-accounting-mode" in flags:
        configuration["slurm"] = {"accounting": {"mode": flags.pop("--slurm-accounting-mode")}}
    if "--runtime-inventory" in flags:
        configuration["runtimeInventory"] = flags.pop("--runtime-inventory")
    profile = flags.pop("--profile", "")
    assert not flags
    return resolve(catalog, Criteria(**criteria), profile=profile, configuration=configuration)


def test_the_table_has_a_row_that_succeeds_for_every_overlay() -> None:
    """No overlay is shipped that nobody knows how to ask for."""
    reached = {row["overlay"] for row in ROWS if row["exit"] == 0}
    assert reached == set(overlays()) - {"base"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['overlay']}-{' '.join(row['recipe'])}")
def test_a_row_ends_as_the_table_says(catalog: Catalog, row: dict[str, Any]) -> None:
    """Exit 0 resolves, applies the overlay and hydrates; exit 2 without a bundle is a refusal."""
    if row["exit"] and "bundle" not in row:
        with pytest.raises(AicrError) as caught:
            _resolve(catalog, row["recipe"])
        assert caught.value.code == "INVALID_REQUEST"
        return
    recipe = _resolve(catalog, row["recipe"])
    document = getattr(recipe, "document", recipe)
    assert row["overlay"] in document["metadata"]["appliedOverlays"]
    assert all(
        component.get("values", True) for component in hydrate(recipe)["components"].values()
    )
