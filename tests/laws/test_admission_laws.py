"""Laws of the admission: the patch makes the pod, nothing of a pod is lost, and twice is once."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.preflight.admission_cases import GANG, Reply, prepared, request_for, without_gangs

from aicr.errors import AicrError
from aicr.preflight.admission.devices import devices
from aicr.preflight.admission.globs import matcher
from aicr.preflight.admission.pod import view
from aicr.preflight.admission.review import review

CONFIGS = [
    prepared(),
    prepared(initContainerPlacement="prepend", imagePullSecrets=[{"name": "s"}]),
    without_gangs(),
]
NAME = st.sampled_from(["a", "b", "nccl-x", "dev-shm", "c-1"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2)
    ),
    max_leaves=4,
)
#: Fields that no version of Kubernetes has: they must survive.
FUTURE = st.dictionaries(st.sampled_from(["future", "x/y~z", "ünïcode"]), JSON, max_size=2)
COUNT = st.sampled_from(["0", "1", "4", "8", 2, "1k", "2000m"])
RESOURCES = st.dictionaries(
    st.sampled_from(["limits", "requests"]),
    st.dictionaries(st.sampled_from(["nvidia.com/gpu", "vpc.amazonaws.com/efa", "cpu"]), COUNT),
)
ENV = st.lists(
    st.builds(
        lambda name, value, more: {"name": name, "value": value, **more},
        st.sampled_from(["NCCL_DEBUG", "FI_PROVIDER", "HOME", "NODE_NAME", "GANG_ID"]),
        st.text(max_size=3),
        FUTURE,
    ),
    max_size=4,
)
MOUNTS = st.lists(
    st.builds(
        lambda name, path, more: {"name": name, "mountPath": path, **more},
        NAME,
        st.sampled_from(["/dev/shm", "/dev/shm/", "/x", "/etc/preflight", "/"]),
        FUTURE,
    ),
    max_size=3,
)


def containers(least: int, restart: bool) -> st.SearchStrategy[list[Any]]:
    """Containers with distinct names."""
    one = st.fixed_dictionaries(
        {"name": NAME, "image": st.just("x")},
        optional={
            "resources": RESOURCES,
            "env": ENV,
            "volumeMounts": MOUNTS,
            **({"restartPolicy": st.just("Always")} if restart else {}),
        },
    )
    merged = st.builds(lambda item, more: {**more, **item}, one, FUTURE)
    return st.lists(merged, min_size=least, max_size=3, unique_by=lambda item: item["name"])


SPEC = st.fixed_dictionaries(
    {"containers": containers(1, restart=False)},
    optional={
        "initContainers": st.none() | containers(0, restart=True),
        "volumes": st.none()
        | st.lists(NAME, unique=True, max_size=3).map(
            lambda found: [{"name": name, "emptyDir": {}} for name in found]
        ),
        "imagePullSecrets": st.none() | st.lists(NAME.map(lambda name: {"name": name}), max_size=2),
        "hostNetwork": st.booleans(),
    },
)
METADATA = st.fixed_dictionaries(
    {}, optional={"name": NAME, "generateName": NAME, "labels": FUTURE, "annotations": st.none()}
)
POD = st.builds(
    lambda spec, more, metadata, top: {**top, "metadata": metadata, "spec": {**more, **spec}},
    SPEC,
    FUTURE,
    METADATA,
    FUTURE,
)
CASE = st.tuples(POD, st.sampled_from(CONFIGS), st.sampled_from([None, GANG]))


def sent(made: Any, config: Any, member: Any) -> Reply:
    """What the webhook answers; a gang only where coordination is on."""
    gang = member if config.config.gangs.enabled else None
    return Reply(made, review(request_for(made), config, gang))


@given(CASE)
def test_the_patch_only_adds_and_loses_nothing(case: Any) -> None:
    """Take the added things out again and the pod is what it was, fields of the future included."""
    made, config, member = case
    before = copy.deepcopy(made)
    reply = sent(made, config, member)
    assert made == before
    assert reply.allowed
    after = copy.deepcopy(reply.pod)
    for key in ("initContainers", "volumes", "imagePullSecrets"):
        own = before["spec"].get(key) or []
        found = after["spec"].get(key) or []
        assert [item for item in found if item in own] == own
        if key in before["spec"]:
            after["spec"][key] = before["spec"][key]
        else:
            after["spec"].pop(key, None)
    assert after == before
    assert all(operation["op"] == "add" for operation in reply.patch)


@given(CASE)
def test_a_second_invocation_changes_nothing(case: Any) -> None:
    """The webhook sent its own output answers with no patch, by any of its configurations' placement."""
    made, config, member = case
    first = sent(made, config, member)
    assert sent(first.pod, config, member).patch == []


@given(CASE)
def test_what_is_injected_is_valid_and_costs_no_device(case: Any) -> None:
    """Unique names and paths, every mount has its volume, and the reservation of devices stays."""
    made, config, member = case
    reply = sent(made, config, member)
    if not reply.patch:
        return
    spec = reply.pod["spec"]
    volumes = [volume["name"] for volume in spec.get("volumes") or []]
    assert len(set(volumes)) == len(volumes)
    own = {item["name"] for item in made["spec"].get("initContainers") or []}
    mine = [item for item in spec["initContainers"] if item["name"] not in own]
    inherited = {
        mount["name"]
        for item in made["spec"]["containers"]
        for mount in item.get("volumeMounts") or []
    }
    for item in mine:
        names = [entry["name"] for entry in item["env"]]
        assert len(set(names)) == len(names)
        paths = [mount["mountPath"].rstrip("/") for mount in item["volumeMounts"]]
        assert len(set(paths)) == len(paths)
        assert {mount["name"] for mount in item["volumeMounts"]} <= {*volumes, *inherited}
        resources = item["resources"]
        for resource, amount in resources.get("limits", {}).items():
            assert isinstance(amount, str)
            if "/" in resource:
                assert resources["requests"][resource] == amount
    before = devices(view(made), config.resources)
    after = devices(view(reply.pod), config.resources)
    for resource in config.resources:
        assert after.effective(resource) == before.effective(resource)


@given(JSON | POD | st.fixed_dictionaries({"spec": JSON, "metadata": JSON}))
def test_any_object_is_answered(made: Any) -> None:
    """A pod is admitted or refused; what is none is refused; nothing else ever happens."""
    reply = Reply(made, review(request_for(made), CONFIGS[2]))
    assert reply.allowed or reply.message


@given(st.binary(max_size=40) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_a_review_or_an_error(body: bytes) -> None:
    """No body brings the webhook out of step."""
    try:
        answer = review(body, CONFIGS[2])
    except AicrError as error:
        said = error.message
    else:
        said = ""
        assert json.loads(answer)["response"]["allowed"] in (True, False)
    assert said in ("", "failed to unmarshal admission review")


@given(st.text("ab*?[]^-\\/!", max_size=8), st.text("ab*?[]^-\\/!", max_size=5))
def test_patterns_never_fail_and_literals_match_themselves(pattern: str, text: str) -> None:
    """Any text is a pattern; one whose every letter is escaped matches that text alone."""
    matcher([pattern])(text)
    escaped = matcher(["".join(f"\\{letter}" for letter in pattern)])
    assert bool(escaped(text)) is (text == pattern)
