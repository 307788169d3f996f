"""Why a value of a component is what it is: every layer that says something about it, lowest first.

Works on the tagged stacks of ``provenance``; which layer is in force is read off the tags, what the
others say is looked up in their trees. It must not know how selectors are written or how answers are
drawn.
"""

from __future__ import annotations

from aicr.errors import nearest, not_found
from aicr.recipe.provenance import Tag, leaves, plain
from aicr.values import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Final

    from aicr.recipe.explain_types import Item, Step
    from aicr.recipe.provenance import Keys, Layer, Origins, Stack

SET: Final = "set"
DELETED: Final = "deleted"

#: What a layer does to the path it is asked about.
SETS: Final = "sets"
DELETES: Final = "deletes"
REPLACES: Final = "replaces"

_ABSENT: Final = object()
_SHOWN_KEYS: Final = 12


def step(origins: Origins, layer: Layer, keys: Iterable[str | int], action: str) -> Step:
    """What *layer* does at *keys* of its own content, not in force until somebody says so."""
    found: Step = {
        "kind": layer.kind,
        "name": layer.name,
        "where": origins.where(layer, *keys),
        "action": action,
        "inForce": False,
    }
    chooser = layer.named_by
    if chooser is not None:
        found["namedBy"] = {
            "kind": chooser.kind,
            "name": chooser.name,
            "where": origins.where(chooser, "valuesFile"),
        }
    return found


def joined(keys: Keys) -> str:
    """Keys as a path that ``--set`` and selectors take."""
    return paths.join(list(keys)) if keys and all(keys) else ".".join(keys)


def explain_path(origins: Origins, stack: Stack, keys: Keys, prefix: str) -> list[Item]:
    """The item at *keys* of a stack, or one item for each leaf below when a map is there.

    Leaves that some layer set and another took away are listed too, after those that are left.

    Args:
        origins: the layers of the recipe.
        stack: values or overrides of one component.
        keys: path into them.
        prefix: selector of the stack itself.

    Returns:
        The items; none when no layer says anything about the path.
    """
    node = _at(stack.merged, keys)
    if not isinstance(node, dict):
        items = [_leaf(origins, stack, keys, prefix)]
        return [item for item in items if item["steps"]]
    present = [(*keys, *below) for below in leaves(node)] if node or keys else []
    return [_leaf(origins, stack, leaf, prefix) for leaf in (*present, *_lost(stack, keys))]


def _lost(stack: Stack, keys: Keys) -> list[Keys]:
    """Leaves below *keys* that a layer sets and the outcome lacks."""
    lost: dict[Keys, None] = {}
    for layer in stack.layers:
        content = _at(layer.content, keys)
        if isinstance(content, dict):
            for below in leaves(content):
                if _at(stack.merged, (*keys, *below)) is _ABSENT:
                    lost[(*keys, *below)] = None
    above = {path[:length] for path in lost for length in range(len(path))}
    return [path for path in lost if path not in above]


def _leaf(origins: Origins, stack: Stack, keys: Keys, prefix: str) -> Item:
    node = _at(stack.merged, keys)
    steps: list[Step] = []
    deciding = -1
    for layer in stack.layers:
        found = _step_at(origins, layer, keys)
        if found is None:
            continue
        if _decides(node, layer, found):
            deciding = len(steps)
        steps.append(found)
    if deciding >= 0:
        steps[deciding]["inForce"] = True
        if node is None:
            # A null that stays is a value: it makes Helm drop the chart's own default.
            steps[deciding]["action"] = SETS
            steps[deciding]["value"] = None
    selector = f"{prefix}.{joined(keys)}" if keys else prefix
    if node is _ABSENT:
        return {"selector": selector, "state": DELETED, "steps": steps}
    return {"selector": selector, "state": SET, "value": plain(node), "steps": steps}


def _decides(node: Any, layer: Layer, found: Step) -> bool:
    """Whether a step can be the one in force; the last that can, is."""
    if isinstance(node, Tag):
        return node.layer is layer
    if node is _ABSENT:
        return found["action"] in (DELETES, REPLACES)
    if node is None:
        return found["action"] == DELETES and "at" not in found
    return found["action"] == SETS and isinstance(found.get("value"), dict)


def _step_at(origins: Origins, layer: Layer, keys: Keys) -> Step | None:
    """What a layer says about a path: it sets it, deletes it or something above, or nothing."""
    node = layer.content
    for depth, key in enumerate(keys):
        if isinstance(node, dict) and key in node:
            node = node[key]
            continue
        above = keys[:depth]
        if node is None or not isinstance(node, dict):
            found = step(origins, layer, above, DELETES if node is None else REPLACES)
        elif layer.whole is not None and depth >= len(layer.whole):
            found = step(origins, layer, layer.whole, REPLACES)
            above, node = layer.whole, _at(layer.content, layer.whole)
        else:
            return None
        if node is not None:
            found["value"] = node
        found["at"] = joined(above)
        return found
    if node is None:
        return step(origins, layer, keys, DELETES)
    found = step(origins, layer, keys, SETS)
    found["value"] = node
    return found


def _at(tree: Any, keys: Keys) -> Any:
    for key in keys:
        if not isinstance(tree, dict) or key not in tree:
            return _ABSENT
        tree = tree[key]
    return tree


def absent(origins: Origins, component: str, stack: Stack, keys: Keys) -> Exception:
    """The error for a path that no layer speaks about: where it could be set, and what is near."""
    known: dict[Keys, None] = {}
    for tree in (stack.merged, *(layer.content for layer in stack.layers)):
        for leaf in leaves(tree):
            for length in range(1, len(leaf) + 1):
                known[leaf[:length]] = None
    wanted = joined(keys)
    same_end = [joined(path) for path in known if path[-1] == keys[-1]]
    near = nearest(wanted, [joined(path) for path in known])
    layers = list(dict.fromkeys(f"{layer.kind} {layer.name}" for layer in stack.layers))
    if len(keys) == 1 and origins.by_name[component].get(keys[0]):
        hint = f"did you mean the field components.{component}.{keys[0]}?"
    elif near or same_end:
        hint = f"did you mean {' or '.join([near] if near else same_end[:3])}?"
    else:
        hint = _siblings(stack, keys)
    return not_found(
        f"no layer sets {wanted} of component {component}, so the chart's own default holds; "
        f"layers that say something about {component}: {', '.join(layers) or 'none'}",
        where=origins.where(stack.layers[0]) if stack.layers else "",
        hint=hint,
        context={"component": component, "path": wanted, "layers": layers},
    )


def _siblings(stack: Stack, keys: Keys) -> str:
    above: Keys = keys
    node: Any = _ABSENT
    while above and not isinstance(node, dict):
        above = above[:-1]
        node = _at(stack.merged, above)
    names = sorted(node) if isinstance(node, dict) else []
    if not names:
        return "the component has no values of ours"
    more = ", …" if len(names) > _SHOWN_KEYS else ""
    return f"keys {'under ' + joined(above) if above else 'there'}: " + (
        ", ".join(names[:_SHOWN_KEYS]) + more
    )
