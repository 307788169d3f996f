"""The SystemD measurement: properties over D-Bus, typed, filtered, and absent only when they are."""

from __future__ import annotations

import asyncio
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from tests.collectors import fakebus

from aicr.collectors import dbus_wire, systemd
from aicr.collectors.ports import Files
from aicr.collectors.readings import Collected
from aicr.errors import INTERNAL, NOT_FOUND, UNAUTHORIZED, AicrError

ACTIVE = {
    "Id": ("s", fakebus.text("containerd.service"), 4),
    "ActiveState": ("s", fakebus.text("active"), 4),
    "LoadState": ("s", fakebus.text("loaded"), 4),
    "NRestarts": ("u", struct.pack("<I", 3), 4),
    "CanReload": ("b", struct.pack("<I", 1), 4),
    "Delegate": ("b", struct.pack("<I", 0), 4),
    "MemoryMax": ("t", struct.pack("<Q", 2**64 - 1), 8),
    "TimeoutStartUSec": ("t", struct.pack("<Q", 90_000_000), 8),
    "OOMScoreAdjust": ("i", struct.pack("<i", -999), 4),
    "AllowedCPUs": ("ay", struct.pack("<I", 2) + b"\1\2", 4),
    "LoadCredential": ("s", fakebus.text("secret"), 4),
    "After": ("as", struct.pack("<I", 18) + fakebus.text("a.mount") + fakebus.text("b"), 4),
}
ABSENT = {
    "LoadState": ("s", fakebus.text("not-found"), 4),
    "ActiveState": ("s", fakebus.text("inactive"), 4),
    "SubState": ("s", fakebus.text("dead"), 4),
    "MemoryMax": ("t", struct.pack("<Q", 2**64 - 1), 8),
}


def collect(root: Path, answer: fakebus.Answer, **options: bytes) -> tuple[Collected, list[str]]:
    """The measurement of a machine whose systemd answers so."""

    async def body() -> tuple[Collected, list[str]]:
        async with fakebus.systemd(root, answer, **options) as asked:
            return await asyncio.wait_for(systemd.collect(Files(root)), 10), asked

    return asyncio.run(body())


def of_units(serial: int, request: bytes) -> bytes:
    """Docker is not installed, the others are."""
    entries = ABSENT if b"docker" in request else ACTIVE
    return fakebus.reply(serial, "a{sv}", fakebus.properties(entries))


def test_properties_keep_their_types_and_secrets_stay_out(tmp_path: Path) -> None:
    """Booleans, numbers and lists as constraints print them; binary and credentials are left out."""
    found, asked = collect(tmp_path, of_units)
    assert asked == [systemd.unit_path(unit) for unit in systemd.UNITS]
    assert found.missing == []
    by_name = {one["subtype"]: one["data"] for one in found.subtypes}
    assert by_name["containerd.service"] == {
        "ActiveState": "active",
        "After": "[a.mount b]",
        "CanReload": True,
        "Delegate": False,
        "LoadState": "loaded",
        "MemoryMax": 2**64 - 1,
        "NRestarts": 3,
        "OOMScoreAdjust": -999,
        "TimeoutStartUSec": 90_000_000,
    }


def test_a_unit_that_systemd_does_not_know_is_a_reading(tmp_path: Path) -> None:
    """Not found is said without the defaults of a unit that is not there."""
    found, _ = collect(tmp_path, of_units)
    by_name = {one["subtype"]: one["data"] for one in found.subtypes}
    assert by_name["docker.service"] == {
        "ActiveState": "inactive",
        "LoadState": "not-found",
        "SubState": "dead",
    }


def test_an_error_of_one_unit_costs_that_unit(tmp_path: Path) -> None:
    """Access denied is UNAUTHORIZED, and the others are read."""

    def answer(serial: int, request: bytes) -> bytes:
        if b"kubelet" not in request:
            return of_units(serial, request)
        body = fakebus.text("not for you")
        name = "org.freedesktop.DBus.Error.AccessDenied"
        return fakebus.reply(serial, "s", body, error=name)

    found, _ = collect(tmp_path, answer)
    assert len(found.subtypes) == 2
    (missing,) = found.missing
    assert (missing.name, missing.error.code) == ("SystemD.kubelet.service", UNAUTHORIZED)
    assert missing.error.message == "systemd answered: not for you"


def test_signals_in_between_are_nobodys_answer(tmp_path: Path) -> None:
    """A message for another serial is passed over."""

    def answer(serial: int, request: bytes) -> bytes:
        other = fakebus.reply(serial + 1000, "s", fakebus.text("hello"))
        return other + of_units(serial, request)

    found, _ = collect(tmp_path, answer)
    assert len(found.subtypes) == 3


def test_a_refused_login_is_unauthorized(tmp_path: Path) -> None:
    """systemd takes no calls from this user."""
    with pytest.raises(AicrError) as caught:
        collect(tmp_path, of_units, login=b"REJECTED EXTERNAL\r\n")
    assert caught.value.code == UNAUTHORIZED


def test_a_machine_without_systemd_is_said_to_have_none(tmp_path: Path) -> None:
    """No socket: NOT_FOUND, for the whole measurement."""
    with pytest.raises(AicrError) as caught:
        asyncio.run(systemd.collect(Files(tmp_path)))
    assert caught.value.code == NOT_FOUND
    assert caught.value.message.startswith("systemd does not run here")


@pytest.mark.parametrize(
    "answer",
    [b"", b"l\2\0\1", b"x" * 64, fakebus.reply(1, "a{sv}", fakebus.properties(ACTIVE))[:-9]],
    ids=["cut", "half-a-head", "garbage", "half-a-body"],
)
def test_an_answer_that_is_no_message_is_internal(tmp_path: Path, answer: bytes) -> None:
    """Garbage and cut connections end with an error and never with readings."""

    async def body() -> Collected:
        place = tmp_path / "run/systemd/private"
        place.parent.mkdir(parents=True)

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readline()
            writer.write(b"OK 1\r\n")
            await reader.readline()
            await reader.read(10)
            writer.write(answer)
            await writer.drain()
            writer.close()

        server = await asyncio.start_unix_server(serve, str(place))
        try:
            return await asyncio.wait_for(systemd.collect(Files(tmp_path)), 10)
        finally:
            server.close()

    found = asyncio.run(body())
    assert found.subtypes == []
    assert {each.error.code for each in found.missing} == {INTERNAL}


@pytest.mark.parametrize(
    ("signature", "parts"),
    [
        ("", []),
        ("sa{sv}u", ["s", "a{sv}", "u"]),
        ("a(ssa{oas})i", ["a(ssa{oas})", "i"]),
        ("aay", ["aay"]),
    ],
)
def test_signatures_come_apart_into_complete_types(signature: str, parts: list[str]) -> None:
    """Containers are one type with what they hold."""
    assert list(dbus_wire.single_types(signature)) == parts


@pytest.mark.parametrize("signature", ["a", "(s", "{s", "Z", "a{sv"])
def test_a_broken_signature_is_refused(signature: str) -> None:
    """Never a wrong value."""
    with pytest.raises((ValueError, IndexError)):
        dbus_wire.single_types(signature)


@pytest.mark.parametrize(
    ("unit", "path"),
    [
        ("containerd.service", "containerd_2eservice"),
        ("9p-x@y.service", "_39p_2dx_40y_2eservice"),
    ],
)
def test_unit_names_are_escaped_as_systemd_does(unit: str, path: str) -> None:
    """Letters and digits stay, but for a digit at the beginning."""
    assert systemd.unit_path(unit) == f"/org/freedesktop/systemd1/unit/{path}"


@pytest.mark.skipif(shutil.which("dbus-daemon") is None, reason="dbus-daemon is not installed")
def test_a_real_bus_understands_us(tmp_path: Path) -> None:
    """Login, Hello, an answer and an error of the real message bus; it knows no systemd here."""
    socket = tmp_path / "run/dbus/system_bus_socket"
    socket.parent.mkdir(parents=True)
    config = tmp_path / "bus.conf"
    config.write_text(
        f"<busconfig><type>session</type><listen>unix:path={socket}</listen>"
        '<policy context="default"><allow send_destination="*" eavesdrop="true"/>'
        '<allow eavesdrop="true"/><allow own="*"/></policy></busconfig>'
    )
    command = ["dbus-daemon", f"--config-file={config}", "--nofork", "--print-address=1"]
    daemon = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert daemon.stdout is not None
        assert daemon.stdout.readline()

        async def body() -> Collected:
            connection = await systemd.Connection.open(Files(tmp_path))
            (features,) = await connection._call(
                *("/org/freedesktop/DBus", "org.freedesktop.DBus.Properties", "GetAll"),
                text="org.freedesktop.DBus",
                to="org.freedesktop.DBus",
            )
            assert "org.freedesktop.DBus.Monitoring" in features["Interfaces"]
            await connection.close()
            return await systemd.collect(Files(tmp_path))

        found = asyncio.run(asyncio.wait_for(body(), 10))
        assert {each.error.code for each in found.missing} == {INTERNAL}
        assert "org.freedesktop.systemd1" in found.missing[0].error.message
    finally:
        daemon.terminate()
        daemon.wait(10)
        if daemon.stdout:
            daemon.stdout.close()
