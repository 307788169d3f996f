"""What a check is handed: the cluster, what the recipe expects, and where to say what it saw.

A check knows nothing else of the world; no environment of the process, no clock, no stream. Evidence
goes to `out`, a line at a time; words for whoever watches go to `log`. Counts and codes that must
survive redaction go through `emit_extra`. None of these can fail a check: that a line could not be
written is a warning (validators spec 4.1). Source: validators spec 5.1, 5.4; decisions 42, 63.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from aicr.assertions.timing import Clock
from aicr.catalog.dependencies import is_enabled
from aicr.checks.sdk.timeouts import Timeouts
from aicr.contract import sentinels
from aicr.errors import AicrError, invalid
from aicr.kube.port import Cluster

Document = dict[str, Any]


@dataclass
class Context:
    """See the module.

    Attributes:
        cluster: the port to the cluster.
        name, phase, run_id: of the check and the run.
        namespace: where the run lives; a check's own objects go into namespaces of their own.
        snapshot: the snapshot document, or None.
        validation: the ValidationInput (validators spec 0.5), or None on a standalone run.
        node_selector, tolerations: what the user asked for; None means "use the check's defaults" and
            is not the same as empty.
        environ: the settings of the check.
        clock: monotonic seconds, and sleeping.
        timeouts: every waiting time.
        write: takes one line for stdout, without its end; may raise OSError.
        log: for whoever watches.
        deadline: on *clock*, when the budget is used up; None for no limit.
        wall: seconds since 1970, for what is written down.
    """

    cluster: Cluster
    name: str
    phase: str
    run_id: str
    namespace: str
    write: Callable[[str], None]
    snapshot: Document | None = None
    validation: Document | None = None
    node_selector: dict[str, str] | None = None
    tolerations: list[Document] | None = None
    environ: Mapping[str, str] = field(default_factory=dict)
    clock: Clock = field(default_factory=Clock)
    timeouts: Timeouts = field(default_factory=Timeouts)
    log: logging.Logger = field(default_factory=lambda: logging.getLogger("aicr.checks"))
    deadline: float | None = None
    wall: Callable[[], float] = time.time
    #: The last extra that was emitted; the runner adds its own codes to it.
    extra: dict[str, str] = field(default_factory=dict)

    def out(self, text: str = "") -> None:
        """Print evidence: a line, or several. Lines that look like transport are disarmed."""
        self._write(sentinels.disarmed(text))

    def artifact(self, label: str, text: str, command: str = "") -> None:
        """Print a labelled piece of evidence, with the command that would show the same."""
        lines = [f"--- {label} ---"]
        if command:
            lines += [f"Equivalent: {command}", ""]
        self.out("\n".join([*lines, text.rstrip("\n")]))

    def emit_extra(self, extra: Mapping[str, str]) -> None:
        """Publish counts and codes; the last call counts. Nothing is printed for an empty map."""
        try:
            line = sentinels.extra_line(extra)
        except AicrError as error:
            self.log.warning("cannot emit extra: %s", error)
            return
        if line:
            # In place, because child contexts share it.
            self.extra.clear()
            self.extra.update(extra)
            self._write(line)

    def emit_provenance(self, record: Mapping[str, Any] | None) -> None:
        """Publish which template a number describes; nothing is printed for no record."""
        try:
            line = sentinels.provenance_line(record)
        except AicrError as error:
            self.log.warning("cannot emit provenance: %s", error)
            return
        if line:
            self._write(line)

    def remaining(self) -> float:
        """Seconds of the check's budget that are left, never below 0."""
        if self.deadline is None:
            return self.timeouts.check_execution
        return max(0.0, self.deadline - self.clock.now())

    def timeout(self, seconds: float) -> float:
        """*seconds*, or what is left of the budget if that is less."""
        return min(seconds, self.remaining())

    def within(self, seconds: float) -> Context:
        """A context like this one that has at most *seconds* left."""
        return replace(self, deadline=self.clock.now() + self.timeout(seconds))

    def component(self, name: str) -> Document | None:
        """The componentRef *name* of the recipe if it is enabled, else None."""
        return component_of(self.validation, name)

    def namespace_of(self, component: str, usual: str) -> str:
        """Where the recipe puts *component*: its own namespace if it states one, else the *usual*."""
        ref = self.component(component)
        return str((ref or {}).get("namespace") or usual)

    def constraint(self, name: str, phase: str | None = None) -> str | None:
        """The expression of constraint *name* of a phase (by default this one's), or None.

        Raises:
            AicrError: INVALID_REQUEST when it is no text, or stated twice and not alike.
        """
        return constraint_of(self.validation, name, phase or self.phase)

    def _write(self, text: str) -> None:
        try:
            self.write(text)
        except OSError as error:
            self.log.warning("cannot write evidence: %s", error)


def component_of(validation: Mapping[str, Any] | None, name: str) -> Document | None:
    """The componentRef *name* if it is there and enabled (validators spec 0.5); None without input."""
    for ref in (validation or {}).get("componentRefs") or []:
        if ref.get("name") == name and is_enabled(ref):
            found: Document = ref
            return found
    return None


def constraint_of(validation: Mapping[str, Any] | None, name: str, phase: str) -> str | None:
    """The expression that *phase* states for constraint *name*; see `Context.constraint`."""
    config = ((validation or {}).get("config") or {}).get(phase) or {}
    found: str | None = None
    for entry in config.get("constraints") or []:
        if entry.get("name") != name:
            continue
        value = entry.get("value")
        if not isinstance(value, str):
            raise invalid(f"constraint {name} of phase {phase} must be text", hint="quote it")
        if found is not None and found != value:
            raise invalid(
                f'constraint {name} of phase {phase} is stated twice: "{found}" and "{value}"'
            )
        found = value
    return found
