"""``cm://namespace/name`` as a source and a sink of documents, and interruptions of a run."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import pytest
from tests.validate.fake_cluster import FakeCluster

from aicr.errors import AicrError
from aicr.kube import config_maps
from aicr.validate import interrupts
from aicr.validate.persistence import gone, insist

PLACE = config_maps.Address("gpu-operator", "aicr-recipe")


def config_map(**data: str) -> dict[str, Any]:
    """A ConfigMap."""
    return {
        "kind": "ConfigMap",
        "metadata": {"name": PLACE.name, "namespace": PLACE.namespace},
        "data": data,
    }


def read(document: dict[str, Any] | None, key: str = "recipe.yaml") -> str:
    """Read from a cluster with that ConfigMap."""
    cluster = FakeCluster()
    if document is not None:
        cluster.put(document)
    return asyncio.run(config_maps.read(cluster.port, PLACE, what="recipe file", key=key))


@pytest.mark.parametrize(
    "text",
    ["cm://a", "cm://", "cm:///b", "cm://a/", "cm://A/b", "cm://a/b/c", "cm://a b/c", "cm://a.b/c"],
)
def test_an_address_names_namespace_and_name(text: str) -> None:
    """Nothing else is a ConfigMap."""
    with pytest.raises(AicrError, match="does not name a ConfigMap") as raised:
        config_maps.parse(text)
    assert raised.value.code == "INVALID_REQUEST"
    assert config_maps.parse("cm://gpu-operator/aicr-recipe") == PLACE
    assert str(PLACE) == "cm://gpu-operator/aicr-recipe"


def test_reading_takes_the_documents_own_key_or_the_only_one() -> None:
    """Of several keys without that name it cannot be told which is meant."""
    assert read(config_map(**{"recipe.yaml": "a", "other": "b"})) == "a"
    assert read(config_map(anything="a")) == "a"
    with pytest.raises(AicrError, match=r"has the keys one, two, and none is recipe\.yaml"):
        read(config_map(one="a", two="b"))
    for absent in (None, config_map()):
        with pytest.raises(AicrError) as raised:
            read(absent)
        assert raised.value.code == "NOT_FOUND"


def test_writing_sets_one_key_and_refuses_what_does_not_fit() -> None:
    """The size is looked at before anything is sent."""
    cluster = FakeCluster()
    asyncio.run(config_maps.write(cluster.port, PLACE, key="report.json", text="{}"))
    found = cluster.objects[("ConfigMap", PLACE.namespace, PLACE.name)]
    assert found["data"] == {"report.json": "{}"}
    assert found["metadata"]["managedBy"] == "aicr-report"
    cluster = FakeCluster()
    with pytest.raises(AicrError, match="do not fit"):
        asyncio.run(config_maps.write(cluster.port, PLACE, key="a", text="x" * 1_000_001))
    assert cluster.calls == []


def test_a_request_is_repeated_until_it_is_answered_or_refused() -> None:
    """Away is not an answer; a refusal is, and a deletion of what is not there is done."""
    slept: list[float] = []
    now = [0.0]

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    def asking(*answers: str | AicrError) -> tuple[Any, list[str | AicrError]]:
        left = list(answers)

        async def ask() -> str:
            answer = left.pop(0)
            if isinstance(answer, AicrError):
                raise answer
            return answer

        return ask, left

    away = AicrError("SERVICE_UNAVAILABLE", "refused")
    ask, left = asking(away, away, "here")
    found = asyncio.run(insist(ask, 30, clock=lambda: now[0], sleep=sleep))
    assert (found, left, slept) == ("here", [], [0.5, 0.5])
    ask, left = asking(AicrError("UNAUTHORIZED", "no"), "here")
    with pytest.raises(AicrError, match="no"):
        asyncio.run(insist(ask, 30, clock=lambda: now[0], sleep=sleep))
    ask, left = asking(*[away] * 100)
    with pytest.raises(AicrError, match="refused"):
        asyncio.run(insist(ask, 2, clock=lambda: now[0], sleep=sleep))
    assert len(left) == 96
    ask, _ = asking(AicrError("NOT_FOUND", "gone"))
    asyncio.run(gone(ask, 1))


def test_an_interruption_lets_the_run_clean_up_and_goes_on_as_one() -> None:
    """The second signal is answered and cuts nothing off."""
    said: list[str] = []
    done: list[str] = []

    async def main() -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(60)
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(0.05)
            done.append("cleaned up")

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        interrupts.run(main(), say=said.append)
    assert done == ["cleaned up"]
    assert said == [
        "interrupted; removing what this run has made",
        "still cleaning up; this ends by itself",
    ]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_request_to_end_exits_as_one() -> None:
    """128 and the signal's number; a run that ends by itself gives its result."""

    async def ended() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(60)

    with pytest.raises(SystemExit) as raised:
        interrupts.run(ended())
    assert raised.value.code == 143

    async def fine() -> int:
        return 7

    assert interrupts.run(fine()) == 7
