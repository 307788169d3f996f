"""The ``SystemD`` measurement: properties of the units that run containers and pods.

systemd is asked over D-Bus on its own socket, which the agent's pod gets as a mount; so the pod needs no
systemd programs, and values keep their types. On a machine where only the system bus may be used, that
is asked instead. Properties that are binary, secret or the same as the unit's name are left out.

A unit that systemd does not know is a reading too: ``LoadState: not-found``. That systemd cannot be
asked is none. Source: recipe spec 8.4 (SystemD row).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any, Final

from aicr.collectors import dbus_wire
from aicr.collectors.ports import Files
from aicr.collectors.readings import SYSTEMD, Collected, Scalar
from aicr.constraints import paths
from aicr.errors import INTERNAL, NOT_FOUND, UNAUTHORIZED, AicrError

UNITS: Final = ("containerd.service", "docker.service", "kubelet.service")

#: systemd's own socket, for root alone, and the bus that everybody may use.
PRIVATE: Final = "/run/systemd/private"
BUS: Final = "/run/dbus/system_bus_socket"

_LEFT_OUT: Final = frozenset(
    {"AllowedCPUs", "AllowedMemoryNodes", "Asserts", "BPFProgram", "BusName", "Id"}
)
#: What is worth saying of a unit that does not exist; the rest are defaults.
_OF_ABSENT: Final = ("LoadState", "ActiveState", "SubState")
_PROPERTIES: Final = "org.freedesktop.DBus.Properties"
_SYSTEMD: Final = "org.freedesktop.systemd1"


async def collect(files: Files) -> Collected:
    """The measurement of all units; one connection serves them.

    Raises:
        AicrError: NOT_FOUND if systemd does not run, UNAUTHORIZED if it may not be asked.
    """
    found = Collected(SYSTEMD)
    connection = await Connection.open(files)
    try:
        for unit in UNITS:
            try:
                found.add(unit, readings(await connection.properties(unit)))
            except AicrError as error:
                found.lacks(unit, error)
    finally:
        await connection.close()
    return found


def readings(properties: Mapping[str, Any]) -> dict[str, Scalar]:
    """The properties of a unit as readings; lists and maps as constraints print them."""
    absent = properties.get("LoadState") == "not-found"
    return {
        key: value if isinstance(value, str | int | float) else paths.render(value)
        for key, value in properties.items()
        if key not in _LEFT_OUT and "Credential" not in key and (not absent or key in _OF_ABSENT)
    }


def unit_path(unit: str) -> str:
    """The object of a unit: letters and digits stay, everything else is ``_`` and two hex digits."""
    escaped = "".join(
        chr(byte)
        if chr(byte).isascii() and chr(byte).isalnum() and not (at == 0 and byte < 58)
        else f"_{byte:02x}"
        for at, byte in enumerate(unit.encode())
    )
    return f"/org/freedesktop/systemd1/unit/{escaped}"


class Connection:
    """A connection to systemd, directly or through the system bus."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, destination: str
    ) -> None:
        self._reader, self._writer, self._destination = reader, writer, destination
        self._serial = 0

    @classmethod
    async def open(cls, files: Files) -> Connection:
        """Connect and log in as the user that this process runs as.

        Raises:
            AicrError: NOT_FOUND if there is no socket, UNAUTHORIZED if it is not for this user.
        """
        refusal: AicrError | None = None
        for path, destination in ((PRIVATE, ""), (BUS, _SYSTEMD)):
            try:
                reader, writer = await asyncio.open_unix_connection(str(files.place(path)))
            except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
                continue
            except OSError as error:
                denied = isinstance(error, PermissionError)
                refusal = AicrError(
                    UNAUTHORIZED if denied else INTERNAL,
                    f"cannot ask systemd at {path}: {error.strerror or error}",
                    where=path,
                    hint="run as root" if denied else "",
                )
                continue
            connection = cls(reader, writer, destination)
            try:
                await connection._log_in()
            except BaseException:
                await connection.close()
                raise
            return connection
        raise refusal or AicrError(
            NOT_FOUND,
            f"systemd does not run here: there is neither {PRIVATE} nor {BUS}",
            where=PRIVATE,
        )

    async def close(self) -> None:
        """Close the socket."""
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except OSError:
            # The other side was faster.
            pass

    async def properties(self, unit: str) -> dict[str, Any]:
        """All properties of a unit, by name; INTERNAL if systemd answers with an error."""
        arguments = await self._call(unit_path(unit), _PROPERTIES, "GetAll", text="")
        if len(arguments) != 1 or not isinstance(arguments[0], dict):
            raise AicrError(INTERNAL, "systemd's answer holds no properties", where=unit)
        return arguments[0]

    async def _log_in(self) -> None:
        user = str(os.getuid()).encode().hex()
        try:
            self._writer.write(b"\0" + f"AUTH EXTERNAL {user}\r\n".encode())
            await self._writer.drain()
            answer = await self._reader.readline()
            if not answer.startswith(b"OK"):
                raise AicrError(
                    UNAUTHORIZED,
                    "systemd refused the login of this user",
                    where="D-Bus",
                    hint="run as root",
                )
            self._writer.write(b"BEGIN\r\n")
            await self._writer.drain()
        except OSError as error:
            raise _cut() from error
        if self._destination:
            await self._call(
                "/org/freedesktop/DBus", "org.freedesktop.DBus", "Hello", to="org.freedesktop.DBus"
            )

    async def _call(
        self, path: str, interface: str, member: str, *, text: str | None = None, to: str = ""
    ) -> list[Any]:
        self._serial += 1
        sent = dbus_wire.call(
            *(self._serial, path, interface, member),
            destination=to or self._destination,
            text=text,
        )
        try:
            self._writer.write(sent)
            await self._writer.drain()
            while True:
                fixed = await self._reader.readexactly(dbus_wire.FIXED)
                rest = await self._reader.readexactly(dbus_wire.remaining(fixed))
                message = dbus_wire.parse(fixed + rest)
                # Signals come in between and are nobody's answer.
                if message.reply_to == self._serial and message.type != dbus_wire.CALL:
                    break
        except (OSError, asyncio.IncompleteReadError) as error:
            raise _cut() from error
        if message.type == dbus_wire.ERROR:
            said = str(message.arguments[0]) if message.arguments else message.error
            denied = message.error.endswith(".AccessDenied")
            raise AicrError(
                UNAUTHORIZED if denied else INTERNAL, f"systemd answered: {said}", where="D-Bus"
            )
        return message.arguments


def _cut() -> AicrError:
    return AicrError(INTERNAL, "the connection to systemd was cut", where="D-Bus")
