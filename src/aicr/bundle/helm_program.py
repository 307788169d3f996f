"""The real helm, run to pull charts and to render them.

It runs in a scratch folder of its own with configuration files of its own, so that it does not
change what its user has set up, and so that a password is in a file only its owner can read and never
on a command line. Without credentials in the environment, registries that the user has logged in to
work as they do for helm itself. Processes are started by a function that is passed in.

It must not know components' values, folders or deployers. Source: bundler spec 1.8, 2.9.
"""

from __future__ import annotations

import os
import re

from aicr.errors import (
    INTERNAL,
    NOT_FOUND,
    SERVICE_UNAVAILABLE,
    TIMEOUT,
    UNAUTHORIZED,
    AicrError,
    invalid,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

    from aicr.bundle.kustomize import Find, Run

USERNAME: Final = "HELM_REPOSITORY_USERNAME"
PASSWORD: Final = "HELM_REPOSITORY_PASSWORD"

_STDERR_LINES: Final = 6
#: Words of helm for what went wrong, the most telling first.
_CAUSES: Final = (
    (r"\b401\b|\b403\b|unauthorized|denied|forbidden|authentication required", UNAUTHORIZED),
    (r"\b404\b|not found|no chart version found|manifest unknown|invalid_reference", NOT_FOUND),
    (r"timeout|deadline exceeded|timed out", TIMEOUT),
    (
        r"no such host|connection refused|connection reset|\b50[0234]\b|\bEOF\b|unreachable",
        SERVICE_UNAVAILABLE,
    ),
)


class Helm:
    """A helm to pull with, in a scratch folder that only we can read.

    Args:
        run: starts a process.
        find: finds an installed program.
        environment: for the credentials.
        scratch: an empty folder; its owner removes it.

    Raises:
        AicrError: INVALID_REQUEST when helm is not installed (bundler spec 1.8).
    """

    def __init__(self, run: Run, find: Find, environment: Mapping[str, str], scratch: str) -> None:
        program = find("helm")
        if program is None:
            raise invalid(
                "--vendor-charts needs helm, which is not installed",
                where="--vendor-charts",
                hint="install helm where bundles are made, name the charts with --chart-dir, or "
                "leave the flag out",
            )
        self._program = program
        self._run = run
        self._user = environment.get(USERNAME, "")
        self._password = environment.get(PASSWORD, "")
        self._scratch = scratch
        self._indexed: dict[str, str] = {}
        self._registries: set[str] = set()
        self._version = ""

    @property
    def version(self) -> str:
        """What `helm version` says."""
        if not self._version:
            status, out, _ = self._run([self._program, "version", "--template", "{{.Version}}"], 60)
            self._version = out.decode(errors="replace").strip() if status == 0 else "unknown"
        return self._version

    def pull(self, component: str, chart: str, repository: str, version: str) -> bytes:
        """The bytes of a chart archive.

        Args:
            component: for messages.
            chart: name, or whole OCI reference.
            repository: address over HTTP(S), or "" for OCI.
            version: as pinned, or "" for the latest.

        Raises:
            AicrError: NOT_FOUND, UNAUTHORIZED, TIMEOUT, SERVICE_UNAVAILABLE or INTERNAL with what
                helm said.
        """
        import tempfile

        into = tempfile.mkdtemp(prefix="pull-", dir=self._scratch)
        arguments = ["pull", chart, "--destination", into]
        if version:
            arguments += ["--version", version]
        if repository and self._user:
            arguments[1] = f"{self._index(component, repository)}/{chart}"
        elif repository:
            arguments += ["--repo", repository]
        elif self._user:
            self._write_registry(chart)
        self._call(component, arguments)
        made = sorted(os.listdir(into))
        if len(made) != 1:
            raise AicrError(
                INTERNAL,
                f"helm pull of component {component!r} left {len(made)} files instead of one chart",
                where=component,
            )
        with open(os.path.join(into, made[0]), "rb") as file:
            return file.read()

    def template(self, arguments: list[str]) -> tuple[int, str, str]:
        """`helm template` with these arguments: (exit status, stdout, stderr)."""
        status, out, err = self._run(
            [self._program, "template", *arguments, *self._settings()], _seconds()
        )
        return status, out.decode(errors="replace"), err.decode(errors="replace")

    def scratch_file(self, name: str, content: bytes) -> str:
        """Path of a new file in the scratch folder, readable by its owner only."""
        path = os.path.join(self._scratch, name)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        return path

    def _settings(self) -> list[str]:
        settings = [
            "--repository-config",
            os.path.join(self._scratch, "repositories.yaml"),
            "--repository-cache",
            os.path.join(self._scratch, "cache"),
        ]
        if self._registries:
            settings += ["--registry-config", os.path.join(self._scratch, "registry.json")]
        return settings

    def _index(self, component: str, repository: str) -> str:
        """The name under which helm knows a repository with credentials."""
        from aicr.yamlio import write

        if repository not in self._indexed:
            self._indexed[repository] = f"repository-{len(self._indexed) + 1}"
            entries = [
                {
                    "name": name,
                    "url": url,
                    "username": self._user,
                    "password": self._password,
                }
                for url, name in self._indexed.items()
            ]
            document = {
                "apiVersion": "",
                "generated": "0001-01-01T00:00:00Z",
                "repositories": entries,
            }
            self.scratch_file("repositories.yaml", write.dump(document).encode())
            self._call(component, ["repo", "update", self._indexed[repository]])
        return self._indexed[repository]

    def _write_registry(self, reference: str) -> None:
        import base64
        import json

        self._registries.add(reference.removeprefix("oci://").partition("/")[0])
        secret = base64.b64encode(f"{self._user}:{self._password}".encode()).decode()
        auths = {host: {"auth": secret} for host in sorted(self._registries)}
        self.scratch_file("registry.json", json.dumps({"auths": auths}).encode())

    def _call(self, component: str, arguments: list[str]) -> None:
        command = [self._program, *arguments, *self._settings()]
        shown = "helm " + " ".join(arguments[:2])
        try:
            status, out, err = self._run(command, _seconds())
        except TimeoutError as error:
            raise AicrError(
                TIMEOUT,
                f"{shown} for component {component!r} did not finish within {_seconds():g} s",
                where=component,
                hint="check that the repository can be reached from here",
            ) from error
        except OSError as error:
            raise AicrError(
                INTERNAL, f"{shown} for component {component!r} could not start: {error}"
            ) from error
        if status == 0:
            return
        # `helm repo update` tells the reason on stdout and only the outcome on stderr.
        said = self._clean((out + b"\n" + err).decode(errors="replace"))
        code = next((code for words, code in _CAUSES if re.search(words, said, re.I)), INTERNAL)
        hints = {
            UNAUTHORIZED: f"set {USERNAME} and {PASSWORD}, or log in with helm registry login",
            NOT_FOUND: "check chart, version and source of the component",
        }
        raise AicrError(
            code,
            f"{shown} for component {component!r} failed: {said or f'exit status {status}'}",
            where=component,
            hint=hints.get(code, "check that the repository can be reached from here"),
        )

    def _clean(self, text: str) -> str:
        """What helm said, without credentials."""
        lines = "\n".join(text.strip().splitlines()[-_STDERR_LINES:])
        if self._password:
            lines = lines.replace(self._password, "…")
        return without_userinfo(lines)


def without_userinfo(text: str) -> str:
    """*text* with the user and password taken out of the addresses in it."""
    return re.sub(r"(?<=://)[^/\s@]+@", "", text)


def _seconds() -> float:
    from aicr.bundle.tool_times import ToolTimes

    return ToolTimes().helm
