"""Collects a CNCF submission: uses each feature of a cluster and writes a page with what happened.

```
features.plan ─► per section: read lists, run the behaviour (5 m) ─► page with PASS, SKIP or FAIL
```
All sections together have 20 minutes; one that is not reached has failed, because nothing is known of it.
So has one of which a list could not be read. A page holds at most 10 MiB of what was seen. Nothing here
is redacted. Source: validators spec 9.2, 11.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from aicr.assertions.timing import Clock
from aicr.checks import registry
from aicr.checks.sdk.check import Check
from aicr.checks.sdk.context import Context
from aicr.checks.sdk.outcome import skip_in
from aicr.checks.sdk.timeouts import Timeouts
from aicr.contract import documents, labels, sentinels
from aicr.errors import INTERNAL, NOT_FOUND, TIMEOUT, AicrError
from aicr.kube import connect
from aicr.kube.port import Cluster
from aicr.validate import interrupts
from aicr.validate.evidence import cncf_files, features
from aicr.validate.evidence.bounded import Deadline
from aicr.validate.evidence.cncf_pages import fenced
from aicr.validate.evidence.times import EvidenceTimes
from aicr.validate.input_document import empty_snapshot, validation_input

PASS, SKIP, FAIL = "PASS", "SKIP", "FAIL"
MAX_OUTPUT: Final = 10 * 1024 * 1024
NAMESPACE: Final = "aicr-validation"


@dataclass(slots=True)
class Outcome:
    """A section that ended: its verdict, why, and what was seen."""

    section: features.Section
    verdict: str
    reason: str = ""
    lines: list[str] = field(default_factory=list)
    tables: list[tuple[features.Read, list[str]]] = field(default_factory=list)


@dataclass
class Collector:
    """Runs sections against one cluster.

    Attributes:
        cluster: the port.
        run_id: of this collection; objects that behaviours make carry it.
        policy: how the recipe hands out GPUs.
        times: of a section, and of all.
        output: characters of a page's evidence.
        timeouts: of the checks that it runs.
        load: name of a check → the check.
    """

    cluster: Cluster
    run_id: str
    policy: str
    times: EvidenceTimes = field(default_factory=EvidenceTimes)
    output: int = MAX_OUTPUT
    timeouts: Timeouts = field(default_factory=Timeouts)
    environ: Mapping[str, str] = field(default_factory=dict)
    load: Callable[[str], Check] = registry.load
    clock: Clock = field(default_factory=Clock)

    async def sections(self, plan: Sequence[features.Section]) -> list[Outcome]:
        """Run all sections, one after another."""
        end = self.clock.now() + self.times.overall
        found = []
        for section in plan:
            left = end - self.clock.now()
            if left <= 0:
                reason = f"not reached within {self.times.overall:g} s"
                found.append(Outcome(section, FAIL, reason))
                continue
            found.append(await self.section(section, min(left, self.times.section)))
        return found

    async def section(self, section: features.Section, seconds: float) -> Outcome:
        """Run one section within *seconds*; whatever happens is in the outcome."""
        outcome = Outcome(section, PASS)
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                await self._reads(outcome)
                await self._behaviour(outcome, seconds)
        except TimeoutError:
            reason = f"not done within {seconds:g} s" if limit.expired() else "no answer in time"
            outcome.verdict, outcome.reason = FAIL, f"[{TIMEOUT}] {reason}"
        except AicrError as error:
            skip = skip_in(error)
            outcome.verdict = FAIL if skip is None else SKIP
            outcome.reason = str(error) if skip is None else skip.reason
        except Exception as error:
            # A bug of a check is about this program, and nothing is known of the cluster.
            outcome.verdict = FAIL
            outcome.reason = f"[{INTERNAL}] unexpected {type(error).__name__}: {error}"
        return outcome

    async def _reads(self, outcome: Outcome) -> None:
        for read in outcome.section.reads:
            try:
                objects = await self.cluster.list(read.kind, labels=read.labels or None)
            except AicrError as error:
                if error.code != NOT_FOUND:
                    raise
                outcome.tables.append((read, ["The cluster does not serve this kind."]))
                continue
            outcome.tables.append((read, table(read, objects)))

    async def _behaviour(self, outcome: Outcome, seconds: float) -> None:
        check = self.load(outcome.section.check)
        room = [self.output]

        def write(text: str) -> None:
            if text.startswith((sentinels.EXTRA, sentinels.PROVENANCE)):
                return
            room[0] -= len(text) + 1
            if room[0] >= 0:
                outcome.lines.append(text)
            elif outcome.lines[-1:] != [_CUT]:
                outcome.lines.append(_CUT)

        context = Context(
            cluster=self.cluster,
            name=check.name,
            phase=check.phase,
            run_id=self.run_id,
            namespace=NAMESPACE,
            write=write,
            snapshot=empty_snapshot(documents.V1),
            validation=validation_input({}, self.policy),
            environ=self.environ,
            clock=self.clock,
            timeouts=self.timeouts,
            deadline=self.clock.now() + seconds,
        )
        await check.run(context)


_CUT: Final = "… what follows was too much for one page"


def table(read: features.Read, objects: Sequence[Mapping[str, Any]]) -> list[str]:
    """A Markdown table of objects."""
    if not objects:
        return ["None."]
    heads = ["Namespace", "Name", *(head for head, _ in read.columns)]
    rows = []
    for document in objects:
        metadata = document.get("metadata") or {}
        cells = [metadata.get("namespace"), metadata.get("name")]
        cells += [_at(document, path) for _, path in read.columns]
        rows.append(f"| {' | '.join(_cell(cell) for cell in cells)} |")
    return [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}", *sorted(rows)]


def page(outcome: Outcome, generated: str) -> str:
    """The page of a section."""
    lines = [
        f"# {outcome.section.title}",
        "",
        f"**Generated:** {generated}",
        f"**Feature:** `{outcome.section.feature}`",
        f"**Verdict:** {outcome.verdict}",
    ]
    if outcome.reason:
        lines += ["", "**Reason:**", "", *fenced(outcome.reason.split("\n"))]
    lines += ["", "## Behaviour", ""]
    seen = [line for text in outcome.lines for line in text.split("\n")]
    lines += fenced(seen) if seen else ["Nothing was printed."]
    for read, rows in outcome.tables:
        lines += ["", f"## {read.title}", "", f"Equivalent: `{read.command}`", "", *rows]
    return "\n".join(lines) + "\n"


def collect(
    directory: str,
    names: Sequence[str],
    *,
    policy: str,
    kubeconfig: str,
    environ: Mapping[str, str] | None = None,
    clock: Callable[[], datetime] = cncf_files.now,
    load: Callable[[str], Check] = registry.load,
) -> list[str]:
    """Collect a submission into *directory*; lines for people.

    Raises:
        AicrError: INVALID_REQUEST for an unknown feature or a folder that cannot be written;
            INTERNAL ``… failed`` when a section did, after all pages are written.
    """
    environ = os.environ if environ is None else environ
    plan = features.plan(names)
    times = EvidenceTimes.from_environment(environ)
    began = clock()

    async def run() -> tuple[list[Outcome], str]:
        async with connect(kubeconfig=kubeconfig, environ=environ) as client:
            collector = Collector(
                cluster=client,
                run_id=labels.run_id(began, secrets.token_hex(8)),
                policy=policy,
                times=times,
                timeouts=Timeouts.from_environment(environ),
                environ=environ,
                load=load,
            )
            config = client.config
            where = f"context {config.context}" if config.context else config.source
            return await collector.sections(plan), f"{where}, server {config.server}"

    outcomes, where = interrupts.run(run())
    generated = cncf_files.stamp(began)
    pages = {outcome.section.file: page(outcome, generated) for outcome in outcomes}
    deadline = Deadline(times.render, "writing evidence")
    cncf_files.write_pages(pages, directory, deadline)
    lines = [where, *(_line(outcome) for outcome in outcomes)]
    failed = [outcome for outcome in outcomes if outcome.verdict == FAIL]
    if failed:
        raise AicrError(
            INTERNAL,
            f"submission failed: {'; '.join(_line(outcome) for outcome in failed)}",
            where=directory,
            hint="the pages say what was seen",
        )
    return lines


def _line(outcome: Outcome) -> str:
    said = f" ({outcome.reason.partition(chr(10))[0]})" if outcome.reason else ""
    return f"{outcome.section.feature}: {outcome.verdict}{said}"


def _at(document: Mapping[str, Any], path: str) -> Any:
    """A value at a dotted path; what remains of the path may itself be a key with dots."""
    node: Any = document
    rest = path
    while rest and isinstance(node, Mapping):
        if rest in node:
            return node[rest]
        key, _, rest = rest.partition(".")
        node = node.get(key)
    return None


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
