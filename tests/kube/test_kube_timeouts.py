"""All waiting times are in one object (decision 67)."""

from __future__ import annotations

import pytest

from aicr.errors import AicrError
from aicr.kube.timeouts import Timeouts


def test_the_real_defaults() -> None:
    """A change of any of them is a decision, not an accident."""
    assert Timeouts.from_environment({}) == Timeouts(
        connect=10,
        request=30,
        page=60,
        watch=300,
        idle=150,
        busy=30,
        backoff=0.8,
        backoff_cap=30,
        exec_plugin=120,
        token_reread=60,
        discovery=600,
        discovery_miss=2,
        command=300,
    )


def test_one_factor_scales_all_of_them() -> None:
    """For tests, and for slow lines."""
    short = Timeouts.from_environment({"AICR_TIMEOUT_FACTOR": "0.5"})
    assert (short.request, short.backoff) == (15, 0.4)


@pytest.mark.parametrize("text", ["x", "0", "-1", "nan", "inf"])
def test_a_factor_that_makes_no_sense_is_refused(text: str) -> None:
    """It is not ignored."""
    with pytest.raises(AicrError):
        Timeouts.from_environment({"AICR_TIMEOUT_FACTOR": text})
