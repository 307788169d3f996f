"""Credentials that a program makes: ``users[].user.exec`` of a kubeconfig.

Both API versions in use, ``client.authentication.k8s.io/v1`` and ``v1beta1``: tokens, client
certificates, expiry, cluster information in KUBERNETES_EXEC_INFO, and a terminal where the program
may ask. The program is run without a shell. Its output is a secret and never part of a message;
what it writes to stderr is.

It must not know the file its settings came from, nor requests.

Source: Kubernetes documentation "client-go credential plugins".
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from aicr.errors import TIMEOUT, UNAUTHORIZED, AicrError, invalid
from aicr.kube import entries
from aicr.kube.credentials import Login, bearer

VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
MODES: Final = ("Never", "IfAvailable", "Always")
EXTENSION: Final = "client.authentication.k8s.io/exec"
#: A login this near to its end is not used any more: it would expire on its way.
MARGIN: Final = 10.0
LONGEST_QUOTE: Final = 500
#: Bytes read ahead of what a program prints; asyncio's own default.
READ_AHEAD: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class ExecSpec:
    """The program to run, as the kubeconfig has it."""

    command: str
    api_version: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    interactive_mode: str = "IfAvailable"
    install_hint: str = ""
    #: The ``spec.cluster`` to hand over, or None if the kubeconfig does not ask for it.
    cluster: Mapping[str, Any] | None = None
    where: str = ""


@dataclass(frozen=True, slots=True)
class ExecCredential:
    """What a program answered. `expires` is a POSIX time, or None for "as long as it works"."""

    login: Login
    expires: float | None


def read_spec(
    document: Mapping[str, Any], *, folder: str, cluster: Mapping[str, Any], where: str
) -> ExecSpec:
    """The settings in a kubeconfig's user; INVALID_REQUEST for what no version allows.

    A command with a slash is relative to *folder*, the kubeconfig's; one without is looked up on PATH.
    """
    command = entries.text(document, "command", where)
    version = entries.text(document, "apiVersion", where)
    if not command:
        raise invalid("the exec section names no command", where=where)
    if version not in VERSIONS:
        raise invalid(
            f'the exec plugin "{command}" is set up for apiVersion "{version}", which is not supported',
            where=where,
            hint=f"use {VERSIONS[0]}; the plugin may need an update",
        )
    mode = entries.text(document, "interactiveMode", where)
    if not mode and version == VERSIONS[0]:
        raise invalid(
            f'interactiveMode must be specified for "{command}" to use exec authentication plugin '
            f"(API version {version})",
            where=where,
            hint=f"one of {', '.join(MODES)}",
        )
    if mode and mode not in MODES:
        raise invalid(
            f'unknown interactiveMode "{mode}"', where=where, hint=f"one of {', '.join(MODES)}"
        )
    if "/" in command and not os.path.isabs(command):
        command = os.path.normpath(os.path.join(folder, command))
    return ExecSpec(
        command,
        version,
        tuple(entries.texts(document, "args", where)),
        _variables(document, where),
        mode or "IfAvailable",
        entries.text(document, "installHint", where),
        _cluster_information(cluster, where)
        if entries.flag(document, "provideClusterInfo", where)
        else None,
        where,
    )


def _variables(document: Mapping[str, Any], where: str) -> dict[str, str]:
    """``env``; an entry without a value sets the variable to nothing, as kubectl does."""
    found = {}
    for entry in entries.mappings(document, "env", where):
        name, value = entries.text(entry, "name", where), entries.text(entry, "value", where)
        if not name or "=" in name or "\0" in name + value:
            raise invalid("an entry of env has no name that a variable can have", where=where)
        found[name] = value
    return found


def _cluster_information(cluster: Mapping[str, Any], where: str) -> dict[str, Any]:
    """``spec.cluster``: what the program may know of the cluster, the CA always as data."""
    keys = (
        *("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data"),
        *("proxy-url", "disable-compression"),
    )
    found = {key: cluster[key] for key in keys if cluster.get(key)}
    for extension in entries.mappings(cluster, "extensions", where):
        if extension.get("name") == EXTENSION:
            found["config"] = extension.get("extension")
    return found


def request_document(spec: ExecSpec, *, interactive: bool) -> dict[str, Any]:
    """The ExecCredential handed to the program."""
    about: dict[str, Any] = {"interactive": interactive}
    if spec.cluster is not None:
        about["cluster"] = dict(spec.cluster)
    return {"apiVersion": spec.api_version, "kind": "ExecCredential", "spec": about}


def read_answer(spec: ExecSpec, output: bytes) -> ExecCredential:
    """The credential that the program printed; UNAUTHORIZED, without quoting it, if there is none."""
    try:
        document = json.loads(output)
    except ValueError as error:
        # The text around the error could be the token, so the position is all that is told.
        place = (
            f"line {error.lineno}" if isinstance(error, json.JSONDecodeError) else "its encoding"
        )
        raise _failed(spec, f"printed something that is not JSON ({place})") from None
    if not isinstance(document, dict) or document.get("kind") != "ExecCredential":
        raise _failed(spec, "printed no ExecCredential")
    if document.get("apiVersion") != spec.api_version:
        raise _failed(
            spec,
            f'answered as "{document.get("apiVersion")}" although asked as "{spec.api_version}"',
        )
    status = document.get("status")
    if not isinstance(status, dict):
        raise _failed(spec, "printed an ExecCredential without status")
    parts = [status.get(key) for key in ("token", "clientCertificateData", "clientKeyData")]
    if not all(part is None or isinstance(part, str) for part in parts):
        raise _failed(spec, "gave a token or certificate that is not text")
    token, certificate, key = (part or "" for part in parts)
    if bool(certificate) != bool(key):
        raise _failed(spec, "gave only one of clientCertificateData and clientKeyData")
    if not token and not certificate:
        raise _failed(spec, "gave neither a token nor a client certificate")
    login = Login(bearer(token), certificate.encode(), key.encode())
    return ExecCredential(login, _expiry(spec, status.get("expirationTimestamp")))


def _expiry(spec: ExecSpec, text: object) -> float | None:
    if not text:
        return None
    try:
        found = datetime.fromisoformat(str(text))
        # Without a zone it would be read as local time, and a token used for hours too long.
        if found.tzinfo is None:
            raise ValueError("no time zone")
        return found.timestamp()
    except (ValueError, OverflowError) as error:
        raise _failed(spec, f'gave an expirationTimestamp that is no time: "{text}"') from error


class ExecPlugin:
    """Runs the program when there is no login, when it has expired and after a refusal.

    Args:
        spec: what to run.
        environ: the environment the program starts from.
        now: POSIX time.
        timeout: seconds that one run may take.
        terminal: whether a person can be asked.
    """

    def __init__(
        self,
        spec: ExecSpec,
        *,
        environ: Mapping[str, str],
        now: Callable[[], float],
        timeout: float,
        terminal: bool | None = None,
    ) -> None:
        self._spec = spec
        self._environ = environ
        self._now = now
        self._timeout = timeout
        self._terminal = (
            sys.stdin is not None and sys.stdin.isatty() if terminal is None else terminal
        )
        self._credential: ExecCredential | None = None
        self._lock = asyncio.Lock()

    async def current(self) -> Login:
        """A login that has not expired."""
        async with self._lock:
            found = self._credential
            if found is None or (
                found.expires is not None and self._now() >= found.expires - MARGIN
            ):
                found = self._credential = await self._run()
            return found.login

    async def renew(self, refused: Login) -> bool:
        """Run the program again, unless somebody else has done so since *refused* was handed out."""
        async with self._lock:
            if self._credential is None or self._credential.login == refused:
                self._credential = await self._run()
            return self._credential.login != refused

    async def _run(self) -> ExecCredential:
        spec = self._spec
        if spec.interactive_mode == "Always" and not self._terminal:
            raise _failed(
                spec, "needs a terminal to ask on, and there is none (interactiveMode: Always)"
            )
        interactive = self._terminal and spec.interactive_mode != "Never"
        information = json.dumps(request_document(spec, interactive=interactive))
        loop = asyncio.get_running_loop()
        try:
            # As `asyncio.create_subprocess_exec`, which keeps the transport to itself.
            transport, protocol = await loop.subprocess_exec(
                lambda: asyncio.subprocess.SubprocessStreamProtocol(limit=READ_AHEAD, loop=loop),
                spec.command,
                *spec.args,
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=None if interactive else asyncio.subprocess.PIPE,
                env={**self._environ, **spec.env, "KUBERNETES_EXEC_INFO": information},
            )
        except OSError as error:
            raise _failed(spec, f"cannot be started: {error.strerror}") from error
        process = asyncio.subprocess.Process(transport, protocol, loop)
        try:
            async with asyncio.timeout(self._timeout):
                output, complaint = await process.communicate()
        except TimeoutError as error:
            message = f'the exec plugin "{spec.command}" did not end within {self._timeout:g} s'
            raise AicrError(TIMEOUT, message, where=spec.where, hint=spec.install_hint) from error
        finally:
            # Kills it, and closes our ends of its pipes: a child that it has left behind may hold the
            # others open for hours, and waiting for the program would be waiting for that child.
            transport.close()
            await process.wait()
        if process.returncode:
            said = " ".join((complaint or b"").decode("utf-8", "replace").split())[-LONGEST_QUOTE:]
            because = f": {said}" if said else ""
            raise _failed(spec, f"ended with exit status {process.returncode}{because}")
        return read_answer(spec, output)


def _failed(spec: ExecSpec, what: str) -> AicrError:
    return AicrError(
        UNAUTHORIZED,
        f'the exec plugin "{spec.command}" {what}',
        where=spec.where,
        hint=spec.install_hint or "run the command by hand to see what it needs",
        context={"by": "exec plugin"},
    )


def data_of(pem: bytes) -> str:
    """PEM bytes as ``certificate-authority-data``."""
    return base64.b64encode(pem).decode("ascii")
