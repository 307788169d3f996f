"""The bill of materials as a Markdown page, and whether a committed page still holds.

```
Bom --page--> text between two marks, and around it whatever the file says
file --stale(fresh Bom)--> what differs: components and versions, or with *full* every line
```
The gate compares what has to change with a pin (component set, versions); images that drift below
an unmoved pin are the business of the full comparison (bundler spec 8.3, requirements C-135 to
C-138). It must not know where a bill comes from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from aicr.bundle.bom import HELM, YES, Bom, Entry
from aicr.errors import invalid, some_of

BEGIN: Final = "<!-- BEGIN AICR-BOM -->"
END: Final = "<!-- END AICR-BOM -->"
_NONE: Final = "–"
_ROW: Final = re.compile(r"\| `([^`]+)` \| [^|]* \| [^|]* \| ([^|]*) \|")
_SHOWN: Final = 3


def page(bom: Bom, *, title: str, before: str | None = None, source: str = "") -> str:
    """The page; *before* is the file as it was, of which only the part between the marks changes,
    and *source* its name.

    Raises:
        AicrError: INVALID_REQUEST when *before* has one mark, or the two in the wrong order.
    """
    body = f"{BEGIN}\n\n{_body(bom)}\n{END}\n"
    if before is None:
        return f"# {title}\n\n{body}"
    head, _, tail = _split(before, source)
    return f"{head}{body}{tail.removeprefix(chr(10))}"


def stale(text: str, bom: Bom, *, full: bool = False, source: str = "") -> list[str]:
    """How the committed page *text* differs from a fresh *bom*; [] when it holds.

    Raises:
        AicrError: INVALID_REQUEST when the page has no bill in it.
    """
    _, inside, _ = _split(text, source)
    written = dict(_ROW.findall(inside))
    fresh = {entry.name: _version(entry) for entry in bom.entries}
    found = [f"{name}: is not in the page" for name in fresh if name not in written]
    found += [f"{name}: is no component any more" for name in written if name not in fresh]
    found += [
        f"{name}: the page says version {written[name]}, it is {version}"
        for name, version in fresh.items()
        if name in written and written[name] != version
    ]
    if full and not found:
        old, new = inside.strip().splitlines(), _body(bom).strip().splitlines()
        gone = [line for line in old if line not in new]
        come = [line for line in new if line not in old]
        found += [f"no longer so: {line}" for line in gone] + [f"now: {line}" for line in come]
        if not found and old != new:
            found.append("the order of the lines differs")
    return found


def _split(text: str, source: str) -> tuple[str, str, str]:
    """(before the first mark, between the marks, after the second)."""
    head, begin, rest = text.partition(BEGIN)
    inside, end, tail = rest.partition(END)
    if not begin or not end or BEGIN in rest or END in tail:
        raise invalid(
            f"the page does not have {BEGIN} and {END} once each, in this order",
            where=source,
            hint="a new file gets both: aicr bom --format markdown -o FILE",
        )
    return head, inside, tail


def _body(bom: Bom) -> str:
    hidden = bom.unrendered
    floating = [image for image in bom.images if image.floating]
    lines = [
        f"{_count(len(bom.entries), 'component')}, {_count(len(bom.images), 'image')}, "
        f"{len(bom.images) - len([i for i in bom.images if not i.digest])} of them pinned by digest.",
        "",
    ]
    if hidden:
        lines += [
            f"**Not complete.** The charts of {_count(len(hidden), 'component')} were not looked "
            "into; the images that only their templates name are missing here.",
            "",
        ]
    lines += [
        "## Components",
        "",
        "| component | kind | chart | version | namespace | rendered | images |",
        "|---|---|---|---|---|---|---|",
    ]
    for entry in bom.entries:
        cells = [
            f"`{entry.name}`",
            entry.kind,
            _cell(entry.chart),
            _version(entry),
            _cell(entry.namespace),
            _cell(entry.rendered),
            str(len(entry.images)),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "## Images", ""]
    with_images = [entry for entry in bom.entries if entry.images]
    if not with_images:
        lines += ["None was found.", ""]
    for entry in with_images:
        lines += [f"### {entry.name}", ""]
        if entry.rendered != YES:
            lines += [f"Rendered: {entry.rendered}; this is what values and manifests name.", ""]
        for image in sorted(entry.images):
            flag = f" **{image.floating}**" if image.floating else ""
            lines.append(f"- `{image}`{flag} ({_places(entry.images[image])})")
        lines.append("")
    lines += _section(
        "Images decided elsewhere",
        "A chart's defaults or an operator catalogue complete these.",
        {entry.name: entry.partial for entry in bom.entries},
    )
    lines += _section(
        "Fetched when pods start",
        "Behind an air gap these fail.",
        {
            entry.name: [f"{item.where}: {item.tool}: `{item.line}`" for item in entry.downloads]
            for entry in bom.entries
        },
    )
    if floating:
        lines += ["## Not pinned", "", "The same reference can be another image tomorrow.", ""]
        lines += [f"- `{image}` ({image.floating})" for image in floating] + [""]
    return "\n".join(lines)


def _section(title: str, words: str, items: Mapping[str, list[str]]) -> list[str]:
    if not any(items.values()):
        return []
    lines = [f"## {title}", "", words, ""]
    lines += [f"- {name}: {item}" for name, found in items.items() for item in found]
    return [*lines, ""]


def _version(entry: Entry) -> str:
    if not entry.version:
        return "not pinned" if entry.kind == HELM else _NONE
    others = f" (also {', '.join(entry.other_versions)})" if entry.other_versions else ""
    return f"{entry.version}{others}"


def _places(places: list[str]) -> str:
    return some_of(places, _SHOWN)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ") or _NONE


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
