"""A runtime that the recipe brings along: what it may be, and what it may ask for.

The orchestrator has put its text into the carrier constraint. It is one TrainingRuntime and nothing
else, so that a recipe cannot have an arbitrary object created; name and namespace are the run's. One
thing of the run's it may use: the claim template of the run's ComputeDomain. Any other claim could
never be met, because nothing can be put into the namespace beforehand. Pure.
Source: validators spec 7.2 "nccl-benchmark-runtime-ref"; requirements V-284 to V-298.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from aicr.checks.performance import nccl_templates
from aicr.errors import AicrError, invalid

REF: Final = "nccl-benchmark-runtime-ref"
CARRIER: Final = "nccl-benchmark-runtime"

Document = Mapping[str, Any]


def carried(stated: Sequence[Document]) -> str | None:
    """The text of the runtime that the recipe supplies, None if it supplies none.

    Raises:
        AicrError: INVALID_REQUEST for more than one of either constraint, and for a reference that
            nobody has resolved.
    """
    refs = [str(one.get("value") or "") for one in stated if one.get("name") == REF]
    texts = [str(one.get("value") or "") for one in stated if one.get("name") == CARRIER]
    for name, found in ((REF, refs), (CARRIER, texts)):
        if len(found) > 1:
            raise _wrong(f"{name} is stated {len(found)} times", "keep one")
    text = texts[0] if texts else ""
    if refs and refs[0].strip() and not text.strip():
        raise _wrong(
            f'{REF} "{refs[0]}" reached the validator unresolved',
            "validator and aicr validate must be of the same version",
        )
    if texts and not text.strip():
        raise _wrong(f"{CARRIER} is empty", "it must hold a TrainingRuntime")
    return text if texts else None


def check(text: str) -> bool:
    """Check a supplied runtime; whether it asks for the run's ComputeDomain.

    Raises:
        AicrError: INVALID_REQUEST saying what of it cannot be used.
    """
    try:
        runtime = nccl_templates.parse(nccl_templates.sample(text), CARRIER)
        nccl_templates.check(runtime)
        pods = nccl_templates.node_template(runtime)
        _selector((pods.get("spec") or {}).get("nodeSelector"))
    except AicrError as error:
        raise invalid(f"{CARRIER} cannot be used", where="validation.performance") from error
    return _imex(pods)


def selector(runtime: Document) -> dict[str, str] | None:
    """The node selector that a supplied runtime sets on its workers, None if it sets none."""
    found = (nccl_templates.node_template(runtime).get("spec") or {}).get("nodeSelector")
    return dict(found) if found else None


def _selector(found: Any) -> None:
    fine = found is None or (
        isinstance(found, Mapping)
        and all(isinstance(key, str) and isinstance(value, str) for key, value in found.items())
    )
    if not fine:
        raise _wrong("the nodeSelector of its workers is not a map of text", "quote its values")


def _imex(pods: Document) -> bool:
    claims = (pods.get("spec") or {}).get("resourceClaims") or []
    for claim in claims:
        template = claim.get("resourceClaimTemplateName")
        if claim.get("resourceClaimName") or template != nccl_templates.IMEX_TEMPLATE:
            what = claim.get("resourceClaimName") or template
            raise _wrong(
                f'the runtime claims "{what}", which cannot be in the namespace of the run',
                f"the one template that is there is {nccl_templates.IMEX_TEMPLATE}",
            )
    return bool(claims)


def _wrong(message: str, hint: str) -> AicrError:
    return invalid(message, where="validation.performance.constraints", hint=hint)
