"""What a person must know before an older cluster gets this bundle: UPGRADING.md and its notices.

```
plan + records --collect--> notices --note--> first note of the plan
                                    --add_files--> UPGRADING.md, a notice in README.md, checksums
```
A notice is made for each component whose version lies where a recorded transition leads, if that
transition is manual or blocked. Whether the cluster comes from there is not known while a bundle is
made; ``aicr upgrade-check`` compares two states. A record that cannot be read is a warning and never
keeps a bundle from being made (bundler spec 9.2, test 79).

Records are prose in YAML, and reading YAML costs more than making the whole bundle. So a record of
the built-in catalogue is looked through for its target ranges first, and read only when the version
may be in one of them or the look was not conclusive.

It must not know how a deployer works. Source: bundler spec 9.1, 9.2.
"""

from __future__ import annotations

from aicr.artifacts import checksums
from aicr.bundle import upgrade_ranges
from aicr.errors import AicrError
from aicr.values import versions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

    from aicr.bundle.plan import Component, Plan
    from aicr.bundle.upgrade_records import Record, Transition
    from aicr.catalog.catalog import Catalog

    Files = dict[str, tuple[bytes, int]]

UPGRADING: Final = "UPGRADING.md"
MODE: Final = 0o644

_README: Final = "README.md"
_WARNING: Final = "Warning: "
_TITLE: Final = "# Read this before you upgrade"
#: Spellings of the key `to` that `_target_ranges` does not read, so that it must not conclude.
_OTHER_TO: Final = ('to"', "to'", "to :", "to\t")


class Notice:
    """A component of the bundle, its version, and the transitions that lead there."""

    __slots__ = ("component", "transitions", "version")

    def __init__(self, component: str, version: str, transitions: list[Transition]) -> None:
        self.component = component
        self.version = version
        self.transitions = transitions


def chart_version(ref: Mapping[str, Any]) -> str:
    """The version that a ref pins: of its chart, or the tag of its Kustomize source."""
    return str(ref.get("version") or ref.get("tag") or "")


def load_record(name: str, catalog: Catalog) -> Record | None:
    """The upgrade record of a component, None when the registry names none.

    Raises:
        AicrError: as ``upgrade_records.read``, and NOT_FOUND for a file that is not there.
    """
    entry = catalog.registry.get(name)
    path = ((entry or {}).get("upgrades") or {}).get("file")
    if not entry or not path:
        return None
    from aicr.bundle import upgrade_records

    return upgrade_records.read(
        catalog.tree.read_text(path),
        # Relative to the tree: it ends up in files of the bundle, which hold no path of this machine.
        source=path,
        component=name,
        pin=str((entry.get("helm") or {}).get("defaultVersion") or ""),
    )


def collect(plan: Plan, catalog: Catalog) -> list[Notice]:
    """The notices of a bundle, in deployment order; the plan's notes get what there is to say.

    The first note then points to UPGRADING.md, and a record that cannot be read is a warning.
    """
    notices: list[Notice] = []
    warnings: list[str] = []
    for component in plan.components:
        try:
            notice = _notice(component, catalog)
        except AicrError as error:
            warnings.append(
                f"{_WARNING}what an upgrade of {component.name} asks for is not known, because its "
                f"upgrade record cannot be used: {error}"
            )
            continue
        if notice is not None:
            notices.append(notice)
    plan.notes += warnings
    if notices:
        named = ", ".join(f"{notice.component} {notice.version}" for notice in notices)
        plan.notes.insert(
            0,
            f"{_WARNING}read {UPGRADING} before this bundle goes onto a cluster that runs older "
            f"versions of: {named}",
        )
    return notices


def add_files(files: Files, notices: list[Notice], deployer: str) -> Files:
    """*files* with UPGRADING.md, a notice in README.md and checksums to match; as they are without
    notices."""
    if not notices:
        return files
    made = dict(files)
    made[UPGRADING] = (upgrading_md(notices, deployer), MODE)
    if _README in made:
        page, mode = made[_README]
        title, _, rest = page.decode().partition("\n")
        made[_README] = (f"{title}\n\n{readme_notice(notices)}{rest}".encode(), mode)
    if checksums.CHECKSUMS in made:
        made[checksums.CHECKSUMS] = (checksums.checksums_txt(made), checksums.MODE)
    return made


def readme_notice(notices: list[Notice]) -> str:
    """The paragraph of README.md that points to UPGRADING.md."""
    named = ", ".join(notice.component for notice in notices)
    return (
        f"> **Upgrading?** Read [{UPGRADING}]({UPGRADING}) before this bundle goes onto a cluster that\n"
        f"> runs older versions of: {named}.\n"
    )


def upgrading_md(notices: list[Notice], deployer: str) -> bytes:
    """UPGRADING.md: a section for each component, with the steps of the chosen deployer only."""
    lines = [
        _TITLE,
        "",
        "It concerns a cluster that runs an older version of one of these components; a cluster that is",
        f"new to them can be deployed as it is. The steps are for the deployer {deployer}.",
        "",
    ]
    for notice in notices:
        lines += [f"## {notice.component} {notice.version}", ""]
        for transition in notice.transitions:
            lines += _section(transition, deployer)
    return ("\n".join(lines).rstrip("\n") + "\n").encode()


def _section(transition: Transition, deployer: str) -> list[str]:
    came = f"**From {transition.from_range.text}: {transition.verdict}.**"
    lines = [f"{came} {_line(transition.summary)}", ""]
    if transition.precondition:
        lines += [f"Before: {_line(transition.precondition)}", ""]
    steps = transition.steps(deployer)
    if steps:
        for number, step in enumerate(steps, 1):
            lines.append(f"{number}. {_line(step.description)}")
            lines.append(f"   Why: {_line(step.reason)}")
        lines.append("")
    else:
        lines += [
            f"No steps are recorded for {deployer}. Work them out from the references before you "
            "upgrade.",
            "",
        ]
    if transition.affected:
        named = ", ".join(
            f"{kind}.{group}" if group else kind
            for group, kinds in transition.affected
            for kind in kinds
        )
        lines += [f"Affected: {named}", ""]
    if transition.reversible is not None:
        word = "The way back is open." if transition.reversible else "There is no way back."
        lines += [f"{word} {_line(transition.reversible_notes)}".rstrip(), ""]
    if transition.references:
        lines += [*(f"- <{address}>" for address in transition.references), ""]
    return lines


def _notice(component: Component, catalog: Catalog) -> Notice | None:
    path = (component.entry.get("upgrades") or {}).get("file")
    version = chart_version(component.ref)
    if not path or not version:
        return None
    pinned = versions.parse(version)
    if path not in catalog.external:
        ranges = _target_ranges(catalog.tree.read_text(path))
        if ranges is not None and not any(item.contains(pinned) for item in ranges):
            return None
    record = load_record(component.name, catalog)
    if record is None:
        return None
    held = [
        transition
        for transition in record.transitions
        if transition.verdict != "safe" and transition.to_range.contains(pinned)
    ]
    return Notice(component.name, version, held) if held else None


def _target_ranges(text: str) -> list[upgrade_ranges.Range] | None:
    """The `to` ranges of a record without reading it as YAML; None when one could be missed.

    Lines and not patterns: to compile three of those costs more than to look through the records.
    """
    if any(form in text for form in _OTHER_TO):
        return None
    spelt: list[str] = []
    verdicts = 0
    for line in text.split("\n"):
        entry = line.lstrip(" ").removeprefix("- ").strip(" ")
        if entry.startswith("to: "):
            spelt.append(_plain(entry[4:].lstrip(" ")))
        elif entry.startswith("verdict: "):
            verdicts += 1
    # Equal numbers and no `to:` elsewhere: every transition has shown its range.
    if not spelt or "" in spelt or not len(spelt) == verdicts == text.count("to:"):
        return None
    try:
        return [upgrade_ranges.parse(item) for item in spelt]
    except AicrError:
        return None


def _plain(scalar: str) -> str:
    """The text of a scalar that needs no YAML reader, "" when it may need one."""
    if scalar[:1] in ("'", '"'):
        inner = scalar[1:-1]
        closed = len(scalar) > 1 and scalar[-1] == scalar[0]
        return inner if closed and scalar[0] not in inner and "\\" not in inner else ""
    return scalar if "#" not in scalar and (scalar[:1].isalnum() or scalar[:1] == "=") else ""


def _line(text: str) -> str:
    return " ".join(text.split())
