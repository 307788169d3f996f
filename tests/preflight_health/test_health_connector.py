"""The stand-in for the platform connector, and the command that shows what it gets."""

from __future__ import annotations

import io
import json
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc  # type: ignore[import-untyped]
import pytest

from aicr.cli import preflight_connector
from aicr.cli.console import Console
from aicr.errors import AicrError
from aicr.preflight.health.client import HealthClient
from aicr.preflight.health.connector import Connector
from aicr.preflight.health.events import Source, finding, gpu, healthy
from aicr.preflight.health.transport import CallError, UnixSocket

SOURCE = Source("preflight-x", "GPU", "node-1")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short path, as sockets need."""
    made = Path(tempfile.mkdtemp(prefix="hc"))
    yield made
    shutil.rmtree(made)


def test_events_are_handed_on_and_the_socket_goes_away(folder: Path) -> None:
    """A document of each event, and the authorization."""
    came: list[tuple[str, str]] = []
    path = folder / "s"
    connector = Connector(str(path), lambda event, token: came.append((event["checkName"], token)))
    connector.start()
    try:
        HealthClient(UnixSocket(str(path)), SOURCE).send(healthy("C", "m"))
    finally:
        connector.stop()
    assert came == [("C", "")]
    assert not path.exists()


def test_it_can_refuse(folder: Path) -> None:
    """To try out what a check does then."""
    path = str(folder / "s")
    connector = Connector(path, lambda event, token: None, refuse=grpc.StatusCode.PERMISSION_DENIED)
    connector.start()
    try:
        with pytest.raises(CallError, match="PERMISSION_DENIED"):
            UnixSocket(path)(b"", [], 60)
    finally:
        connector.stop()


def test_what_is_no_event_is_refused(folder: Path) -> None:
    """With INVALID_ARGUMENT; the server goes on."""
    path = str(folder / "s")
    connector = Connector(path, lambda event, token: None)
    connector.start()
    try:
        with pytest.raises(CallError, match="INVALID_ARGUMENT"):
            UnixSocket(path)(b"\xff\xff", [], 60)
    finally:
        connector.stop()


def test_a_stale_socket_is_replaced_and_a_file_is_not(folder: Path) -> None:
    """A file of somebody's is never removed."""
    stale = folder / "s"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(stale))
    connector = Connector(str(stale), lambda event, token: None)
    connector.start()
    connector.stop()
    file = folder / "f"
    file.write_text("mine")
    for path in (file, folder / "none" / "s", folder / ("x" * 120)):
        other = Connector(str(path), lambda event, token: None)
        with pytest.raises(AicrError):
            other.start()
        other.stop()
        assert file.exists()


@pytest.mark.parametrize("chosen", ["text", "json"])
def test_the_command_prints_each_event(folder: Path, chosen: str) -> None:
    """And ends after the number that was asked for; the token itself is not shown."""
    path, token = str(folder / "s"), folder / "token"
    token.write_text("secret")
    arguments = preflight_connector.parser().parse(
        ["--print", "--socket", path, "--count", "1", "--format", chosen]
    )
    out, err = io.StringIO(), io.StringIO()

    def send() -> None:
        while "listening on" not in err.getvalue():
            time.sleep(0.01)
        event = finding("C", "m", "RESTART_VM", "X", entities=(gpu("GPU-1"),))
        HealthClient(UnixSocket(path), SOURCE, token_path=str(token), sleep=lambda s: None).send(
            event
        )

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    status = preflight_connector.execute(arguments, Console(out, err))
    sender.join()
    assert status == 0
    assert f"listening on {path}" in err.getvalue()
    text = out.getvalue()
    assert "secret" not in text
    if chosen == "json":
        event = json.loads(text)
        assert (event["checkName"], event["recommendedAction"], event["token"]) == (
            "C",
            "RESTART_VM",
            True,
        )
    else:
        assert text.splitlines()[0] == "C: FATAL: m"
        assert "  with a token" in text.splitlines()


class Interrupted(io.StringIO):
    """An output that is interrupted when it has the first event, and a second one has come meanwhile."""

    def __init__(self, second: Callable[[], None]) -> None:
        super().__init__()
        self._second: Callable[[], None] | None = second

    def write(self, text: str) -> int:
        """Take text; then as if Ctrl-C had been pressed."""
        written = super().write(text)
        if self._second is not None:
            second, self._second = self._second, None
            second()
            raise KeyboardInterrupt
        return written


def test_an_event_that_was_taken_is_shown_whenever_the_command_is_ended(folder: Path) -> None:
    """The check that sent it was told that it arrived; a pod that fails ends the command at once."""
    path = str(folder / "s")
    arguments = preflight_connector.parser().parse(
        ["--print", "--socket", path, "--format", "json"]
    )

    def send(name: str) -> None:
        HealthClient(UnixSocket(path), SOURCE).send(healthy(name, "m"))

    out, err = Interrupted(lambda: send("second")), io.StringIO()

    def first() -> None:
        while "listening on" not in err.getvalue():
            time.sleep(0.01)
        send("first")

    sender = threading.Thread(target=first, daemon=True)
    sender.start()
    assert preflight_connector.execute(arguments, Console(out, err)) == 130
    sender.join()
    names = [json.loads(line)["checkName"] for line in out.getvalue().splitlines()]
    assert names == ["first", "second"]
    assert "ended after 2 events" in err.getvalue()


@pytest.mark.parametrize(
    "words", [[], ["--print", "--count", "0"], ["--print", "--format", "xml"]], ids=str
)
def test_the_command_refuses_what_makes_no_sense(words: list[str]) -> None:
    """Before it listens."""
    arguments = preflight_connector.parser().parse(words)
    with pytest.raises(AicrError) as caught:
        preflight_connector.execute(arguments, Console(io.StringIO(), io.StringIO()))
    assert caught.value.exit_status == 2
    assert caught.value.hint or caught.value.where
