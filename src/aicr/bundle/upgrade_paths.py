"""From one set of versions to another: which recorded transitions lead there, and what they ask.

```
record + old + new --assess--> verdict, path of transitions
before + after refs --compare--> a row for each component
```
A path may go through several transitions, each starting where the one before can end; its verdict is
that of its worst part. Silence is not consent: without a covering path the verdict is ``unknown``, and
above everything that was recorded it is ``blocked``. The way back is asked of the record as well:
what it calls irreversible blocks it.

It must not know commands or files. Source: bundler spec 9.1, 9.3.
"""

from __future__ import annotations

from aicr.bundle import upgrade_ranges
from aicr.bundle.upgrade_records import BLOCKED, MANUAL, SAFE
from aicr.bundle.upgrades import chart_version
from aicr.errors import AicrError
from aicr.values import versions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Final

    from aicr.bundle.upgrade_records import Record, Transition
    from aicr.values.versions import Version

UNCHANGED: Final = "unchanged"
ADDED: Final = "added"
REMOVED: Final = "removed"
UNKNOWN: Final = "unknown"
UNVERSIONED: Final = "unversioned"
#: Verdicts that somebody has to look at before the upgrade.
ATTENTION: Final = (MANUAL, BLOCKED, UNKNOWN, UNVERSIONED)

_WORST: Final = (SAFE, MANUAL, BLOCKED)


class Assessment:
    """What is known of one component's way from one version to another.

    Attributes:
        component: its name.
        before, after: the versions, "" where there is none.
        verdict: ``safe``, ``manual``, ``blocked``, ``unknown``, ``unversioned``, ``unchanged``,
            ``added`` or ``removed``.
        reason: one sentence for people.
        path: the transitions to go through, in order.
    """

    __slots__ = ("after", "before", "component", "path", "reason", "verdict")

    def __init__(
        self,
        component: str,
        before: str,
        after: str,
        verdict: str,
        reason: str,
        path: Sequence[Transition] = (),
    ) -> None:
        self.component = component
        self.before = before
        self.after = after
        self.verdict = verdict
        self.reason = reason
        self.path = list(path)

    @property
    def needs_attention(self) -> bool:
        """Whether somebody has to look at it."""
        return self.verdict in ATTENTION


def compare(
    before: Sequence[Any], after: Sequence[Any], record_of: Callable[[str], Record | None]
) -> list[Assessment]:
    """An assessment of each component of two recipes, sorted by name.

    Args:
        before, after: componentRefs of what runs and of what is to run, enabled ones only.
        record_of: the upgrade record of a component, None when there is none.

    Raises:
        AicrError: what *record_of* raises.
    """
    old = {ref["name"]: ref for ref in before}
    new = {ref["name"]: ref for ref in after}
    rows = []
    for name in sorted({*old, *new}):
        if name not in old:
            rows.append(Assessment(name, "", chart_version(new[name]), ADDED, "it is new"))
        elif name not in new:
            reason = (
                "the new state does not have it: Argo CD, Flux with pruning, Fleet and Terraform "
                "remove it with the new bundle, helm and helmfile leave it installed"
            )
            rows.append(Assessment(name, chart_version(old[name]), "", REMOVED, reason))
        else:
            rows.append(_pair(name, old[name], new[name], record_of))
    return rows


def assess(component: str, record: Record | None, before: str, after: str) -> Assessment:
    """The verdict on a component's way from version *before* to version *after*, which differ."""

    def judged(verdict: str, reason: str, path: Sequence[Transition] = ()) -> Assessment:
        return Assessment(component, before, after, verdict, reason, path)

    parsed = []
    for text in (before, after):
        try:
            parsed.append(versions.parse(text))
        except AicrError:
            return judged(UNVERSIONED, f'"{text}" cannot be read as a version')
    old, new = parsed
    sign = upgrade_ranges.order(old, new)
    if not sign:
        return judged(UNCHANGED, "another spelling of the same version")
    if record is None:
        return judged(UNKNOWN, "the catalogue has no upgrade record for it")
    if sign > 0:
        return _way_back(judged, record, old, new)
    path = _path(record.transitions, old, new)
    if path:
        verdict = max((item.verdict for item in path), key=_WORST.index)
        return judged(verdict, " ".join(_line(item.summary) for item in path), path)
    ceiling = _ceiling(record)
    if ceiling is not None and upgrade_ranges.order(new, ceiling) > 0:
        return judged(
            BLOCKED, f"{after} is above {ceiling.text}, the last version that is recorded"
        )
    return judged(UNKNOWN, f"no recorded transition leads from {before} to {after}")


def _pair(
    name: str, before: Any, after: Any, record_of: Callable[[str], Record | None]
) -> Assessment:
    old, new = chart_version(before), chart_version(after)
    if old != new and old and new:
        return assess(name, record_of(name), old, new)
    if old != new:
        return Assessment(name, old, new, UNVERSIONED, "one side has no version")
    origin = ("source", "chart", "path")
    if any((before.get(key) or "") != (after.get(key) or "") for key in origin):
        reason = "the same version, but from another source"
        return Assessment(name, old, new, UNKNOWN, reason)
    return Assessment(name, old, new, UNCHANGED, "")


def _way_back(
    judged: Callable[[str, str], Assessment], record: Record, old: Version, new: Version
) -> Assessment:
    path = _path(record.transitions, new, old)
    if any(item.reversible is False for item in path):
        notes = " ".join(_line(item.reversible_notes) for item in path if item.reversible_notes)
        return judged(BLOCKED, f"a downgrade that has no way back. {notes}".rstrip())
    return judged(UNKNOWN, "a downgrade; records speak of upgrades")


def _path(transitions: Sequence[Transition], old: Version, new: Version) -> list[Transition]:
    """The shortest chain of transitions from *old* to *new*; of equally short ones the first."""
    trails = [[index] for index, item in enumerate(transitions) if item.from_range.contains(old)]
    for trail in trails:
        last = transitions[trail[-1]]
        if last.to_range.contains(new):
            return [transitions[index] for index in trail]
        # Grows while it is walked: breadth first, so shorter chains come first. Chains only lead to
        # later transitions, and each one is entered once, so it ends.
        entered = {item[-1] for item in trails}
        trails += [
            [*trail, index]
            for index in range(trail[-1] + 1, len(transitions))
            if index not in entered and last.to_range.meets(transitions[index].from_range)
        ]
    return []


def _ceiling(record: Record) -> Version | None:
    tops = [item.to_range.upper.version for item in record.transitions if item.to_range.upper]
    highest = None
    for version in tops:
        if highest is None or upgrade_ranges.order(version, highest) > 0:
            highest = version
    return highest


def _line(text: str) -> str:
    return " ".join(text.split())
