"""Which threshold holds for a run, and what is on record."""

from __future__ import annotations

import pytest

from aicr.errors import INVALID_REQUEST, AicrError
from aicr.fabric import thresholds

CONFIG = {"efa": 300.0, "mnnvl": 500.0}


@pytest.mark.covers("K8")
@pytest.mark.parametrize(
    ("fabric", "gpu", "measured", "passes", "chosen", "noted"),
    [
        pytest.param("efa", "h100", 335, True, "efa", False, id="efa"),
        pytest.param("mnnvl", "gb200", 617, True, "mnnvl", False, id="mnnvl"),
        pytest.param("ib", "a100", 165, True, "default", True, id="ib has none"),
        pytest.param("unknown", "", 120, True, "default", True, id="unknown"),
        pytest.param(
            "efa", "h100", 150, False, "efa", False, id="degraded efa, which 100 would pass"
        ),
    ],
)
def test_each_fabric_is_held_to_its_own_threshold(
    fabric: str, gpu: str, measured: float, passes: bool, chosen: str, noted: bool
) -> None:
    """A fabric without one is held to the default, and the result says so."""
    found = thresholds.choose(100, CONFIG, fabric, gpu)
    assert found.is_met(measured) is passes
    assert found.chosen == chosen
    assert ("default threshold used" in found.note) is noted


@pytest.mark.parametrize(
    ("fabric", "gpu", "size", "chosen"),
    [
        pytest.param("efa", "h100", 1024, "efa/h100@1024", id="fabric, GPU and size"),
        pytest.param("efa", "a100", 1024, "efa@1024", id="fabric and size"),
        pytest.param("efa", "h100", 2048, "efa/h100", id="fabric and GPU"),
        pytest.param("efa", "", None, "efa", id="fabric"),
        pytest.param("ib", "h100", 1024, "default", id="another fabric"),
    ],
)
def test_the_most_exact_entry_wins(fabric: str, gpu: str, size: int | None, chosen: str) -> None:
    """Size before GPU before fabric."""
    given = thresholds.parse_overrides("efa=300, efa/h100=310,efa@1024=200,EFA/h100@1024=210")
    assert thresholds.choose(100, given, fabric, gpu, size).chosen == chosen


def test_without_entries_the_default_is_no_surprise() -> None:
    """Nobody asked for more, so there is no note."""
    assert thresholds.choose(150, {}) == thresholds.Threshold(150, "default")


def test_equal_is_enough_and_just_below_is_not() -> None:
    """149.99 fails and 150.00 passes."""
    found = thresholds.Threshold(150, "default")
    assert found.is_met(150.00)
    assert not found.is_met(149.99)


@pytest.mark.parametrize(
    "text",
    ["efa", "efa=", "efa=x", "efa=0", "efa=-1", "efa=nan", "efa=inf", "ethernet=1", "efa=1,efa=2"],
)
def test_wrong_entries_are_refused(text: str) -> None:
    """A threshold that is not a positive number, or of no known fabric, stops the run."""
    with pytest.raises(AicrError) as caught:
        thresholds.parse_overrides(text)
    assert caught.value.code == INVALID_REQUEST
    assert caught.value.hint


@pytest.mark.parametrize(
    ("product", "name"),
    [
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA-H200", "h200"),
        ("NVIDIA GB200", "gb200"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("NVIDIA RTX PRO 6000 Blackwell", ""),
        ("", ""),
    ],
)
def test_a_product_has_a_short_name(product: str, name: str) -> None:
    """The word that says which GPU it is; "" rather than a guess."""
    assert thresholds.gpu_name(product) == name


@pytest.mark.parametrize(
    ("text", "environ", "fabric"),
    [
        ("h:1:1 [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa", {}, "efa"),
        ("h:1:1 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]", {}, "ib"),
        ("h:1:1 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]", {}, "roce"),
        ("h:1:1 [0] NCCL INFO Using network Socket", {}, "socket"),
        ("h:1:1 [0] NCCL INFO MNNVL 1 cliqueId 1 cliqueSize 8", {}, "mnnvl"),
        ("h:1:1 [0] NCCL INFO Using network FasTrak", {}, "tcpxo"),
        ("", {"FI_PROVIDER": "efa"}, "efa"),
        ("", {"NCCL_MNNVL_ENABLE": "1", "FI_PROVIDER": "efa"}, "mnnvl"),
        ("", {"NCCL_FASTRAK_IFNAME": "eth1"}, "tcpxo"),
        ("NCCL INFO MNNVL 0", {}, "unknown"),
        ("nothing", {}, "unknown"),
    ],
)
def test_the_fabric_is_what_nccl_says(text: str, environ: dict[str, str], fabric: str) -> None:
    """The log before the environment; what is not said is unknown."""
    assert thresholds.fabric_of(text, environ) == fabric


def test_figures_have_sources_and_unknown_ones_are_not_invented() -> None:
    """A GPU or fabric without a figure has none."""
    for one in thresholds.REFERENCES:
        assert one.source
        assert one.fabric in thresholds.FABRICS
        assert one.gbps > 0
    assert thresholds.expected("nccl-allreduce", "efa", "b200") is None
    assert thresholds.suggested("nccl-allreduce", "socket") is None
    efa = thresholds.expected("nccl-allreduce", "efa", "h100")
    assert efa is not None
    assert efa.gbps == 335
    assert thresholds.suggested("nccl-allreduce", "efa", "h100") == 284
    assert thresholds.suggested("nccl-loopback", "pcie") == 15


def test_a_share_of_what_is_on_record_is_said_in_words() -> None:
    """Percent of the figure, or nothing."""
    efa = thresholds.expected("nccl-allreduce", "efa", "h100")
    assert thresholds.percent(167.5, efa) == "50 % of 335 GB/s on record for efa with H100"
    assert thresholds.percent(1, None) == ""
