"""Health checks as files: Chainsaw ``Test`` documents, or raw objects to compare with, read strictly.

A check runs with far-reaching rights, so it may only look: any operation but assert and error, and any
handler, is refused before a cluster is touched. What would prove nothing is refused too: no documents, a
Test without operations, a stream in which something would never be read. `read_check` gives a
`HealthCheck` with all assertions parsed; it knows nothing of running them.

Source: validators spec 8.1 to 8.3, 8.5, 8.6; field case H8.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from aicr.assertions import tree
from aicr.errors import AicrError, invalid, nearest
from aicr.values import durations
from aicr.yamlio import read
from aicr.yamlio.positions import Positions

GROUP: Final = "chainsaw.kyverno.io"
NO_OP: Final = "aicr/no-op-check"
ALLOWED: Final = ("assert", "error")
FORBIDDEN: Final = (
    *("apply", "command", "create", "delete", "describe", "events", "get", "patch", "podLogs"),
    *("proxy", "script", "sleep", "update", "wait"),
)
HANDLERS: Final = ("catch", "finally", "cleanup")
#: Keys beside an operation that chainsaw has and that this engine ignores (8.3).
_BESIDE: Final = (
    *("timeout", "continueOnError", "description", "bindings", "outputs", "compiler", "template"),
    *("cluster", "clusters"),
)

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Operation:
    """One assert or error: which objects, and what of them."""

    kind: str
    api_version: str
    resource_kind: str
    name: str
    namespace: str
    #: Labels that select among unnamed objects.
    labels: dict[str, str]
    resource: dict[str, Any] = field(repr=False)
    tree: tree.Tree = field(repr=False)
    step: str
    #: ``file:line:column``.
    where: str

    def subject(self, namespace: str = "") -> str:
        """What it is about: ``Deployment gpu-operator/driver``."""
        place = self.namespace or namespace
        return f"{self.resource_kind} {place + '/' if place else ''}{self.name or '*'}"


@dataclass(frozen=True, slots=True)
class Test:
    """One Test document."""

    __test__ = False  # no test of pytest's

    name: str
    where: str
    operations: tuple[Operation, ...]
    #: ``spec.timeouts.assert`` in seconds, 0 if there is none.
    assert_timeout: float
    no_op: bool


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """What one file says about one component: Tests, or raw objects to compare with."""

    component: str
    source: str
    tests: tuple[Test, ...]
    raw: tuple[Operation, ...] = ()

    @property
    def operations(self) -> tuple[Operation, ...]:
        """All operations in the order in which they run."""
        return self.raw or tuple(found for test in self.tests for found in test.operations)

    def budget(self, seconds: float) -> float:
        """The caller's budget, shortened by the first document that names a positive one (8.4)."""
        declared = next(
            (test.assert_timeout for test in self.tests if test.assert_timeout > 0), 0.0
        )
        return min(seconds, declared) if declared else seconds


def read_check(
    text: str, *, source: str, component: str = "", allow_raw: bool = True
) -> HealthCheck:
    """Read a health check, with every assertion in it parsed.

    Args:
        text: the YAML of the file, one or several documents.
        source: its name in messages.
        component: whose health it is; in messages.
        allow_raw: whether objects to compare with may stand in place of Tests (8.6).

    Raises:
        AicrError: INVALID_REQUEST with ``file:line:column`` for whatever is refused.
    """
    documents = _documents(text, source)
    if not documents:
        raise invalid(
            f'the health check of component "{component}" declares no resources to assert',
            where=source,
            hint="write a Chainsaw Test with assert operations",
        )
    if any(is_test(value) for value, _ in documents):
        many = len(documents) > 1
        tests = tuple(
            _Reader(value, positions, number, component, many).test()
            for number, (value, positions) in enumerate(documents)
        )
        return HealthCheck(component, source, tests)
    if not allow_raw:
        raise invalid(
            f"the file holds no Chainsaw Test ({GROUP})",
            where=source,
            hint="write the objects below spec.steps[].try[].assert.resource of a Test",
        )
    raw = tuple(
        _raw(value, positions, number) for number, (value, positions) in enumerate(documents)
    )
    return HealthCheck(component, source, (), raw)


def _documents(text: str, source: str) -> list[tuple[Any, Positions]]:
    """The documents of a stream that have content, with positions in the whole file."""
    lines = text.split("\n")
    starts = [
        number
        for number, line in enumerate(lines)
        if line.startswith("---") and line[3:4] in ("", " ", "\t", "\r")
    ]
    found: list[tuple[Any, Positions]] = []
    for start, end in zip([0, *starts], [*starts, len(lines)], strict=True):
        part = "\n" * start + "\n".join(lines[start:end])
        try:
            value, positions = read.load_with_positions(part, source=source)
        except AicrError as error:
            raise invalid(
                f"failed to parse document {len(found)}: {error.message}",
                where=error.where or source,
                hint=error.hint,
            ) from None
        if value is not None:
            found.append((value, positions))
    return found


def is_test(value: Any) -> bool:
    """Whether a document is meant as a Test: by its kind, or by the group of its apiVersion."""
    return isinstance(value, dict) and (
        value.get("kind") == "Test" or str(value.get("apiVersion")).startswith(f"{GROUP}/")
    )


def _resource(
    kind: str, value: dict[str, Any], positions: Positions, at: Path, step: str
) -> Operation:
    """The operation on *value*, an object with apiVersion and kind."""

    def refuse(path: Path, message: str, hint: str = "") -> NoReturn:
        raise invalid(message, where=positions.where((*at, *path)), hint=hint)

    for required in ("apiVersion", "kind"):
        if not isinstance(value.get(required), str) or not value[required]:
            refuse(
                (), f"{kind}.resource.{required} is required", "it says which objects to look at"
            )
    metadata = value.get("metadata", {})
    if not isinstance(metadata, dict):
        refuse(("metadata",), "metadata must be a map", "write name and namespace below it")
    names = {}
    for key in ("name", "namespace"):
        found = metadata.get(key, "")
        if not isinstance(found, str):
            refuse(("metadata", key), f"metadata.{key} must be a text", f'quote it: "{found}"')
        if found.startswith("(") and found.endswith(")"):
            refuse(
                ("metadata", key),
                f"metadata.{key} must be literal; it says which object to look up",
                "leave it out to look at all objects, and assert on it with an expression key",
            )
        names[key] = found
    labels = metadata.get("labels", {})
    if not isinstance(labels, dict):
        refuse(("metadata", "labels"), "metadata.labels must be a map", "for example {app: x}")
    for key, found in labels.items():
        if not isinstance(found, str):
            refuse(
                ("metadata", "labels", key), f"label {key} must be a text", f'quote it: "{found}"'
            )
    try:
        parsed = tree.parse(value, strict=True)
    except AicrError as error:
        path = error.context.get("at", ())
        where = positions.where((*at, *path))
        raise invalid(error.message, where=where, hint=error.hint) from None
    selecting = {
        key: found for key, found in labels.items() if not (_special(key) or _special(found))
    }
    return Operation(
        kind,
        value["apiVersion"],
        value["kind"],
        names["name"],
        names["namespace"],
        selecting,
        value,
        parsed,
        step,
        positions.where(at),
    )


def _special(text: str) -> bool:
    """Whether a label's key or value is an expression, which no selector can have."""
    return text[:1] in ("(", "~", "\\") or "->" in text


def _raw(value: Any, positions: Positions, number: int) -> Operation:
    found = value if isinstance(value, dict) else {}
    metadata = found.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not (found.get("apiVersion") and found.get("kind") and name):
        raise invalid(
            f"document {number} needs apiVersion, kind and metadata.name to be compared with an object",
            where=positions.where(()),
            hint=f"write a Test of {GROUP} to assert on objects without a name",
        )
    return _resource("assert", found, positions, (), f"document {number}")


class _Reader:
    """Reads one Test document."""

    def __init__(
        self, value: Any, positions: Positions, number: int, component: str, many: bool
    ) -> None:
        self.value = value
        self.positions = positions
        self.number = number
        self.component = component
        self.prefix = f"doc[{number}] " if many else ""

    def refuse(self, path: Path, message: str, hint: str = "", *, key: bool = False) -> NoReturn:
        where = self.positions.key(path) if key else self.positions.where(path)
        raise invalid(f"{self.prefix}{message}", where=where, hint=hint)

    def test(self) -> Test:
        self.header()
        metadata = self.value.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        name = metadata.get("name")
        annotations = metadata.get("annotations")
        no_op = isinstance(annotations, dict) and annotations.get(NO_OP) == "true"
        spec = self.value.get("spec")
        if spec is not None and not isinstance(spec, dict):
            self.refuse(("spec",), "spec must be a map")
        spec = spec or {}
        self.handlers(("spec",), spec, "spec")
        operations = tuple(self.operations(spec, no_op))
        if not operations and not no_op:
            label = f'"{name}"' if isinstance(name, str) and name else f"doc[{self.number}]"
            self.refuse(
                ("spec",),
                f'chainsaw Test {label} for component "{self.component}" declares no assert/error '
                f'operations; annotate it with {NO_OP}: "true" if the no-op is intentional',
                "assert first that the workload exists",
            )
        where = self.positions.where(())
        return Test(str(name or ""), where, operations, self.timeout(spec), no_op)

    def header(self) -> None:
        number = self.number
        only = "only Tests may share a stream with a Test, because nothing else in it would be read"
        if not isinstance(self.value, dict):
            message = f"document {number} is not a Kubernetes-shaped mapping; {only}"
            self.refuse((), message)
        kind, api = self.value.get("kind"), self.value.get("apiVersion")
        if kind is None or kind == "":
            self.refuse((), f'document {number} has no kind field, not kind "Test"; {only}')
        if kind != "Test":
            self.refuse(("kind",), f'document {number} has "{kind}", not kind "Test"; {only}')
        if not isinstance(api, str) or not api.startswith(f"{GROUP}/"):
            self.refuse(
                ("apiVersion",),
                f'document {number} has apiVersion "{api or ""}", which is not in the "{GROUP}" group',
                f"write {GROUP}/v1alpha1",
            )

    def timeout(self, spec: dict[str, Any]) -> float:
        timeouts = spec.get("timeouts")
        declared = timeouts.get("assert") if isinstance(timeouts, dict) else None
        if declared is None:
            return 0.0
        path = ("spec", "timeouts", "assert")
        if not isinstance(declared, str):
            self.refuse(path, "spec.timeouts.assert must be a duration", "for example 5m")
        try:
            return durations.parse(declared) / durations.SECOND
        except AicrError as error:
            self.refuse(path, f"spec.timeouts.assert: {error.message}", error.hint)

    def handlers(self, path: Path, block: dict[str, Any], label: str) -> None:
        for name in HANDLERS:
            if name not in block:
                continue
            entries = block[name] if isinstance(block[name], list) else []
            index, operation = 0, "<catch-finally-block>"
            for number, entry in enumerate(entries):
                keys = [key for key in entry if key in FORBIDDEN] if isinstance(entry, dict) else []
                if keys:
                    index, operation = number, keys[0]
                    break
            self.refuse(
                (*path, name),
                f"{label}.{name}[{index}]: {operation} is not allowed in a health check, which may "
                f"only assert and error",
                f"remove the {name} block",
                key=True,
            )

    def operations(self, spec: dict[str, Any], no_op: bool) -> Iterator[Operation]:
        steps = spec.get("steps", [])
        if steps is not None and not isinstance(steps, list):
            self.refuse(("spec", "steps"), "spec.steps must be a list")
        for index, step in enumerate(steps or []):
            path: Path = ("spec", "steps", index)
            if not isinstance(step, dict):
                self.refuse(path, "a step must be a map")
            name = step.get("name")
            label = f'step "{name}"' if isinstance(name, str) and name else f"step[{index}]"
            self.handlers(path, step, label)
            entries = step.get("try")
            if entries is not None and not isinstance(entries, list):
                self.refuse((*path, "try"), f"{label}: try must be a list", "start it with a dash")
            if entries == [] and not no_op:
                self.refuse(
                    (*path, "try"), f"{label}: try is empty", "assert something, or remove it"
                )
            for number, entry in enumerate(entries or []):
                yield self.operation((*path, "try", number), f"{label} try[{number}]", entry)

    def operation(self, path: Path, label: str, entry: Any) -> Operation:
        allowed = "only assert and error are allowed"
        if not isinstance(entry, dict):
            self.refuse(path, f"{label}: <unrecognized>: an operation must be a map", allowed)
        named = [key for key in entry if key in FORBIDDEN]
        if named:
            self.refuse(
                (*path, named[0]), f'{label} uses operation "{named[0]}"; {allowed}', key=True
            )
        chosen = [kind for kind in ALLOWED if kind in entry]
        if len(chosen) == 2:
            self.refuse(
                path,
                f"{label} sets both assert and error; one would silently never run",
                "make two entries of it",
            )
        other = next((str(key) for key in entry if key not in (*ALLOWED, *_BESIDE)), "")
        if other or not chosen:
            close = nearest(other, [*ALLOWED, *_BESIDE]) if other else ""
            self.refuse(
                path,
                f'{label}: <unrecognized> operation "{other}"; {allowed}',
                f'did you mean "{close}"?' if close else allowed,
            )
        kind = chosen[0]
        block = entry[kind]
        resource = block.get("resource") if isinstance(block, dict) else None
        if not isinstance(resource, dict):
            self.refuse(
                (*path, kind),
                f"{label}: {kind}.resource is required",
                "write the object below resource; files are not read",
            )
        at = (*path, kind, "resource")
        return _resource(kind, resource, self.positions, at, label)
