"""gpu-operator-version: which GPU operator runs, held against the recipe's constraint if there is one.

Source: validators spec 6.1; decision 10 (a pre-release in an image tag stays one).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from aicr.checks.sdk import DEPLOYMENT, Check, Context, failed
from aicr.checks.sdk.cluster_reads import find
from aicr.constraints import expression
from aicr.errors import NOT_FOUND, AicrError
from aicr.kube import kinds
from aicr.values import references, versions

CONSTRAINT: Final = "Deployment.gpu-operator.version"
NAMES: Final = ("gpu-operator", "nvidia-gpu-operator")
NAMESPACES: Final = ("gpu-operator", "nvidia-gpu-operator", "kube-system")
_LABEL: Final = "app.kubernetes.io/version"
_ANNOTATION: Final = "nvidia.com/gpu-operator-version"
_PRE_RELEASE: Final = re.compile(r"(?:alpha|beta|rc)(?:[.\d-]|$)")


async def run(context: Context) -> None:
    """Find the operator's Deployment, read its version, evaluate the constraint."""
    stated = context.constraint(CONSTRAINT, DEPLOYMENT)
    wanted = expression.parse(stated) if stated is not None else None
    deployment = await _deployment(context)
    version = version_of(deployment)
    metadata = deployment["metadata"]
    place = f"Deployment {metadata['namespace']}/{metadata['name']}"
    if not version:
        raise failed(
            f"cannot determine the GPU operator's version from {place}",
            hint=f"it has no label {_LABEL}, no tagged gpu-operator image and no annotation {_ANNOTATION}",
        )
    context.out(f"Detected GPU Operator version: {version}")
    if wanted is None:
        return
    outcome = expression.evaluate(wanted, version)
    context.out(f"Constraint: {wanted.text} → {'true' if outcome.passed else 'false'}")
    if not outcome.passed:
        raise failed(
            f"GPU operator version does not meet {CONSTRAINT}: {outcome.explanation}",
            where=place,
            hint="upgrade the GPU operator, or change the constraint in the recipe",
        )


async def _deployment(context: Context) -> dict[str, Any]:
    places = list(dict.fromkeys((context.namespace_of("gpu-operator", NAMESPACES[0]), *NAMESPACES)))
    for namespace in places:
        for name in NAMES:
            found = await find(context, kinds.DEPLOYMENT, name, namespace)
            if found is not None:
                return found
    raise failed(
        f"no Deployment {' or '.join(NAMES)} in namespaces {', '.join(places)}",
        code=NOT_FOUND,
        hint="kubectl get deployments -A shows where the GPU operator is, if it is",
    )


def version_of(deployment: Mapping[str, Any]) -> str:
    """The version that a Deployment states, with a leading ``v``; "" if it states none.

    The first that is a version, in this order: label, tag of a gpu-operator image, annotation.
    """
    metadata = deployment.get("metadata") or {}
    pod = ((deployment.get("spec") or {}).get("template") or {}).get("spec") or {}
    images = [str(container.get("image") or "") for container in pod.get("containers") or []]
    candidates = [
        (metadata.get("labels") or {}).get(_LABEL),
        *(tag_of(image) for image in images if "gpu-operator" in image),
        (metadata.get("annotations") or {}).get(_ANNOTATION),
    ]
    for candidate in candidates:
        text = str(candidate or "").strip().removeprefix("v")
        if text and _is_version(text):
            return f"v{text}"
    return ""


def tag_of(image: str) -> str:
    """The version in an image reference: its tag, without a suffix that names a base image.

    A digest is no tag, and neither is the port of a registry. ``-rc.1`` and the like stay.
    """
    tag = references.last_segment(image)[1] or ""
    version, _, suffix = tag.partition("-")
    return tag if _PRE_RELEASE.match(suffix) else version


def _is_version(text: str) -> bool:
    try:
        versions.parse(text)
    except AicrError:
        return False
    return True


CHECK = Check(
    name="gpu-operator-version",
    phase=DEPLOYMENT,
    summary="version of the GPU operator, held against the recipe's constraint",
    run=run,
    timeout="2m",
    details=f"""\
Finds the first Deployment named `gpu-operator` or `nvidia-gpu-operator` in the namespace that the recipe
states for the component, then in `gpu-operator`, `nvidia-gpu-operator` and `kube-system`, and reads its
version from label `{_LABEL}`, else the tag of a `gpu-operator` image, else annotation
`{_ANNOTATION}`.

- Passes when a version is found and the recipe states no constraint, or it meets deployment constraint
  `{CONSTRAINT}`.
- Fails when there is no such Deployment, no version can be read, or the constraint does not hold.
- Never skips.
""",
    reads=(
        "deployments in the component's namespace, gpu-operator, nvidia-gpu-operator, kube-system",
    ),
)
