"""The scripts that Slurm jobs run, by real shells on real files, and how their facts are judged
(validators spec 6.2)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from aicr.checks.conformance.slurm_probe import (
    ChannelFacts,
    GpuFacts,
    apart,
    channel_script,
    gpu_script,
    parse_channels,
    parse_gpu,
    with_gpu,
    without_gpu,
)
from aicr.errors import INTERNAL, AicrError

SHELLS = [
    pytest.param([name, *flags], id=" ".join([name, *flags]))
    for name, *flags in (["sh"], ["dash"], ["bash"], ["bash", "--posix"], ["busybox", "sh"])
    if shutil.which(name)
]
#: Refuses the opening with EPERM to whoever lacks CAP_SYSLOG, as a cgroup does with a device.
REFUSED = "/proc/kmsg"
NVIDIA_SMI = """#!/bin/sh
case "$*" in
"--query-gpu=uuid,mig.mode.current --format=csv,noheader") ;;
*) exit 2 ;;
esac
[ -n "$GPUS" ] || { echo "No devices were found"; exit 6; }
printf '%s\\n' "$GPUS"
"""


def run(shell: Sequence[str], script: str, folder: Path, **environ: str) -> str:
    """What a script prints, without the right to open `REFUSED`."""
    drop = ["setpriv", "--bounding-set", "-syslog"] if os.geteuid() == 0 else []
    done = subprocess.run(
        [*drop, *shell, "-c", script],
        env={"PATH": f"{folder}/bin:/usr/bin:/bin", **environ},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert done.stderr == ""
    return done.stdout


def errno_of(path: Path) -> int:
    """What opening gives in another language, in the same circumstances."""
    drop = ["setpriv", "--bounding-set", "-syslog"] if os.geteuid() == 0 else []
    script = (
        "import os,sys\ntry: os.open(sys.argv[1],0); print(0)\nexcept OSError as e: print(e.errno)"
    )
    argv = [*drop, sys.executable, "-I", "-c", script, str(path)]
    return int(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)


@pytest.fixture
def dev(tmp_path: Path) -> Path:
    """A /dev with a device that opens, one that is refused, one that is gone, and other files."""
    folder = tmp_path / "dev"
    folder.mkdir()
    (folder / "nvidia0").write_text("")
    (folder / "nvidia1").symlink_to(REFUSED)
    (folder / "nvidia10").symlink_to("/nowhere/at/all")
    for other in ("nvidiactl", "nvidia-uvm", "nvidia1x", "null"):
        (folder / other).write_text("")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/nvidia-smi"
    program.write_text(NVIDIA_SMI)
    program.chmod(0o755)
    return folder


@pytest.mark.covers("V-251", "V-252")
@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_reports_the_errno_of_opening_each_device(
    shell: list[str], dev: Path, tmp_path: Path
) -> None:
    """The same that another language sees; only ``nvidiaN`` counts, and nothing is judged."""
    text = run(
        shell,
        gpu_script(str(dev)),
        tmp_path,
        GPUS="GPU-1, Disabled",
        SLURMD_NODENAME="slinky-0",
        CUDA_VISIBLE_DEVICES="0",
    )
    facts = parse_gpu(f"srun: job 7 queued\n{text}")
    assert facts == GpuFacts(
        node="slinky-0",
        visible="0",
        status=0,
        gpus=(("GPU-1", "Disabled"),),
        devices={
            str(path): errno_of(path)
            for path in (dev / "nvidia0", dev / "nvidia1", dev / "nvidia10")
        },
    )
    assert facts.devices[str(dev / "nvidia0")] == 0
    assert facts.devices[str(dev / "nvidia10")] == 2
    if os.geteuid() == 0:
        assert facts.devices[str(dev / "nvidia1")] == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="device nodes are made by root")
@pytest.mark.parametrize("shell", SHELLS)
def test_a_device_node_without_a_driver_is_reported_as_such(
    shell: list[str], dev: Path, tmp_path: Path
) -> None:
    """ENXIO, which must not be read as ENODEV or as a refusal."""
    node = dev / "nvidia2"
    os.mknod(node, 0o020666, os.makedev(195, 2))
    facts = parse_gpu(run(shell, gpu_script(str(dev)), tmp_path))
    assert facts.devices[str(node)] == errno_of(node) != 0


@pytest.mark.parametrize("shell", SHELLS)
def test_a_job_without_gpus_reports_none(shell: list[str], dev: Path, tmp_path: Path) -> None:
    """nvidia-smi's message is no GPU, and its status is kept; no device at all is fine."""
    facts = parse_gpu(run(shell, gpu_script(str(dev)), tmp_path))
    assert (facts.status, facts.gpus) == (6, ())
    shutil.rmtree(tmp_path / "bin")
    empty = tmp_path / "empty"
    empty.mkdir()
    facts = parse_gpu(run(shell, gpu_script(str(empty)), tmp_path))
    assert (facts.status, facts.devices) == (127, {})
    assert facts.node == os.uname().nodename


def test_a_folder_of_devices_that_is_not_there_could_not_be_told(tmp_path: Path) -> None:
    """The script says so."""
    text = run(["sh"], gpu_script(str(tmp_path / "gone")), tmp_path)
    with pytest.raises(AicrError, match="could not look") as caught:
        parse_gpu(text)
    assert caught.value.code == INTERNAL


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_for_channels_says_which_it_can_open_and_when(
    shell: list[str], tmp_path: Path
) -> None:
    """With the time at which it began and ended."""
    folder = tmp_path / "nvidia-caps-imex-channels"
    folder.mkdir()
    (folder / "channel3").write_text("")
    (folder / "channel12").symlink_to("/nowhere/at/all")
    facts = parse_channels(run(shell, channel_script(1, str(tmp_path)), tmp_path))
    assert facts.usable == [str(folder / "channel3")]
    assert len(facts.channels) == 2
    assert facts.start < facts.end
    (tmp_path / "none").mkdir()
    assert not parse_channels(run(shell, channel_script(0, f"{tmp_path}/none"), tmp_path)).channels


LINES = "NODE=n\nCUDA_VISIBLE_DEVICES=\nNVSMI_RC=0\nDEV=/dev/nvidia0 0\nDEVICES_LISTED=1\nDONE=1\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "did not get to its end"),
        (LINES.replace("DONE=1\n", ""), "did not get to its end"),
        (LINES.replace("NODE=n", "NODE="), "on which node"),
        (LINES.replace("NODE=n\n", ""), "reported NODE 0 times"),
        (LINES + "NODE=m\n", "reported NODE 2 times"),
        (LINES.replace("RC=0", "RC=-1"), 'reported NVSMI_RC "-1", no number'),
        (LINES.replace("nvidia0 0", "nvidia0"), 'reported DEV "/dev/nvidia0"'),
        (LINES.replace("LISTED=1", "LISTED=2"), "counted 2 of DEV, not 1"),
        (LINES + "PROBE_ERROR=no /dev\n", "could not look: no /dev"),
    ],
)
def test_output_that_is_not_whole_could_not_be_told(text: str, words: str) -> None:
    """INTERNAL, never a verdict."""
    with pytest.raises(AicrError, match=words) as caught:
        parse_gpu(text)
    assert caught.value.code == INTERNAL


def facts(
    *gpus: tuple[str, str], devices: dict[str, int], node: str = "n", status: int = 0
) -> GpuFacts:
    """What a job reported."""
    return GpuFacts(node, "", status, tuple(gpus), devices)


ONE = ("GPU-1", "Disabled")


@pytest.mark.covers("V-249")
@pytest.mark.parametrize(
    ("found", "problems", "doubts"),
    [
        (facts(ONE, devices={"0": 0, "1": 1}), [], []),
        (facts(("GPU-1", "[N/A]"), devices={"0": 0}), [], []),
        (facts(devices={"0": 0}, status=6), ["lists 0 GPUs (exit status 6)"], []),
        (facts(ONE, ("GPU-2", "Disabled"), devices={"0": 0}), ["lists 2 GPUs"], []),
        (facts(ONE, devices={"0": 0}, status=1), ["ended with 1"], []),
        (facts(("GPU-1", "Enabled"), devices={"0": 0}), ["MIG is on for GPU-1"], []),
        (facts(("GPU-1", "?"), devices={"0": 0}), [], ["MIG mode"]),
        (facts(ONE, devices={"0": 1, "1": 1}), ["0 of 2 devices can be opened"], []),
        (facts(ONE, devices={}), ["0 of 0 devices can be opened"], []),
        (facts(ONE, devices={"0": 0, "1": 0}), ["2 of 2 devices can be opened, not 1: 0, 1"], []),
        (facts(ONE, devices={"0": 0, "1": 13}), [], ["opening 1 failed with errno 13"]),
        (facts(ONE, devices={"0": 0, "1": 255}), [], ["an unknown reason"]),
    ],
)
def test_a_job_with_a_gpu_lists_one_and_opens_one(
    found: GpuFacts, problems: list[str], doubts: list[str]
) -> None:
    """Every other is refused with EPERM; another errno leaves it open."""
    _same(with_gpu(found), problems, doubts)


@pytest.mark.covers("V-250")
@pytest.mark.parametrize(
    ("found", "problems", "doubts"),
    [
        (facts(devices={"0": 1, "1": 1}, status=6), [], []),
        (facts(devices={}), [], []),
        (facts(devices={"0": 1}, node="m"), ["it ran on m, not on n"], []),
        (facts(ONE, devices={"0": 1}), ["lists 1 GPUs, not 0"], []),
        (facts(devices={"0": 1, "1": 0}), ["it can open 1"], []),
        (facts(devices={"0": 6}), [], ["opening 0 failed with errno 6"]),
    ],
)
def test_a_job_without_a_gpu_lists_none_and_opens_none(
    found: GpuFacts, problems: list[str], doubts: list[str]
) -> None:
    """On the same node."""
    _same(without_gpu(found, "n"), problems, doubts)


def channels(found: dict[str, int], start: int = 10, end: int = 20) -> ChannelFacts:
    """What a job reported."""
    return ChannelFacts("n", found, start, end)


@pytest.mark.parametrize(
    ("first", "second", "problems", "doubts"),
    [
        (channels({"channel1": 0}), channels({"channel2": 0}), [], []),
        (
            channels({"channel1": 0, "channel2": 1}),
            channels({"channel1": 1, "channel2": 0}),
            [],
            [],
        ),
        (
            channels({"/a/channel1": 0}),
            channels({"/b/channel1": 0}),
            ["both jobs have IMEX channel 1"],
            [],
        ),
        (channels({}), channels({"channel2": 0}), ["the first job, on n, can open 0"], []),
        (
            channels({"channel1": 0}),
            channels({"channel2": 0, "channel3": 0}),
            ["the second job, on n, can open 2"],
            [],
        ),
        (channels({"channel1": 0}), channels({"channel2": 0}, 21, 30), [], ["not run at the same"]),
        (channels({"channel1": 0, "channel9": 13}), channels({"channel2": 0}), [], ["errno 13"]),
    ],
)
def test_two_jobs_at_the_same_time_have_a_channel_each(
    first: ChannelFacts, second: ChannelFacts, problems: list[str], doubts: list[str]
) -> None:
    """One each and not the same; jobs that did not overlap prove nothing."""
    _same(apart(first, second), problems, doubts)


def _same(found: Any, problems: list[str], doubts: list[str]) -> None:
    for have, want in ((found.problems, problems), (found.doubts, doubts)):
        assert len(have) == len(want), have
        assert all(words in text for words, text in zip(want, have, strict=True)), have
