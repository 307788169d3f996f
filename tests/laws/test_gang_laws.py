"""Laws of gang coordination: whatever happens to pods and groups, in whatever order."""

from __future__ import annotations

import copy
import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.preflight_gang.builders import Document, Story, group, pod_document

from aicr.errors import AicrError
from aicr.preflight.gang import configmap as cm
from aicr.preflight.gang.coordination import Plan
from aicr.preflight.gang.expression import MinCount, compile_cel
from aicr.preflight.gang.naming import config_map_name, distinct_name, sanitize
from aicr.preflight.gang.pods import GangPod, gang_pod

NAMES = st.sampled_from([f"w-{n}" for n in range(5)])
LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class GangLaw(RuleBasedStateMachine):
    """Pods come, get addresses, fail, end and go; groups are edited and made anew; writes get lost."""

    def __init__(self) -> None:
        super().__init__()
        self.story = Story(3)
        self.pods: dict[str, Document] = {}
        self.made = 0
        self.frozen: dict[int, str] = {}
        self.last = 0
        self.decided: Plan | None = None

    def present(self) -> list[GangPod]:
        """All pods."""
        return [gang_pod(document) for document in self.pods.values()]

    def live(self) -> dict[str, GangPod]:
        """Live pods by UID."""
        return {one.uid: one for one in self.present() if one.live}

    @rule(name=NAMES, address=st.booleans())
    def create(self, name: str, address: bool) -> None:
        """A pod, or its successor of the same name, is created."""
        self.made += 1
        ip = f"10.0.0.{self.made % 250}" if address else ""
        created = self.story.now.isoformat()
        self.pods[name] = pod_document(name, ip, uid=f"uid-{self.made:012d}", created=created)

    @rule(name=NAMES)
    def gets_address(self, name: str) -> None:
        """A sandbox is made, perhaps anew."""
        if name in self.pods:
            self.made += 1
            ip = f"10.0.0.{self.made % 250}"
            self.pods[name]["status"] |= {"podIP": ip, "podIPs": [{"ip": ip}]}

    @rule(name=NAMES, phase=st.sampled_from(["Failed", "Succeeded", "Pending"]))
    def phase(self, name: str, phase: str) -> None:
        """A pod ends, one way or another."""
        if name in self.pods and self.pods[name]["status"]["phase"] not in ("Failed", "Succeeded"):
            self.pods[name]["status"]["phase"] = phase

    @rule(name=NAMES)
    def terminating(self, name: str) -> None:
        """A pod is asked to go."""
        if name in self.pods:
            self.pods[name]["metadata"]["deletionTimestamp"] = "2026-11-30T12:00:00Z"

    @rule(name=NAMES)
    def goes(self, name: str) -> None:
        """A pod is gone."""
        self.pods.pop(name, None)

    @rule(minimum=st.sampled_from([None, 0, 1, 2, 3, 4]), others=st.integers(0, 2))
    def group_is_edited(self, minimum: int | None, others: int) -> None:
        """Another minimum, or pods without checks."""
        self.story.group = group(minimum, uid=self.story.group.uid or "group-1")
        self.story.others = others

    @rule(uid=st.sampled_from(["group-1", "group-2"]), found=st.booleans())
    def group_is_made_anew(self, uid: str, found: bool) -> None:
        """It goes, and comes back as another."""
        self.story.group = group(3, uid=uid, found=found)

    @rule(later=st.sampled_from([0.1, 6.0, 130.0]))
    def reconcile(self, later: float) -> None:
        """Decide and write; the same again decides nothing."""
        before = copy.deepcopy(self.story.document)
        kept = self.story.document
        self.decided = self.story.step(*self.present(), later=later)
        assert kept == before, "the input was changed"
        again = self.story.plan(*self.present())
        assert again.document is None, "a decision must stand when nothing has changed"
        self.check()

    def check(self) -> None:
        """What holds of every ConfigMap that was written."""
        assert self.decided is not None
        state = self.decided.state
        if self.story.document is None:
            return
        live = self.live()
        gone_well = {one.uid for one in self.present() if one.succeeded}
        for member in state.members:
            alive = member.uid in live
            assert alive or (state.complete and member.uid in gone_well), "a peer that is not alive"
            if alive and live[member.uid].addresses:
                assert member.ip in live[member.uid].addresses
        lines = cm.read_peers(self.story.data[cm.PEERS])
        assert [(p.name, p.ip, p.rank) for p in lines] == [
            (m.name, m.ip, m.rank) for m in state.members
        ]
        assert [member.rank for member in state.members] == list(range(len(state.members)))
        assert [m.name.encode() for m in state.members] == sorted(
            m.name.encode() for m in state.members
        )
        master = state.members[0].ip if state.members else ""
        assert self.story.data[cm.MASTER_ADDR] == master
        assert state.generation >= self.last, "a generation that went back"
        self.last = state.generation
        if state.complete:
            text = self.story.data[cm.PEERS] + self.story.data[cm.EXPECTED]
            assert self.frozen.setdefault(state.generation, text) == text, "a frozen generation"
        elif self.story.group.found and live and state.expected:
            minimum = (self.story.group.minimum or 0) - self.story.others
            assert state.expected >= max(minimum, len(live))

    @invariant()
    def pods_that_mount_nothing_are_nobody(self) -> None:
        """Without a pod there is nothing to write."""
        if not self.pods and self.story.document is None:
            assert self.story.plan().document is None


TestGangLaw = GangLaw.TestCase
TestGangLaw.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


@given(st.text(min_size=1, max_size=120))
def test_every_gang_id_gives_valid_names_and_labels(gang_id: str) -> None:
    """At most 63 characters of a DNS label; the second name differs for another id of the first."""
    for name in (config_map_name(gang_id), distinct_name(gang_id)):
        assert LABEL.fullmatch(name), name
    label = sanitize(gang_id)
    assert label == "" or LABEL.fullmatch(label)
    assert sanitize(label) == label


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(-1e6, 1e6) | st.text("ab"),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(
    group=st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3),
    fields=st.lists(st.sampled_from("abc"), min_size=1, max_size=3),
)
def test_a_chain_of_fields_is_read_as_cel_reads_it(group: Document, fields: list[str]) -> None:
    """The same size, or an error of both (decision 35's rule for faster private paths)."""
    text = ".".join(["podGroup", *fields])
    plain = MinCount(text)
    slow = MinCount(text)
    slow._evaluate = compile_cel(text)
    results: list[int | str] = []
    for one in (plain, slow):
        try:
            results.append(one.of(group))
        except AicrError as error:
            results.append(error.message)
    assert results[0] == results[1]
