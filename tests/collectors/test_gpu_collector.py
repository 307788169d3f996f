"""The GPU measurement: hardware without a driver, nvidia-smi when there is one, and honest failures."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.collectors.machines import FakeCommands, gpus, linux, machine, pci, smi, write

from aicr.catalog.criteria_values import accelerator_of
from aicr.collectors import gpu, gpu_models, nvidia_smi
from aicr.collectors.ports import Ended
from aicr.collectors.readings import Collected
from aicr.errors import INTERNAL, NOT_FOUND, SERVICE_UNAVAILABLE, TIMEOUT, AicrError


def collected(
    root: Path, commands: FakeCommands | None = None, labels: dict[str, str] | None = None
) -> Collected:
    """The measurement of the machine in *root*."""
    return asyncio.run(gpu.collect(machine(root, commands), labels=labels, timeout=1))


def data(found: Collected, name: str) -> dict[str, Any] | None:
    """Readings of a subtype, None if there is none."""
    return next((one["data"] for one in found.subtypes if one["subtype"] == name), None)


def test_gpus_are_found_on_the_bus_without_a_driver(tmp_path: Path) -> None:
    """Display controllers of NVIDIA's count; audio, switches and others do not."""
    gpus(tmp_path, 8)
    found = collected(tmp_path)
    assert data(found, "hardware") == {
        "detection-source": "pci",
        "driver-loaded": False,
        "gpu-count": 8,
        "gpu-present": True,
        "model": "NVIDIA H100 80GB HBM3",
    }
    assert found.missing == []
    assert found.remarks == ["the NVIDIA kernel module is not loaded"]


def test_a_machine_without_a_gpu_says_so(tmp_path: Path) -> None:
    """Absence is a reading and a remark, not a gap."""
    linux(tmp_path)
    found = collected(tmp_path)
    assert data(found, "hardware") == {
        "detection-source": "pci",
        "driver-loaded": False,
        "gpu-count": 0,
        "gpu-present": False,
    }
    assert (found.missing, found.remarks) == ([], [gpu.NO_GPU])


def test_two_kinds_of_gpu_have_no_one_model(tmp_path: Path) -> None:
    """A model that only some of the GPUs have would be taken for all of them."""
    gpus(tmp_path, 1)
    pci(tmp_path, "0000:81:00.0", "0x10de", "0x26b9", "0x030200")
    found = data(collected(tmp_path), "hardware")
    assert found is not None
    assert found["gpu-count"] == 2
    assert "model" not in found


def test_an_unknown_device_is_counted_without_a_model(tmp_path: Path) -> None:
    """A GPU newer than our list is still a GPU."""
    gpus(tmp_path, 4, "0xffee")
    found = data(collected(tmp_path), "hardware")
    assert found is not None
    assert (found["gpu-count"], found.get("model")) == (4, None)


@pytest.mark.parametrize("place", ["/sys/module/nvidia/version", "/proc/driver/nvidia/version"])
def test_a_loaded_driver_is_seen(tmp_path: Path, place: str) -> None:
    """The kernel module shows in /sys or in /proc."""
    gpus(tmp_path, 1)
    write(tmp_path, place, "580.95.05")
    found = data(collected(tmp_path), "hardware")
    assert found is not None
    assert found["driver-loaded"] is True


def test_labels_of_node_feature_discovery_stand_in_for_the_bus(tmp_path: Path) -> None:
    """Where /sys is not there, what discovery wrote on the node counts."""
    labels = {
        "feature.node.kubernetes.io/pci-0302_10de.present": "true",
        "nvidia.com/gpu.count": "8",
    }
    assert data(collected(tmp_path, labels=labels), "hardware") == {
        "detection-source": "nfd",
        "driver-loaded": False,
        "gpu-count": 8,
        "gpu-present": True,
    }
    none = {"feature.node.kubernetes.io/cpu-cpuid.AVX": "true"}
    assert data(collected(tmp_path, labels=none), "hardware") == {
        "detection-source": "nfd",
        "driver-loaded": False,
        "gpu-count": 0,
        "gpu-present": False,
    }


@pytest.mark.parametrize("labels", [None, {}, {"kubernetes.io/os": "linux"}])
def test_neither_bus_nor_discovery_is_not_told(
    tmp_path: Path, labels: dict[str, str] | None
) -> None:
    """No source is no "no GPU" (decision 9)."""
    found = collected(tmp_path, labels=labels)
    assert found.subtypes == []
    assert [(each.name, each.error.code) for each in found.missing] == [("GPU.hardware", NOT_FOUND)]
    assert found.remarks == []


def test_nvidia_smi_adds_driver_and_devices(tmp_path: Path) -> None:
    """Driver, CUDA, model and an item for each GPU, without what reads N/A."""
    gpus(tmp_path, 2)
    commands = smi("h100.xml")
    found = collected(tmp_path, commands)
    assert commands.asked == [("nvidia-smi", "-q", "-x")]
    assert data(found, "smi") == {
        "cuda-version": "13.0",
        "driver-version": "580.95.05",
        "gpu-count": 2,
        "gpu.model": "NVIDIA H100 80GB HBM3",
    }
    subtype = next(one for one in found.subtypes if one["subtype"] == "smi")
    assert subtype["items"][1] == {
        "context": {
            "uuid": "GPU-66666666-7777-8888-9999-000000000000",
            "model": "NVIDIA H100 80GB HBM3",
            "pciAddress": "00000000:11:00.0",
            "memory": "81559 MiB",
        },
        "data": {"index": 1},
    }


def test_gpus_that_nvidia_smi_does_not_see_are_remarked(tmp_path: Path) -> None:
    """The bus has eight, the driver two: that is worth a line."""
    gpus(tmp_path, 8)
    assert "nvidia-smi sees 2 of 8 GPUs" in collected(tmp_path, smi("h100.xml")).remarks


def test_several_models_and_an_unknown_cuda_are_left_out() -> None:
    """What is not one value is no reading."""
    report = nvidia_smi.read(0, smi("mixed.xml").programs["nvidia-smi"].out, "")  # type: ignore[union-attr]
    assert gpu.smi_readings(report) == {"gpu-count": 2, "driver-version": "580.95.05"}


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [
        ("mismatch.txt", 18, "reboot the node"),
        ("no_driver.txt", 9, "kernel module is not loaded"),
        ("lost.txt", 255, "fallen off the bus"),
    ],
)
def test_a_failing_nvidia_smi_is_named_with_its_cause(
    tmp_path: Path, name: str, status: int, words: str
) -> None:
    """The program's own words and what to do; the hardware is still there."""
    gpus(tmp_path, 1)
    found = collected(tmp_path, smi(name, status))
    (missing,) = found.missing
    assert (missing.name, missing.error.code) == ("GPU.smi", SERVICE_UNAVAILABLE)
    assert f"nvidia-smi failed with status {status}" in missing.error.message
    assert words in missing.error.hint
    assert data(found, "hardware") is not None
    assert data(found, "smi") is None


def test_no_devices_found_is_a_count_of_none(tmp_path: Path) -> None:
    """nvidia-smi ends well and says so; with GPUs on the bus that is a remark."""
    gpus(tmp_path, 1)
    found = collected(tmp_path, smi("no_devices.txt"))
    assert data(found, "smi") == {"gpu-count": 0}
    assert "nvidia-smi sees 0 of 1 GPUs" in found.remarks


def test_a_slow_nvidia_smi_is_a_timeout_and_not_absence(tmp_path: Path) -> None:
    """A wedged driver makes the program hang."""
    gpus(tmp_path, 1)
    late = AicrError(TIMEOUT, "nvidia-smi gave no answer in 1 s")
    found = collected(tmp_path, FakeCommands({"nvidia-smi": late}))
    assert [(each.name, each.error.code) for each in found.missing] == [("GPU.smi", TIMEOUT)]


def test_a_failing_nvidia_smi_without_gpu_and_driver_is_no_gap(tmp_path: Path) -> None:
    """A leftover program on a machine without GPUs claims nothing."""
    linux(tmp_path)
    found = collected(tmp_path, smi("no_driver.txt", 9))
    assert found.missing == []
    assert data(found, "smi") is None


@pytest.mark.parametrize(
    "text",
    [
        "<nvidia_smi_log><gpu>",
        '<!DOCTYPE x [<!ENTITY a "b">]><nvidia_smi_log>&a;</nvidia_smi_log>',
    ],
    ids=["cut", "entities"],
)
def test_output_that_is_no_report_is_refused(text: str) -> None:
    """Half a document, or one that could blow up, is INTERNAL."""
    with pytest.raises(AicrError) as caught:
        nvidia_smi.read(0, text, "")
    assert caught.value.code == INTERNAL


def test_silence_is_a_failure() -> None:
    """Status 0 without a report is no machine without GPUs."""
    with pytest.raises(AicrError, match="it said nothing"):
        nvidia_smi.read(0, "", "")


@pytest.mark.parametrize(
    ("device", "accelerator"),
    [
        ("0x20b2", "a100"),
        ("0x2330", "h100"),
        ("0x2335", "h200"),
        ("2342", ""),
        ("0x26b5", "l40"),
        ("0x26b9", "l40s"),
        ("0x2901", "b200"),
        ("0x2941", "gb200"),
        ("0x31C2", "gb300"),
        ("0x2bb5", "rtx-pro-6000"),
        ("0x1eb8", ""),
    ],
)
def test_models_lead_to_the_accelerator_of_the_recipe(device: str, accelerator: str) -> None:
    """The names are those that criteria are read from; GH200 and T4 are none of them."""
    name = gpu_models.model_of(device)
    assert name
    assert accelerator_of(name) == accelerator


def test_a_program_that_is_not_there_is_not_found() -> None:
    """The real runner tells a missing program from a failing one, and ends a slow one."""
    from aicr.collectors.ports import Programs

    async def body() -> None:
        programs = Programs()
        with pytest.raises(AicrError) as caught:
            await programs.run(["no-such-program-here"], timeout=5)
        assert caught.value.code == NOT_FOUND
        assert await programs.run(["sh", "-c", "echo a; echo b >&2; exit 3"], timeout=5) == Ended(
            3, "a\n", "b\n"
        )
        with pytest.raises(AicrError) as caught:
            await programs.run(["sleep", "60"], timeout=0.05)
        assert caught.value.code == TIMEOUT

    asyncio.run(body())


def test_a_slow_program_is_given_up_although_a_child_of_it_holds_its_pipes(tmp_path: Path) -> None:
    """A daemon that the program started keeps them open for as long as it runs."""
    from aicr.collectors.ports import Programs

    pid = tmp_path / "pid"
    script = f"setsid sleep 1000 & echo $! > {pid}; wait"

    async def body() -> None:
        with pytest.raises(AicrError) as caught:
            await asyncio.wait_for(Programs().run(["sh", "-c", script], timeout=2), 120)
        assert caught.value.code == TIMEOUT

    try:
        asyncio.run(body())
        # It lives, so nobody has waited for it.
        os.kill(int(pid.read_text()), 0)
    finally:
        os.kill(int(pid.read_text()), signal.SIGKILL)
