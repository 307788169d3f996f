"""The node-set rule: a label that all GPU nodes must carry, or none may.

``NodeTopology.gpu-nodes.label`` is not a reading but a question about a set. Its value is
``key=value`` (every GPU node carries it) or ``!key`` (no GPU node carries the label, whatever its
value). Which nodes are GPU nodes follows from a label that the service puts on them when a pool is
created, before any operator runs; a service without such a label cannot be asked.

Design: fail closed. "All of none" and "none of an incomplete list" are errors, never true. This
module must not know other paths or expressions. Source: recipe spec 8.7, requirements V-033 to
V-044.
"""

from __future__ import annotations

import re

from aicr.constraints import nodelabels, paths
from aicr.constraints.expression import Outcome
from aicr.errors import AicrError, invalid, not_found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

#: The constraint name that is dispatched here by exact match, before any path is parsed.
NAME: Final = "NodeTopology.gpu-nodes.label"

#: Label that marks a GPU node, by service. To add a service, add the label its GPU nodes carry from
#: pool creation on; a label that an operator or feature discovery adds later does not qualify.
UNIVERSE_LABELS: Final[dict[str, str]] = {"gke": "cloud.google.com/gke-accelerator"}

#: Most node names that a failed rule lists.
MAX_NAMED: Final = 5

_PROVIDER: Final = paths.parse("K8s.node.provider")
_NAME_PART: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?", re.ASCII)
_PREFIX: Final = re.compile(
    r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*", re.ASCII
)
_MAX_NAME: Final = 63
_MAX_PREFIX: Final = 253
_GRAMMAR: Final = 'write "key=value" (every GPU node carries it) or "!key" (none carries the key)'


class Rule:
    """A parsed rule: label ``key`` and ``value`` ("" when ``negated``), and the ``text`` of it."""

    __slots__ = ("key", "negated", "text", "value")

    def __init__(self, text: str, key: str, value: str, *, negated: bool) -> None:
        self.text = text
        self.key = key
        self.value = value
        self.negated = negated


def parse(text: str) -> Rule:
    """Read the value of a node-set constraint (recipe spec 8.7).

    Raises:
        AicrError: INVALID_REQUEST for anything but ``key=value`` or ``!key`` with a valid label.
    """
    stripped = text.strip()
    if not stripped:
        raise invalid("node-set constraint value cannot be empty", where=NAME, hint=_GRAMMAR)
    if stripped[0] == "!":
        key = stripped[1:]
        _check_key(key, stripped)
        return Rule(stripped, key, "", negated=True)
    key, equals, value = stripped.partition("=")
    if not equals:
        raise invalid(f'invalid node-set constraint value "{stripped}"', where=NAME, hint=_GRAMMAR)
    _check_key(key, stripped)
    if value and (len(value) > _MAX_NAME or not _NAME_PART.fullmatch(value)):
        raise invalid(
            f'invalid node-set constraint value "{stripped}": "{value}" is not a label value',
            where=NAME,
            hint=f"at most {_MAX_NAME} of letters, digits, '-', '_', '.'; no mark at the ends",
        )
    return Rule(stripped, key, value, negated=False)


def evaluate(rule: Rule, snapshot: Mapping[str, Any] | None) -> Outcome:
    """Ask the question of every GPU node of a snapshot (recipe spec 8.7, the fail-closed table).

    Raises:
        AicrError: INVALID_REQUEST for no snapshot, an unknown service or one without a GPU-node
            label, and for truncated, malformed or ambiguous readings; NOT_FOUND when the label
            readings are absent or no node is a GPU node.
    """
    if snapshot is None:
        raise invalid("snapshot is nil", hint="pass a snapshot; aicr snapshot collects one")
    universe_label = _universe_label(snapshot)
    subtype = paths.find_subtype(snapshot, "NodeTopology", "label")
    if subtype is None:
        raise not_found(
            "NodeTopology.label is not in the snapshot",
            where=NAME,
            hint="run aicr snapshot again where nodes can be listed",
        )
    universe = _union(nodelabels.nodes_by_value(subtype, universe_label))
    if not universe:
        raise not_found(
            f"no node carries {universe_label}, so there is no GPU node to ask about",
            where=NAME,
            hint="create the GPU node pool first, then collect the snapshot again",
        )
    by_value = nodelabels.nodes_by_value(subtype, rule.key)
    if rule.negated:
        offenders = universe & _union(by_value)
        text, verb = f"label {rule.key}", "carry"
    else:
        offenders = universe - by_value.get(rule.value, frozenset())
        text, verb = f"{rule.key}={rule.value}", "missing"
    if offenders:
        actual = (
            f"{len(offenders)} of {len(universe)} GPU node(s) {verb} {text}: {_named(offenders)}"
        )
    elif rule.negated:
        actual = f"none of {len(universe)} GPU node(s) carry {text}"
    else:
        actual = f"all {len(universe)} GPU node(s) carry {text}"
    return Outcome(passed=not offenders, actual=actual, expected=rule.text)


def _universe_label(snapshot: Mapping[str, Any]) -> str:
    known = ", ".join(sorted(UNIVERSE_LABELS))
    try:
        service = paths.extract(snapshot, _PROVIDER).strip().lower()
    except AicrError as error:
        raise invalid(
            "GPU nodes cannot be told: the service is unknown",
            where=NAME,
            hint=f"K8s.node.provider must name the service (GPU nodes are known for: {known})",
        ) from error
    label = UNIVERSE_LABELS.get(service)
    if label is None:
        raise invalid(
            f'GPU nodes cannot be told: service "{service}" has no declared GPU-node label',
            where=NAME,
            hint=f"this form works for: {known}",
        )
    return label


def _check_key(key: str, text: str) -> None:
    prefix, slash, name = key.rpartition("/")
    valid = len(name) <= _MAX_NAME and _NAME_PART.fullmatch(name) is not None
    if slash:
        valid = valid and len(prefix) <= _MAX_PREFIX and _PREFIX.fullmatch(prefix) is not None
    if not valid:
        raise invalid(
            f'invalid node-set constraint value "{text}": "{key}" is not a label key',
            where=NAME,
            hint=f"{_GRAMMAR}; a key is [prefix/]name, for example nvidia.com/gpu.present",
        )


def _union(by_value: Mapping[str, frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*by_value.values())


def _named(nodes: frozenset[str]) -> str:
    ordered = sorted(nodes)
    more = f"(+{len(ordered) - MAX_NAMED} more)" if len(ordered) > MAX_NAMED else ""
    return ",".join(ordered[:MAX_NAMED]) + more
