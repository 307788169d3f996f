"""The knobs of the NCCL checks, all read before anything is looked at or created.

A value that cannot be read fails; none is replaced by a default behind somebody's back. With a runtime
that the recipe supplies, the fabric variable means nothing and is not even read. This module must not
know templates or clusters. Source: validators spec 7.1, 7.2; requirements V-273, V-274, V-277, V-290.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from aicr.checks.performance.nccl_variants import EFA, NET, ROCE, Variant
from aicr.checks.performance.stated import number
from aicr.errors import AicrError, invalid
from aicr.values import references

FABRIC: Final = "AICR_NCCL_FABRIC"
IMAGE: Final = "AICR_NCCL_RUNTIME_IMAGE"
TRAINER: Final = "AICR_NCCL_TRAINER_MANIFESTS"
#: What of a threshold has to be reached: the tolerance lives here, never in the operator.
SHARE: Final = Fraction(9, 10)


@dataclass(frozen=True, slots=True)
class Threshold:
    """The stated expression, and the bus bandwidth in GB/s that it asks for."""

    expression: str
    gbps: float

    @property
    def least(self) -> float:
        """The lowest bus bandwidth that passes, in GB/s."""
        return float(Fraction(str(self.gbps)) * SHARE)

    def is_met(self, busbw: float, share: Fraction = SHARE) -> bool:
        """Whether *busbw* GB/s suffice; exact on the decimals that were printed."""
        return Fraction(str(busbw)) >= Fraction(str(self.gbps)) * share


def threshold(expression: str, name: str) -> Threshold:
    """Read the threshold of constraint *name*, such as ``>= 450 GB/s``; its operator is not looked at.

    Raises:
        AicrError: INVALID_REQUEST as `number`.
    """
    return Threshold(expression, number(expression, name))


def fabric(variant: Variant, environ: Mapping[str, str]) -> str:
    """The fabric of the network variant, `EFA` unless `FABRIC` says `ROCE`; others have no choice.

    Raises:
        AicrError: INVALID_REQUEST for another word.
    """
    stated = environ.get(FABRIC, "").strip()
    if variant is not NET or not stated:
        return EFA
    if stated.lower() not in (EFA, ROCE):
        raise _wrong(f'{FABRIC} "{stated}" is not a fabric', f"{EFA} or {ROCE}")
    return stated.lower()


def image(environ: Mapping[str, str]) -> str:
    """The image that replaces the template's, or "".

    Raises:
        AicrError: INVALID_REQUEST for what is no image reference, and for a host in upper case: it is
            rather a repository that no registry takes.
    """
    stated = environ.get(IMAGE, "").strip()
    host = references.split(stated).host
    if stated and (host != host.lower() or not references.is_reference(stated)):
        raise _wrong(
            f'{IMAGE} "{stated}" is no image reference', "registry/path:tag, in lower case"
        )
    return stated


def _wrong(message: str, hint: str) -> AicrError:
    return invalid(message, hint=hint)
