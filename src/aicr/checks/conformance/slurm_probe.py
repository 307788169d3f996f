"""What a Slurm job can see and open: POSIX shell scripts that report facts, and how these are judged.

A script prints ``KEY=value`` lines and judges nothing. Whether a device may be used is told by opening
it for reading: cgroups leave device nodes visible and refuse the opening with EPERM, so a list of
``/dev`` proves nothing. The shell knows the reason of a refusal only in words; with ``LC_ALL=C`` these
are known, and what is not is reported as 255. Judging is pure. It must not know how jobs are started.
Source: validators spec 6.2 (slinky-slurm-gpu-access, slinky-slurm-imex-channel); requirements V-249 to
V-252.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from aicr.errors import INTERNAL, AicrError

OPENED: Final = 0
EPERM: Final = 1
UNKNOWN: Final = 255

_START: Final = r"""LC_ALL=C
export LC_ALL
errno_of() {
  if message=$( { : <"$1"; } 2>&1 ); then
    echo 0
    return
  fi
  case $message in
  *"Operation not permitted"*) echo 1 ;;
  *"No such file"*) echo 2 ;;
  *"Input/output error"*) echo 5 ;;
  *"No such device or address"*) echo 6 ;;
  *"Permission denied"*) echo 13 ;;
  *"Device or resource busy"*) echo 16 ;;
  *"No such device"*) echo 19 ;;
  *) echo 255 ;;
  esac
}
report() {
  count=0
  for path in "$2"[0-9]*; do
    case ${path#"$2"} in
    *[!0-9]*) continue ;;
    esac
    count=$((count + 1))
    echo "$1=$path $(errno_of "$path")"
  done
  echo "$3=$count"
}
echo "NODE=${SLURMD_NODENAME:-$(uname -n)}"
"""
_GPU: Final = r"""if [ ! -d '@DEV@' ]; then
  echo "PROBE_ERROR=@DEV@ is not there"
  exit 0
fi
echo "CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES-}"
lines=$(nvidia-smi --query-gpu=uuid,mig.mode.current --format=csv,noheader 2>/dev/null)
echo "NVSMI_RC=$?"
printf '%s\n' "$lines" | while IFS= read -r line; do
  if [ -n "$line" ]; then
    echo "NVSMI_LINE=$line"
  fi
done
report DEV '@DEV@/nvidia' DEVICES_LISTED
echo "DONE=1"
"""
_CHANNEL: Final = r"""echo "START=$(date +%s)"
report CHANNEL '@DEV@/nvidia-caps-imex-channels/channel' CHANNELS_LISTED
sleep @HOLD@
echo "END=$(date +%s)"
echo "DONE=1"
"""
_OFF: Final = frozenset({"Disabled", "[N/A]", "N/A", "[Not Supported]"})
_ENTRY: Final = re.compile(r"(?P<path>/\S*) (?P<errno>[0-9]+)")


def gpu_script(dev: str = "/dev") -> str:
    """The script that reports GPUs and their device nodes under *dev*."""
    return _START + _GPU.replace("@DEV@", dev)


def channel_script(hold: int, dev: str = "/dev") -> str:
    """The script that reports IMEX channels under *dev* and then stays for *hold* seconds."""
    return _START + _CHANNEL.replace("@DEV@", dev).replace("@HOLD@", str(hold))


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """What a job reported.

    Attributes:
        node: the Slurm node.
        visible: ``CUDA_VISIBLE_DEVICES``.
        status: exit status of nvidia-smi.
        gpus: UUID and MIG mode of each GPU that it listed.
        devices: device node → errno of opening it.
    """

    node: str
    visible: str
    status: int
    gpus: tuple[tuple[str, str], ...]
    devices: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ChannelFacts:
    """What a job reported: its Slurm node, channels by errno, and when it was there (s since 1970)."""

    node: str
    channels: Mapping[str, int]
    start: int
    end: int

    @property
    def usable(self) -> list[str]:
        """The channels that it could open."""
        return [path for path, errno in self.channels.items() if errno == OPENED]


@dataclass(slots=True)
class Judgement:
    """What is wrong, and what leaves the question open."""

    problems: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)


def parse_gpu(text: str) -> GpuFacts:
    """The facts in the output of `gpu_script`.

    Raises:
        AicrError: INTERNAL when the script did not get to its end, or a line is not as it writes it.
    """
    lines = _Lines(text)
    gpus = []
    for line in lines.every("NVSMI_LINE"):
        uuid, comma, mode = line.partition(",")
        # What is no UUID is a message of nvidia-smi, such as that it found none.
        if comma and uuid.startswith("GPU-"):
            gpus.append((uuid.strip(), mode.strip()))
    return GpuFacts(
        node=_node(lines),
        visible=lines.one("CUDA_VISIBLE_DEVICES"),
        status=lines.number("NVSMI_RC"),
        gpus=tuple(gpus),
        devices=lines.opened("DEV", "DEVICES_LISTED"),
    )


def parse_channels(text: str) -> ChannelFacts:
    """The facts in the output of `channel_script`; errors as `parse_gpu`."""
    lines = _Lines(text)
    return ChannelFacts(
        node=_node(lines),
        channels=lines.opened("CHANNEL", "CHANNELS_LISTED"),
        start=lines.number("START"),
        end=lines.number("END"),
    )


def with_gpu(facts: GpuFacts) -> Judgement:
    """Judge a job that asked for one GPU: it lists one, can open one, and is refused every other."""
    found = Judgement()
    if len(facts.gpus) != 1:
        found.problems.append(
            f"nvidia-smi lists {len(facts.gpus)} GPUs (exit status {facts.status}), not 1"
        )
    elif facts.status != 0:
        found.problems.append(f"nvidia-smi ended with {facts.status}")
    for uuid, mode in facts.gpus:
        if mode == "Enabled":
            found.problems.append(f"MIG is on for {uuid}")
        elif mode not in _OFF:
            found.doubts.append(f'MIG mode of {uuid} is "{mode}"')
    opened = _opened(facts.devices)
    if len(opened) != 1:
        found.problems.append(
            f"{len(opened)} of {len(facts.devices)} devices can be opened, not 1"
            + (f": {', '.join(opened)}" if opened else "")
        )
    _other_errors(facts.devices, found)
    return found


def without_gpu(facts: GpuFacts, node: str) -> Judgement:
    """Judge a job that asked for none, on *node*: it lists none and can open none."""
    found = Judgement()
    if facts.node != node:
        found.problems.append(f"it ran on {facts.node}, not on {node}")
    if facts.gpus:
        found.problems.append(f"nvidia-smi lists {len(facts.gpus)} GPUs, not 0")
    opened = _opened(facts.devices)
    if opened:
        found.problems.append(f"it can open {', '.join(opened)}")
    _other_errors(facts.devices, found)
    return found


def apart(first: ChannelFacts, second: ChannelFacts) -> Judgement:
    """Judge two jobs that ran at the same time: one channel each, and not the same."""
    found = Judgement()
    for word, facts in (("first", first), ("second", second)):
        if len(facts.usable) != 1:
            found.problems.append(
                f"the {word} job, on {facts.node}, can open {len(facts.usable)} IMEX channels, not 1"
            )
        _other_errors(facts.channels, found)
    if max(first.start, second.start) > min(first.end, second.end):
        found.doubts.append("the two jobs did not run at the same time")
    if len(first.usable) == len(second.usable) == 1 and _number(first) == _number(second):
        found.problems.append(f"both jobs have IMEX channel {_number(first)}")
    return found


def _number(facts: ChannelFacts) -> str:
    return facts.usable[0].rpartition("channel")[2]


def _opened(devices: Mapping[str, int]) -> list[str]:
    return [path for path, errno in devices.items() if errno == OPENED]


def _other_errors(devices: Mapping[str, int], found: Judgement) -> None:
    """An errno that is no refusal says nothing about who may use the device."""
    for path, errno in devices.items():
        if errno not in (OPENED, EPERM):
            reason = "an unknown reason" if errno == UNKNOWN else f"errno {errno}"
            found.doubts.append(f"opening {path} failed with {reason}, not with EPERM (1)")


def _node(lines: _Lines) -> str:
    node = lines.one("NODE")
    if not node:
        raise AicrError(INTERNAL, "the probe could not tell on which node it ran")
    return node


class _Lines:
    """The ``KEY=value`` lines of a probe; other lines are words of srun."""

    def __init__(self, text: str) -> None:
        self._found: dict[str, list[str]] = {}
        for line in text.splitlines():
            key, equals, value = line.rstrip("\r").partition("=")
            if equals and re.fullmatch(r"[A-Z_]+", key):
                self._found.setdefault(key, []).append(value)
        for reason in self._found.get("PROBE_ERROR", []):
            raise AicrError(INTERNAL, f"the probe could not look: {reason}")
        if self._found.get("DONE") != ["1"]:
            raise AicrError(INTERNAL, "the probe did not get to its end")

    def every(self, key: str) -> list[str]:
        return self._found.get(key, [])

    def one(self, key: str) -> str:
        values = self.every(key)
        if len(values) != 1:
            raise AicrError(INTERNAL, f"the probe reported {key} {len(values)} times")
        return values[0]

    def number(self, key: str) -> int:
        value = self.one(key)
        if not re.fullmatch(r"[0-9]+", value):
            raise AicrError(INTERNAL, f'the probe reported {key} "{value}", no number')
        return int(value)

    def opened(self, key: str, counted: str) -> dict[str, int]:
        """Path → errno, as many as the probe counted."""
        found: dict[str, int] = {}
        for value in self.every(key):
            match = _ENTRY.fullmatch(value)
            if match is None:
                raise AicrError(INTERNAL, f'the probe reported {key} "{value}"')
            found[match["path"]] = int(match["errno"])
        if len(found) != self.number(counted):
            raise AicrError(
                INTERNAL, f"the probe counted {self.number(counted)} of {key}, not {len(found)}"
            )
        return found
