"""What the output of a run proves: the bandwidth, the transport, and whether both suffice.

The table is read by the one parser of `aicr.fabric`; bandwidth is that of the last row, never the
average, which small messages pull down. A named variant has to prove its transport as well: the network
one that NCCL used a network other than plain TCP, the NVLS one that multicast was available and used.
Wrong values, a missing rank and a table without its end fail whatever the bandwidth is. Pure.
Source: validators spec 7.2 "Execution"; V10-58, V10-59; field cases K1, K6; requirements V-277, V-291.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from aicr.checks.performance.nccl_settings import Threshold
from aicr.checks.performance.nccl_variants import NET, NVLS, Variant
from aicr.checks.sdk import failed
from aicr.errors import INTERNAL, AicrError
from aicr.fabric import causes, nccl_output

#: The closing line whose arrival means that the log is whole.
SUMMARY: Final = "Avg bus bandwidth"
_NETWORK: Final = re.compile(r"NCCL INFO Using network (\S+)")
_SOCKET: Final = "socket"
_NVLS_BANNER: Final = re.compile(r"NCCL INFO .*NVLS multicast support is available")
_NVLS_COMM: Final = re.compile(r"NVLS comm 0x[0-9a-fA-F]+")


@dataclass(frozen=True, slots=True)
class Measured:
    """Bus bandwidth in GB/s at *size* bytes."""

    busbw: float
    size: int


def is_whole(text: str) -> bool:
    """Whether the summary has arrived."""
    return SUMMARY in text


def read(text: str, ranks: int = 0) -> Measured:
    """What was measured.

    Args:
        text: all that the launcher wrote.
        ranks: how many ranks there must be, 0 when that is not known.

    Raises:
        AicrError: INTERNAL `could not find bandwidth value in logs` when there is no row; INTERNAL when
            the table is cut off, in both cases "could not tell"; a verdict for wrong values, missing
            ranks and failures that the program reported.
    """
    output = nccl_output.parse(text)
    if output.failures:
        said = f"the benchmark failed: {output.failures[0]}: {causes.explain(text)}"
        if causes.could_not_test(text):
            raise AicrError(INTERNAL, said, context={"tail": output.tail})
        raise failed(said, context={"tail": output.tail})
    row = output.last_row()
    if not output.complete:
        raise AicrError(
            INTERNAL,
            f"the output of the benchmark ends after size {row.size}, before its summary",
            hint="the log was cut off; run the check again",
            context={"tail": output.tail},
        )
    if output.wrong:
        raise failed(
            f"the benchmark computed {output.wrong} wrong values",
            hint="a GPU, link or adapter corrupts data: run dcgmi diag on the nodes",
        )
    if ranks and output.ranks and output.ranks != ranks:
        raise failed(f"the benchmark ran on {output.ranks} GPUs, not on {ranks}")
    return Measured(row.busbw, row.size)


def unproven(variant: Variant, text: str) -> str:
    """What of the variant's transport *text* does not prove, "" when it proves all."""
    if variant is NET:
        networks = _NETWORK.findall(text)
        if not networks:
            return "the log does not say which network NCCL used"
        if any(name.lower() == _SOCKET for name in networks):
            return "NCCL used network Socket, plain TCP, not the fabric"
    if variant is NVLS:
        if not _NVLS_BANNER.search(text):
            return "the log does not say that NVLS multicast is available"
        if not _NVLS_COMM.search(text):
            return "no communicator used NVLS"
    return ""


def transport(variant: Variant, text: str) -> str:
    """The transport that the log proves, for the evidence."""
    if variant is NET:
        return ", ".join(sorted(set(_NETWORK.findall(text))))
    return "NVLS" if variant is NVLS else ""


def lines(check: str, threshold: Threshold, measured: Measured, image: str) -> list[str]:
    """The evidence of a measurement."""
    said = f" (image {image})" if image else ""
    met = threshold.is_met(measured.busbw)
    return [
        f"NCCL All Reduce bandwidth ({check}): {measured.busbw:.2f} GB/s{said}",
        f"Constraint: {threshold.expression} → {'true' if met else 'false'}",
        f"RESULT: {check}: {measured.busbw:.2f} GB/s, threshold {threshold.gbps:g}, "
        f"least {threshold.least:g} GB/s: {'PASS' if met else 'FAIL'}",
    ]


def hold(check: str, threshold: Threshold, measured: Measured) -> None:
    """Hold the threshold against a measurement; INTERNAL, a verdict, when it is missed."""
    if not threshold.is_met(measured.busbw):
        raise failed(
            f"{check}: {measured.busbw:.2f} GB/s do not reach {threshold.least:g} GB/s, nine tenths of "
            f'"{threshold.expression}"',
            hint="docs/performance.md: what to look at when the bandwidth is low",
        )


def termination_message(pod: Mapping[str, Any]) -> str:
    """What the launcher's container left behind; it outlives a rotated log."""
    for status in (pod.get("status") or {}).get("containerStatuses") or []:
        end = (status.get("state") or {}).get("terminated") or {}
        if end.get("message"):
            return str(end["message"])
    return ""
