"""From parsed YAML to the catalogue's documents: which parts each kind has, and how strictly it is read.

Overlays of the ordinary track are read leniently (unknown keys are ignored, recipe spec 2.2), mixins and
profile-carrying overlays strictly. The parts themselves are read by a `decoder.Decoder`.
"""

from __future__ import annotations

from aicr.catalog.fields import PHASES, SPEC_KEYS
from aicr.errors import invalid, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aicr.catalog.decoder import Decoder, Path
    from aicr.catalog.types import Mixin, Overlay, OverlaySpec, RegistryEntry


def overlay(decoder: Decoder, path: str, origin: str) -> Overlay:
    """A RecipeMetadata document.

    Raises:
        AicrError: INVALID_REQUEST with the place of what is wrong.
    """
    name = _name(decoder)
    raw = decoder.as_map(decoder.value.get("spec"), ("spec",), "spec")
    decoder.known_keys(raw, SPEC_KEYS, ("spec",))
    spec: OverlaySpec = {}
    if raw.get("base") is not None:
        spec["base"] = decoder.as_text(raw["base"], ("spec", "base"), "base")
    if raw.get("criteria") is not None:
        spec["criteria"] = decoder.criteria(raw["criteria"], ("spec", "criteria"))
    if raw.get("mixins") is not None:
        spec["mixins"] = decoder.as_texts(raw["mixins"], ("spec", "mixins"), "mixins")
    if raw.get("constraints") is not None:
        here = ("spec", "constraints")
        spec["constraints"] = decoder.constraints(raw["constraints"], here, "constraints")
    if raw.get("componentRefs") is not None:
        here = ("spec", "componentRefs")
        spec["componentRefs"] = decoder.refs(raw["componentRefs"], here, kind="")
    if raw.get("validation") is not None:
        phases = decoder.as_map(raw["validation"], ("spec", "validation"), "validation")
        for phase in phases:
            if phase not in PHASES:
                near = nearest(phase, list(PHASES))
                raise invalid(
                    f'unknown validation phase "{phase}"',
                    where=decoder.where(("spec", "validation", phase)),
                    hint=f'did you mean "{near}"?' if near else f"phases: {', '.join(PHASES)}",
                )
        spec["validation"] = {
            phase: decoder.phase(phases[phase], ("spec", "validation", phase))
            for phase in PHASES
            if phases.get(phase) is not None
        }
    if raw.get("profile") is not None:
        from aicr.catalog.profiles import decode_profile

        spec["profile"] = decode_profile(decoder, raw["profile"], ("spec", "profile"))
    return {"name": name, "path": path, "origin": origin, "spec": spec}


def mixin(decoder: Decoder, path: str) -> Mixin:
    """A RecipeMixin document, read strictly.

    Raises:
        AicrError: INVALID_REQUEST ``failed to parse mixin … (unknown fields are not allowed)``.
    """
    name = _name(decoder)
    raw = decoder.as_map(decoder.value.get("spec"), ("spec",), "spec")
    decoder.known_keys(raw, ("constraints", "componentRefs"), ("spec",))
    spec: Any = {}
    if raw.get("constraints") is not None:
        spec["constraints"] = decoder.constraints(
            raw["constraints"], ("spec", "constraints"), "constraints"
        )
    if raw.get("componentRefs") is not None:
        spec["componentRefs"] = decoder.refs(
            raw["componentRefs"], ("spec", "componentRefs"), kind=name
        )
    return {"name": name, "path": path, "spec": spec}


def _name(decoder: Decoder) -> str:
    """``metadata.name``, which every document of a catalogue needs; strict about the frame."""
    document = decoder.value
    decoder.known_keys(document, ("kind", "apiVersion", "metadata", "spec"), ())
    metadata = decoder.as_map(document.get("metadata"), ("metadata",), "metadata")
    decoder.known_keys(metadata, ("name",), ("metadata",))
    name = decoder.as_text(metadata.get("name"), ("metadata", "name"), "metadata.name")
    if not name:
        raise invalid(
            "metadata.name is required",
            where=decoder.where(("metadata",)),
            hint="give it a name that no other document of its kind has",
        )
    return name


def registry_entries(decoder: Decoder) -> list[RegistryEntry]:
    """The components of a ComponentRegistry document; string slots checked, unknown keys ignored.

    Raises:
        AicrError: INVALID_REQUEST with the place of what is wrong.
    """
    found: list[RegistryEntry] = []
    components = decoder.as_list(decoder.value.get("components"), ("components",), "components")
    for index, item in enumerate(components):
        place: Path = ("components", index)
        entry: Any = dict(decoder.as_map(item, place, f"components[{index}]"))
        for key in ("name", "displayName"):
            if key in entry:
                entry[key] = decoder.as_text(entry[key], (*place, key), key)
        for key in ("helm", "kustomize", "healthCheck", "upgrades"):
            if key in entry:
                block = decoder.as_map(entry[key], (*place, key), key)
                entry[key] = {
                    name: decoder.as_text(value, (*place, key, name), f"{key}.{name}")
                    for name, value in block.items()
                }
        for key, name in (("healthCheck", "assertFile"), ("upgrades", "file")):
            decoder.check_local_file((entry.get(key) or {}).get(name), (*place, key, name))
        for key in (
            "valueOverrideKeys",
            "storageClassPaths",
            "sharedStorageClassPaths",
            "manifestFiles",
            "mixinSafeOverridePaths",
        ):
            if key in entry:
                entry[key] = decoder.as_texts(entry[key], (*place, key), key)
        decoder.check_local(entry.get("manifestFiles") or (), (*place, "manifestFiles"))
        for key in (
            "gkeCriticalPriority",
            "hasSelfRefCRDs",
            "ownsCRDs",
            "ownsCRDsExcludeSubcharts",
            "manifestsUseChartCRDs",
        ):
            if key in entry:
                entry[key] = decoder.as_bool(entry[key], (*place, key), key)
        if "nodeScheduling" in entry:
            _scheduling(decoder, entry["nodeScheduling"], (*place, "nodeScheduling"))
        if "podScheduling" in entry:
            _pod_scheduling(decoder, entry["podScheduling"], (*place, "podScheduling"))
        if "validations" in entry:
            _validations(decoder, entry["validations"], (*place, "validations"))
        found.append(entry)
    return found


def _scheduling(decoder: Decoder, value: Any, place: Path) -> None:
    scheduling = decoder.as_map(value, place, "nodeScheduling")
    decoder.as_texts(scheduling.get("nodeCountPaths"), (*place, "nodeCountPaths"), "nodeCountPaths")
    for tier in ("system", "accelerated"):
        here = (*place, tier)
        group = decoder.as_map(scheduling.get(tier), here, tier)
        for key in ("nodeSelectorPaths", "tolerationPaths", "taintPaths", "taintStrPaths"):
            decoder.as_texts(group.get(key), (*here, key), key)
        for key in ("requireNodeSelector", "requireNodeSelectorIfStorageClassSet"):
            decoder.as_bool(group.get(key), (*here, key), key)


def _pod_scheduling(decoder: Decoder, value: Any, place: Path) -> None:
    pods = decoder.as_map(value, place, "podScheduling")
    here: Path = (*place, "workload")
    paths = decoder.as_map(pods.get("workload"), here, "workload").get("workloadSelectorPaths")
    decoder.as_texts(paths, (*here, "workloadSelectorPaths"), "workloadSelectorPaths")


def _validations(decoder: Decoder, value: Any, place: Path) -> None:
    for index, item in enumerate(decoder.as_list(value, place, "validations")):
        here = (*place, index)
        block = decoder.as_map(item, here, f"validations[{index}]")
        function = decoder.as_text(block.get("function"), (*here, "function"), "function")
        if not function:
            raise invalid(
                f"validations[{index}]: function is required",
                where=decoder.where(here),
                hint="name one of the functions of docs/validations.md",
            )
        decoder.as_text(block.get("severity"), (*here, "severity"), "severity")
        decoder.as_text(block.get("message"), (*here, "message"), "message")
        conditions = decoder.as_map(block.get("conditions"), (*here, "conditions"), "conditions")
        for name, values in conditions.items():
            decoder.as_texts(values, (*here, "conditions", name), name)
