"""Pytest fixtures of the shared control plane: import them into the conftest.py of a test folder.

    from tests.controlplane.fixtures import api, namespace, plane  # noqa: F401

One plane serves a whole test run, however many folders import these, because starting it is what
costs. Each test gets a namespace of its own. A test that breaks the plane starts one for itself.

Tests that use them carry the marker `cluster`, and run only when `-m` names it: building the programs
takes minutes the first time.
"""

from __future__ import annotations

import os
import re
import secrets
import sys
from collections.abc import Iterator
from typing import Final

import pytest
from tests.controlplane.client import Client, Document, eventually
from tests.controlplane.nodes import Node
from tests.controlplane.plane import ControlPlane

MARKER: Final = "cluster"
#: The shared plane's nodes: two that run pods, one of them with devices, and two hollow GPU nodes.
NODES: Final = (
    Node("runs-1", labels={"test.aicr.run/pool": "runs"}, gpus=8),
    Node("runs-2", labels={"test.aicr.run/pool": "runs"}, gpus=8, devices=4),
    Node("hollow-1", labels={"test.aicr.run/pool": "hollow"}, gpus=8, hollow=True),
    Node("hollow-2", labels={"test.aicr.run/pool": "hollow"}, gpus=8, hollow=True),
)


class _Shared:
    """The one plane, and how many folders use it now."""

    plane: ControlPlane | None = None
    users = 0
    #: What the summary of the test run shows once the plane is gone.
    summary = ""


@pytest.fixture(scope="session")
def plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """The shared control plane; its logs are kept when a test has failed."""
    if _Shared.plane is None:
        root_or_fail()
        started = ControlPlane(NODES)
        started.start()
        _Shared.plane = started
    _Shared.users += 1
    shared = _Shared.plane
    yield shared
    _Shared.users -= 1
    if not _Shared.users:
        _Shared.plane = None
        shared.keep = shared.keep or request.session.testsfailed > 0
        _Shared.summary = f"started in {shared.start_seconds:.1f} s\n{shared.memory_table()}" + (
            f"\n{shared.kept_line()}" if shared.keep else ""
        )
        shared.stop()
        _tell_from_worker(request.config)


def _tell_from_worker(config: pytest.Config) -> None:
    """Show the summary now when pytest-xdist runs us: its workers have no terminal to sum up on."""
    worker = getattr(config, "workerinput", {}).get("workerid")
    if worker is None:
        return
    capture = config.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    with capture.global_and_fixture_disabled():
        print(f"\ntest control plane of {worker}: {_Shared.summary}", file=sys.stderr, flush=True)


@pytest.fixture
def api(plane: ControlPlane) -> Client:
    """A client of the shared plane that may do anything."""
    return plane.client()


@pytest.fixture
def namespace(request: pytest.FixtureRequest, api: Client) -> Iterator[str]:
    """A namespace for one test, ready for pods; it is deleted afterwards and nobody waits for that."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[:40].strip("-")
    name = f"{words}-{secrets.token_hex(3)}"
    make_namespace(api, name)
    yield name
    api.delete("Namespace", name)


def make_namespace(api: Client, name: str, labels: Document | None = None) -> None:
    """Make a namespace and wait until pods can be made in it."""
    api.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    )
    # Pods are refused before the controller has made the account that they run as, and do not
    # start before their certificate of the authority is there.
    eventually("the default service account", lambda: api.get("ServiceAccount", "default", name))
    eventually("the root certificate", lambda: api.get("ConfigMap", "kube-root-ca.crt", name))


def wanted(config: pytest.Config) -> bool:
    """Whether this run asks for tests with a control plane."""
    return MARKER in str(config.option.markexpr)


def leave_out_unless_wanted(config: pytest.Config, items: list[pytest.Item]) -> None:
    """For `pytest_collection_modifyitems`: drop marked tests from a run that did not ask for them."""
    if wanted(config):
        return
    dropped = [item for item in items if item.get_closest_marker(MARKER)]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if item not in dropped]


def summarize(reporter: pytest.TerminalReporter) -> None:
    """For `pytest_terminal_summary`: start time and memory of the shared plane."""
    if _Shared.summary:
        reporter.section("test control plane")
        reporter.write_line(_Shared.summary)


def root_or_fail() -> None:
    """Fail a test that needs pods to run when they cannot."""
    if os.geteuid() != 0 or not sys.platform.startswith("linux"):
        pytest.fail(
            "tests with a control plane need root on Linux: pods get namespaces of their own"
        )
