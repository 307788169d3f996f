"""`aicr doctor`: for each command what it lacks here, and what to do about it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.cli.program import aicr
from tests.collectors.machines import FakeCommands, gpus, linux, machine
from tests.kube.fakeapi import FakeApi, refuse
from tests.kube.loopback import TIMES, closed_port, cluster, run

from aicr.collectors import doctor
from aicr.collectors.doctor import Diagnosis, Surroundings
from aicr.errors import INVALID_REQUEST, AicrError, invalid
from aicr.kube import connect_to
from aicr.kube.config import ClusterConfig

REVIEWS = "selfsubjectaccessreviews"


def around(root: Path, **more: Any) -> Surroundings:
    """A complete machine with everything but a cluster."""

    def no_cluster(**options: object) -> Any:
        raise invalid("no cluster is configured", hint="set KUBECONFIG")

    given: dict[str, Any] = {
        "environ": {},
        "importable": lambda name: True,
        "find": lambda name: f"/usr/bin/{name}",
        "machine": machine(root, FakeCommands()),
        "connect": no_cluster,
        "load_catalogue": lambda: None,
    }
    return Surroundings(**{**given, **more})


def examine(surroundings: Surroundings, *words: str) -> Diagnosis:
    """Look at commands."""
    return run(doctor.examine(surroundings, doctor.chosen(words)))


def with_cluster(
    root: Path, words: Sequence[str], *, denied: Sequence[str] = (), api: FakeApi | None = None
) -> Diagnosis:
    """Look at commands with a cluster that refuses some questions."""

    async def review(request: web.Request) -> web.StreamResponse:
        document = await request.json()
        asked = document["spec"]["resourceAttributes"]
        allowed = f"{asked['verb']} {asked['resource']}" not in denied
        return web.json_response({**document, "status": {"allowed": allowed}})

    async def body() -> Diagnosis:
        async with cluster(api) as (fake, client):
            fake.next(REVIEWS, review, times=80)

            @asynccontextmanager
            async def connected(**options: object) -> Any:
                yield client

            surroundings = around(root, connect=connected, patience=5.0)
            return await doctor.examine(surroundings, doctor.chosen(words))

    return run(body())


def test_a_complete_machine_without_a_cluster_lacks_only_that(tmp_path: Path) -> None:
    """Commands that need no cluster work; the others say why not."""
    linux(tmp_path)
    gpus(tmp_path, 1)
    found = examine(around(tmp_path))
    lacking = {name for name, needs in found.lacking.items() if needs}
    assert lacking == {"snapshot --agent", "validate", "check-health", "gate"}
    assert found.needs["kubeconfig"].says == "no cluster is configured"
    assert found.needs["kubeconfig"].hint == "set KUBECONFIG"
    assert found.needs["api server"].state == doctor.UNKNOWN


@pytest.mark.parametrize("extra", sorted(doctor.EXTRAS))
def test_a_missing_extra_is_named_with_its_pip_line(tmp_path: Path, extra: str) -> None:
    """One module that is not there is enough (decision 39)."""
    module = doctor.EXTRAS[extra][-1]
    surroundings = around(tmp_path, importable=lambda name: name != module)
    commands = [name for name, needs in doctor.COMMANDS.items() if f"extra {extra}" in needs]
    found = run(doctor.examine(surroundings, commands))
    need = found.needs[f"extra {extra}"]
    assert (need.state, need.says) == (doctor.NOT_MET, f"not installed: {module}")
    assert need.hint == f'pip install "aicr[{extra}]"'
    assert all(f"extra {extra}" in found.lacking[name] for name in commands)


def test_programs_and_catalogue_are_looked_for(tmp_path: Path) -> None:
    """No helm on the PATH; a catalogue that is stale."""

    def stale() -> None:
        raise AicrError(INVALID_REQUEST, "stale", hint="reinstall")

    linux(tmp_path)
    surroundings = around(tmp_path, find=lambda name: None, load_catalogue=stale)
    found = examine(surroundings, "bundle")
    assert found.lacking["bundle --vendor-charts"] == ["catalogue", "helm"]
    assert found.needs["catalogue"].hint == "reinstall"


def test_a_machine_that_is_no_linux_sends_to_the_agent(tmp_path: Path) -> None:
    """There is no /proc/sys to read."""
    need = examine(around(tmp_path), "snapshot").needs["machine"]
    assert need.state == doctor.NOT_MET
    assert "aicr snapshot --agent" in need.hint


@pytest.mark.parametrize(
    ("count", "state"), [(0, doctor.NOT_MET), (8, doctor.MET)], ids=["none", "eight"]
)
def test_gpus_are_counted(tmp_path: Path, count: int, state: str) -> None:
    """None is not met; a bus that cannot be read is unknown."""
    linux(tmp_path)
    gpus(tmp_path, count)
    assert examine(around(tmp_path), "snapshot").needs["gpu"].state == state
    unknown = examine(around(tmp_path / "nothing"), "snapshot").needs["gpu"]
    assert unknown.state == doctor.UNKNOWN


def test_an_administrator_can_do_everything(tmp_path: Path) -> None:
    """All questions answered with yes."""
    found = with_cluster(tmp_path, ["validate", "check-health", "gate"])
    assert found.healthy
    assert found.needs["api server"].says == "v1.36.2"


def test_what_a_user_may_not_do_is_listed(tmp_path: Path) -> None:
    """By verb, kind and place; other commands are not touched by it."""
    found = with_cluster(tmp_path, ["validate", "gate"], denied=["bind clusterroles"])
    assert found.lacking == {"validate": ["permissions of validate"], "gate": []}
    assert found.needs["permissions of validate"].says == (
        "not allowed: bind clusterroles.rbac.authorization.k8s.io in the whole cluster"
    )


def test_questions_that_cannot_be_asked_are_unknown_and_not_granted(tmp_path: Path) -> None:
    """A server that refuses access reviews has said nothing."""
    api = FakeApi()
    api.next(REVIEWS, refuse(403, "Forbidden", "no reviews"), times=80)
    found = with_cluster(tmp_path, ["gate"], api=api)
    need = found.needs["permissions of check-health"]
    assert need.state == doctor.UNKNOWN
    assert "no reviews" in need.says
    assert not found.healthy


def test_a_server_that_does_not_answer_is_named(tmp_path: Path) -> None:
    """Not met is the server; what follows from it is unknown."""

    def nobody(**options: object) -> Any:
        config = ClusterConfig(f"http://127.0.0.1:{closed_port()}", source="test")
        return connect_to(config, timeouts=TIMES)

    found = examine(around(tmp_path, connect=nobody), "gate")
    assert found.needs["api server"].state == doctor.NOT_MET
    assert found.needs["permissions of check-health"].state == doctor.UNKNOWN
    assert found.needs["kubeconfig"].state == doctor.MET


def test_a_word_that_is_no_command_is_refused_with_the_nearest() -> None:
    """`snapshto` is a typo."""
    with pytest.raises(AicrError) as caught:
        doctor.chosen(["snapshto"])
    assert caught.value.hint == "did you mean snapshot?"
    assert doctor.chosen(["bundle --attest"]) == ["bundle --attest"]
    assert doctor.chosen(["gate", "gate"]) == ["gate"]


def test_every_need_is_known() -> None:
    """A command's needs are looked at by some function."""
    known = {*doctor._LOCAL, "kubeconfig", "api server"}
    for needs in doctor.COMMANDS.values():
        for need in needs:
            assert need in known or need.startswith("permissions of "), need


@pytest.mark.parametrize("chosen", ["table", "json", "yaml"])
def test_the_command_prints_and_judges(
    chosen: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Exit 8 when a command that was asked about would not work (decision 46)."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    done = aicr("doctor", "gate", "--format", chosen)
    assert done.status == 8
    assert "kubeconfig" in done.out
    assert "0 of 1 commands would work" in done.err
    if chosen == "json":
        found = json.loads(done.out)
        assert found["commands"] == [
            {
                "command": "gate",
                "works": False,
                "lacks": ["kubeconfig", "api server", "permissions of check-health"],
            }
        ]
    assert aicr("doctor", "recipe").status == 0


def test_a_wrong_word_could_not_run() -> None:
    """Exit 2, nothing printed."""
    aicr("doctor", "nothing-like-it").refused(2, "nothing is known about the needs of")
