"""Laws of reading benchmark output: what is printed is read back, and nothing breaks the reader."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.fabric.tables import Measured, header, ranks, row

from aicr.errors import AicrError
from aicr.fabric import nccl_output

BANDWIDTHS = st.integers(0, 999_99).map(lambda value: f"{value / 100:.2f}")
ROWS = st.builds(
    Measured,
    size=st.sampled_from([8, 1024, 1 << 20, 1 << 28, 1 << 34]),
    time=st.integers(1, 99_999).map(lambda value: f"{value / 10:.1f}"),
    algbw=BANDWIDTHS,
    busbw=BANDWIDTHS,
    wrong=st.sampled_from(["0", "3", "1e+06", "N/A"]),
    in_algbw=BANDWIDTHS,
    in_busbw=BANDWIDTHS,
)
NOISE = st.sampled_from(
    [
        "node-1:7:9 [3] NCCL INFO Connected all rings",
        "node-1:7:9 [0] NCCL WARN NET/IB : Got async event",
        "WARNING: no libibverbs",
        "",
        "#",
        "268435456 is a number",
    ]
)


@given(st.lists(ROWS, min_size=1, max_size=6), st.integers(1, 16), st.lists(NOISE, max_size=6))
def test_what_is_printed_is_read_back(rows: list[Measured], gpus: int, noise: list[str]) -> None:
    """Every row comes back with its numbers, in order, whatever lines lie between."""
    body = [row(one) for one in rows]
    for number, line in enumerate(noise):
        body.insert((number * 2) % (len(body) + 1), line)
    output = nccl_output.parse("\n".join([*ranks(gpus), *header(), *body]) + "\n")
    assert [(one.size, f"{one.algbw:.2f}", f"{one.busbw:.2f}") for one in output.rows] == [
        (one.size, one.algbw, one.busbw) for one in rows
    ]
    assert output.broken == ()
    assert output.ranks == gpus


@given(ROWS, st.data())
def test_a_cut_output_never_gives_other_numbers(one: Measured, data: st.DataObject) -> None:
    """Cut anywhere, a row is whole, broken or absent; it is never a different row."""
    text = "\n".join([*header(), row(one)]) + "\n"
    cut = data.draw(st.integers(0, len(text)))
    for found in nccl_output.parse(text[:cut]).rows:
        assert (found.size, f"{found.busbw:.2f}") == (one.size, one.busbw)


@given(st.text(max_size=400))
def test_no_text_breaks_the_reader(text: str) -> None:
    """Any text is read; the only complaint is an AicrError."""
    try:
        output = nccl_output.parse(text)
    except AicrError:
        return
    assert output.wrong >= 0


@given(st.integers(1, 1 << 40), st.floats(1e-6, 1e3), st.integers(1, 10_000))
def test_bus_bandwidth_is_below_twice_the_algorithm_bandwidth(
    size: int, seconds: float, world: int
) -> None:
    """And nothing is moved by one rank."""
    algbw, busbw = nccl_output.bus_bandwidth(size, seconds, world)
    assert 0 <= busbw < 2 * algbw
    assert (busbw == 0) == (world == 1)
