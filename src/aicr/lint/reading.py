"""From one directory to its documents: what the loader's walk does, without stopping.

Each overlay and mixin becomes a :class:`Source`: the decoded document, where its parts stand, and
whether it is sound, that is, free of problems that the loader would refuse. Only sound sources take
part in trial compositions, so that one mistake is reported once and not as all of its consequences.
Source: recipe spec 2.2 and 3.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aicr.catalog import decode
from aicr.catalog.load import REGISTRY_PATH, SKIPPED_KINDS
from aicr.contract.documents import (
    ACCEPTED,
    V1BETA1,
    V1BETA2,
    check_header,
    is_legacy,
    legacy_notice,
)
from aicr.errors import AicrError, invalid, nearest
from aicr.lint.decoder import (
    PROFILE,
    SHAPE,
    CollectingDecoder,
    problem_of,
    without_odd_shapes,
    without_unknown_phases,
)
from aicr.lint.findings import Problem
from aicr.yamlio import read

if TYPE_CHECKING:
    from aicr.catalog.types import ComponentRef, Constraint, Mixin, Overlay, RegistryEntry
    from aicr.lint.files import Files
    from aicr.yamlio.positions import Positions

    Path = tuple[str | int, ...]

#: Rules that reading feeds, beside those of the decoder.
FILE = "file-refused"
YAML = "yaml"
HEADER = "document-header"
LEGACY = "legacy-header"
IGNORED = "ignored-file"
NO_MAP = "values-not-a-map"

VALIDATORS_PATH = "validators/catalog.yaml"
_NOT_WALKED = ("checks/", "components/", "validators/", "evidence/")


class Source:
    """An overlay or mixin, as decoded, with its places."""

    def __init__(
        self,
        document: Overlay | Mixin,
        decoder: CollectingDecoder,
        files: Files,
        *,
        is_mixin: bool,
    ) -> None:
        self.name = document["name"]
        self.path = document["path"]
        self.document: Any = document
        self.spec: Any = self.document["spec"]
        self.positions = decoder.positions
        self.constraints: list[tuple[Path, Constraint]] = decoder.constraints_at
        self.refs: dict[str, Path] = {ref["name"]: path for path, ref in decoder.refs_at}
        self.files = files
        self.is_mixin = is_mixin
        self.sound = not decoder.noted
        self.raw: Any = decoder.value

    def where(self, *path: str | int) -> str:
        """``file:line:column`` of a path of the document."""
        return self.positions.where(path)

    def key(self, *path: str | int) -> str:
        """``file:line:column`` of the key that ends a path."""
        return self.positions.key(path)

    def ref(self, name: str) -> ComponentRef | None:
        """The component ref of a name, as this document states it."""
        for ref in self.spec.get("componentRefs") or ():
            if ref["name"] == name:
                found: ComponentRef = ref
                return found
        return None

    def ref_where(self, name: str, *path: str | int) -> str:
        """The place of a ref, or of something in it."""
        return self.where(*self.refs.get(name, ()), *path)


class Reading:
    """What one directory holds.

    Attributes:
        noted: (rule, problem) pairs of everything that could not be read as it should.
        documents: value and positions of each YAML document read, by path.
        streams: the same for health checks, which may hold several documents.
        values: paths of the files that hold chart values.
        entries: registry entries, decoded; ``entries_sound`` tells whether all of them are.
    """

    def __init__(self, files: Files, *, data: bool) -> None:
        self.files = files
        self.data = data
        self.noted: list[tuple[str, Problem]] = [(FILE, problem) for problem in files.problems]
        self.overlays: list[Source] = []
        self.mixins: list[Source] = []
        self.entries: list[RegistryEntry] = []
        self.documents: dict[str, tuple[Any, Positions]] = {}
        self.streams: dict[str, list[tuple[Any, Positions]]] = {}
        self._unreadable: set[str] = set()
        self._read_registry()
        checks = {(entry.get("healthCheck") or {}).get("assertFile") for entry in self.entries}
        for path in files.paths():
            if path in checks or (path.startswith("checks/") and path.endswith(".yaml")):
                self._open_stream(path)
            elif path == VALIDATORS_PATH:
                self.open(path)
            elif not path.endswith(".yaml"):
                self._unread(path)
            elif path not in (REGISTRY_PATH, "data-v1.yaml") and not path.startswith(_NOT_WALKED):
                if "/checks/" in path:
                    self._unread(path)
                elif path.startswith("mixins/"):
                    self._read_mixin(path)
                else:
                    self._read_overlay(path)
        self.values = self._open_values()

    def note(self, rule: str, where: str, message: str, hint: str = "") -> None:
        """Remember a problem."""
        self.noted.append((rule, Problem(where, message, hint)))

    def open(self, path: str) -> tuple[Any, Positions] | None:
        """The one document of a file, or None when it cannot be read, which is then noted once."""
        if path in self._unreadable:
            return None
        if path not in self.documents:
            source = self.files.place(path)
            try:
                text = self.files.read_text(path)
                self.documents[path] = read.load_with_positions(text, source=source)
            except AicrError as error:
                self._unreadable.add(path)
                self.noted.append((YAML, problem_of(error, source)))
                return None
        return self.documents[path]

    def _open_values(self) -> list[str]:
        """Read every file of chart values: those called so, and those that a ref names."""
        named = {
            str(ref.get("valuesFile") or "")
            for source in (*self.overlays, *self.mixins)
            for ref in source.spec.get("componentRefs") or ()
        }
        found = [path for path in self.files.paths() if _is_values(path) or path in named]
        for path in found:
            opened = self.open(path)
            if opened is not None and not isinstance(opened[0], (dict, type(None))):
                self.note(NO_MAP, opened[1].where(()), "a values file must be a map")
        return found

    def _open_stream(self, path: str) -> None:
        """Read a file of several documents; each part keeps its place in the file."""
        source = self.files.place(path)
        found: list[tuple[Any, Positions]] = []
        try:
            text = self.files.read_text(path)
            for start, part in parts_of(text):
                found.append(read.load_with_positions("\n" * start + part, source=source))
        except AicrError as error:
            self._unreadable.add(path)
            self.noted.append((YAML, problem_of(error, source)))
            return
        self.streams[path] = [(value, positions) for value, positions in found if value is not None]

    def _unread(self, path: str) -> None:
        """Note a file that lies among overlays and mixins and that nothing reads."""
        if not path.startswith(("overlays/", "mixins/")):
            return
        if path.endswith((".yml", ".json")):
            hint = f"rename it to {path.rpartition('.')[0]}.yaml"
        elif path.endswith(".yaml"):
            hint = 'move it out of the folder called "checks"'
        else:
            return
        self.note(IGNORED, self.files.place(path), f"{path} is not read as part of the data", hint)

    def _read_registry(self) -> None:
        source = self.files.place(REGISTRY_PATH)
        if not self.files.exists(REGISTRY_PATH):
            self.note(
                FILE,
                source,
                f"registry.yaml is required in external data directory: {self.files.prefix}",
                "a stub is enough: kind: ComponentRegistry, apiVersion: aicr.run/v1beta1, "
                "components: []",
            )
            return
        opened = self.open(REGISTRY_PATH)
        if opened is None:
            return
        value, positions = opened
        if not isinstance(value, dict):
            self.note(HEADER, source, "registry.yaml must be a ComponentRegistry document")
            return
        kind, version = value.get("kind"), value.get("apiVersion")
        if kind not in ("ComponentRegistry", None, "") or (not kind and version):
            self.note(
                HEADER,
                positions.where(("kind",)),
                f'registry.yaml has kind "{kind or ""}", expected "ComponentRegistry"; update the '
                f"registry header for this aicr release",
            )
            return
        if is_legacy(version):
            self._legacy("ComponentRegistry", version, positions)
        elif version not in ACCEPTED["ComponentRegistry"]:
            self.note(
                HEADER,
                positions.where(("apiVersion",)),
                f'registry.yaml has apiVersion "{version}", expected "{V1BETA1}"; update the '
                f"registry header for this aicr release",
            )
            return
        decoder = CollectingDecoder(value, positions, strict=False)
        try:
            self.entries = decode.registry_entries(decoder)
        except AicrError as error:
            # The one check that decoding makes by itself is about validations: go on without them.
            decoder.note(SHAPE, error)
            components = [
                {key: item for key, item in entry.items() if key != "validations"}
                if isinstance(entry, dict)
                else entry
                for entry in decoder.as_list(value.get("components"), ("components",), "components")
            ]
            decoder.value = {**value, "components": components}
            self.entries = decode.registry_entries(decoder)
        self.entries = [without_odd_shapes(entry) for entry in self.entries]
        self.noted += decoder.noted

    def _legacy(self, kind: str, version: object, positions: Positions) -> None:
        line = legacy_notice(kind, version, "").removeprefix(": ")
        hint = f"write apiVersion: {ACCEPTED[kind][0]}"
        self.note(LEGACY, positions.where(("apiVersion",)), line, hint)

    def _header(self, value: Any, kind: str, positions: Positions) -> bool:
        """Whether a document has a header that the loader accepts."""
        try:
            notice = check_header(value, kind, source=positions.source)
        except AicrError as error:
            self.note(HEADER, positions.where(("apiVersion",)), error.message, error.hint)
            return False
        if notice:
            self._legacy(kind, value.get("apiVersion"), positions)
        return True

    def _read_mixin(self, path: str) -> None:
        opened = self.open(path)
        if opened is None:
            return
        value, positions = opened
        kind = value.get("kind") if isinstance(value, dict) else None
        if kind != "RecipeMixin":
            self.note(
                HEADER,
                positions.where(("kind",)),
                f'mixin file {path} has kind "{kind or ""}", expected "RecipeMixin"; use a '
                f"RecipeMixin document compatible with this aicr release",
            )
            return
        if not self._header(value, "RecipeMixin", positions):
            return
        decoder = CollectingDecoder(value, positions, strict=True)
        try:
            mixin = decode.mixin(decoder, path)
        except AicrError as error:
            decoder.note(SHAPE, error)
        else:
            self.mixins.append(Source(mixin, decoder, self.files, is_mixin=True))
        self.noted += decoder.noted

    def _read_overlay(self, path: str) -> None:
        opened = self.open(path)
        if opened is None:
            return
        value, positions = opened
        if not isinstance(value, dict) or value.get("kind") != "RecipeMetadata":
            self._other_document(path, value, positions)
            return
        if not self._header(value, "RecipeMetadata", positions):
            return
        version, spec = value.get("apiVersion"), value.get("spec")
        strict = version == V1BETA2
        has_profile = isinstance(spec, dict) and spec.get("profile") is not None
        decoder = CollectingDecoder(value, positions, strict=strict)
        if strict != has_profile:
            message = (
                f"{V1BETA2} is for overlays that declare spec.profile, and this one has none"
                if strict
                else f'spec.profile needs apiVersion "{V1BETA2}", found "{version or ""}"'
            )
            hint = f"write apiVersion: {V1BETA1 if strict else V1BETA2}"
            problem = Problem(positions.where(("apiVersion",)), message, hint)
            decoder.noted.append((HEADER, problem))
        without_unknown_phases(decoder)
        overlay = self._decode_overlay(decoder, path)
        if overlay is not None:
            self._check_nodes(overlay, decoder)
            self.overlays.append(Source(overlay, decoder, self.files, is_mixin=False))
        self.noted += decoder.noted

    def _decode_overlay(self, decoder: CollectingDecoder, path: str) -> Overlay | None:
        value = decoder.value
        try:
            return decode.overlay(decoder, path, self.files.origin)
        except AicrError as error:
            rule = SHAPE if error.message == "metadata.name is required" else PROFILE
            decoder.note(rule, error)
            if rule == SHAPE:
                return None
        # A profile stops at its first mistake; the overlay around it is read without it.
        spec = {key: item for key, item in value["spec"].items() if key != "profile"}
        decoder.value = {**value, "spec": spec}
        decoder.constraints_at.clear()
        decoder.refs_at.clear()
        return decode.overlay(decoder, path, self.files.origin)

    def _check_nodes(self, overlay: Overlay, decoder: CollectingDecoder) -> None:
        nodes = overlay["spec"].get("criteria", {}).get("nodes", 0)
        if nodes and self.data:
            error = invalid(
                f'external overlay "{overlay["name"]}" sets criteria.nodes={nodes} which is no '
                f"longer used for overlay selection (#1781): nodes is metadata-only and the "
                f"overlay would silently match every query; remove or zero criteria.nodes in your "
                f"--data catalog",
                where=decoder.where(("spec", "criteria", "nodes")),
            )
            decoder.note(SHAPE, error)

    def _other_document(self, path: str, value: Any, positions: Positions) -> None:
        kind = value.get("kind") if isinstance(value, dict) else None
        version = value.get("apiVersion") if isinstance(value, dict) else None
        ours = isinstance(version, str) and version.startswith(("aicr.run/", "aicr.nvidia.com/"))
        if ours and kind not in SKIPPED_KINDS:
            near = nearest(str(kind), ["RecipeMetadata", *SKIPPED_KINDS])
            self.note(
                HEADER,
                positions.where(("kind",)),
                f'AICR catalog file {path} has kind "{kind or ""}", expected "RecipeMetadata"; fix '
                f"the wire kind or move the unrelated document outside the recipe catalog",
                f'did you mean "{near}"?' if near else "",
            )
        elif path.startswith("overlays/"):
            what = f'kind "{kind}"' if kind else "no kind"
            self.note(
                IGNORED,
                positions.where(("kind",)),
                f"{path} has {what} and is not read as an overlay",
                "an overlay starts with kind: RecipeMetadata",
            )


def parts_of(text: str) -> list[tuple[int, str]]:
    """The documents of a YAML stream: number of lines before each, and its text."""
    parts: list[tuple[int, str]] = []
    start = 0
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if line.startswith("---") and line[3:4] in ("", " ", "\r", "\t"):
            parts.append((start, "\n".join(lines[start:number])))
            start = number
    parts.append((start, "\n".join(lines[start:])))
    return parts


def _is_values(path: str) -> bool:
    """Whether a file holds chart values: it lies directly in a component's folder."""
    return (
        path.startswith("components/")
        and path.count("/") == 2
        and path.rpartition("/")[2].startswith("values")
        and path.endswith(".yaml")
    )
