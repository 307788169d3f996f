"""Laws of deriving a benchmark runtime from a delivered one (validators spec 7.2, 4.4)."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aicr.checks.performance import nccl_derivation as derivation
from aicr.checks.performance import nccl_templates as templates
from aicr.checks.performance.nccl_paths import differing, inherited, leaves

Document = dict[str, Any]

WORDS = st.text("abcxyz", min_size=1, max_size=4)
PLAIN = st.one_of(st.integers(0, 9), st.booleans(), WORDS)
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=3)),
    max_leaves=8,
)
NAMED: st.SearchStrategy[list[Document]] = st.lists(
    st.fixed_dictionaries({"name": WORDS}, optional={"value": PLAIN, "emptyDir": st.just({})}),
    max_size=4,
    unique_by=lambda one: str(one["name"]),
)
MOUNTS = st.lists(
    st.fixed_dictionaries({"name": WORDS, "mountPath": WORDS}),
    max_size=4,
    unique_by=lambda one: str(one["mountPath"]),
)


@st.composite
def pods(draw: st.DrawFn) -> Document:
    """A pod template with a worker, and whatever else beside it."""
    worker: Document = {"name": "node", "image": draw(WORDS), "env": draw(NAMED)}
    worker["volumeMounts"] = draw(MOUNTS)
    for key in derivation.OWNED[1:]:
        if draw(st.booleans()):
            worker[key] = [draw(WORDS)] if key in ("command", "args") else draw(VALUES)
    others = [{**one, "name": f"side-{one['name']}"} for one in draw(NAMED)]
    spec = {**draw(st.dictionaries(WORDS, VALUES, max_size=3)), "containers": [worker, *others]}
    spec["volumes"] = draw(NAMED)
    return {"metadata": draw(st.dictionaries(WORDS, VALUES, max_size=3)), "spec": spec}


@pytest.mark.covers("V-195", "V-196", "V-198")
@given(pods(), pods())
def test_the_guard_lets_every_derivation_through_and_no_document_is_changed(
    shipped: Document, bench: Document
) -> None:
    """What is derived differs from what was shipped in our fields and in additions only."""
    before = copy.deepcopy((shipped, bench))
    made = derivation.derived_pods(shipped, bench)
    assert derivation.unexpected(shipped, made, bench) == []
    assert (shipped, bench) == before
    assert made["metadata"] == shipped["metadata"]
    have = shipped["spec"]["volumes"]
    assert made["spec"]["volumes"][: len(have)] == have


@pytest.mark.covers("V-198")
@given(pods(), pods(), WORDS, PLAIN)
def test_the_guard_sees_every_other_change(
    shipped: Document, bench: Document, key: str, value: Any
) -> None:
    """A field of the spec, an annotation, a variable of the worker."""
    for place in ("spec", "metadata"):
        made = derivation.derived_pods(shipped, bench)
        made[place][f"new-{key}"] = value
        assert f"{place}.new-{key}" in derivation.unexpected(shipped, made, bench)
    made = derivation.derived_pods(shipped, bench)
    templates.worker_container(made)["env"] = [{"name": "QQ", "value": key}]
    assert derivation.unexpected(shipped, made, bench)


@pytest.mark.covers("V-196")
@given(pods(), pods())
def test_deriving_again_changes_nothing(shipped: Document, bench: Document) -> None:
    """The derived template is its own derivation."""
    made = derivation.derived_pods(shipped, bench)
    assert derivation.derived_pods(made, bench) == made


@pytest.mark.covers("V-209")
@given(pods(), pods())
def test_every_path_is_either_inherited_or_differs(before: Document, after: Document) -> None:
    """Both lists are sorted and share nothing; together they name every path of the shipped template."""
    kept, changed = inherited(before, after), differing(before, after)
    assert kept == sorted(kept)
    assert changed == sorted(changed)
    assert not {*kept} & {*changed}
    assert {*leaves(before)} <= {*kept} | {*changed}


@pytest.mark.covers("V-209")
@given(pods())
def test_equal_templates_have_equal_digests_whatever_says_nothing(template: Document) -> None:
    """Order of keys, nulls and empty maps do not matter; a template differs from itself nowhere."""
    turned = json.loads(json.dumps(template, sort_keys=True))
    turned["spec"]["nothing"] = None
    turned["spec"]["empty"] = {"deep": []}
    assert derivation.digest(template) == derivation.digest(turned)
    assert differing(template, template) == []


@pytest.mark.covers("V-222")
@given(pods(), pods())
def test_a_record_holds_no_value(shipped: Document, bench: Document) -> None:
    """Only keys and names of named entries are in a path."""
    stored = derivation.derived_pods(shipped, bench)
    templates.worker_container(stored)["env"] = [{"name": "A", "value": "SECRET-VALUE"}]
    record = derivation.provenance(shipped, stored)
    assert "SECRET-VALUE" not in json.dumps(record)


@pytest.mark.covers("V-206")
@given(
    st.lists(
        st.sampled_from(
            [
                "-x NCCL_A=1",
                "-x CUDA_B=2",
                "-x LD_LIBRARY_PATH=/x",
                "-x NCCL_DEBUG=INFO",
                "-x UCX_C=3",
            ]
        ),
        max_size=6,
    ),
    st.sampled_from([" ", " \\\n    "]),
)
def test_stripping_leaves_exactly_what_is_no_wiring(exports: list[str], between: str) -> None:
    """In order, on one line or on many; and twice is as good as once."""
    script = between.join(["mpirun", *exports, "program -b 1K"])
    found = derivation.stripped(script)
    kept = [one for one in exports if "DEBUG=" in one or "UCX" in one]
    assert (
        found.replace("\\\n", " ").split() == " ".join(["mpirun", *kept, "program -b 1K"]).split()
    )
    assert derivation.stripped(found) == found
