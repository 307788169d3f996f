"""Finds the images in plain documents: values files, rendered manifests, text in them.

```
document --scan--> Scan: found   (reference, path, form, where its parts stand)
                         partial (paths at which a chart's own image is changed in part)
```
Forms that are read (bundler spec 8.1, field case L1):

- a scalar under ``image`` or a key that ends in ``Image``, if it looks like a whole reference; of
  a container, whatever it looks like, because there it cannot be anything else;
- ``image`` beside ``repository`` and ``version`` or ``tag`` and ``containerSHA`` (GPU operator);
- a map under such a key with ``name``, ``repository``, ``tag``, or with ``registry``,
  ``repository``, ``tag``, ``digest``, or with the ``reference`` of an image volume;
- references inside other text (arguments, environment, scripts), which nothing can rewrite safely:
  with a host anywhere, and without one behind ``image:`` or ``--image=``.

What is filled in later (``{{ … }}``) is no image and is listed as decided elsewhere.

A descriptor that is plainly meant as one and cannot be right is an error, because an image list
that leaves it out would be believed. It must not know components, charts or mirrors.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from aicr.artifacts import images
from aicr.artifacts.images import Reference
from aicr.errors import AicrError, invalid
from aicr.values import paths, references

#: Forms of a finding.
SCALAR: Final = "scalar"
SPLIT: Final = "split"
TEXT: Final = "text"

Path = tuple[str | int, ...]

#: A whole reference in running text: a host with a dot or port, a path, and a tag or digest.
_IN_TEXT: Final = re.compile(
    r"(?<![\w./@:$-])"
    r"((?:localhost|[a-z0-9][a-z0-9-]*(?:\.[a-z0-9-]+)+)(?::\d{1,5})?"
    r"(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)+"
    r"(?::[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9_])?(?:@sha256:[0-9a-f]{64})?"
    r"|@sha256:[0-9a-f]{64}))"
    r"(?![\w/:@-])"
)
#: What stands behind ``image:``, ``"image":``, ``--image=``, ``--init-image=`` or ``X_IMAGE=`` in text.
_KEYED: Final = re.compile(
    r"(?:(?<![A-Za-z0-9])(?:image|IMAGE)|(?<=[a-z])Image)[\"']?\s*[:=]\s*[\"']?"
    r"([^\s\"'`,;()<>\[\]{}|&]+)"
)
#: A taint is written as an image with a tag would be.
_EFFECTS: Final = (":NoSchedule", ":NoExecute", ":PreferNoSchedule")
_LISTS: Final = ("image", "images")
_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")
#: Parts of a split form.
_PARTS: Final = ("registry", "repository", "version", "tag", "digest")
#: Schemas describe images and hold none.
_SCHEMA_KINDS: Final = ("CustomResourceDefinition",)


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """One image at one place.

    Attributes:
        reference: the image.
        path: path of the scalar, or of the map that the parts stand in.
        form: ``SCALAR``, ``SPLIT`` or ``TEXT``.
        fields: for ``SPLIT``, part (registry, repository, name, …) -> key in that map.
    """

    reference: Reference
    path: Path
    form: str
    fields: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(slots=True)
class Scan:
    """What was found in one document, in its order."""

    found: list[Found] = dataclasses.field(default_factory=list)
    partial: list[Path] = dataclasses.field(default_factory=list)


def scan(document: Any, *, source: str, app_version: str = "") -> Scan:
    """The images in *document*.

    Args:
        document: a plain tree.
        source: its name, for errors.
        app_version: version that a chart uses where a split form has no tag, "" if unknown.

    Raises:
        AicrError: INVALID_REQUEST, with the path, for a malformed descriptor.
    """
    made = Scan()
    if isinstance(document, dict) and document.get("kind") in _SCHEMA_KINDS:
        return made
    _Walk(made, source, app_version).visit(document, ())
    return made


def is_image_key(key: str) -> bool:
    """Whether values under *key* are images: ``image``, ``initImage``, ``scalingPodImage``."""
    return key == "image" or key.endswith("Image")


def in_text(text: str) -> Iterator[str]:
    """The whole references inside a longer text, each once."""
    seen = set()
    for match in _IN_TEXT.finditer(text):
        word = match.group(1)
        if not word.endswith(_EFFECTS) and word not in seen:
            seen.add(word)
            yield word
    for match in _KEYED.finditer(text):
        word = match.group(1).rstrip(".:")
        if word not in seen and images.looks_like_image(word) and _is_reference(word):
            seen.add(word)
            yield word


def _is_reference(word: str) -> bool:
    """Whether running text holds an image here, and not something that is written like one."""
    try:
        images.parse(word)
    except AicrError:
        return False
    return True


class _Walk:
    def __init__(self, made: Scan, source: str, app_version: str) -> None:
        self._made = made
        self._source = source
        self._app_version = app_version

    def visit(self, node: Any, path: Path) -> None:
        if isinstance(node, dict):
            self._visit_map(node, path)
        elif isinstance(node, list):
            for index, item in enumerate(node):
                self.visit(item, (*path, index))
        elif isinstance(node, str):
            self._visit_text(node, path)

    def _visit_map(self, node: dict[str, Any], path: Path) -> None:
        done: set[str] = set()
        if isinstance(node.get("image"), str) and self._siblings(node, path):
            done |= {"image", "containerSHA", *_PARTS}
        elif "image" not in node and self._bare_split(node, path):
            done |= {"registry", "repository", "tag", "digest", "sha"}
        for key, value in node.items():
            if key in done:
                continue
            here = (*path, key)
            if is_image_key(key) and isinstance(value, str):
                if images.is_unresolved(value):
                    self._made.partial.append(here)
                elif images.looks_like_image(value) or (value and _is_container(path)):
                    reference = images.parse(value, where=self._place(here))
                    self._made.found.append(Found(reference, here, SCALAR))
                elif value:
                    self._visit_text(value, here)
            elif is_image_key(key) and isinstance(value, dict):
                self._descriptor(value, here)
            elif key in _LISTS and isinstance(value, list):
                self._list(value, here)
            else:
                self.visit(value, here)

    def _list(self, values: list[Any], path: Path) -> None:
        """A list of whole references, for example of images to fetch beforehand."""
        for index, value in enumerate(values):
            here = (*path, index)
            if isinstance(value, str) and images.looks_like_image(value):
                reference = images.parse(value, where=self._place(here))
                self._made.found.append(Found(reference, here, SCALAR))
            else:
                self.visit(value, here)

    def _siblings(self, node: dict[str, Any], path: Path) -> bool:
        """``image`` with whichever of registry, repository, version, tag and hash beside it.

        Operators join them when they make a pod: ``image: driver`` with a repository, or
        ``image: ghcr.io/a/b`` with a version.
        """
        image, repository = node["image"], _text(node.get("repository"))
        sha = node.get("containerSHA")
        if sha not in (None, "") and not (isinstance(sha, str) and references.is_digest(sha)):
            raise invalid(
                f"containerSHA {sha!r} is not sha256: and 64 hex digits",
                where=self._place((*path, "containerSHA")),
            )
        fields = {"repository": "repository", "name": "image"}
        if not repository:
            whole = images.looks_like_image(image)
            if not whole or ":" in image.rpartition("/")[2] or not (node.get("version") or sha):
                return False
            fields = {"repository": "image"}
        if self._filled_in_later(node, ("image", *_PARTS), path):
            return True
        version = ""
        for key in ("version", "tag"):
            if _text(node.get(key)):
                version = _text(node[key])
                break
        registry = _text(node.get("registry")) if repository else ""
        reference = images.join(
            registry=registry,
            repository=repository,
            name=image,
            tag=version,
            digest=sha or _text(node.get("digest")),
            where=self._place(path),
        )
        if registry:
            fields["registry"] = "registry"
        self._add_split(reference, path, fields)
        return True

    def _bare_split(self, node: dict[str, Any], path: Path) -> bool:
        """``repository`` with a tag or registry, under a key that does not say image."""
        repository = node.get("repository")
        if not isinstance(repository, str) or not repository or "://" in repository:
            return False
        if not ({"tag", "digest", "registry"} & set(node)) or "name" in node:
            return False
        if self._filled_in_later(node, _PARTS, path):
            return True
        self._joined(node, repository, path)
        return True

    def _descriptor(self, value: dict[str, Any], path: Path) -> None:
        """A map under an image key."""
        if self._filled_in_later(value, ("name", "reference", *_PARTS), path):
            return
        reference = value.get("reference")
        if isinstance(reference, str) and reference:
            here = (*path, "reference")
            parsed = images.parse(reference, where=self._place(here))
            self._made.found.append(Found(parsed, here, SCALAR))
        if "name" in value and ("repository" in value or "/" not in _text(value["name"])):
            self._named(value, path)
            return
        repository = value.get("repository", value.get("name"))
        if isinstance(repository, str) and repository:
            self._joined(value, repository, path)
        elif {"tag", "digest", "registry", "sha"} & set(value):
            self._made.partial.append(path)
        for key, item in value.items():
            if isinstance(item, (dict, list)):
                self.visit(item, (*path, key))

    def _filled_in_later(self, node: Mapping[str, Any], keys: tuple[str, ...], path: Path) -> bool:
        """Whether a part of a split form is a placeholder, which disqualifies the whole (8.1)."""
        later = any(images.is_unresolved(_text(node.get(key))) for key in keys)
        if later:
            self._made.partial.append(path)
        return later

    def _named(self, value: dict[str, Any], path: Path) -> None:
        """The form {name, repository, tag}, which knows no registry and no digest."""
        for key in ("registry", "digest"):
            if key in value:
                raise invalid(
                    f"an image of the form name, repository, tag has no {key}",
                    where=self._place((*path, key)),
                    hint="put it into repository or tag",
                )
        for key in ("name", "repository"):
            if not isinstance(value.get(key), str) or not value[key]:
                raise invalid(
                    f"an image of the form name, repository, tag needs a {key}",
                    where=self._place((*path, key)),
                    hint="fill it in, or leave the whole image to the chart",
                )
        reference = images.join(
            repository=value["repository"],
            name=value["name"],
            tag=_text(value.get("tag")),
            where=self._place(path),
        )
        self._add_split(reference, path, {"repository": "repository", "name": "name"})

    def _joined(self, value: dict[str, Any], repository: str, path: Path) -> None:
        """The form {registry, repository, tag, digest}."""
        key = "repository" if "repository" in value else "name"
        fields = {"repository": key}
        registry = _text(value.get("registry"))
        if registry:
            fields["registry"] = "registry"
        reference = images.join(
            registry=registry,
            repository=repository,
            tag=_text(value.get("tag")),
            digest=_text(value.get("digest")) or _text(value.get("sha")),
            where=self._place(path),
        )
        self._add_split(reference, path, fields)

    def _add_split(self, reference: Reference, path: Path, fields: dict[str, str]) -> None:
        if not reference.tag and not reference.digest and self._app_version:
            # The rule of charts: an empty tag means the version of the application.
            reference = dataclasses.replace(reference, tag=self._app_version)
        self._made.found.append(Found(reference, path, SPLIT, fields))

    def _visit_text(self, text: str, path: Path) -> None:
        if "/" not in text and "mage" not in text and "MAGE" not in text:
            return
        for word in in_text(text):
            self._made.found.append(Found(images.parse(word, where=self._place(path)), path, TEXT))

    def _place(self, path: Path) -> str:
        return f"{self._source}: {paths.join(list(path))}" if path else self._source


def _is_container(path: Path) -> bool:
    """Whether *path* is that of an entry in a pod's list of containers."""
    return len(path) > 1 and path[-2] in _CONTAINERS and isinstance(path[-1], int)


def _text(value: Any) -> str:
    """A scalar as a chart would print it into a reference; "" for nothing."""
    if value is None or isinstance(value, (dict, list, bool)):
        return ""
    return str(value)
