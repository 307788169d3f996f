"""What a caller asks of `aicr bundle`, and how each flag is read.

``BundleOptions`` keeps the flags as they were typed; ``parse_scheduling`` and the ``parse_*``
functions turn them into plain values, or into an error that names the flag. Command line, library
and server all go through these functions, so a toleration means the same everywhere.

This module knows flags and Kubernetes label syntax. It must not know recipes, components or files.
"""

from __future__ import annotations

import re

from aicr.errors import invalid, nearest
from aicr.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, Final

#: Bundle formats this version writes.
KNOWN_DEPLOYERS: Final = ("helm",)

EFFECTS: Final = ("NoExecute", "NoSchedule", "PreferNoSchedule")

_NAME: Final = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_PREFIX: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*"
_SUBDOMAIN_LENGTH: Final = 253
_REPEAT: Final = "to give several, repeat the flag"
_TOLERATION_FORM: Final = "key[=value][:Effect] with Effect one of " + ", ".join(EFFECTS)


def tolerate_all() -> dict[str, Any]:
    """A toleration of every taint: what a node class gets when no flag names its taints."""
    return {"operator": "Exists"}


class BundleOptions:
    """The flags of one bundle run, as typed (bundler spec 1.1).

    Args:
        deployer: output format; see ``KNOWN_DEPLOYERS``.
        set: ``component:path=value`` texts.
        set_json: ``component:path=<json>`` texts.
        set_file: ``component:path=<file>`` texts.
        system_node_selector: ``key=value`` texts for management nodes.
        system_node_tolerations: toleration texts for management nodes.
        accelerated_node_selector: ``key=value`` texts for GPU nodes.
        accelerated_node_tolerations: toleration texts for GPU nodes.
        workload_selector: ``key=value`` texts that identify training pods.
        workload_gate: the taint that GPU nodes carry until they are ready, or "".
        nodes: expected number of GPU nodes; 0 leaves the charts' figure.
        storage_class: class for block volumes, or "" when the flag was not given.
        shared_storage_class: class for shared volumes, or "" when the flag was not given.
        version: version of this program, written to the bundle.
        data_files: files of an external data directory by relative path, copied to ``data/``.
    """

    __slots__ = (
        "accelerated_node_selector",
        "accelerated_node_tolerations",
        "data_files",
        "deployer",
        "nodes",
        "set",
        "set_file",
        "set_json",
        "shared_storage_class",
        "storage_class",
        "system_node_selector",
        "system_node_tolerations",
        "version",
        "workload_gate",
        "workload_selector",
    )

    def __init__(
        self,
        *,
        deployer: str = "helm",
        set: Iterable[str] = (),
        set_json: Iterable[str] = (),
        set_file: Iterable[str] = (),
        system_node_selector: Iterable[str] = (),
        system_node_tolerations: Iterable[str] = (),
        accelerated_node_selector: Iterable[str] = (),
        accelerated_node_tolerations: Iterable[str] = (),
        workload_selector: Iterable[str] = (),
        workload_gate: str = "",
        nodes: int = 0,
        storage_class: str = "",
        shared_storage_class: str = "",
        version: str = __version__,
        data_files: Mapping[str, bytes] | None = None,
    ) -> None:
        self.deployer = deployer
        self.set = tuple(set)
        self.set_json = tuple(set_json)
        self.set_file = tuple(set_file)
        self.system_node_selector = tuple(system_node_selector)
        self.system_node_tolerations = tuple(system_node_tolerations)
        self.accelerated_node_selector = tuple(accelerated_node_selector)
        self.accelerated_node_tolerations = tuple(accelerated_node_tolerations)
        self.workload_selector = tuple(workload_selector)
        self.workload_gate = workload_gate
        self.nodes = nodes
        self.storage_class = storage_class
        self.shared_storage_class = shared_storage_class
        self.version = version
        self.data_files: dict[str, bytes] = dict(data_files or {})


class Scheduling:
    """The placement and storage flags, read. An empty field is a flag that was not given."""

    __slots__ = (
        "accelerated_selector",
        "accelerated_tolerations",
        "nodes",
        "shared_storage_class",
        "storage_class",
        "system_selector",
        "system_tolerations",
        "workload_gate",
        "workload_selector",
    )

    def __init__(
        self,
        *,
        system_selector: dict[str, str] | None = None,
        system_tolerations: list[dict[str, Any]] | None = None,
        accelerated_selector: dict[str, str] | None = None,
        accelerated_tolerations: list[dict[str, Any]] | None = None,
        workload_selector: dict[str, str] | None = None,
        workload_gate: dict[str, Any] | None = None,
        nodes: int = 0,
        storage_class: str = "",
        shared_storage_class: str = "",
    ) -> None:
        self.system_selector = system_selector or {}
        self.system_tolerations = system_tolerations or []
        self.accelerated_selector = accelerated_selector or {}
        self.accelerated_tolerations = accelerated_tolerations or []
        self.workload_selector = workload_selector or {}
        self.workload_gate = workload_gate
        self.nodes = nodes
        self.storage_class = storage_class
        self.shared_storage_class = shared_storage_class


def parse_scheduling(options: BundleOptions) -> Scheduling:
    """Read every placement and storage flag of a run.

    Raises:
        AicrError: INVALID_REQUEST naming the flag and the expected form.
    """
    return Scheduling(
        system_selector=parse_selector(options.system_node_selector, "--system-node-selector"),
        system_tolerations=parse_tolerations(
            options.system_node_tolerations, "--system-node-toleration"
        ),
        accelerated_selector=parse_selector(
            options.accelerated_node_selector, "--accelerated-node-selector"
        ),
        accelerated_tolerations=parse_tolerations(
            options.accelerated_node_tolerations, "--accelerated-node-toleration"
        ),
        workload_selector=parse_selector(options.workload_selector, "--workload-selector"),
        workload_gate=parse_taint(options.workload_gate, "--workload-gate"),
        nodes=parse_nodes(options.nodes),
        storage_class=_given_class(options.storage_class, "--storage-class"),
        shared_storage_class=_given_class(options.shared_storage_class, "--shared-storage-class"),
    )


def parse_deployer(text: str, known: Sequence[str] = KNOWN_DEPLOYERS) -> str:
    """The deployer a flag value names: trimmed, any letter case, empty means helm.

    Raises:
        AicrError: INVALID_REQUEST listing the valid names in order (bundler spec 1.1).
    """
    name = text.strip().lower() or "helm"
    if name in known:
        return name
    close = nearest(name, list(known))
    raise invalid(
        f'invalid deployer "{text}": must be one of {", ".join(sorted(known))}',
        where="--deployer",
        hint=f"did you mean {close}?" if close else f"pass one of {', '.join(sorted(known))}",
    )


def parse_selector(entries: Iterable[str], flag: str) -> dict[str, str]:
    """``key=value`` labels as a map, split at the first ``=``; the value may be empty.

    Keys and values must have Kubernetes label syntax: anything else can never match a node.

    Raises:
        AicrError: INVALID_REQUEST for a missing ``=``, a malformed label, or one key given twice
        with
            different values.
    """
    selector: dict[str, str] = {}
    for entry in entries:
        key, separator, value = entry.partition("=")
        if not separator:
            raise invalid(f'invalid {flag} "{entry}": expected key=value', where=flag, hint=_REPEAT)
        _check_label_key(key, entry, flag)
        _check_label_value(value, entry, flag)
        if selector.setdefault(key, value) != value:
            raise invalid(
                f'{flag} gives "{key}" two values, "{selector[key]}" and "{value}"',
                where=flag,
                hint="keep one of them: a node has one value for a label",
            )
    return selector


def parse_tolerations(entries: Iterable[str], flag: str) -> list[dict[str, Any]]:
    """Tolerations in the order given, repeated ones once; no entries gives an empty list."""
    parsed: list[dict[str, Any]] = []
    for entry in entries:
        toleration = parse_toleration(entry, flag)
        if toleration not in parsed:
            parsed.append(toleration)
    return parsed


def parse_toleration(text: str, flag: str) -> dict[str, Any]:
    """Read one toleration the way kubectl reads a taint (field case D1).

    ``k=v:Effect`` is Equal, ``k:Effect`` is Exists, ``k=:Effect`` is Equal with the empty value,
    and without ``:Effect`` all effects are tolerated. Empty fields are left out of the result.

    Raises:
        AicrError: INVALID_REQUEST with the expected form.
    """
    key, has_value, value, effect = _split_taint(text, flag)
    toleration: dict[str, Any] = {"key": key, "operator": "Equal" if has_value else "Exists"}
    if value:
        toleration["value"] = value
    if effect:
        toleration["effect"] = effect
    return toleration


def parse_taint(text: str, flag: str) -> dict[str, Any] | None:
    """The taint ``key[=value]:Effect`` as ``{key, value?, effect}``; "" gives None (no gate).

    Raises:
        AicrError: INVALID_REQUEST; unlike a toleration, a taint must name its effect.
    """
    if not text:
        return None
    key, _, value, effect = _split_taint(text, flag)
    if not effect:
        raise invalid(
            f'invalid {flag} "{text}": a taint needs an effect',
            where=flag,
            hint=f"write {text}:NoSchedule (or another of {', '.join(EFFECTS)})",
        )
    taint: dict[str, Any] = {"key": key}
    if value:
        taint["value"] = value
    taint["effect"] = effect
    return taint


def taint_text(taint: dict[str, Any]) -> str:
    """A taint as the one-line ``key[=value]:effect`` that some charts take."""
    value = taint.get("value", "")
    return f"{taint['key']}{'=' + value if value else ''}:{taint['effect']}"


def parse_nodes(value: int) -> int:
    """The node estimate.

    Raises:
        AicrError: INVALID_REQUEST when it is negative or not a whole number.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise invalid(
            f"invalid --nodes {value!r}: must be a whole number of nodes, 0 or more",
            where="--nodes",
            hint="0 leaves the charts' own figure",
        )
    return value


def parse_storage_class(text: str, flag: str) -> str:
    """The class name a given flag holds, trimmed.

    Raises:
        AicrError: INVALID_REQUEST when it is blank or no Kubernetes object name.
    """
    name = text.strip()
    if not name:
        raise invalid(
            f"{flag} must not be blank",
            where=flag,
            hint="name a StorageClass of the cluster, or drop the flag to use the default class",
        )
    if len(name) > _SUBDOMAIN_LENGTH or not re.fullmatch(_PREFIX, name):
        raise invalid(
            f'invalid {flag} "{text}": not a valid object name',
            where=flag,
            hint="lower-case letters, digits, '-' and '.', as `kubectl get storageclass` lists it",
        )
    return name


def _given_class(text: str, flag: str) -> str:
    return parse_storage_class(text, flag) if text else ""


def _split_taint(text: str, flag: str) -> tuple[str, bool, str, str]:
    left, colon, effect = text.partition(":")
    hint = _REPEAT if "," in text else f"expected {_TOLERATION_FORM}"
    if ":" in effect or left.count("=") > 1:
        raise invalid(
            f'invalid {flag} "{text}": expected {_TOLERATION_FORM}', where=flag, hint=hint
        )
    key, equals, value = left.partition("=")
    if colon and effect not in EFFECTS:
        close = next((known for known in EFFECTS if known.lower() == effect.strip().lower()), "")
        raise invalid(
            f'invalid {flag} "{text}": unknown effect "{effect}", expected {_TOLERATION_FORM}',
            where=flag,
            hint=f"write {left}:{close}" if close else hint,
        )
    _check_label_key(key, text, flag)
    _check_label_value(value, text, flag)
    return key, bool(equals), value, effect


def _check_label_key(key: str, text: str, flag: str) -> None:
    prefix, slash, name = key.rpartition("/")
    valid = re.fullmatch(_NAME, name) and (
        not slash or (len(prefix) <= _SUBDOMAIN_LENGTH and re.fullmatch(_PREFIX, prefix))
    )
    if not valid:
        problem = f'"{key}" is not a label key' if key else "the key is empty"
        raise invalid(
            f'invalid {flag} "{text}": {problem}',
            where=flag,
            hint=_REPEAT if "," in text else "a key looks like example.com/name, without wildcards",
        )


def _check_label_value(value: str, text: str, flag: str) -> None:
    if value and not re.fullmatch(_NAME, value):
        raise invalid(
            f'invalid {flag} "{text}": "{value}" is not a label value',
            where=flag,
            hint=_REPEAT
            if "," in text
            else "at most 63 letters, digits, '-', '_' and '.', alphanumeric at both ends",
        )
