"""Gangs as a person sees them: states, members, who is missing, and changes as they happen."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.program import aicr, start
from tests.kube.fakeapi import FakeApi, refuse, serving
from tests.kube.loopback import run
from tests.preflight_gang.builders import GANG_ID, MAP, Story, pod, pod_document
from tests.preflight_gang.steady import SteadyApi
from tests.preflight_gang.world import members, volcano_group, world

from aicr.kube.kinds import CONFIG_MAP, POD
from aicr.preflight.controller.listing import follow
from aicr.preflight.gang import report
from aicr.preflight.gang.pods import GangPod

Document = dict[str, Any]


def three() -> list[GangPod]:
    """w-0 to w-2 with addresses."""
    return [pod(f"w-{n}", f"10.0.0.{n}") for n in range(3)]


def finished() -> Document:
    """The ConfigMap of a complete gang of three."""
    story = Story()
    story.step(*three())
    assert story.document is not None
    return story.document


def test_a_complete_gang_is_shown_with_its_members() -> None:
    """Rank, address, node, phase; the master with its port."""
    row = report.gang(finished(), three())
    assert row == {
        "namespace": "team-a",
        "gang": GANG_ID,
        "configMap": MAP,
        "state": "complete",
        "generation": 1,
        "expected": 3,
        "members": [
            {
                "name": f"w-{n}",
                "rank": n,
                "ip": f"10.0.0.{n}",
                "phase": "Running",
                "live": True,
                "node": f"node-of-w-{n}",
            }
            for n in range(3)
        ],
        "missing": [],
        "late": [],
        "checks": ["dcgm"],
        "owner": "PodGroup/train",
        "master": "10.0.0.0:29500",
    }


@pytest.mark.parametrize(
    ("pods", "state", "words"),
    [
        (three(), "complete", "3 of 3 members"),
        ([*three()[:2], pod("w-2", "10.0.0.2", phase="Failed")], "losing", "not alive w-2"),
        (three()[:2], "losing", "not alive w-2"),
        ([*three()[:2], pod("w-2", "10.0.0.2", phase="Succeeded")], "complete", "3 of 3"),
        ([*three(), pod("w-3", "10.0.0.3")], "complete", "late w-3"),
        ([*three(), pod("w-3")], "complete", "missing w-3"),
        ([], "empty", "generation 1"),
    ],
    ids=["all", "failed", "gone", "ended well", "late", "not there yet", "nobody"],
)
def test_the_state_of_a_written_gang_is_held_against_its_pods(
    pods: list[GangPod], state: str, words: str
) -> None:
    """What the ConfigMap says is not enough: the controller may be down."""
    row = report.gang(finished(), pods)
    assert row["state"] == state
    assert words in report.line(row)


def test_forming_gangs_name_who_is_missing() -> None:
    """And one whose group says no size is unsized."""
    story = Story(12)
    waiting = [pod(f"w-{n:02}") for n in range(10)]
    story.step(*waiting, pod("x", "10.0.0.9"))
    assert story.document is not None
    row = report.gang(story.document, [*waiting, pod("x", "10.0.0.9")])
    assert row["state"] == "forming"
    assert report.line(row).endswith(
        "1 of 12 members, missing w-00, w-01, w-02, w-03, w-04, w-05, w-06, w-07 and 2 more"
    )
    story.document["data"]["expected_count"] = "0"
    row = report.gang(story.document, waiting)
    assert row["state"] == "unsized"
    assert "1 of ? members" in report.line(row)


def test_only_our_config_maps_are_gangs() -> None:
    """Sorted by namespace and name."""
    foreign: Document = {"metadata": {"name": "x", "namespace": "team-a"}, "data": {}}
    rows = report.gangs([foreign, finished()], three())
    assert [row["configMap"] for row in rows] == [MAP]


def test_changes_of_gangs_are_followed() -> None:
    """One row for each gang at first, then one for each change that a person could see."""

    async def body() -> None:
        async with world() as made:
            await made.put(volcano_group(), *members(2), members()[2] | {"status": {}})
            async with aclosing(follow(made.client, "team-a")) as rows:
                states: list[tuple[str, int]] = []
                async for row in rows:
                    states.append((row["state"], len(row["members"])))
                    if row["state"] == "forming" and len(row["members"]) == 2:
                        await made.put(members()[2])
                    if row["state"] == "complete":
                        break
            assert states[-1] == ("complete", 3)
            assert ("forming", 2) in states

    run(body())


@contextmanager
def served(api: FakeApi, folder: Path) -> Iterator[Path]:
    """A kubeconfig of a fake server that runs in a thread, because commands bring their own loop."""
    ready, ended = threading.Event(), asyncio.Event()
    place: dict[str, Any] = {}

    async def serve() -> None:
        async with serving(api.handle) as address:
            place["server"], place["loop"] = address, asyncio.get_running_loop()
            ready.set()
            await ended.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert ready.wait(60)
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": place["server"]}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = folder / "config"
    path.write_text(yaml.safe_dump(config))
    try:
        yield path
    finally:
        place["loop"].call_soon_threadsafe(ended.set)
        thread.join()


def api_with_a_gang() -> FakeApi:
    """A server with a complete gang of three, one of whom has failed since."""
    api = SteadyApi()

    async def fill() -> None:
        await api.store("ADDED", CONFIG_MAP, finished())
        for n in range(3):
            phase = "Failed" if n == 2 else "Running"
            await api.store("ADDED", POD, pod_document(f"w-{n}", f"10.0.0.{n}", phase=phase))

    asyncio.run(fill())
    api.changed = asyncio.Condition()
    return api


def test_the_command_prints_gangs_as_table_and_documents(tmp_path: Path) -> None:
    """The cluster is named first, on stderr; a gang that there is not is said."""
    with served(api_with_a_gang(), tmp_path) as config:
        shown = aicr("preflight", "gangs", "--kubeconfig", config)
        assert shown.status == 0
        assert "preflight gangs: " in shown.err
        for word in (GANG_ID, "losing", "3/3", "10.0.0.0:29500", "w-2", "Failed"):
            assert word in shown.out
        document = json.loads(aicr("preflight", "gangs", "--kubeconfig", config, "-t", "json").out)
        assert [row["state"] for row in document["gangs"]] == ["losing"]
        text = aicr("preflight", "gangs", "--kubeconfig", config, "-t", "yaml").out
        assert yaml.safe_load(text) == document
        none = aicr("preflight", "gangs", "--kubeconfig", config, "--gang", "other")
        assert (none.status, none.out) == (0, "")
        assert "no gang other" in none.err


def test_the_command_says_what_it_may_not_read(tmp_path: Path) -> None:
    """Exit 4, at once, also when it was to watch."""
    api = api_with_a_gang()
    denied = refuse(403, "Forbidden", 'User "u" cannot list resource "configmaps"')
    api.next("configmaps", denied, times=2)
    with served(api, tmp_path) as config:
        for more in ((), ("--watch",)):
            result = aicr("preflight", "gangs", "--kubeconfig", config, *more)
            result.refused(4, "cannot list")


def test_the_command_prints_blocks_for_schedulers() -> None:
    """To be pasted into values or a PreflightConfig; no cluster is asked."""
    shown = yaml.safe_load(aicr("preflight", "gangs", "--discovery", "volcano").out)
    assert shown["gangDiscovery"]["podGroupGVR"]["group"] == "scheduling.volcano.sh"
    assert yaml.safe_load(aicr("preflight", "gangs", "--discovery", "kubernetes").out) == {
        "gangDiscovery": {}
    }
    aicr("preflight", "gangs", "--discovery", "volcan").refused(2, "did you mean volcano?")
    aicr("preflight", "gangs", "--watch", "-t", "yaml").refused(2, "--watch prints lines")


@pytest.mark.parametrize("form", ["table", "json"])
def test_the_command_watches_until_ctrl_c(tmp_path: Path, form: str) -> None:
    """A line for each gang at first; Ctrl-C is the ordinary end, with status 130 and no complaint."""
    with served(api_with_a_gang(), tmp_path) as config:
        words = ("preflight", "gangs", "--watch", "--kubeconfig", config, "-t", form)
        process = start(*words)
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
        assert process.returncode == 130
        assert "Traceback" not in err
        assert out == ""
    if form == "json":
        assert json.loads(first)["state"] == "losing"
    else:
        assert first == (
            "team-a/volcano-team-a-train: losing, generation 1, 3 of 3 members, not alive w-2\n"
        )
