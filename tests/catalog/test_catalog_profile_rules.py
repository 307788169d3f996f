"""Static rules of a profile declaration, checked when the tree is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.recipe.trees import catalog, overlay, refusal

from aicr.catalog.profiles import assigned_paths


def value(*paths: str, component: str = "a", to: Any = True) -> dict[str, Any]:
    """A profile value that sets dotted paths of one component."""
    overrides: dict[str, Any] = {}
    for path in paths:
        node = overrides
        *parents, leaf = path.split(".")
        for key in parents:
            node = node.setdefault(key, {})
        node[leaf] = to
    return {"componentRefs": [{"name": component, "overrides": overrides}]}


def profile(**fields: Any) -> dict[str, Any]:
    """A profile declaration with two values that set the same path."""
    own = {"name": "stack", "default": "one", "values": {"one": value("x"), "two": value("x")}}
    return {**own, **fields}


def load(folder: Path, declared: dict[str, Any]) -> dict[str, Any]:
    """The declaration as the catalogue holds it."""
    found = catalog(folder, {"overlays/p.yaml": overlay("p", profile=declared)})
    return dict(found.overlays["p"]["spec"]["profile"])


def test_a_declaration_is_kept_as_written(tmp_path: Path) -> None:
    """Name, description, default and values, overrides untouched."""
    declared = profile(description="how")
    declared["values"]["one"]["advertiser"] = "external"
    assert load(tmp_path, declared) == declared


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": ""}, "profile name and value must match [A-Za-z0-9._-]+"),
        ({"name": "a b"}, "profile name and value must match [A-Za-z0-9._-]+"),
        ({"name": "a\n"}, "profile name and value must match [A-Za-z0-9._-]+"),
        ({"values": {"one": value("x"), "a=b": value("x")}},
         "profile name and value must match [A-Za-z0-9._-]+"),
        ({"default": "three"},
         'profile "stack" has default "three", which is not one of its values: one, two'),
        ({"default": ""}, 'profile "stack" has default "", which is not one of its values'),
        ({"default": "One"}, 'profile "stack" has default "One", which is not one of its values'),
        ({"values": {}}, 'profile "stack" has default "one", which is not one of its values: none'),
        ({"values": {"one": value("x"), "ONE": value("x")}},
         'profile "stack" has values "one" and "ONE" that differ only in case'),
        ({"values": ["one"]}, "profile.values must be a map, found a list"),
        ({"values": {"one": {"advertiser": "me"}}},
         'advertiser must be "external" or absent, found "me"'),
        ({"values": {"one": {"componentRefs": [{"name": "a", "version": "1"}]}}},
         'a profile may only set name and overrides of a component, not "version"'),
        ({"values": {"one": {"componentRefs": [{"overrides": {"x": 1}}]}}},
         "componentRefs[0]: name is required"),
        ({"values": {"one": value("enabled")}}, "a profile may not set enabled"),
        ({"values": {"one": value("x", to={})}}, "a profile override may not be an empty map"),
        ({"values": {"one": {"componentRefs": [{"name": "a", "overrides": {}}]}}},
         "a profile override may not be an empty map"),
        ({"values": {"one": {"componentRefs": [{"name": "a", "overrides": {"a.b": 1}}]}}},
         'profile override key "a.b" is empty or holds a dot'),
        ({"values": {"one": {"componentRefs": [{"name": "a", "overrides": {"x": {"": 1}}}]}}},
         'profile override key "" is empty or holds a dot'),
        ({"values": {"one": value("x", to=2**53)}},
         "9007199254740992 does not survive JSON (beyond 2^53-1)"),
        ({"values": {"one": value("x", to=-(2**53))}}, "does not survive JSON"),
        ({"values": {"one": value("x", to=[1, [2**53]])}}, "does not survive JSON"),
        ({"values": {"one": value("x", "y"), "two": value("x")}},
         'profile "stack" violates union totality: value "two" assigns [a:x], '
         "expected [a:x, a:y]"),
        ({"values": {"one": value("x"), "two": value("x", component="b")}},
         'profile "stack" violates union totality: value "one" assigns [a:x], '
         "expected [a:x, b:x]"),
        ({"values": {"one": value("x"), "two": {}}},
         'profile "stack" violates union totality: value "two" assigns [], expected [a:x]'),
    ],
)  # fmt: skip
def test_a_bad_declaration_is_refused(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    """Each static rule, with the place of what breaks it."""
    error = refusal(lambda: load(tmp_path, profile(**fields)))
    assert error.code == "INVALID_REQUEST"
    assert error.message.startswith(message) or message in error.message
    assert "overlays/p.yaml:" in error.where


@pytest.mark.parametrize(
    "to", [2**53 - 1, -(2**53 - 1), 1.5, None, [1, {"a.b": {}}], "text", False]
)
def test_every_value_that_survives_json_may_be_set(tmp_path: Path, to: object) -> None:
    """A list is one value, so maps in it are free."""
    declared = profile(values={"one": value("x", to=to)})
    assert load(tmp_path, declared)["values"]["one"] == value("x", to=to)


def test_a_nested_enabled_is_a_value_like_any_other(tmp_path: Path) -> None:
    """Only the component's own switch is out of reach."""
    load(tmp_path, profile(values={"one": value("driver.enabled")}))


def test_assigned_paths_are_sorted_leaves() -> None:
    """Lists and nulls are leaves; maps are not."""
    refs: Any = {"componentRefs": [{"name": "b", "overrides": {"x": {"z": [1], "y": None}}},
                                   {"name": "a", "overrides": {"k": 1}}]}  # fmt: skip
    assert assigned_paths(refs) == [("a", "k"), ("b", "x.y"), ("b", "x.z")]
