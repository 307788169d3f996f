"""Known sentences lead to a cause and a next step; unknown ones stay as they are."""

from __future__ import annotations

import pytest

from aicr.fabric import causes

KNOWN = {
    "fabric manager": (
        "CUDA failure common.cu:892 'system not yet initialized'",
        "fabric-manager",
        True,
    ),
    "shared memory": (
        "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Ab (size 9637888)\n"
        "write: No space left on device",
        "shared-memory",
        True,
    ),
    "memory lock": (
        "NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory",
        "locked-memory",
        True,
    ),
    "no provider": (
        "NCCL WARN NET/OFI Only EFA provider is supported: no provider",
        "ofi-provider",
        True,
    ),
    "versions": (
        "Failed to initialize NVML: Driver/library version mismatch",
        "driver-version",
        True,
    ),
    "old driver": (
        "CUDA driver version is insufficient for CUDA runtime version",
        "driver-version",
        True,
    ),
    "memory error": (
        "CUDA error: uncorrectable ECC error encountered",
        "uncorrectable-memory",
        False,
    ),
    "lost": ("GPU 0000:65:00.0: GPU is lost. Reboot the system", "gpu-lost", False),
    "architecture": (
        "no kernel image is available for execution on the device",
        "kernel-image",
        True,
    ),
    "retries": (
        "NET/IB : Got completion from peer 10.0.0.2 with status=12 opcode=0 len=0 vendor err 129",
        "link-retries",
        False,
    ),
    "system call": (
        "Test NCCL failure common.cu:958 'unhandled system error (run with NCCL_DEBUG=INFO)'",
        "system-error",
        False,
    ),
}


@pytest.mark.covers("K6")
@pytest.mark.parametrize(("text", "name", "surroundings"), KNOWN.values(), ids=list(KNOWN))
def test_a_known_sentence_names_its_cause(text: str, name: str, surroundings: bool) -> None:
    """Cause, next step, and whether the hardware is in question."""
    found = causes.find(f"# nThread 1\n{text}\nnode-1 exited\n")
    assert [cause.name for cause in found] == [name]
    assert found[0].hint in causes.explain(text)
    assert causes.could_not_test(text) is surroundings


@pytest.mark.covers("K6")
def test_an_unknown_text_stays_raw() -> None:
    """The last lines are shown as they are, and nothing is claimed about them."""
    text = "line one\n\nsomething that nobody has seen\n"
    assert causes.find(text) == ()
    assert causes.explain(text) == "line one\nsomething that nobody has seen"
    assert not causes.could_not_test(text)


def test_a_vague_cause_gives_way_to_an_exact_one() -> None:
    """`unhandled system error` follows from the line that names the call."""
    text = "ibv_reg_mr failed with error Cannot allocate memory\nunhandled system error"
    assert [cause.name for cause in causes.find(text)] == ["locked-memory"]
    assert causes.could_not_test(text)


def test_hardware_beside_surroundings_is_not_excused() -> None:
    """One sign of a bad GPU is enough for the test to count."""
    text = "system not yet initialized\nuncorrectable ECC error"
    assert {cause.name for cause in causes.find(text)} == {"fabric-manager", "uncorrectable-memory"}
    assert not causes.could_not_test(text)


def test_a_full_disk_is_not_a_small_shared_memory() -> None:
    """Both sentences are needed."""
    assert causes.find("write /data/log: No space left on device") == ()


def test_every_cause_has_words_for_a_person() -> None:
    """A title and a next step, and patterns that match without regard to case."""
    for cause in causes.CAUSES:
        assert cause.title
        assert len(cause.hint) > 20
        assert not cause.is_in("")
