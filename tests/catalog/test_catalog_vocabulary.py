"""Criteria values that overlays teach, and the strict mode that does not listen."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.recipe.trees import catalog, command, data, overlay, refusal, refused, resolved

from aicr.catalog.catalog import Catalog
from aicr.catalog.load import taught_values
from aicr.recipe.criteria import known_values


@pytest.fixture
def lower(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    """A built-in catalogue that teaches one service of its own."""
    found = catalog(
        tmp_path / "lower", {"overlays/house.yaml": overlay("house", {"service": "house"})}
    )
    monkeypatch.setattr(Catalog, "builtin", classmethod(lambda cls: found))
    monkeypatch.delenv("AICR_CRITERIA_STRICT", raising=False)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """A data directory that teaches another."""
    return str(data(tmp_path / "data", {
        "overlays/mine.yaml": overlay("mine", {"service": " MyCloud ", "os": "any", "intent": ""}),
        "overlays/house2.yaml": overlay("house2", {"service": "house", "accelerator": "tpu"}),
    }))  # fmt: skip


@pytest.mark.covers("R11-40")
def test_an_overlay_teaches_its_words(lower: Catalog, folder: str) -> None:
    """What --data states becomes legal, folded as any other word; any and empty teach nothing."""
    assert refused("recipe", "--service", "mycloud").status == 2
    ran = command("recipe", "--service", "MYCLOUD", "--data", folder)
    assert ran.status == 0
    assert "service: mycloud\n" in ran.out
    taught = lower.overlay(folder).taught
    assert taught["service"] == {"house": "embedded", "mycloud": "external"}
    assert taught["accelerator"] == {"tpu": "external"}
    assert taught["os"] == taught["intent"] == taught["platform"] == {}


@pytest.mark.covers("R11-40")
@pytest.mark.parametrize("word", ["1", "true", "TRUE", " yes ", "on"])
def test_strict_by_environment_accepts_only_built_in_words(
    lower: Catalog, folder: str, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    """A value that only --data brought is unknown again; an embedded one stays."""
    monkeypatch.setenv("AICR_CRITERIA_STRICT", word)
    ran = refused("recipe", "--service", "mycloud", "--data", folder)
    assert ran.status == 2
    assert "invalid service type: mycloud" in ran.err
    assert "mycloud" not in ran.err.partition("allowed:")[2]
    assert command("recipe", "--service", "house", "--data", folder).status == 0


@pytest.mark.parametrize("word", ["", "0", "false", "no", "strict", "2"])
def test_other_words_do_not_switch_strict_on(
    lower: Catalog, folder: str, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    """Only 1, true, yes and on do."""
    monkeypatch.setenv("AICR_CRITERIA_STRICT", word)
    assert command("recipe", "--service", "mycloud", "--data", folder).status == 0


@pytest.mark.covers("R11-40")
def test_strict_by_flag_and_in_the_library(lower: Catalog, folder: str) -> None:
    """--criteria-strict and strict=True are the same switch."""
    assert (
        refused("recipe", "--service", "mycloud", "--data", folder, "--criteria-strict").status == 2
    )
    found = lower.overlay(folder)
    strict = {"strict": True}
    error = refusal(lambda: resolved(found, service="mycloud", options=strict))
    assert error.message == "failed to parse service type"
    assert error.chain()[-1].message == "invalid service type: mycloud"
    assert resolved(found, service="mycloud").document["criteria"]["service"] == "mycloud"


def test_an_embedded_word_is_never_downgraded(lower: Catalog, folder: str) -> None:
    """Taught again by --data, it is still built in."""
    assert lower.overlay(folder).taught["service"]["house"] == "embedded"
    assert "house" in known_values("service", lower.overlay(folder), strict=True)


def test_teaching_does_not_depend_on_order(lower: Catalog, folder: str) -> None:
    """Whichever overlay comes first, the strongest origin wins."""
    overlays = [lower.base, *lower.overlay(folder).overlays.values()]
    assert taught_values(overlays) == taught_values(overlays[::-1])


def test_an_alias_teaches_what_it_stands_for(tmp_path: Path) -> None:
    """An overlay for openshift is selected by ocp, and openshift is no service of its own."""
    found = catalog(tmp_path, {"overlays/o.yaml": overlay("o", {"service": "OpenShift"})})
    assert found.taught["service"] == {"ocp": "embedded"}
    for word in ("openshift", "ocp"):
        recipe = resolved(found, service=word)
        assert recipe.document["metadata"]["appliedOverlays"] == ["base", "o"]
    assert "openshift" not in known_values("service", found)
