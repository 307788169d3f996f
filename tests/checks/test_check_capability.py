"""Proceed, skip or fail: the capability contract (validators spec 5.3, field case G2)."""

from __future__ import annotations

import pytest
from tests.checks.contexts import Seen, validation

from aicr.checks.sdk.capability import Capability, classify, declares, require, require_list
from aicr.checks.sdk.outcome import Skip, could_not_tell
from aicr.errors import (
    INTERNAL,
    NOT_FOUND,
    RATE_LIMIT_EXCEEDED,
    SERVICE_UNAVAILABLE,
    TIMEOUT,
    UNAUTHORIZED,
    AicrError,
)

KAI = Capability("kai-scheduler", "CRD podgroups.scheduling.run.ai")
DECLARED = validation("kai-scheduler")
DISABLED = validation(disabled=("kai-scheduler",))
OTHER = validation("gpu-operator")


def error(code: str, **context: object) -> AicrError:
    """An error as cluster access raises it."""
    return AicrError(code, "cannot get it", context=dict(context))


ABSENT = pytest.mark.parametrize(
    "probe",
    [None, error(NOT_FOUND), error(NOT_FOUND, absent="group")],
    ids=["clean and empty", "404 on the object", "group not served"],
)
INFRASTRUCTURE = pytest.mark.parametrize(
    ("probe", "code"),
    [
        (error(UNAUTHORIZED, status=401), UNAUTHORIZED),
        (error(UNAUTHORIZED, status=403), UNAUTHORIZED),
        (error(TIMEOUT), TIMEOUT),
        (TimeoutError(), TIMEOUT),
        (error(SERVICE_UNAVAILABLE), SERVICE_UNAVAILABLE),
        (error(SERVICE_UNAVAILABLE, foreign=True), SERVICE_UNAVAILABLE),
        (ConnectionResetError(), SERVICE_UNAVAILABLE),
        (error(RATE_LIMIT_EXCEEDED), SERVICE_UNAVAILABLE),
        (error(SERVICE_UNAVAILABLE, unreachable=["metrics.k8s.io/v1"]), INTERNAL),
        (error(INTERNAL), INTERNAL),
        (ValueError("x"), INTERNAL),
    ],
    ids=[
        *("401", "403", "server timeout", "deadline", "503", "page of a proxy", "reset", "429"),
        *("aggregated discovery", "other", "no error of ours"),
    ],
)


@pytest.mark.covers("V-142", "V-143")
@pytest.mark.parametrize("given", [DECLARED, OTHER, DISABLED, None])
def test_what_is_present_proceeds_declared_or_not(given: dict[str, object] | None) -> None:
    """A clean look that found it needs no declaration."""
    require(Seen().context(validation=given), KAI, None, True)


@ABSENT
@pytest.mark.covers("V10-52", "V-144", "V-145", "V-155", "G2")
def test_what_the_recipe_declares_and_is_absent_fails(probe: AicrError | None) -> None:
    """NOT_FOUND, naming the component; a verdict, not a failure to look."""
    with pytest.raises(AicrError) as caught:
        require(Seen().context(validation=DECLARED), KAI, probe, False)
    assert not isinstance(caught.value, Skip)
    assert caught.value.code == NOT_FOUND
    assert "kai-scheduler" in caught.value.message
    assert could_not_tell(caught.value) == ""


@ABSENT
@pytest.mark.covers("V10-52", "V10-55", "V-139", "V-140", "V-144", "V-145", "V-153", "V-154", "G2")
@pytest.mark.parametrize(
    "given", [OTHER, DISABLED, None, {}], ids=["other", "disabled", "standalone", "empty"]
)
def test_what_is_absent_and_not_declared_skips(
    given: dict[str, object] | None, probe: AicrError | None
) -> None:
    """Not declared, declared and disabled, or no recipe at all."""
    with pytest.raises(Skip) as caught:
        require(Seen().context(validation=given), KAI, probe, False)
    assert "kai-scheduler" in caught.value.reason
    assert "CRD podgroups.scheduling.run.ai" in caught.value.reason


@INFRASTRUCTURE
@pytest.mark.covers("V10-53", "V-141", "V-146", "V-147", "V-148", "V-149", "V-150", "G2")
@pytest.mark.parametrize("given", [DECLARED, None], ids=["declared", "not declared"])
@pytest.mark.parametrize("present", [True, False], ids=["present", "absent"])
def test_what_could_not_be_told_fails_with_its_code_whoever_declared_what(
    present: bool, given: dict[str, object] | None, probe: BaseException, code: str
) -> None:
    """Never a skip and never a pass; what `present` says is not looked at after an error."""
    with pytest.raises(AicrError) as caught:
        require(Seen().context(validation=given), KAI, probe, present)
    assert not isinstance(caught.value, Skip)
    assert caught.value.code == code
    assert caught.value.message.startswith("kai-scheduler: cannot look for CRD")
    assert could_not_tell(caught.value) != ""


@INFRASTRUCTURE
@pytest.mark.covers("V10-54", "V-151")
def test_a_list_error_blocks_with_its_code(probe: BaseException, code: str) -> None:
    """Any error of a list blocks."""
    with pytest.raises(AicrError) as caught:
        require_list(probe, KAI)
    assert caught.value.code == code


@pytest.mark.covers("V10-54", "V-151", "V-152")
def test_even_not_found_on_a_collection_never_skips() -> None:
    """A 404 on a list is an anomaly of the server; no error is none, whatever the list holds."""
    with pytest.raises(AicrError) as caught:
        require_list(error(NOT_FOUND))
    assert (caught.value.code, isinstance(caught.value, Skip)) == (NOT_FOUND, False)
    require_list(None)


def test_the_code_of_a_wrapped_error_is_the_one_that_says_why() -> None:
    """INTERNAL around UNAUTHORIZED is UNAUTHORIZED, and access wins over a NOT_FOUND beside it."""
    outer = AicrError(INTERNAL, "failed to list")
    outer.__cause__ = error(UNAUTHORIZED)
    assert classify(outer) == UNAUTHORIZED
    absent = error(NOT_FOUND)
    absent.__cause__ = error(UNAUTHORIZED)
    assert classify(absent) == UNAUTHORIZED


@pytest.mark.covers("V-153")
def test_nothing_is_declared_without_a_context() -> None:
    """Safe where there is none."""
    assert not declares(None, "kai-scheduler")
    assert not declares(Seen().context(), "kai-scheduler")
    assert declares(Seen().context(validation=DECLARED), "kai-scheduler")


def test_the_words_for_absence_can_be_the_checks_own() -> None:
    """Both texts replace the sentence that is made up otherwise."""
    own = Capability("kai-scheduler", "it", absent="no scheduler", inapplicable="no gangs here")
    with pytest.raises(AicrError, match="kai-scheduler: no scheduler"):
        require(Seen().context(validation=DECLARED), own, None, False)
    with pytest.raises(Skip, match="no gangs here"):
        require(Seen().context(), own, None, False)
