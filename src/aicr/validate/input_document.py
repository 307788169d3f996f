"""What a check is told about the recipe: the validation input that its pod finds as a file.

The document is the recipe cut down to what checks read, under the names they know, and the policy
by which GPUs are handed out. Pure. Source: validators spec 0.5, 3.3.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from aicr.errors import invalid
from aicr.validate.gpu_policy import UNSPECIFIED
from aicr.yamlio.write import dump

#: The blocks of ``validation`` that are handed on; readiness too, although it is no phase (V-068).
BLOCKS: Final = ("readiness", "deployment", "performance", "conformance")
#: Checks that are held to the recipe's way of handing out GPUs (validators spec 5.5).
HELD_TO_POLICY: Final = ("dra-support", "secure-accelerator-access", "inference-perf")
#: What one ConfigMap can hold, with room for its metadata.
LARGEST: Final = 1_000_000


def validation_input(recipe: Mapping[str, Any], policy: str = UNSPECIFIED) -> dict[str, Any]:
    """The validation input for a recipe document; nothing of the recipe is changed or shared deeper
    than needed."""
    validation = recipe.get("validation") or {}
    return {
        "constraints": list(recipe.get("constraints") or ()),
        "config": {block: validation[block] for block in BLOCKS if validation.get(block)},
        "criteria": dict(recipe.get("criteria") or {}),
        "componentRefs": list(recipe.get("componentRefs") or ()),
        "gpuAllocationPolicy": policy,
    }


def empty_snapshot(api_version: str) -> dict[str, Any]:
    """A snapshot without measurements, for a run that has none."""
    return {"kind": "Snapshot", "apiVersion": api_version, "measurements": []}


def mounted_text(document: Mapping[str, Any], what: str) -> str:
    """*document* as the text of a ConfigMap key: YAML, or compact JSON (which is YAML) when that alone
    fits.

    Raises:
        AicrError: INVALID_REQUEST when it does not fit into a ConfigMap at all.
    """
    text = dump(dict(document))
    if len(text.encode()) <= LARGEST:
        return text
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), default=str)
    size = len(text.encode())
    if size > LARGEST:
        raise invalid(
            f"the {what} has {size:,} bytes, and a pod can be given {LARGEST:,} at most",
            hint="run the checks as processes of this machine, which have no such limit: --runner local",
        )
    return text
