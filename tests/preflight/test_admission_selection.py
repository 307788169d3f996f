"""Which checks a pod gets: annotation, defaults, gangs (preflight spec 11.3, field case I6)."""

from __future__ import annotations

import pytest
from tests.preflight.admission_cases import (
    ALLREDUCE,
    ANNOTATION,
    DCGM,
    GANG,
    LOOPBACK,
    container,
    entry,
    pod,
    prepared,
    send,
    without_gangs,
)

from aicr.preflight.admission.gang_port import Membership
from aicr.preflight.admission.selection import known_part
from aicr.preflight.config import Check

CHECKS = [entry(DCGM), entry(LOOPBACK), entry(ALLREDUCE, defaultEnabled=False)]
CONFIGURED = f"(configured: {DCGM}, {LOOPBACK}, {ALLREDUCE})"
GANG_ONLY = [entry(DCGM), entry(LOOPBACK), entry(ALLREDUCE, gangOnly=True)]


@pytest.mark.covers(
    "P11-30", "P11-31", "P11-32", "P11-33", "P-035", "P-036", "P-037", "P-038", "P-041"
)
@pytest.mark.parametrize(
    ("annotation", "order"),
    [
        pytest.param(None, [DCGM, LOOPBACK], id="absent: the defaults, in the configured order"),
        pytest.param(f"{LOOPBACK}, {DCGM}", [LOOPBACK, DCGM], id="the annotation's order"),
        pytest.param(ALLREDUCE, [ALLREDUCE], id="named although not enabled by default"),
        pytest.param(f" {DCGM}\u00a0,\t{LOOPBACK} ", [DCGM, LOOPBACK], id="blanks are trimmed"),
        pytest.param(f"{DCGM},,{LOOPBACK}", [DCGM, LOOPBACK], id="an empty part is no name"),
        pytest.param("", [], id="empty"),
        pytest.param(" ", [], id="blank"),
        pytest.param(",,", [], id="commas"),
    ],
)
def test_the_annotation_selects_and_orders(annotation: str | None, order: list[str]) -> None:
    """Without it the enabled checks; with it exactly the named ones; with an empty one, none."""
    made = pod(annotations=None if annotation is None else {ANNOTATION: annotation})
    reply = send(made, without_gangs(initContainers=CHECKS))
    assert reply.allowed
    assert reply.order == order
    if not order:
        assert reply.response == {"uid": "u-1", "allowed": True}


@pytest.mark.covers("P11-34", "P11-35", "P11-36", "P-039", "P-040", "I6")
@pytest.mark.parametrize(
    ("annotation", "said"),
    [
        pytest.param(
            f"{DCGM},{DCGM}",
            f'duplicate check name "{DCGM}" in annotation {ANNOTATION}',
            id="twice",
        ),
        pytest.param(
            "foo,foo", f'duplicate check name "foo" in annotation {ANNOTATION}', id="first"
        ),
        pytest.param(
            f"foo,{DCGM},bar",
            f"annotation {ANNOTATION} references unknown checks: foo, bar {CONFIGURED}",
            id="unknown",
        ),
        pytest.param(
            DCGM.upper(),
            f"annotation {ANNOTATION} references unknown checks: {DCGM.upper()} {CONFIGURED}",
            id="case counts",
        ),
        pytest.param(
            f"{DCGM}g",
            f"annotation {ANNOTATION} references unknown checks: {DCGM}g {CONFIGURED}; "
            f"did you mean {DCGM}?",
            id="a typing mistake",
        ),
    ],
)
def test_a_wrong_annotation_denies_the_pod(annotation: str, said: str) -> None:
    """A typing mistake must not switch checks off in silence: the pod is refused with the names."""
    reply = send(pod(annotations={ANNOTATION: annotation}), without_gangs(initContainers=CHECKS))
    assert not reply.allowed
    assert reply.message.startswith(f"failed to inject init containers: {said}")
    assert reply.response["status"]["code"] == 403
    assert reply.patch == []


@pytest.mark.covers("P11-37")
def test_a_wrong_annotation_on_a_pod_without_gpus_does_not_matter() -> None:
    """Preflight has no say in pods that it would not touch."""
    reply = send(pod(container(), annotations={ANNOTATION: "foo,foo"}))
    assert reply.response == {"uid": "u-1", "allowed": True}


@pytest.mark.covers("P-023", "P-022", "P-018")
def test_a_gang_check_is_kept_out_of_a_pod_that_is_in_no_gang() -> None:
    """Decision 16: such a pod would never start, since nobody is there to reduce with."""
    config = prepared(initContainers=GANG_ONLY)
    alone = send(pod(), config)
    assert alone.order == [DCGM, LOOPBACK]
    assert alone.warnings == []
    assert not any(name.startswith(("GANG_", "MASTER_")) for name in alone.env())
    assert send(pod(), config, GANG).order == [DCGM, LOOPBACK, ALLREDUCE]


@pytest.mark.parametrize(
    ("annotation", "order"), [(f"{ALLREDUCE},{DCGM}", [DCGM]), (ALLREDUCE, [])]
)
def test_a_gang_check_that_is_named_is_left_out_with_a_warning(
    annotation: str, order: list[str]
) -> None:
    """Decision 69: the pod is admitted without it and told so."""
    reply = send(pod(annotations={ANNOTATION: annotation}), prepared(initContainers=GANG_ONLY))
    assert reply.allowed
    assert reply.order == order
    assert reply.warnings == [
        f"preflight: check {ALLREDUCE} left out: it is only for pods of a gang, and this pod is in none"
    ]


@pytest.mark.covers("P-042", "P-043")
@pytest.mark.parametrize("annotation", [DCGM, f"{ALLREDUCE},{LOOPBACK},{DCGM}"])
def test_a_gang_member_with_another_list_is_refused_with_both_lists(annotation: str) -> None:
    """Decision 70: members name the same checks in one order; the later pod hears of both."""
    agreed = Membership(
        GANG.gang_id,
        GANG.config_map,
        "volcano",
        checks=(DCGM, LOOPBACK, ALLREDUCE),
        agreed_by="w-7",
    )
    assert send(pod(), prepared(), agreed).allowed
    reply = send(pod(annotations={ANNOTATION: annotation}), prepared(), agreed)
    assert not reply.allowed
    for part in (
        f"pod w-7 has {DCGM}, {LOOPBACK}, {ALLREDUCE}",
        f"pod w-0 has {annotation.replace(',', ', ')}",
        GANG.gang_id,
    ):
        assert part in reply.message
    opted_out = send(pod(annotations={ANNOTATION: ""}), prepared(), agreed)
    assert opted_out.response == {"uid": "u-1", "allowed": True}


def test_a_pod_that_cannot_join_its_gang_is_refused() -> None:
    """What the look-up says about the gang itself denies the pod, unless the pod opted out."""
    broken = Membership(GANG.gang_id, GANG.config_map, "volcano", mismatch="two gangs share a name")
    reply = send(pod(), prepared(), broken)
    assert reply.message == "failed to inject init containers: two gangs share a name"


@pytest.mark.parametrize(
    ("annotation", "names"),
    [
        (None, ["a"]),
        ("b,a", ["b", "a"]),
        ("b,gone", ["b"]),
        ("a,a", []),
        ("", []),
    ],
)
def test_what_a_member_is_recorded_with_is_never_an_error(
    annotation: str | None, names: list[str]
) -> None:
    """Pods admitted with another configuration keep the names that are still known."""
    checks = [Check("a", {}), Check("b", {}, default_enabled=False)]
    assert known_part(annotation, checks) == names
