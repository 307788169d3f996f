"""Machines for tests: a folder that looks like one, and programs that say what they are told to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from aicr.collectors.ports import Ended, Files, Machine
from aicr.errors import NOT_FOUND, AicrError

SMI = Path(__file__).with_name("nvidia_smi")

UBUNTU = """\
PRETTY_NAME="Ubuntu 24.04.1 LTS"
NAME="Ubuntu"
VERSION_ID="24.04"
ID=ubuntu
ID_LIKE=debian
# a comment
HOME_URL=

VARIANT='Server'
"""


class FakeCommands:
    """Programs by name; one that is not here is not installed."""

    def __init__(self, programs: Mapping[str, Ended | AicrError] | None = None) -> None:
        self.programs = dict(programs or {})
        self.asked: list[tuple[str, ...]] = []

    async def run(self, argv: Sequence[str], *, timeout: float) -> Ended:
        """Answer as told."""
        assert timeout > 0
        self.asked.append(tuple(argv))
        answer = self.programs.get(argv[0])
        if answer is None:
            raise AicrError(NOT_FOUND, f"there is no program {argv[0]}")
        if isinstance(answer, AicrError):
            raise answer
        return answer


def write(root: Path, path: str, text: str = "") -> None:
    """A file of the machine."""
    place = root / path.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")


def pci(
    root: Path,
    address: str,
    vendor: str,
    device: str,
    kind: str,
    *,
    driver: str = "",
    **files: str,
) -> Path:
    """A PCI function; *files* are more of its attributes."""
    folder = f"/sys/bus/pci/devices/{address}"
    entries = {"vendor": vendor, "device": device, "class": kind}
    for name, text in {**entries, **files}.items():
        write(root, f"{folder}/{name}", f"{text}\n")
    place = root / folder.lstrip("/")
    if driver:
        (place / "driver").symlink_to(f"../../../bus/pci/drivers/{driver}")
    return place


def gpus(root: Path, count: int, device: str = "0x2330") -> None:
    """*count* GPUs, each with what sits beside one: an audio function and an NVSwitch."""
    for number in range(count):
        pci(root, f"0000:{number + 16:02x}:00.0", "0x10de", device, "0x030200", driver="nvidia")
    pci(root, "0000:00:1f.0", "0x8086", "0x7a06", "0x060100")
    pci(root, "0000:01:00.1", "0x10de", "0x22bc", "0x040300")
    pci(root, "0000:02:00.0", "0x10de", "0x22a3", "0x068000")


def linux(root: Path, *, release: str = UBUNTU) -> None:
    """A machine without anything special."""
    write(root, "/etc/os-release", release)
    write(root, "/proc/cmdline", "BOOT_IMAGE=/vmlinuz root=UUID=1-2 ro quiet iommu=pt iommu=soft\n")
    write(root, "/proc/modules", "nvme 61440 1 - Live 0x0\nnvme_core 2 3 nvme, Live 0x0\n")
    write(root, "/proc/sys/kernel/osrelease", "6.8.0-1028-aws\n")
    write(root, "/proc/sys/vm/nr_hugepages", "0\n")
    pci(root, "0000:00:00.0", "0x8086", "0x1237", "0x060000")


def machine(root: Path, commands: FakeCommands | None = None) -> Machine:
    """The machine in a folder."""
    return Machine(Files(root), commands or FakeCommands())


def smi(name: str, status: int = 0) -> FakeCommands:
    """A machine's nvidia-smi that prints the file *name* of this folder's nvidia_smi/."""
    text = (SMI / name).read_text(encoding="utf-8")
    return FakeCommands({"nvidia-smi": Ended(status, text, "")})
