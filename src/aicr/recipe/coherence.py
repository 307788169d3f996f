"""Component refs as a recipe states them, and whether each can be deployed (recipe spec 4.10)."""

from __future__ import annotations

from aicr.catalog.dependencies import is_enabled
from aicr.catalog.registry import HELM, KUSTOMIZE, RESERVED_NAME, apply_defaults
from aicr.errors import invalid
from aicr.values.merge import copy_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from aicr.catalog.types import ComponentRef, RegistryEntry

_TYPES = {"helm": HELM, "kustomize": KUSTOMIZE}


def canonical_type(text: str) -> str:
    """``Helm`` or ``Kustomize`` for any spelling of them; another text is returned as it is."""
    return _TYPES.get(text.lower(), text)


def with_defaults(ref: ComponentRef, entry: RegistryEntry | None) -> ComponentRef:
    """A copy of a merged ref: its type in canonical form, its empty fields from its registry *entry*."""
    filled: ComponentRef = copy_tree(ref)
    filled["type"] = canonical_type(filled.get("type") or "")
    if entry is not None:
        apply_defaults(filled, entry)
    return filled


def check_duplicates(refs: Sequence[ComponentRef]) -> None:
    """Refuse two refs of one name.

    Raises:
        AicrError: INVALID_REQUEST ``recipe has duplicate component ref name …``.
    """
    seen: dict[str, int] = {}
    for index, ref in enumerate(refs):
        name = ref["name"]
        if name in seen:
            raise invalid(
                f'recipe has duplicate component ref name "{name}" (refs {seen[name]} and {index})'
            )
        seen[name] = index


def check_coherence(refs: Sequence[ComponentRef]) -> None:
    """Refuse enabled refs that no deployer could deploy; all problems are reported together.

    Raises:
        AicrError: INVALID_REQUEST ``recipe has incoherent component ref(s): …``.
    """
    for ref in refs:
        if ref["name"] == RESERVED_NAME:
            raise invalid(
                f'component "{RESERVED_NAME}" uses a reserved name; "deployer" is reserved for '
                f"--set deployer:<key>",
                hint="give the component another name",
            )
    problems = sorted(problem for ref in refs if is_enabled(ref) for problem in ref_problems(ref))
    if problems:
        raise invalid(
            "recipe has incoherent component ref(s): " + "; ".join(problems),
            hint="correct each of them in the recipe, its overlay or its registry entry",
            context={"problems": problems},
        )


def ref_problems(ref: ComponentRef) -> list[str]:
    """What keeps one ref from being deployed, in words."""
    name, kind = ref["name"], ref.get("type", "")
    problems = []
    if ref.get("patches"):
        problems.append(f'component "{name}" declares patches, which no deployer applies')
    for field in ("chart", "source", "version"):
        text = ref.get(field) or ""
        if text != text.strip():  # type: ignore[attr-defined]
            problems.append(f'component "{name}" has {field} {text!r} with blanks around it')
    if (ref.get("version") or "").strip().lower() == "v":
        problems.append(f'component "{name}" has version "v", which names no version')
    if kind == HELM:
        problems += _helm_problems(ref, name)
    elif kind == KUSTOMIZE:
        problems += _kustomize_problems(ref, name)
    else:
        problems.append(
            f'component "{name}" has unsupported type "{kind}"; expected "Helm" or "Kustomize"'
        )
    return problems


def _helm_problems(ref: ComponentRef, name: str) -> list[str]:
    problems = [
        f'Helm component "{name}" has {field} set, which belongs to Kustomize'
        for field in ("tag", "path")
        if ref.get(field)
    ]
    if ref.get("source"):
        if not ref.get("version"):
            problems.append(f'Helm component "{name}" has no chart version; set version: …')
    elif ref.get("chart"):
        problems.append(f'Helm component "{name}" has chart "{ref["chart"]}" but no source')
    elif not ref.get("manifestFiles"):
        problems.append(
            f'component "{name}" has no deployable primary: set source, chart and version, or '
            f"manifestFiles"
        )
    return problems


def _kustomize_problems(ref: ComponentRef, name: str) -> list[str]:
    problems = []
    if not ref.get("path"):
        problems.append(f'Kustomize component "{name}" has no path')
    if ref.get("tag") and not ref.get("source"):
        problems.append(f'Kustomize component "{name}" has tag "{ref["tag"]}" but no source')
    if ref.get("manifestFiles"):
        problems.append(f'Kustomize component "{name}" cannot carry manifestFiles')
    return problems
