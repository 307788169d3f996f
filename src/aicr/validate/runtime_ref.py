"""A benchmark runtime that a recipe names by reference: read here, because a pod cannot.

``nccl-benchmark-runtime-ref: accelerator/service`` under the constraints of performance names a
file of the catalogue or of ``--data``. A pod has neither, so its text becomes the carrier
constraint ``nccl-benchmark-runtime`` before anything runs, and the reference goes. The recipe
itself is left as it is. Pure but for reading the tree.

Source: validators spec 1.7 step 1, 7.2; V10-63.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from aicr.errors import AicrError, invalid

if TYPE_CHECKING:
    from aicr.catalog.tree import Tree

REF: Final = "nccl-benchmark-runtime-ref"
CARRIER: Final = "nccl-benchmark-runtime"
_PATH: Final = "validators/performance/testdata/{ref}/runtime.yaml"
_SEGMENT: Final = re.compile(r"[a-z0-9][a-z0-9._-]*")


def resolve(recipe: Mapping[str, Any], tree: Tree) -> Mapping[str, Any]:
    """The recipe with the text in place of the reference; the recipe itself if it has none.

    Raises:
        AicrError: INVALID_REQUEST for a reference that is not two plain words, a file that is not
            there or empty, more than one of either, and both at once.
    """
    validation = recipe.get("validation") or {}
    block = validation.get("performance") or {}
    stated = list(block.get("constraints") or ())
    refs = [one for one in stated if one.get("name") == REF]
    carriers = [one for one in stated if one.get("name") == CARRIER]
    for name, found in ((REF, refs), (CARRIER, carriers)):
        if len(found) > 1:
            raise _wrong(f"{name} is stated {len(found)} times", "keep one")
    if refs and carriers:
        raise _wrong(
            f"{REF} and {CARRIER} are both stated", "a benchmark has one runtime: keep one"
        )
    if not refs:
        return recipe
    text = _text(str(refs[0].get("value") or ""), tree)
    carried = [{**one, "name": CARRIER, "value": text} if one is refs[0] else one for one in stated]
    performance = {**block, "constraints": carried}
    return {**recipe, "validation": {**validation, "performance": performance}}


def _text(ref: str, tree: Tree) -> str:
    parts = ref.split("/")
    if len(parts) != 2 or not all(_SEGMENT.fullmatch(part) for part in parts):
        raise _wrong(
            f'{REF} "{ref}" is not of the form accelerator/service', "for example gb200/eks"
        )
    path = _PATH.format(ref=ref)
    try:
        text = tree.read_text(path)
    except AicrError as error:
        raise invalid(
            f'{REF} "{ref}" cannot be read',
            where=path,
            hint="put the file into the directory that --data names",
        ) from error
    if not text.strip():
        raise _wrong(f"{path} is empty", "it must hold a TrainingRuntime")
    return text


def _wrong(message: str, hint: str) -> AicrError:
    return invalid(message, where="validation.performance.constraints", hint=hint)
