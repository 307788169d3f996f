"""Where a node problem detector of ours has a place (bundler spec 6.4.6)."""

from __future__ import annotations

from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from aicr.bundle.validations.effective import Context, Verdict

#: Services on which it was seen to work.
_VERIFIED: Final = ("eks", "kind", "rke2")

_REASONS: Final[dict[str, str]] = {
    "gke": "GKE runs a node problem detector of its own",
    "aks": "AKS runs a node problem detector of its own",
    "ocp": "OpenShift binds no privileged security context constraint to it",
    "oke": "it has not been verified on OKE",
}


def provider_detector(context: Context) -> Verdict:
    """``node-problem-detector`` is bundled only where it is known to work and not there already.

    That is on EKS, kind and RKE2, with any node system but Talos, whose namespaces are restricted.

    Remedy: drop the mixin, or pass ``--set node-problem-detector:enabled=false``.
    """
    hint = f"take {context.name} out of the recipe, or pass --set {context.name}:enabled=false"
    if not context.recipe.get("criteria"):
        return [], [
            invalid(
                f"{context.name}: the recipe has no criteria, so nobody can say whether the "
                f"provider runs a node problem detector already",
                hint="generate the recipe with --service",
            )
        ]
    service = context.criteria.get("service") or "any"
    if service not in _VERIFIED:
        reason = _REASONS.get(service) or (
            "the recipe states no service"
            if service == "any"
            else f'it has not been verified on service "{service}"'
        )
        return [], [
            invalid(
                f"{context.name} cannot be bundled: {reason} (verified: {', '.join(_VERIFIED)})",
                hint=hint,
            )
        ]
    if context.criteria.get("os") == "talos":
        return [], [
            invalid(
                f"{context.name} cannot be bundled: on Talos its namespace is restricted, and it "
                f"needs a privileged one",
                hint=hint,
            )
        ]
    return [], []
