"""Laws of validation: nothing passes by accident, names fit, selections and images are stable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from aicr.contract import images
from aicr.errors import AicrError
from aicr.validate import extraction, phases, pods
from aicr.validate.catalog import Entry, ValidatorCatalog, merge
from aicr.validate.output import Collected
from aicr.validate.plan import job_name
from aicr.validate.timing import Timing

NAMES = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)
STATES = st.one_of(
    st.none(),
    st.just({"running": {}}),
    st.builds(lambda reason: {"waiting": {"reason": reason}}, st.text(max_size=12)),
    st.builds(
        lambda code, reason: {"terminated": {"exitCode": code, "reason": reason}},
        st.integers(0, 255),
        st.sampled_from(["", "Completed", "Error", "OOMKilled"]),
    ),
)
PODS = st.builds(
    lambda state, name: {
        "metadata": {"name": "p"},
        "status": {"containerStatuses": [{"name": name, "state": state}] if state else []},
    },
    STATES,
    st.sampled_from(["validator", "sidecar"]),
)
JOBS = st.one_of(
    st.none(),
    st.builds(
        lambda type_, reason: {
            "spec": {"activeDeadlineSeconds": 330},
            "status": {"conditions": [{"type": type_, "status": "True", "reason": reason}]},
        },
        st.sampled_from(["Complete", "Failed", "Suspended"]),
        st.sampled_from(["", "DeadlineExceeded", "BackoffLimitExceeded"]),
    ),
)
CAUSES = st.one_of(
    st.none(),
    st.builds(
        AicrError,
        st.sampled_from(["TIMEOUT", "INTERNAL", "SERVICE_UNAVAILABLE", "UNAUTHORIZED"]),
        st.just("why"),
    ),
)


def code_of(pod: Mapping[str, Any] | None) -> int | None:
    """Exit code of the check's container, if it has ended."""
    end = pods.terminated(pod) if pod is not None else None
    return None if end is None else int(end["exitCode"])


@given(JOBS, st.one_of(st.none(), PODS), CAUSES)
def test_nothing_passes_unless_its_container_ended_with_zero(
    job: dict[str, Any] | None, pod: dict[str, Any] | None, cause: AicrError | None
) -> None:
    """Whatever the Job says, and however the wait ended (field case G4)."""
    verdicts = [
        extraction.after_wait(job, pod, name="j"),
        extraction.after_error(pod, cause, "2m0s"),
        extraction.hopeless(pods.Hopeless("m", "TIMEOUT"), pod),
    ]
    for verdict in verdicts:
        assert (verdict.status == "passed") == (code_of(pod) == 0)
        assert (verdict.status == "skipped") == (code_of(pod) == 2)
        if code_of(pod) is None:
            assert verdict.message
            assert verdict.code


@given(st.lists(PODS, max_size=4))
def test_a_pod_that_did_not_pass_is_never_hidden_by_one_that_did(
    found: list[dict[str, Any]],
) -> None:
    """Also in another order."""
    codes = [code for code in map(code_of, found) if code is not None]
    for order in (found, found[::-1]):
        chosen = code_of(pods.choose(order))
        if any(codes):
            assert chosen not in (0, None)
        elif codes:
            assert chosen == 0


@given(NAMES, NAMES, st.text("0123456789abcdef", min_size=1, max_size=32))
def test_names_of_jobs_are_names_and_differ(one: str, other: str, run: str) -> None:
    """At most 63 characters, no dash at the end of a part, the same for the same check."""
    name = job_name(one, run)
    assert len(name) <= 63
    assert "--" not in name or "--" in one
    assert name == job_name(one, run)
    assert (name == job_name(other, run)) == (one == other)


@given(st.lists(st.sampled_from(phases.ORDER)))
def test_a_selection_does_not_depend_on_order_or_repetition(words: list[str]) -> None:
    """It is what was asked for, in the order of running."""
    found = phases.requested(phases.parse_selection(words))
    assert set(found) == (set(words) or set(phases.ORDER))
    assert found == phases.requested(phases.parse_selection(sorted(set(words))))
    assert list(found) == [phase for phase in phases.ORDER if phase in found]


PARTS = st.from_regex(r"[a-z0-9]{1,8}", fullmatch=True)
REFERENCES = st.builds(
    lambda registry, port, path, tag: f"{registry}{port}/{path}{tag}",
    PARTS,
    st.sampled_from(["", ":5000"]),
    PARTS,
    st.sampled_from(["", ":latest", ":v1.2.3", "@sha256:dead"]),
)


@given(REFERENCES, st.one_of(st.just(""), PARTS), st.one_of(st.just(""), PARTS))
def test_overrides_of_an_image_hold_and_hold_again(image: str, tag: str, registry: str) -> None:
    """Resolving twice is resolving once; a digest stays a digest."""
    found = images.resolve(image, tag=tag, registry=registry)
    assert images.resolve(found, tag=tag, registry=registry) == found
    assert found.partition("@")[2] == image.partition("@")[2]
    if tag and "@" not in image:
        assert images.tag_of(found) == tag
    if registry:
        assert found.startswith(f"{registry}/")
    if images.pull_policy(found, tag) == "Never":
        assert found.startswith(images.SIDE_LOADED)


CATALOGS = st.lists(NAMES, unique=True, max_size=6).map(
    lambda names: ValidatorCatalog(
        tuple(Entry(name, "deployment", f"r/{len(names)}") for name in names)
    )
)


@given(CATALOGS, CATALOGS)
def test_a_merged_catalogue_has_every_name_once_and_the_upper_entry(
    lower: ValidatorCatalog, upper: ValidatorCatalog
) -> None:
    """The lower order is kept; merging the same again changes nothing."""
    found = merge(lower, upper)
    assert len(set(found.names())) == len(found.names())
    assert set(found.names()) == {*lower.names(), *upper.names()}
    assert found.names()[: len(lower.names())] == lower.names()
    for entry in upper.entries:
        assert found.find(entry.name) == entry
    assert merge(found, upper) == found


@given(st.floats(0.001, 10), st.floats(1, 4000))
def test_the_three_deadlines_nest_at_every_scale(factor: float, budget: float) -> None:
    """The check's budget before the wait, the wait before the Job."""
    timing = Timing().scaled(factor)
    assert budget < timing.wait_seconds(budget) < timing.job_deadline(budget)


@given(st.lists(st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]))))
def test_evidence_is_what_was_written(lines: list[str]) -> None:
    """Unless it is transport, or a log record, or blank lines at the end."""
    found = Collected()
    for line in lines:
        found.evidence(line)
    kept = [line for line in lines if not line.startswith(("##AICR-EXTRA## ", "##AICR-PROV"))]
    while kept and kept[-1] == "":
        kept.pop()
    assert found.parsed().lines == kept
