"""What probes and lifecycle hooks do: run a command, ask over HTTP, open a connection, wait."""

from __future__ import annotations

import http.client
import os
import socket
import ssl
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass

from tests.controlplane.client import Document
from tests.controlplane.network import program


@dataclass(frozen=True)
class Place:
    """A running container, as seen from outside."""

    pid: int
    address: str
    ports: Mapping[str, int]
    environment: Mapping[str, str]
    user: int | None = None
    group: int | None = None

    def command(self, argv: list[str]) -> list[str]:
        """The command that runs *argv* inside the container."""
        words = [program("nsenter"), f"--target={self.pid}", "--mount", "--net", "--uts"]
        words += ["--root", "--wd"]
        if self.user is not None:
            words += [f"--setuid={self.user}", f"--setgid={self.group or 0}"]
        return [*words, "--", *argv]


def act(handler: Document, place: Place, timeout: float) -> str:
    """Do what a probe or hook asks for; returns why it failed, or ""."""
    try:
        if command := handler.get("exec"):
            return _run(command["command"], place, timeout)
        if request := handler.get("httpGet"):
            return _get(request, place, timeout)
        if target := handler.get("tcpSocket"):
            address = (target.get("host") or place.address, port_number(target["port"], place))
            socket.create_connection(address, timeout).close()
            return ""
        if pause := handler.get("sleep"):
            time.sleep(pause["seconds"])
            return ""
    except (OSError, http.client.HTTPException, ValueError) as error:
        return str(error) or type(error).__name__
    return f"the test node agent has no handler of the kinds {', '.join(handler)}"


def _run(argv: list[str], place: Place, timeout: float) -> str:
    child = subprocess.Popen(
        place.command(argv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=dict(place.environment),
        start_new_session=True,
    )
    try:
        output, _ = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, 9)
        child.communicate()
        return f"command timed out after {timeout:g} s"
    if child.returncode == 0:
        return ""
    return output.decode(errors="replace")[-500:].strip() or f"exit code {child.returncode}"


def _get(request: Document, place: Place, timeout: float) -> str:
    host, port = request.get("host") or place.address, port_number(request["port"], place)
    connection: http.client.HTTPConnection
    if request.get("scheme", "HTTP") == "HTTPS":
        # Probes do not check certificates, neither here nor in production.
        trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection(host, port, timeout=timeout, context=trusting)
    else:
        connection = http.client.HTTPConnection(host, port, timeout=timeout)
    headers = {one["name"]: one["value"] for one in request.get("httpHeaders", [])}
    try:
        connection.request("GET", request.get("path", "/"), headers=headers)
        code = connection.getresponse().status
    finally:
        connection.close()
    return "" if 200 <= code < 400 else f"HTTP probe failed with statuscode: {code}"


def port_number(port: int | str, place: Place) -> int:
    """A port given as number or as name of a container's port.

    Raises:
        ValueError: there is no port of that name.
    """
    if isinstance(port, int):
        return port
    if port in place.ports:
        return place.ports[port]
    raise ValueError(f"no port is named {port}")
