"""The port to a hostengine on DCGM's own Python bindings, which come with DCGM and are found at run time.

They are modules beside the library, not a package of an index, so this module looks where DCGM's
packages put them. Every exception that leaves it is an AicrError; one of DCGM's statuses keeps its name.
It must not know: which GPUs are ours, retries, events.
Source: preflight specification 6.2 and 6.3 (bindings of DCGM 4, answer of version 12).
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from aicr.errors import INTERNAL, SERVICE_UNAVAILABLE, AicrError
from aicr.fabric import dcgm_codes
from aicr.preflight.checks.dcgm import hostengine
from aicr.preflight.checks.dcgm.hostengine import (
    DiagnosticTest,
    EngineGpu,
    Entity,
    EntityError,
    EntityResult,
    Response,
)
from aicr.preflight.checks.dcgm.settings import LEVELS

#: A folder to look in first.
PATH_VARIABLE: Final = "DCGM_BINDINGS_PATH"
#: Where packages of DCGM 4 and 3 put the bindings; PYTHONPATH comes before.
PLACES: Final = (
    "/usr/share/datacenter-gpu-manager-4/bindings/python3",
    "/usr/local/dcgm/bindings/python3",
    "/usr/local/dcgm/bindings",
)
_MODULES: Final = ("pydcgm", "dcgm_structs", "dcgm_agent", "dcgm_errors", "dcgm_fields")
#: How long a connection may take to come up, in milliseconds.
CONNECT_MS: Final = 10_000


class Bindings:
    """Hostengines as DCGM's bindings reach them."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def connect(self, address: str) -> hostengine.Session:
        """Connect to `host:port`.

        Raises:
            AicrError: the bindings or the library are missing, or the hostengine does not answer.
        """
        modules = load(self._environ)
        with translated(modules["dcgm_structs"]):
            handle = modules["pydcgm"].DcgmHandle(
                ipAddress=address,
                opMode=modules["dcgm_structs"].DCGM_OPERATION_MODE_AUTO,
                timeoutMs=CONNECT_MS,
            )
            return BoundSession(handle, modules)


class BoundSession:
    """A connection through a DcgmHandle."""

    def __init__(self, handle: Any, modules: Mapping[str, ModuleType]) -> None:
        self._handle, self._modules = handle, modules
        self._structs = modules["dcgm_structs"]
        self._group: Any = None

    def gpus(self) -> Sequence[EngineGpu]:
        """The GPUs that DCGM supports on the node, with their UUIDs."""
        with translated(self._structs):
            discovery = self._handle.GetSystem().discovery
            return [
                EngineGpu(int(one), text_of(discovery.GetGpuAttributes(one).identifiers.uuid))
                for one in discovery.GetAllSupportedGpuIds()
            ]

    def mnemonics(self) -> Mapping[int, str]:
        """Error code → name, from dcgm_errors."""
        return dcgm_codes.mnemonics(_constants(self._modules["dcgm_errors"]))

    def group(self, ids: Sequence[int]) -> None:
        """Make the group."""
        with translated(self._structs):
            self._group = self._modules["pydcgm"].DcgmGroup(
                self._handle,
                groupName=hostengine.GROUP_NAME,
                groupType=self._structs.DCGM_GROUP_EMPTY,
            )
            for one in ids:
                self._group.AddGpu(one)

    def diagnose(self, level: int) -> Response:
        """Run the diagnostic."""
        with translated(self._structs):
            constant = getattr(self._structs, LEVELS[level].constant)
            return plain(
                self._group.action.RunDiagnostic(constant), self._modules["dcgm_fields"].DCGM_FE_GPU
            )

    def stop(self) -> None:
        """Stop what runs."""
        with translated(self._structs):
            self._modules["dcgm_agent"].dcgmStopDiagnostic(self._handle.handle)

    def close(self) -> None:
        """Delete the group and disconnect."""
        for end in (
            None if self._group is None else self._group.Delete,
            self._handle.Shutdown,
        ):
            try:
                if end is not None:
                    with translated(self._structs):
                        end()
            except AicrError:
                # The hostengine forgets a client's groups when it goes away.
                continue


def load(environ: Mapping[str, str]) -> dict[str, ModuleType]:
    """Import the bindings.

    Raises:
        AicrError: SERVICE_UNAVAILABLE when they are nowhere, naming where was looked; INTERNAL when
            they are there and broken.
    """
    given = environ.get(PATH_VARIABLE, "").strip()
    places = [place for place in (given, *PLACES) if place]
    for place in [None, *places]:
        if place is not None:
            if not (Path(place) / "pydcgm.py").is_file():
                continue
            if place not in sys.path:
                sys.path.append(place)
            importlib.invalidate_caches()
        try:
            return {name: importlib.import_module(name) for name in _MODULES}
        except ModuleNotFoundError as error:
            if error.name != _MODULES[0] or place is not None:
                raise AicrError(
                    INTERNAL,
                    f"DCGM's Python bindings are not complete: {error}",
                    where=place or "PYTHONPATH",
                    hint="install the whole package datacenter-gpu-manager-4",
                ) from error
    raise AicrError(
        SERVICE_UNAVAILABLE,
        f"DCGM's Python bindings are not installed; looked in PYTHONPATH, {', '.join(places)}",
        hint=f"install datacenter-gpu-manager-4, or name the folder of pydcgm.py in {PATH_VARIABLE}",
    )


@contextmanager
def translated(structs: ModuleType) -> Iterator[None]:
    """Turn whatever the bindings raise into an AicrError."""
    try:
        yield
    except AicrError:
        raise
    except Exception as error:
        value = getattr(error, "value", None)
        name = dcgm_codes.statuses(_constants(structs)).get(value) if type(value) is int else None
        if name:
            raise hostengine.status_error(name, str(error)) from None
        raise AicrError(INTERNAL, f"{type(error).__name__}: {error}") from error


def plain(answer: Any, gpu_kind: int) -> Response:
    """The structure of DCGM as plain documents; only the parts that its counters cover."""

    def entity(pair: Any) -> Entity:
        return Entity(int(pair.entityGroupId) == gpu_kind, int(pair.entityId))

    tests = (answer.tests[place] for place in range(int(answer.numTests)))
    results = (answer.results[place] for place in range(int(answer.numResults)))
    errors = (answer.errors[place] for place in range(int(answer.numErrors)))
    return Response(
        tuple(
            DiagnosticTest(
                text_of(test.name),
                int(test.result),
                tuple(int(test.resultIndices[place]) for place in range(int(test.numResults))),
            )
            for test in tests
        ),
        tuple(
            EntityResult(entity(one.entity), int(one.result), int(one.testId)) for one in results
        ),
        tuple(
            EntityError(entity(one.entity), int(one.testId), int(one.code), text_of(one.msg))
            for one in errors
        ),
    )


def text_of(value: bytes | str) -> str:
    """A string of DCGM: UTF-8, without what follows a NUL."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return text.partition("\0")[0].strip()


def _constants(module: ModuleType) -> list[tuple[str, Any]]:
    return list(vars(module).items())
