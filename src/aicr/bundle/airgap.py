"""Air gap: rewriting values to a mirror, proving that nothing is left out, and what cannot work.

```
component values --rewrite(mirror)--> ``component:path`` -> new value, and what was not rewritten
Bom --gaps(mirror)--> images outside of the mirror, pods that download, charts nobody looked into
```
Rewriting is done once however often it is asked for, keeps tags and digests, and never touches text
inside of arguments or scripts: that is listed as not rewritten. Two images that would become one
name in the mirror are an error, not a guess.

It must not know how images get into the mirror. Source: field cases L1 to L3; air-gap pains 75, 76.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from aicr.artifacts import images
from aicr.artifacts.images import Reference
from aicr.bundle import image_scan
from aicr.bundle.bom import NOT_PULLED, YES, Bom
from aicr.errors import invalid
from aicr.values import paths, references


@dataclasses.dataclass(slots=True)
class Rewrite:
    """What became of the images in one component's values.

    Attributes:
        changes: value path -> (old, new).
        left: "path: image" of those that were not rewritten.
        images: old image -> image in the mirror.
    """

    changes: dict[str, tuple[str, str]] = dataclasses.field(default_factory=dict)
    left: list[str] = dataclasses.field(default_factory=list)
    images: dict[Reference, Reference] = dataclasses.field(default_factory=dict)


def check_mirror(text: str) -> str:
    """*text* as ``HOST[:PORT][/PATH]``.

    Raises:
        AicrError: INVALID_REQUEST for anything else.
    """
    mirror = text.strip().removeprefix("oci://").rstrip("/")
    host, slash, path = mirror.partition("/")
    named = references.names_host(host) and references.is_host(host) and host == host.lower()
    if not named or (slash and not references.is_repository(path)):
        raise invalid(
            f"{text!r} is not a mirror",
            where="--mirror",
            hint="write HOST[:PORT][/PATH], for example mirror.local/gpu",
        )
    images.parse(f"{mirror}/image", where="--mirror")
    return mirror


def rewrite(values: Mapping[str, Any], mirror: str, *, source: str) -> Rewrite:
    """The changes that bring every image in *values* into *mirror*.

    Args:
        values: the values of one component.
        mirror: as ``check_mirror`` returns it.
        source: name of the values, for errors.

    Raises:
        AicrError: INVALID_REQUEST for a malformed image descriptor.
    """
    made = Rewrite()
    for found in image_scan.scan(values, source=source).found:
        place = paths.join(list(found.path))
        if found.reference.is_in(mirror):
            continue
        if found.form == image_scan.TEXT:
            made.left.append(f"{place}: {found.reference} (inside of text)")
            continue
        target = found.reference.mirrored(mirror)
        if found.form == image_scan.SCALAR:
            old = paths.get(dict(values), list(found.path))
            made.changes[place] = (str(old), str(target))
        else:
            _rewrite_split(values, found, target, mirror, made)
        made.images[found.reference] = target
    return made


def _rewrite_split(
    values: Mapping[str, Any],
    found: image_scan.Found,
    target: Reference,
    mirror: str,
    made: Rewrite,
) -> None:
    """Change as few parts of a split form as possible, so that its tag and digest stay."""
    holder = paths.get(dict(values), list(found.path)) if found.path else dict(values)
    fields = found.fields
    if "registry" in fields:
        key = fields["registry"]
        _change(made, found.path, key, str(holder[key]), mirror)
        # "busybox" at the hub is "library/busybox", which the mirror has to be asked for.
        repository = str(holder[fields["repository"]])
        wanted = found.reference.repository
        if "name" not in fields and repository.strip("/") != wanted:
            _change(made, found.path, fields["repository"], repository, wanted)
        return
    key = fields["repository"]
    whole = f"{target.registry}/{target.repository}"
    if "name" in fields:
        name = str(holder[fields["name"]])
        if not whole.endswith(f"/{name}"):
            made.left.append(f"{paths.join(list(found.path))}: {found.reference}")
            return
        whole = whole.removesuffix(f"/{name}")
    old = str(holder[key])
    # What stands behind the repository in the same value goes with it.
    parts = references.split(old)
    suffix = f":{parts.tag}" if parts.tag else ""
    suffix += f"@{parts.digest}" if parts.digest else ""
    _change(made, found.path, key, old, f"{whole}{suffix}")


def _change(made: Rewrite, path: tuple[str | int, ...], key: str, old: str, new: str) -> None:
    if old != new:
        made.changes[paths.join([*path, key])] = (old, new)


def clashes(images: Mapping[Reference, Reference]) -> list[str]:
    """Pairs of different images that the mirror would hold under one name."""
    taken: dict[str, Reference] = {}
    found = []
    for image, target in sorted(images.items()):
        other = taken.setdefault(str(target), image)
        if other != image:
            found.append(f"{other} and {image} would both be {target}")
    return found


def gaps(bom: Bom, mirror: str) -> list[str]:
    """Why the bundle of *bom* would not come up with *mirror* alone; [] when nothing is known.

    Args:
        bom: a bundle's bill.
        mirror: as ``check_mirror`` returns it, or "" to look at everything but where images are.
    """
    found = []
    for entry in bom.entries:
        for image, places in sorted(entry.images.items()):
            where = places[0]
            if mirror and not image.is_in(mirror):
                kind = (
                    "not rewritten" if image not in entry.texts else "not rewritten, inside of text"
                )
                found.append(f"{entry.name}: {image} is {kind} ({where})")
            if image.floating:
                found.append(f"{entry.name}: {image} is not pinned: {image.floating} ({where})")
        found += [f"{entry.name}: not to be seen from here: {place}" for place in entry.partial]
        found += [
            f"{entry.name}: {item.where} fetches with {item.tool} when it starts: {item.line}"
            for item in entry.downloads
        ]
        if entry.rendered != YES:
            found.append(f"{entry.name}: chart not looked into, rendered: {entry.rendered}")
        if mirror and entry.rendered == NOT_PULLED and not _is_at(entry.repository, mirror):
            found.append(
                f"{entry.name}: its chart comes from {entry.repository}, outside of the mirror, when "
                "it is installed; bundle it with --vendor-charts"
            )
    return found


def _is_at(repository: str, mirror: str) -> bool:
    """Whether charts of *repository* are served where the mirror is: in it, or by its host."""
    scheme, _, rest = repository.partition("://")
    if scheme == "oci":
        return f"{rest}/".startswith(f"{mirror}/")
    return rest.partition("/")[0] == mirror.partition("/")[0]
