"""The example of docs/checks-sdk.md is a check that works."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.checks.contexts import Seen, pod, put, validation
from tests.kube.fakeapi import refuse
from tests.kube.loopback import cluster, run

from aicr.checks.sdk import Check, Skip
from aicr.errors import INTERNAL, NOT_FOUND, UNAUTHORIZED, AicrError
from aicr.kube import kinds

PAGE = Path(__file__).resolve().parents[2] / "docs" / "checks-sdk.md"


@pytest.fixture(scope="module")
def check() -> Check:
    """The CHECK that the page's code declares."""
    found = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    module: dict[str, Any] = {}
    exec(compile(found[1], str(PAGE), "exec"), module)
    made = module["CHECK"]
    assert isinstance(made, Check)
    return made


@pytest.mark.parametrize(
    ("phases", "declared", "denied", "code"),
    [
        (["Running", "Pending"], True, False, ""),
        (["Running"], False, False, ""),
        (["Pending"], True, False, INTERNAL),
        ([], True, False, NOT_FOUND),
        ([], False, False, "skip"),
        (["Running"], False, True, UNAUTHORIZED),
    ],
    ids=["runs", "not declared and there", "none runs", "absent", "does not apply", "denied"],
)
def test_the_example_passes_fails_and_skips_as_the_page_says(
    check: Check, phases: list[str], declared: bool, denied: bool, code: str
) -> None:
    """The capability table holds for it without a line of its own."""
    seen = Seen()
    given = validation("my-component") if declared else None

    async def scenario() -> None:
        async with cluster() as (api, client):
            for number, phase in enumerate(phases):
                labels = {"app": "my-component"}
                await put(
                    api, kinds.POD, pod(f"p{number}", "my-namespace", phase=phase, labels=labels)
                )
            if denied:
                api.next("GET .*/pods", refuse(403, "Forbidden", 'cannot list resource "pods"'))
            await check.run(seen.context(client, validation=given))

    if not code:
        run(scenario())
        assert seen.lines == [f"Running: 1/{len(phases)}"]
        return
    with pytest.raises(AicrError) as caught:
        run(scenario())
    assert isinstance(caught.value, Skip) == (code == "skip")
    if code != "skip":
        assert caught.value.code == code
