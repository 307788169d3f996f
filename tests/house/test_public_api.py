"""The names that users of the library may rely on (decision 37)."""

from __future__ import annotations

import importlib

import pytest

import aicr

#: Adding a name here is a decision; taking one away breaks somebody.
PUBLIC = [
    "AicrError",
    "BundleOptions",
    "Catalog",
    "Criteria",
    "bundle",
    "hydrate",
    "resolve",
]


def test_the_package_lists_exactly_its_public_names() -> None:
    """`aicr.__all__` is the public interface, no more and no less."""
    assert sorted(aicr.__all__) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_resolves_and_is_listed_by_dir(name: str) -> None:
    """Every listed name can be fetched although it is loaded lazily, and completion finds it."""
    assert getattr(aicr, name) is not None
    assert name in dir(aicr)


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_has_a_docstring(name: str) -> None:
    """Every public class and function says what it is for."""
    assert (getattr(aicr, name).__doc__ or "").strip()


def test_an_unknown_name_is_an_attribute_error() -> None:
    """Lazy loading does not change what Python says about a wrong name."""
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = aicr.no_such_name


def test_bundle_can_be_called_after_its_package_was_imported() -> None:
    """The function `aicr.bundle` and the package of that name live together."""
    importlib.import_module("aicr.bundle.plan")
    assert callable(aicr.bundle)


@pytest.mark.parametrize("name", ["builtin", "from_dir", "overlay"])
def test_a_catalog_is_opened_in_three_ways(name: str) -> None:
    """Built in, from one folder alone, or a folder laid over the built-in data."""
    assert callable(getattr(aicr.Catalog, name))
