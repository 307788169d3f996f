"""What a gang's ConfigMap says, as its pods and its group change."""

from __future__ import annotations

import copy
import json
from datetime import timedelta

import pytest
from tests.preflight_gang.builders import GANG_ID, MAP, Story, group, pod

from aicr.preflight.gang import configmap as cm
from aicr.preflight.gang.pods import GangPod


def three(*, without: str = "") -> list[GangPod]:
    """w-0 to w-2 with addresses."""
    return [pod(f"w-{n}", f"10.0.0.{n}") for n in range(3) if f"w-{n}" != without]


@pytest.mark.covers("P11-75", "P-125", "P-126", "P-131")
def test_members_are_ranked_by_name_in_byte_order_as_addresses_come() -> None:
    """``w-10`` is before ``w-2``; the master is rank 0's address; lines have four fields."""
    story = Story(2)
    story.step(pod("w-2", "10.0.0.2"), pod("w-10"))
    assert story.peers == ["w-2;10.0.0.2;0;dcgm"]
    assert story.data[cm.MASTER_ADDR] == "10.0.0.2"
    assert story.data[cm.MISSING] == "w-10"
    story.step(pod("w-2", "10.0.0.2"), pod("w-10", "10.0.0.10"))
    assert story.peers == ["w-10;10.0.0.10;0;dcgm", "w-2;10.0.0.2;1;dcgm"]
    assert story.data[cm.MASTER_ADDR] == "10.0.0.10"
    assert story.data[cm.MISSING] == ""
    assert json.loads(story.data[cm.MEMBERS])[0] == {
        "uid": "uid-of-w-10",
        "name": "w-10",
        "ip": "10.0.0.10",
        "rank": 0,
        "checks": "dcgm",
    }


@pytest.mark.covers("P-124", "P-127", "P-128")
def test_a_gang_of_three_becomes_complete_and_is_frozen() -> None:
    """Complete at the third address; the same pods change nothing more."""
    story = Story()
    story.step(*three(without="w-2"), pod("w-2"))
    assert not story.state.complete
    decided = story.step(*three())
    assert decided.urgent
    assert story.state.complete
    assert story.data == {
        cm.GANG_ID: GANG_ID,
        cm.EXPECTED: "3",
        cm.MASTER_PORT: "29500",
        cm.MASTER_ADDR: "10.0.0.0",
        cm.PEERS: "w-0;10.0.0.0;0;dcgm\nw-1;10.0.0.1;1;dcgm\nw-2;10.0.0.2;2;dcgm",
        cm.MEMBERS: story.data[cm.MEMBERS],
        cm.MISSING: "",
        cm.CHECKS: "dcgm",
        cm.GENERATION: "1",
    }
    assert story.plan(*three()).document is None


@pytest.mark.covers("J1", "P11-77")
def test_a_replaced_pod_leaves_and_its_successor_joins() -> None:
    """Never the old one with the new; expected stays 3, ranks are dense, the master is alive."""
    story = Story()
    story.step(*three())
    decided = story.step(*three(without="w-1"))
    assert decided.urgent
    assert decided.pruned == ("w-1",)
    assert story.data[cm.EXPECTED] == "3"
    assert story.data[cm.GENERATION] == "2"
    assert not story.state.complete
    new = pod("w-1-x7k2", "10.0.9.9")
    decided = story.step(*three(without="w-1"), new)
    assert decided.joined == ("w-1-x7k2",)
    assert story.peer_names == ["w-0", "w-1-x7k2", "w-2"]
    assert [member.rank for member in story.state.members] == [0, 1, 2]
    assert story.data[cm.EXPECTED] == "3"
    assert story.data[cm.MASTER_ADDR] == "10.0.0.0"
    assert story.data[cm.GENERATION] == "2"
    assert story.state.complete


@pytest.mark.covers("J4")
@pytest.mark.parametrize(
    "emptied", [True, False], ids=["seen to be empty", "not looked at between"]
)
def test_a_reused_group_name_starts_anew(emptied: bool) -> None:
    """Another generation and size; nothing of the old gang is left."""
    story = Story()
    story.step(*three())
    if emptied:
        story.step()
        assert (story.data[cm.EXPECTED], story.data[cm.PEERS]) == ("0", "")
    story.group = group(2, uid="group-2")
    new = [pod(f"w-{n}", f"10.1.0.{n}", uid=f"other-{n}") for n in range(2)]
    story.step(*new, later=3600)
    assert story.data[cm.EXPECTED] == "2"
    assert story.peers == ["w-0;10.1.0.0;0;dcgm", "w-1;10.1.0.1;1;dcgm"]
    assert int(story.data[cm.GENERATION]) == 2
    assert story.state.complete


@pytest.mark.covers("J4")
def test_a_config_map_of_the_original_is_taken_over() -> None:
    """It has no members, generation or state: its dead peers go, its size is decided anew."""
    story = Story(2)
    story.step(pod("x", "10.0.0.1"), pod("y", "10.0.0.2"))
    old = copy.deepcopy(story.document)
    assert old is not None
    old["metadata"].pop("annotations")
    old["data"] = {
        cm.GANG_ID: GANG_ID,
        cm.EXPECTED: "3",
        cm.MASTER_PORT: "29500",
        cm.PEERS: "w-0;10.0.0.7;0\nw-1;10.0.0.8;1\nw-2;10.0.0.9;2",
        cm.MASTER_ADDR: "10.0.0.7",
    }
    story.document = old
    story.step(pod("x", "10.0.0.1"), pod("y", "10.0.0.2"))
    assert story.peer_names == ["x", "y"]
    assert story.data[cm.EXPECTED] == "2"


@pytest.mark.covers("J10", "P11-83")
def test_only_live_pods_with_addresses_are_peers() -> None:
    """Failed, terminating, succeeded and pending pods are none, and do not lower the size."""
    story = Story()
    everyone = [pod(f"w-{n}", f"10.0.0.{n}", phase="Pending") for n in range(5)]
    everyone[4] = pod("w-4", phase="Pending")
    story.step(*everyone)
    assert story.data[cm.EXPECTED] == "5"
    story.step(
        pod("w-0", "10.0.0.0"),
        pod("w-1", "10.0.0.1", phase="Failed"),
        pod("w-2", "10.0.0.2", terminating=True),
        pod("w-3", "10.0.0.3", phase="Succeeded"),
        pod("w-4", phase="Pending"),
    )
    assert story.peers == ["w-0;10.0.0.0;0;dcgm"]
    assert story.data[cm.MISSING] == "w-4"
    assert story.data[cm.EXPECTED] == "5"
    assert not story.state.complete


def test_a_pod_that_ended_well_does_not_reopen_a_membership() -> None:
    """At the end of a job members finish one by one, and nobody is waited for any more."""
    story = Story()
    story.step(*three())
    writes = story.writes
    story.step(*three(without="w-1"), pod("w-1", "10.0.0.1", phase="Succeeded"))
    assert story.writes == writes


@pytest.mark.covers("P11-76")
def test_a_member_with_a_new_address_opens_a_generation_at_the_same_rank() -> None:
    """Its sandbox was made anew, so its checks run again: the master's address follows."""
    story = Story()
    story.step(*three())
    story.step(pod("w-0", "10.7.7.7"), *three(without="w-0"))
    assert story.peers[0] == "w-0;10.7.7.7;0;dcgm"
    assert story.data[cm.MASTER_ADDR] == "10.7.7.7"
    assert story.data[cm.GENERATION] == "2"
    assert story.state.complete


@pytest.mark.covers("P11-78")
def test_no_pods_write_nothing() -> None:
    """Neither without a ConfigMap nor with one that nobody has used."""
    story = Story()
    assert story.plan().document is None
    story.step(pod("w-0"))
    story.document = cm.skeleton(MAP, "team-a", GANG_ID, 29500)
    assert story.plan().document is None


@pytest.mark.covers("P11-79")
def test_a_changed_minimum_counts_until_the_membership_is_complete() -> None:
    """It follows the group while forming (decision 22), and stays afterwards."""
    story = Story(2)
    story.step(pod("w-0", "10.0.0.0"), pod("w-1"))
    story.group = group(4)
    story.step(pod("w-0", "10.0.0.0"), pod("w-1"))
    assert story.data[cm.EXPECTED] == "4"
    story.group = group(2)
    story.step(pod("w-0", "10.0.0.0"), pod("w-1", "10.0.0.1"))
    assert story.data[cm.EXPECTED] == "2"
    assert story.state.complete
    story.group = group(4)
    assert story.plan(pod("w-0", "10.0.0.0"), pod("w-1", "10.0.0.1")).document is None


@pytest.mark.covers("P11-70", "P-122", "P11-69")
def test_a_group_that_is_not_there_has_no_size() -> None:
    """ "0", however many members there are; its owner and size come when it does."""
    story = Story()
    story.group = group(found=False)
    decided = story.step(*three())
    assert story.data[cm.EXPECTED] == "0"
    assert decided.reasons == ("PodGroup team-a/train is not there",)
    assert story.document is not None
    assert "ownerReferences" not in story.document["metadata"]
    story.group = group(3)
    story.step(*three())
    assert story.data[cm.EXPECTED] == "3"
    assert story.document["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "name": "train",
            "uid": "group-1",
        }
    ]


@pytest.mark.covers("P11-89")
def test_more_members_than_the_minimum_are_all_waited_for() -> None:
    """Three members, minimum two: three, because all three exist before completion (decision 71)."""
    story = Story(2)
    story.step(pod("w-0", "10.0.0.0"), pod("w-1", "10.0.0.1"), pod("w-2"))
    assert story.data[cm.EXPECTED] == "3"
    story.step(*three())
    assert story.data[cm.EXPECTED] == "3"
    assert story.state.complete


@pytest.mark.covers("P11-86", "P11-87")
def test_pods_without_checks_are_not_waited_for() -> None:
    """Two of three take part; the third has no GPU or opted out (decision 22)."""
    story = Story()
    story.step(pod("w-0", "10.0.0.0"), pod("w-1", "10.0.0.1"))
    assert story.data[cm.EXPECTED] == "3"
    story.others = 1
    story.step(pod("w-0", "10.0.0.0"), pod("w-1", "10.0.0.1"))
    assert story.data[cm.EXPECTED] == "2"
    assert story.state.complete


def test_who_comes_after_completion_is_late() -> None:
    """Its check could not reach members that are past theirs; it is named instead."""
    story = Story(2)
    story.step(pod("w-0", "10.0.0.0"), pod("w-1", "10.0.0.1"))
    decided = story.step(*three())
    assert decided.document is None
    assert decided.late == ("w-2",)
    assert "w-2 came after generation 1 was complete with 2 members" in decided.reasons[0]


@pytest.mark.parametrize("minimum", [None, 0, 1], ids=["no gang policy", "zero", "one"])
def test_a_size_that_is_only_a_count_waits_until_no_more_members_come(minimum: int | None) -> None:
    """Not 1 because one pod was first (known bug S13): "0" until the youngest is old enough."""
    story = Story(minimum)
    story.now += timedelta(seconds=10)
    made = story.now.isoformat()
    decided = story.step(pod("w-0", "10.0.0.0", created=made), later=1)
    assert story.data[cm.EXPECTED] == "0"
    assert decided.wait == pytest.approx(4.0)
    members = [
        pod("w-0", "10.0.0.0", created=made),
        pod("w-1", "10.0.0.1", created=story.now.isoformat()),
    ]
    story.step(*members, later=3)
    assert story.data[cm.EXPECTED] == "0"
    story.step(*members, later=3)
    assert story.data[cm.EXPECTED] == "2"
    assert story.state.complete


def test_the_place_of_a_lost_member_is_held_for_a_while() -> None:
    """An elastic gang that shrank for good goes on smaller, after the time a successor may need."""
    story = Story(2)
    story.step(*three())
    decided = story.step(*three(without="w-2"))
    assert story.data[cm.EXPECTED] == "3"
    assert decided.wait == pytest.approx(120.0)
    story.step(*three(without="w-2"), later=119)
    assert story.data[cm.EXPECTED] == "3"
    story.step(*three(without="w-2"), later=2)
    assert story.data[cm.EXPECTED] == "2"
    assert story.state.complete


def test_a_surge_of_replacements_does_not_leave_a_size_that_nobody_reaches() -> None:
    """New pods are made before old ones go: four for a moment, then three again."""
    story = Story(3)
    surge = pod("w-3", "10.0.0.3")
    story.step(*three(without="w-0"), pod("w-0"), surge)
    assert story.data[cm.EXPECTED] == "4"
    story.step(*three(without="w-0"), surge)
    story.step(*three(without="w-0"), surge, later=121)
    assert story.data[cm.EXPECTED] == "3"
    assert story.state.complete


@pytest.mark.covers("J11")
def test_a_gang_uses_one_address_family() -> None:
    """The one that most have; who lacks it is no peer and is named; lines split on ; only."""
    story = Story(2)
    story.step(pod("a", ["fd00::7", "10.0.0.7"]), pod("b", ["fd00::8", "10.0.0.8"]))
    assert story.peers == ["a;fd00::7;0;dcgm", "b;fd00::8;1;dcgm"]
    assert cm.read_peers(story.data[cm.PEERS])[0].ip == "fd00::7"
    assert cm.endpoint(story.data[cm.MASTER_ADDR], 29500) == "[fd00::7]:29500"
    mixed = Story(3)
    pods = [pod("a", ["10.0.0.7", "fd00::7"]), pod("b", "10.0.0.8"), pod("c", "fd00::9")]
    decided = mixed.step(*pods)
    assert mixed.peers == ["a;10.0.0.7;0;dcgm", "b;10.0.0.8;1;dcgm"]
    assert decided.reasons == (
        "c has no IPv4 address, which the other members use, and cannot be a peer",
    )
    assert mixed.data[cm.EXPECTED] == "3"


@pytest.mark.covers("J15")
def test_masters_on_one_host_network_get_different_ports() -> None:
    """The next free one where the usual port is another gang's; pods with own networks keep it."""
    story = Story(2)
    story.taken = frozenset({29500, 29501})
    pods = [pod("a", "10.0.0.1", host_network=True), pod("b", "10.0.0.2", host_network=True)]
    decided = story.step(*pods)
    assert story.data[cm.MASTER_PORT] == "29502"
    assert "port 29500 of node node-of-a is the master port of another gang" in decided.reasons[0]
    apart = Story(2)
    apart.taken = frozenset({29500})
    apart.step(pod("a", "10.0.0.1"), pod("b", "10.0.0.2"))
    assert apart.data[cm.MASTER_PORT] == "29500"


@pytest.mark.covers("J9")
def test_members_that_name_different_checks_are_said_and_shown() -> None:
    """Each line carries its pod's own list, so that the checks fail at once and do not wait."""
    story = Story(2)
    decided = story.step(
        pod("a", "10.0.0.1", checks="dcgm,allreduce"), pod("b", "10.0.0.2", checks="dcgm")
    )
    assert decided.reasons == ("members name different checks: a=[dcgm,allreduce]; b=[dcgm]",)
    assert [line.rpartition(";")[2] for line in story.peers] == ["dcgm,allreduce", "dcgm"]


def test_what_others_wrote_into_the_config_map_stays() -> None:
    """Labels, annotations, data and owners that are not ours."""
    story = Story()
    story.step(pod("w-0"))
    assert story.document is not None
    story.document["data"]["note"] = "x"
    story.document["metadata"]["labels"]["team"] = "a"
    story.document["metadata"]["annotations"]["who"] = "b"
    story.document["metadata"]["ownerReferences"].append({"uid": "z", "kind": "Job"})
    before = copy.deepcopy(story.document)
    decided = story.plan(*three())
    assert story.document == before
    assert decided.document is not None
    assert decided.document["data"]["note"] == "x"
    assert decided.document["metadata"]["labels"]["team"] == "a"
    assert decided.document["metadata"]["annotations"]["who"] == "b"
    assert {"uid": "z", "kind": "Job"} in decided.document["metadata"]["ownerReferences"]


@pytest.mark.parametrize(
    ("references", "expected"),
    [
        ([], ["group-1"]),
        ([("PodGroup", "train", "group-1")], ["group-1"]),
        ([("PodGroup", "train", "old")], ["group-1"]),
        ([("Job", "train", "old")], ["old", "group-1"]),
    ],
    ids=["none", "same", "same name with another uid", "another kind"],
)
def test_the_owner_is_filled_in_once(
    references: list[tuple[str, str, str]], expected: list[str]
) -> None:
    """Same object: nothing; made anew: its UID in place; another: beside it."""
    document = {
        "metadata": {
            "ownerReferences": [
                {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": k, "name": n, "uid": u}
                for k, n, u in references
            ]
        }
    }
    before = copy.deepcopy(document)
    result = cm.with_owner(document, group().owner())
    assert [one["uid"] for one in result["metadata"]["ownerReferences"]] == expected
    assert document == before
    assert "controller" not in result["metadata"]["ownerReferences"][-1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a;10.0.0.1;0;dcgm,x", [("a", "10.0.0.1", 0, "dcgm,x")]),
        ("a;10.0.0.1;0", [("a", "10.0.0.1", 0, "")]),
        ("a;10.0.0.1", [("a", "10.0.0.1", -1, "")]),
        (" a ; fd00::1 ; two ", [("a", "fd00::1", -1, "")]),
        ("a\n\nb;10.0.0.2;1\n", [("b", "10.0.0.2", 1, "")]),
        ("", []),
    ],
    ids=["four", "three", "two", "blanks and no number", "one field is no line", "empty"],
)
@pytest.mark.covers("P-125")
def test_peer_lines_are_read_with_two_to_four_fields(
    text: str, expected: list[tuple[str, str, int, str]]
) -> None:
    """Decision 27; a rank that is no number is -1."""
    assert [(p.name, p.ip, p.rank, p.checks) for p in cm.read_peers(text)] == expected


@pytest.mark.parametrize(
    ("key", "value"),
    [(cm.EXPECTED, "many"), (cm.GENERATION, ""), (cm.MEMBERS, "{"), (cm.MASTER_PORT, "x")],
)
def test_a_spoiled_config_map_is_written_anew(key: str, value: str) -> None:
    """Garbage counts as not written, and never stops a gang."""
    story = Story()
    story.step(*three())
    story.data[key] = value
    story.step(*three())
    assert story.state.complete
    assert story.peer_names == ["w-0", "w-1", "w-2"]


@pytest.mark.covers("P11-84")
def test_512_members_fit_and_are_ranked_in_byte_order() -> None:
    """Ranks 0 to 511, the size is 512, and the object is far from the limit of 1 MiB."""
    story = Story(512)
    story.step(*(pod(f"w-{n}", f"10.0.{n // 256}.{n % 256}") for n in reversed(range(512))))
    assert story.data[cm.EXPECTED] == "512"
    assert story.peer_names == sorted(f"w-{n}" for n in range(512))
    assert [member.rank for member in story.state.members] == list(range(512))
    assert len(json.dumps(story.document)) < 200_000
