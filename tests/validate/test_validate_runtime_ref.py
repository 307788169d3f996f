"""A benchmark runtime by reference is read before anything runs, or the run is refused."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from aicr.errors import AicrError, not_found
from aicr.validate.runtime_ref import CARRIER, REF, resolve


class Files:
    """A tree of two files."""

    def __init__(self) -> None:
        self.files = {"gb200/eks": "kind: TrainingRuntime\n", "h100/eks": " \n"}

    def read_text(self, path: str) -> str:
        """The text of a file below the runtimes."""
        name = path.removeprefix("validators/performance/testdata/").removesuffix("/runtime.yaml")
        if name not in self.files:
            raise not_found(f"no {path}")
        return self.files[name]


def recipe(*constraints: tuple[str, str]) -> dict[str, Any]:
    """A recipe with constraints of performance."""
    stated = [{"name": name, "value": value} for name, value in constraints]
    return {"validation": {"performance": {"checks": ["x"], "constraints": stated}}}


def test_the_text_takes_the_place_of_the_reference() -> None:
    """Order and other constraints stay; the recipe is not changed."""
    given = recipe(("nccl-all-reduce-bw", ">= 450"), (REF, "gb200/eks"))
    before = copy.deepcopy(given)
    found = resolve(given, Files())  # type: ignore[arg-type]
    assert found["validation"]["performance"]["constraints"] == [
        {"name": "nccl-all-reduce-bw", "value": ">= 450"},
        {"name": CARRIER, "value": "kind: TrainingRuntime\n"},
    ]
    assert found["validation"]["performance"]["checks"] == ["x"]
    assert given == before
    for plain in ({}, recipe(("a", "b")), recipe((CARRIER, "kind: X"))):
        assert resolve(plain, Files()) is plain  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("constraints", "said"),
    [
        ([(REF, "../x/y")], "not of the form accelerator/service"),
        ([(REF, "../eks")], "not of the form accelerator/service"),
        ([(REF, "gb200")], "not of the form accelerator/service"),
        ([(REF, "gb200/")], "not of the form accelerator/service"),
        ([(REF, "")], "not of the form accelerator/service"),
        ([(REF, "gb200/none")], "cannot be read"),
        ([(REF, "h100/eks")], "is empty"),
        ([(REF, "gb200/eks"), (REF, "gb200/eks")], "stated 2 times"),
        ([(CARRIER, "a"), (CARRIER, "b")], "stated 2 times"),
        ([(REF, "gb200/eks"), (CARRIER, "a")], "both stated"),
    ],
)
def test_a_reference_that_cannot_be_meant_is_refused(
    constraints: list[tuple[str, str]], said: str
) -> None:
    """INVALID_REQUEST, in the orchestrator."""
    with pytest.raises(AicrError) as raised:
        resolve(recipe(*constraints), Files())  # type: ignore[arg-type]
    assert (raised.value.code, raised.value.exit_status) == ("INVALID_REQUEST", 2)
    assert said in raised.value.message
