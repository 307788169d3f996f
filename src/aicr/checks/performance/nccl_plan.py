"""What a run measures, from the recipe alone: threshold, where its runtime comes from, which template.

```
ValidationInput, environment ──► resolve ──► Plan ──► (nodes, cluster) ──► objects
```

Three sources, decided before the cluster is looked at, so that what is installed can never change what
a number claims to describe:

    recipe-supplied-runtime   the recipe carries a TrainingRuntime of its own
    delivered-artifact        the recipe ships the TCPXO runtime and records the mapping of its networks
    cluster-capability        a template of this product: what the fabric can do, no more

Pure. Source: validators spec 7.2; requirements V-183 to V-192, V-278 to V-297.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aicr.checks.deployment.gke_gpu_nic_networks import TRAINER, Wiring, delivered
from aicr.checks.performance import nccl_carrier, nccl_settings
from aicr.checks.performance.nccl_settings import Threshold
from aicr.checks.performance.nccl_variants import (
    EFA,
    PROFILE,
    Pair,
    Variant,
    pair,
    parse_profile,
    template_path,
    word,
)
from aicr.checks.sdk import PERFORMANCE, Skip
from aicr.checks.sdk.context import component_of, constraint_of
from aicr.errors import AicrError, invalid

DELIVERED: Final = "delivered-artifact"
SUPPLIED: Final = "recipe-supplied-runtime"
CAPABILITY: Final = "cluster-capability"

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is run, as far as the recipe and the settings say.

    Attributes:
        variant: which check.
        threshold: what it has to reach.
        source: one of the three classes of the module.
        accelerator, service: of the recipe's criteria; nodes are told by them.
        pair: whose template and plumbing is used; the criteria themselves for a supplied runtime.
        fabric: `efa` or `roce`.
        image: replaces the image of the benchmark's containers; "" keeps it.
        template: text of the runtime, with placeholders.
        place: where the template comes from, for messages.
        wiring: the recipe's mapping of interfaces, for a delivered artefact.
        own_imex: whether a supplied runtime asks for the ComputeDomain of the run.
    """

    variant: Variant
    threshold: Threshold
    source: str
    accelerator: str
    service: str
    pair: Pair
    fabric: str
    image: str
    template: str
    place: str
    wiring: tuple[Mapping[str, str], ...] = ()
    own_imex: bool = False

    @property
    def supplied(self) -> bool:
        """Whether the recipe owns the runtime and its wiring."""
        return self.source == SUPPLIED

    @property
    def needs_imex(self) -> bool:
        """Whether a ComputeDomain is made for the run."""
        return self.own_imex if self.supplied else self.variant.key == "nvls"


def resolve(
    variant: Variant,
    validation: Document | None,
    environ: Mapping[str, str],
    read_text: Callable[[str], str],
) -> Plan:
    """The plan of *variant* for a recipe.

    Args:
        variant: which check.
        validation: the ValidationInput, or None.
        environ: settings.
        read_text: text of a template of the catalogue, by its path.

    Raises:
        Skip: no constraint of exactly this check's name, or nothing to run for these criteria.
        AicrError: INVALID_REQUEST for a knob that cannot be read or does not go with another.
    """
    expression = constraint_of(validation, variant.check, PERFORMANCE)
    if expression is None:
        raise Skip(f"no {variant.check} constraint in recipe")
    threshold = nccl_settings.threshold(expression, variant.check)
    image = nccl_settings.image(environ)
    stated = constraints(validation)
    criteria = (validation or {}).get("criteria") or {}
    accelerator, service = word(criteria, "accelerator"), word(criteria, "service")
    carried = nccl_carrier.carried(stated)
    profile = _profile(stated)
    wiring = delivered(component_of(validation, TRAINER))
    _exclusive(carried is not None, profile is not None, wiring is not None)
    if carried is not None:
        owns = nccl_carrier.check(carried)
        return Plan(
            *(variant, threshold, SUPPLIED, accelerator, service),
            *(Pair(accelerator, service), EFA, image, carried, nccl_carrier.CARRIER),
            own_imex=owns,
        )
    fabric = nccl_settings.fabric(variant, environ)
    found = pair(variant, criteria, profile, fabric)
    path = template_path(variant, found, fabric)
    # The runtime that is delivered is for GPUDirect-TCPXO: only the default variant measures it.
    ours = wiring if wiring is not None and not variant.key else None
    return Plan(
        *(variant, threshold, CAPABILITY if ours is None else DELIVERED, accelerator, service),
        *(found, fabric, image, read_text(path), path),
        wiring=tuple(ours or ()),
    )


def constraints(validation: Document | None) -> Sequence[Document]:
    """Every constraint that the phase states."""
    config = ((validation or {}).get("config") or {}).get(PERFORMANCE) or {}
    return list(config.get("constraints") or ())


def _profile(stated: Sequence[Document]) -> Pair | None:
    found = [one for one in stated if one.get("name") == PROFILE]
    if len(found) > 1:
        raise _wrong(f"{PROFILE} is stated {len(found)} times", "keep one")
    return parse_profile(str(found[0].get("value") or "")) if found else None


def _exclusive(carrier: bool, profile: bool, wiring: bool) -> None:
    """A benchmark has one owner of its runtime and one of its platform."""
    if carrier and profile:
        raise _wrong(
            f"{nccl_carrier.CARRIER} and {PROFILE} are both stated",
            "a supplied runtime owns its wiring: drop the profile",
        )
    if wiring and (carrier or profile):
        other = nccl_carrier.CARRIER if carrier else PROFILE
        raise _wrong(
            f"the recipe delivers the TCPXO runtime and states {other}",
            f"measure what is delivered: drop {other}",
        )


def wiring_of(plan: Plan) -> Wiring:
    """The mapping of a delivered artefact, as plain maps."""
    return [dict(entry) for entry in plan.wiring]


def _wrong(message: str, hint: str) -> AicrError:
    return invalid(message, where="validation.performance.constraints", hint=hint)
