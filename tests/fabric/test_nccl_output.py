"""What is read from the output of all_reduce_perf, in all shapes that were seen."""

from __future__ import annotations

import pytest
from tests.fabric.tables import SIZE, Measured, footer, header, ranks, row, table

from aicr.errors import INTERNAL, AicrError
from aicr.fabric import nccl_output

K1 = """\
#       size      count   type  redop  root    time   algbw   busbw #wrong    time   algbw   busbw #wrong
           8          2  float    sum    -1   31.20    0.00    0.00      0   30.90    0.00    0.00      0
   268435456   67108864  float    sum    -1  1500.0  178.96  313.17      0  1490.0  180.16  315.28      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 157.11
"""


@pytest.mark.covers("K1")
def test_a_row_is_taken_and_not_the_average() -> None:
    """The row of the size that was asked for, out of place; the average has small messages in it."""
    output = nccl_output.parse(K1)
    found = output.row(SIZE)
    assert (found.busbw, found.algbw) == (313.17, 178.96)
    assert found.in_place is not None
    assert found.in_place.busbw == 315.28
    assert output.average_busbw == 157.11
    assert output.last_row() == found
    assert output.complete
    assert output.out_of_bounds == 0


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([*header(), row(Measured())], id="2.13 and later"),
        pytest.param([*header(wrong="error"), row(Measured(wrong="2e-07"))], id="before 2.13"),
        pytest.param(
            [*header(stamp=True), row(Measured(), stamp="2026-09-01 10:11:12")], id="timestamp"
        ),
        pytest.param(
            [*header(extra=["i_min", "i_max", "i_p99", "i_cv%"]), row(Measured(), extra=["1"] * 4)],
            id="per-iteration columns",
        ),
        pytest.param(
            [line.replace("time", "cputime") for line in header()] + [row(Measured())], id="cputime"
        ),
        pytest.param([row(Measured())], id="no header"),
        pytest.param([*header(), row(Measured(wrong="N/A", in_wrong="N/A"))], id="not checked"),
        pytest.param(
            [f"[1,0]<stdout>:{line}" for line in [*header(), row(Measured())]], id="mpirun"
        ),
        pytest.param(
            [f"launcher-0 | {line}" for line in [*header(), row(Measured())]], id="viewer"
        ),
        pytest.param(
            [*header(), "node-1:7:9 [3] NCCL INFO comm 0x1 rank 3", row(Measured())],
            id="lines between",
        ),
        pytest.param([line + "\r" for line in [*header(), row(Measured())]], id="carriage returns"),
    ],
)
def test_every_shape_gives_the_same_numbers(lines: list[str]) -> None:
    """Columns are found by the header, and prefixes and foreign lines do no harm."""
    found = nccl_output.parse("\n".join(lines) + "\n").row(SIZE)
    assert (found.algbw, found.busbw) == (113.07, 197.87)
    assert found.in_place is not None
    assert found.in_place.busbw == 198.10
    assert (found.dtype, found.redop, found.root, found.count) == ("float", "sum", -1, SIZE // 4)


def test_a_row_that_a_log_line_tore_is_put_together() -> None:
    """NCCL writes into the middle of a row; the numbers come on a line of their own."""
    whole = row(Measured())
    at = whole.index("-1") + 2
    torn = [*header(), whole[:at] + "node-1:7:9 [0] NCCL INFO Channel 00/24", whole[at:]]
    assert nccl_output.parse("\n".join(torn) + "\n").row(SIZE).busbw == 197.87
    # With a whole line between, too.
    apart = [*header(), whole[:at], "node-1:7:9 [0] NCCL WARN something", whole[at:]]
    assert nccl_output.parse("\n".join(apart) + "\n").row(SIZE).busbw == 197.87


def test_a_replayed_trace_has_only_the_half_in_place() -> None:
    """The other half is blank, and a missing half is never taken for zero."""
    blank = f"{SIZE:12d}  {SIZE // 4:12d}     float     sum      -1{' ' * 32}"
    line = f"{blank}  2374.1  113.20  198.10       0"
    found = nccl_output.parse("\n".join([*header(), line]) + "\n").row(SIZE)
    assert found.out_of_place is None
    assert found.busbw == 198.10


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        pytest.param([], f"could not find results for size {SIZE} bytes in output", id="nothing"),
        pytest.param(
            [row(Measured(size=SIZE // 2))],
            f"could not find results for size {SIZE} bytes in output",
            id="another size",
        ),
        pytest.param(
            [row(Measured(algbw="abc"))], "failed to parse algbw: ", id="algbw is no number"
        ),
        pytest.param(
            [row(Measured(busbw="abc"))], "failed to parse busbw: ", id="busbw is no number"
        ),
        pytest.param([row(Measured(busbw="inf"))], "failed to parse busbw: ", id="infinite"),
        pytest.param([row(Measured(busbw="nan"))], "failed to parse busbw: ", id="not a number"),
        pytest.param([row(Measured(busbw="-1.0"))], "failed to parse busbw: ", id="negative"),
        pytest.param([row(Measured(wrong="?"))], "failed to parse #wrong: ", id="odd count"),
        pytest.param([row(Measured())[:60]], "failed to parse ", id="cut in the numbers"),
    ],
)
def test_what_cannot_be_read_is_an_error_with_the_last_lines(
    lines: list[str], message: str
) -> None:
    """Never a zero and never a guess; the last lines of the output come with the error."""
    text = "\n".join([*header(), *lines])
    with pytest.raises(AicrError) as caught:
        nccl_output.parse(text + "\n").row(SIZE)
    assert caught.value.code == INTERNAL
    assert caught.value.message.startswith(message)
    assert caught.value.context["tail"].endswith((lines or header())[-1].strip()[-20:])


def test_a_last_line_that_was_cut_is_not_trusted() -> None:
    """Without its line feed the last number may lack digits."""
    text = "\n".join([*header(), row(Measured())])
    cut = text[: text.rindex("198.10") + 4]
    with pytest.raises(AicrError, match="failed to parse"):
        nccl_output.parse(cut).row(SIZE)


def test_the_last_row_must_be_whole() -> None:
    """A broken row of a larger size is no reason to judge by a smaller one."""
    lines = [*header(), row(Measured(size=SIZE // 2)), row(Measured(busbw="abc"))]
    with pytest.raises(AicrError, match="could not find bandwidth value in logs"):
        nccl_output.parse("\n".join(lines) + "\n").last_row()


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        pytest.param(table(), 0, id="none"),
        pytest.param(table(Measured(wrong="3", in_wrong="2")), 5, id="in the rows"),
        pytest.param(table(Measured(wrong="1e+06")), 1_000_000, id="many, in short form"),
        pytest.param(table(bounds=7), 7, id="only in the closing line"),
        pytest.param(table(Measured(wrong="N/A", in_wrong="N/A")), 0, id="not checked"),
    ],
)
def test_wrong_values_are_counted(text: str, wrong: int) -> None:
    """Of both halves, and of the closing line where the rows are silent."""
    assert nccl_output.parse(text).wrong == wrong


@pytest.mark.parametrize("word", ["Group", "Pid"])
def test_ranks_are_counted(word: str) -> None:
    """With and without a group in the line; a rank that is listed twice is one."""
    lines = [*ranks(8, word=word), *ranks(1, word=word)]
    assert nccl_output.parse("\n".join(lines)).ranks == 8


def test_other_units_are_converted_and_unknown_ones_refused() -> None:
    """A table in MB/s is not read as GB/s."""
    lines = [line.replace("(GB/s)", "(MB/s)") for line in header()] + [
        row(Measured(busbw="197870"))
    ]
    assert nccl_output.parse("\n".join(lines) + "\n").row(SIZE).busbw == pytest.approx(197.87)
    strange = [line.replace("(GB/s)", "(Gib/s)") for line in header()]
    with pytest.raises(AicrError, match="a unit that is not known"):
        nccl_output.parse("\n".join(strange))


def test_a_run_that_failed_says_so() -> None:
    """Failure lines are kept, and the output is not complete."""
    text = "\n".join(
        [*ranks(2), *header(), "node-1: Test NCCL failure common.cu:958 'unhandled system error'"]
    )
    output = nccl_output.parse(text)
    assert output.failures == ("node-1: Test NCCL failure common.cu:958 'unhandled system error'",)
    assert not output.complete
    assert nccl_output.parse("\n".join(footer())).complete


@pytest.mark.parametrize(
    ("size", "seconds", "world", "algbw", "busbw"),
    [
        pytest.param(4 << 30, 0.05, 16, 85.899, 161.06, id="16 ranks"),
        pytest.param(4 << 30, 0.05, 1, 85.899, 0.0, id="one rank moves nothing"),
    ],
)
def test_bus_bandwidth_of_a_time(
    size: int, seconds: float, world: int, algbw: float, busbw: float
) -> None:
    """GB/s of 10^9 bytes, and the factor of an all-reduce."""
    assert nccl_output.bus_bandwidth(size, seconds, world) == pytest.approx(
        (algbw, busbw), abs=0.005
    )
