"""The component registry: entries by name and by override key, and the rules an entry must meet.

An entry is metadata only: it says what to deploy and where values land (components seed, boundary).
"""

from __future__ import annotations

from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from aicr.catalog.tree import Tree
    from aicr.catalog.types import ComponentRef, RegistryEntry

HELM: Final = "Helm"
KUSTOMIZE: Final = "Kustomize"

#: Reserved for Argo CD options of ``--set deployer:<key>`` (bundler spec 1.4).
RESERVED_NAME: Final = "deployer"

TIERS: Final = ("system", "accelerated")


class Registry:
    """Entries of registry.yaml, in file order, indexed by name and by override key."""

    __slots__ = ("_by_key", "_by_name", "entries")

    def __init__(self, entries: list[RegistryEntry]) -> None:
        self.entries = entries
        self._by_name: dict[str, RegistryEntry] = {entry["name"]: entry for entry in entries}
        self._by_key: dict[str, RegistryEntry] | None = None

    def get(self, name: str) -> RegistryEntry | None:
        """The entry of a component, or None."""
        return self._by_name.get(name)

    def by_override_key(self, key: str) -> RegistryEntry | None:
        """The entry that ``--set <key>:…`` means: names first, then aliases (components seed)."""
        found = self._by_name.get(key)
        if found is not None:
            return found
        if self._by_key is None:
            self._by_key = {
                alias: entry
                for entry in reversed(self.entries)
                for alias in entry.get("valueOverrideKeys") or ()
            }
        return self._by_key.get(key)

    def names(self) -> list[str]:
        """Component names, in file order."""
        return list(self._by_name)

    def merged(self, external: list[RegistryEntry]) -> Registry:
        """This registry with external entries laid over it: replaced wholesale or appended."""
        replaced = {entry["name"]: entry for entry in external}
        kept = [replaced.pop(entry["name"], entry) for entry in self.entries]
        return Registry([*kept, *replaced.values()])


def component_type(entry: RegistryEntry) -> str:
    """``Kustomize`` iff the entry has a Kustomize source, else ``Helm`` (recipe spec 3.3)."""
    return KUSTOMIZE if (entry.get("kustomize") or {}).get("defaultSource") else HELM


def apply_defaults(ref: ComponentRef, entry: RegistryEntry) -> None:
    """Fill the empty fields of a ref from its registry entry, in place (recipe spec 3.5)."""
    kind = ref.get("type") or component_type(entry)
    ref["type"] = kind
    if kind == KUSTOMIZE:
        kustomize = entry.get("kustomize") or {}
        _fill(ref, "source", kustomize.get("defaultSource"))
        _fill(ref, "path", kustomize.get("defaultPath"))
        _fill(ref, "tag", kustomize.get("defaultTag"))
    else:
        helm = entry.get("helm") or {}
        _fill(ref, "source", helm.get("defaultRepository"))
        _fill(ref, "version", helm.get("defaultVersion"))
        _fill(ref, "namespace", helm.get("defaultNamespace"))
        _fill(ref, "chart", (helm.get("defaultChart") or "").rpartition("/")[2])
    if not ref.get("manifestFiles") and entry.get("manifestFiles"):
        ref["manifestFiles"] = list(entry["manifestFiles"])


def _fill(ref: Any, field: str, value: str | None) -> None:
    if value and not ref.get(field):
        ref[field] = value


def shipped_check(ref: Any, entry: Any, tree: Tree) -> str | None:
    """The health check that the registry has for a ref whose defaults are applied, None without one.

    A check names the namespace that the registry deploys the component into. For a ref that goes elsewhere,
    as the mixin os-talos asks, the text looks there instead: in the usual place it would find nothing, for
    ever (recipe spec 3.5, 4.7, 10.6).

    Raises:
        AicrError: what reading the file raises.
    """
    file = (entry.get("healthCheck") or {}).get("assertFile")
    if not file or ref.get("healthCheckSkip"):
        return None
    text: str = tree.read_text(file)
    usual = (entry.get("helm") or {}).get("defaultNamespace") or entry["name"]
    actual = ref.get("namespace") or usual
    return text if actual == usual else _moved(text, usual, actual)


def _moved(text: str, usual: str, actual: str) -> str:
    """A check with each ``namespace: usual`` replaced; the rest stays byte for byte."""
    import re

    name = re.escape(usual)
    value = rf"""(?:{name}|"{name}"|'{name}')(?=[ \t]*(?:[,}}#\r\n]|\Z))"""
    return re.sub(rf"(?<![\w.-])(namespace:[ \t]+){value}", rf"\g<1>{actual}", text)


def check_entries(entries: list[RegistryEntry], source: str) -> None:
    """Check every entry and every rule between entries; all problems are reported together.

    Raises:
        AicrError: INVALID_REQUEST listing the problems (recipe spec 3.2 and 3.4).
    """
    problems = [
        problem for index, entry in enumerate(entries) for problem in _entry_problems(index, entry)
    ]
    problems += _shared_names(entries)
    if problems:
        raise invalid(
            "registry validation failed: " + "; ".join(problems),
            where=source,
            hint="correct these entries of the registry",
            context={"problems": problems},
        )


def _shared_names(entries: list[RegistryEntry]) -> list[str]:
    problems = []
    names: dict[str, int] = {}
    for index, entry in enumerate(entries):
        name = entry.get("name") or ""
        if name and name in names:
            problems.append(f"duplicate component name: {name}")
        names.setdefault(name, index)
    owner: dict[str, str] = {}
    for entry in entries:
        for key in entry.get("valueOverrideKeys") or ():
            first = owner.setdefault(key, entry.get("name") or "")
            taken = (first != entry.get("name") and first) or (key in names and key)
            if taken and taken != entry.get("name"):
                problems.append(
                    f'duplicate valueOverrideKey "{key}": used by both {taken} and {entry["name"]}'
                )
    return problems


def _entry_problems(index: int, entry: RegistryEntry) -> list[str]:
    name = entry.get("name")
    if not name:
        return [f"component[{index}]: name is required"]
    problems = []
    if not entry.get("displayName"):
        problems.append(f"component[{index}] ({name}): displayName is required")
    if any((entry.get("helm") or {}).values()) and any((entry.get("kustomize") or {}).values()):
        problems.append(
            f"component[{index}] ({name}): cannot have both helm and kustomize configuration"
        )
    if component_type(entry) == KUSTOMIZE and entry.get("manifestFiles"):
        problems.append(f"component[{index}] ({name}): a Kustomize entry cannot list manifestFiles")
    if name == RESERVED_NAME:
        problems.append(
            f'registry component "{name}" uses the reserved deployer override key as its name; '
            f'"deployer" is reserved for --set deployer:<key> Argo deployer options'
        )
    if RESERVED_NAME in (entry.get("valueOverrideKeys") or ()):
        problems.append(
            f'registry component "{name}" declares the reserved override key "deployer"; '
            f'"deployer" is reserved for --set deployer:<key> Argo deployer options'
        )
    return problems + _scheduling_problems(name, entry)


def _scheduling_problems(name: str, entry: RegistryEntry) -> list[str]:
    problems = []
    scheduling = entry.get("nodeScheduling") or {}
    stored = bool(entry.get("storageClassPaths") or entry.get("sharedStorageClassPaths"))
    for tier in TIERS:
        group = scheduling.get(tier) or {}
        required = bool(group.get("requireNodeSelector"))
        conditional = bool(group.get("requireNodeSelectorIfStorageClassSet"))
        label = f'component "{name}": nodeScheduling.{tier}'
        if (required or conditional) and not group.get("nodeSelectorPaths"):
            problems.append(f"{label} requires a node selector but nodeSelectorPaths is empty")
        if conditional and not stored:
            problems.append(
                f"{label}.requireNodeSelectorIfStorageClassSet is true but the component has no "
                f"storageClassPaths or sharedStorageClassPaths to condition on"
            )
        if required and conditional:
            problems.append(
                f"{label}.requireNodeSelector and requireNodeSelectorIfStorageClassSet are "
                f"mutually exclusive"
            )
    system, accelerated = (
        set((scheduling.get(tier) or {}).get("nodeSelectorPaths") or ()) for tier in TIERS
    )
    problems += [
        f'component "{name}": nodeSelectorPaths entry "{path}" is shared between system and '
        f"accelerated; a selector cannot mean both node classes"
        for path in sorted(system & accelerated)
    ]
    return problems
