"""Which bus bandwidth to ask for, by fabric, GPU and message size, and where each figure comes from.

One number for all fabrics either passes a broken fast one or fails a sound slow one. So thresholds may
be given per fabric and per GPU; the most exact one that fits is used, and a result says which it was. A
fabric without a threshold of its own is judged by the default, with a note: nothing is guessed.

The references are figures on record, not promises. `suggested` is our own rule on top of them, and is
only ever printed; it is never applied by itself, because the seed's defaults are the contract.

Units: GB/s of 10^9 bytes, bus bandwidth as nccl-tests defines it.
It must not know: where settings come from, and what is done with a verdict.
Source: preflight seed (loopback and all-reduce tables, "Act on the failure"), preflight specification
7.5, field case K8.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from aicr.errors import AicrError, invalid

LOOPBACK: Final = "nccl-loopback"
ALLREDUCE: Final = "nccl-allreduce"
#: Defaults of the two checks (preflight seed).
DEFAULTS: Final[Mapping[str, float]] = {LOOPBACK: 150.0, ALLREDUCE: 100.0}
#: What our rule takes from the lowest figure on record, so that a sound node with a bad day passes.
SUGGESTED_SHARE: Final = 0.85

FABRICS: Final[Mapping[str, str]] = {
    "nvlink": "NVLink or NVSwitch inside one node",
    "pcie": "PCI Express inside one node",
    "ib": "InfiniBand",
    "roce": "RDMA over Ethernet",
    "efa": "AWS Elastic Fabric Adapter",
    "tcpxo": "GCP GPUDirect-TCPXO",
    "mnnvl": "NVLink across nodes",
    "socket": "plain TCP",
}
UNKNOWN: Final = "unknown"


@dataclass(frozen=True)
class Reference:
    """A figure on record."""

    check: str
    fabric: str
    #: The GPU it was measured with; "" when the source does not say.
    gpu: str
    gbps: float
    #: Message size of the measurement in bytes; None when the source does not say.
    size: int | None
    source: str
    #: What the figure is: a threshold that somebody advises, or a measurement.
    kind: str = "measured"


_SEED: Final = "preflight page of NVSentinel, 23 September 2026"
_FIELD: Final = "NVSentinel issue 837"
REFERENCES: Final = (
    Reference(LOOPBACK, "nvlink", "", 150, 256 << 20, f"{_SEED}, default", "advised"),
    Reference(LOOPBACK, "pcie", "", 15, None, f"{_SEED}, BW_THRESHOLD_GBPS", "advised"),
    Reference(LOOPBACK, "pcie", "l40s", 20, None, f"{_SEED}, acting on a failure"),
    Reference(ALLREDUCE, "ib", "a100", 165, None, _FIELD),
    Reference(ALLREDUCE, "ib", "", 166, None, "NVSentinel, Azure NDv4 and NDv5 overlay"),
    Reference(ALLREDUCE, "efa", "h100", 335, None, _FIELD),
    Reference(ALLREDUCE, "efa", "h100", 346, None, "NVSentinel, AWS EFA overlay"),
    Reference(ALLREDUCE, "tcpxo", "h100", 331, None, "NVSentinel, GCP A3+ TCPXO overlay"),
    Reference(ALLREDUCE, "mnnvl", "gb200", 617, None, _FIELD),
    Reference(ALLREDUCE, "mnnvl", "gb200", 689, None, "NVSentinel, AWS GB200 overlay"),
)


@dataclass(frozen=True)
class Threshold:
    """What a measurement is held against."""

    gbps: float
    #: The entry that decided, as it was given (`efa`, `efa/h100`), or "default".
    chosen: str
    #: What a person must know about the choice; "" when there is nothing.
    note: str = ""

    def is_met(self, busbw: float) -> bool:
        """Whether a bus bandwidth in GB/s suffices: equal is enough (preflight 11.7, row 108)."""
        return busbw >= self.gbps


def choose(
    default: float,
    by_fabric: Mapping[str, float],
    fabric: str = UNKNOWN,
    gpu: str = "",
    size: int | None = None,
) -> Threshold:
    """The threshold for a run: of fabric, GPU and size, of the fabric, or the default.

    Args:
        default: threshold in GB/s where nothing more exact was given.
        by_fabric: entries `fabric`, `fabric/gpu`, `fabric@size`, `fabric/gpu@size`, sizes in bytes.
        fabric: as `fabric_of` names it.
        gpu: as `gpu_name` gives it.
        size: message size in bytes.
    """
    keys = [fabric]
    if gpu:
        keys.insert(0, f"{fabric}/{gpu}")
    if size is not None:
        keys = [f"{key}@{size}" for key in keys] + keys
    for key in keys:
        if key in by_fabric:
            return Threshold(by_fabric[key], key)
    if not by_fabric:
        return Threshold(default, "default")
    what = "the fabric is not known" if fabric == UNKNOWN else f"there is none for {fabric}"
    return Threshold(default, "default", f"default threshold used: {what}")


def parse_overrides(text: str) -> dict[str, float]:
    """Read `efa=300,mnnvl/gb200=500,ib@4294967296=160`.

    Raises:
        AicrError: INVALID_REQUEST for an entry without `=`, an unknown fabric, a number that is not
            positive and finite, or an entry given twice.
    """
    found: dict[str, float] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        key, equals, number = (part.strip() for part in entry.partition("="))
        if not equals:
            raise _wrong(f"{entry!r} has no value", "write fabric=GB/s, for example efa=300")
        matched = re.fullmatch(r"([a-z]+)(?:/([a-z0-9-]+))?(?:@(\d+))?", key.lower())
        if matched is None or matched[1] not in FABRICS:
            raise _wrong(f"{key!r} is no fabric that is known", f"known: {', '.join(FABRICS)}")
        if key.lower() in found:
            raise _wrong(f"{key} is given twice", "keep one of the two")
        found[key.lower()] = positive(number, key)
    return found


def positive(text: str, name: str) -> float:
    """A positive, finite number.

    Raises:
        AicrError: INVALID_REQUEST naming *name* (preflight specification 7.1: NaN and infinity too).
    """
    try:
        value = float(text)
    except ValueError:
        raise _wrong(f"{name}: {text!r} is no number", "give GB/s, for example 150") from None
    if not (math.isfinite(value) and value > 0):
        raise _wrong(f"{name}: {text} is not a positive, finite number", "give GB/s, such as 150")
    return value


def expected(check: str, fabric: str, gpu: str = "") -> Reference | None:
    """The figure on record that fits best, or None: unknown is said, not invented."""
    fitting = [
        one
        for one in REFERENCES
        if one.check == check and one.fabric == fabric and one.kind == "measured"
    ]
    same = [one for one in fitting if one.gpu == gpu and gpu]
    loose = [one for one in fitting if not one.gpu]
    return min(same or loose, key=lambda one: one.gbps, default=None)


def suggested(check: str, fabric: str, gpu: str = "") -> float | None:
    """A threshold to start from, by our rule: a share of the lowest figure on record."""
    advised = [
        one
        for one in REFERENCES
        if one.check == check and one.fabric == fabric and one.kind == "advised"
    ]
    if advised:
        return advised[0].gbps
    found = expected(check, fabric, gpu)
    return None if found is None else math.floor(found.gbps * SUGGESTED_SHARE)


def percent(busbw: float, reference: Reference | None) -> str:
    """How a measurement compares with what is on record, in words; "" when nothing is on record."""
    if reference is None:
        return ""
    machine = f" with {reference.gpu.upper()}" if reference.gpu else ""
    share = 100 * busbw / reference.gbps
    return f"{share:.0f} % of {reference.gbps:g} GB/s on record for {reference.fabric}{machine}"


def gpu_name(product: str) -> str:
    """`NVIDIA H100 80GB HBM3` → `h100`: the short name that thresholds use, or "" for an unknown one."""
    for word in re.split(r"[\s_-]+", product.lower()):
        if re.fullmatch(r"(?:gb|gh|[abhlv]|rtx)\d{2,4}[a-z]?", word):
            return word
    return ""


#: Sentences by which NCCL says what it uses, most exact first. They come with NCCL_DEBUG=INFO.
_SPOKEN: Final = (
    ("mnnvl", r"\bMNNVL (?:1\b|enabled)|NCCL INFO.*\bMNNVL busId\b"),
    ("efa", r"(?:NET/OFI\s.*|[Uu]sing network.*)\befa\b"),
    ("tcpxo", r"NET/FasTrak|[Uu]sing network FasTrak|GPUDirectTCPXO"),
    ("roce", r"NET/IB : Using.*/RoCE"),
    ("ib", r"NET/IB : Using.*/IB\b|[Uu]sing network IB\b"),
    ("socket", r"[Uu]sing network Socket"),
)


def fabric_of(output: str, environ: Mapping[str, str] | None = None) -> str:
    """The fabric between nodes that NCCL says it uses, else what the environment asks for, else unknown.

    Args:
        output: log of a run with NCCL_DEBUG=INFO; anything else is searched in vain.
        environ: variables of the run.
    """
    for fabric, pattern in _SPOKEN:
        if re.search(pattern, output):
            return fabric
    environ = environ or {}
    if environ.get("NCCL_MNNVL_ENABLE") == "1":
        return "mnnvl"
    if environ.get("FI_PROVIDER", "").lower() == "efa":
        return "efa"
    if any(name.startswith("NCCL_FASTRAK_") for name in environ):
        return "tcpxo"
    return UNKNOWN


def _wrong(message: str, hint: str) -> AicrError:
    return invalid(message, hint=hint)
