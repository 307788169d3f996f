"""The webhook's configuration file: defaults, rules, and the words of each refusal."""

from __future__ import annotations

from typing import Any

import pytest
from tests.preflight.admission_cases import TOKEN, VOLCANO, document, prepared, send

from aicr.errors import AicrError
from aicr.preflight.config import Config, load, parse
from aicr.preflight.gang_discovery import GangDiscovery, read_discovery
from aicr.preflight.logs import text_of
from aicr.preflight.offline import default_config
from aicr.yamlio.write import dump


def loaded(document: Any) -> Config:
    """The configuration of a file with *document*."""
    return load(dump(document), source="config.yaml")[0]


def refusal(document: Any) -> str:
    """The whole chain of messages with which a file is refused."""
    with pytest.raises(AicrError) as caught:
        loaded(document)
    return text_of(caught.value)


@pytest.mark.covers("P11-1", "P11-2", "P11-3", "P11-4", "P11-6", "P11-9", "P-033")
@pytest.mark.parametrize(
    ("document", "said"),
    [
        pytest.param(
            {"initContainers": [{"name": "a"}, {"name": "a"}]},
            'invalid file config: duplicate init container name "a"',
            id="repeated name",
        ),
        pytest.param(
            {"initContainers": [{"name": "a"}, {"image": "b"}]},
            "invalid file config: initContainers[1].name must be set",
            id="no name",
        ),
        pytest.param(
            {"initContainerPlacement": "middle"},
            'invalid file config: invalid initContainerPlacement "middle": must be "prepend" or "append"',
            id="placement",
        ),
        pytest.param(
            {"gangCoordination": {"enabled": True, "timeout": "10"}},
            'invalid file config: invalid gangCoordination.timeout "10": missing unit',
            id="timeout without unit",
        ),
        pytest.param(
            {"gangCoordination": {"enabled": True, "timeout": "900ms"}},
            'invalid file config: invalid gangCoordination.timeout "900ms": the shortest',
            id="timeout below a second",
        ),
        pytest.param(
            {"gangCoordination": {"enabled": True, "timeout": "-1m"}},
            'invalid file config: invalid gangCoordination.timeout "-1m": the shortest',
            id="negative timeout",
        ),
        pytest.param(
            {"gangCoordination": {"enabled": True, "masterPort": 70000}},
            "invalid file config: invalid gangCoordination.masterPort 70000",
            id="port",
        ),
        pytest.param(
            {"connectorTokenAudience": "x"},
            "invalid file config: connector token settings are all-or-nothing: connectorTokenAudience "
            "set but connectorTokenMountPath, connectorTokenExpirationSeconds missing.",
            id="one token setting",
        ),
        pytest.param(
            {**TOKEN, "connectorTokenMountPath": "run/token"},
            'invalid file config: connectorTokenMountPath must be an absolute path, got "run/token"',
            id="relative path",
        ),
        pytest.param(
            {"gangDiscovery": {"name": "volcano"}, "gangCoordination": {"enabled": True}},
            'invalid file config: invalid gangDiscovery config: name "volcano" requires '
            "annotationKeys/labelKeys, podGroupGVR, and minCountExpr",
            id="half a discovery",
        ),
        pytest.param(
            {"failurePolicy": "Never"},
            'invalid file config: invalid failurePolicy "Never": must be "Fail" or "Ignore"',
            id="failure policy",
        ),
    ],
)
def test_a_broken_rule_is_named_in_the_words_of_the_original(document: Any, said: str) -> None:
    """The first rule that a file breaks is said as operators know it."""
    assert said in refusal(document)


@pytest.mark.covers("P11-8")
@pytest.mark.parametrize(
    ("text", "path"),
    [
        (
            "initContainers: [{name: a, env: [{name: X, value: 2}]}]",
            "initContainers[0].env[0].value",
        ),
        ("gpuResourceNames: nvidia.com/gpu", "gpuResourceNames"),
        ("gangCoordination: {enabled: 'true'}", "gangCoordination.enabled"),
        ("initContainers: [{name: a, image: {repository: x}}]", "initContainers[0].image"),
        ("- a", "Expected object"),
        ("a: [", "1:"),
    ],
)
def test_a_wrong_type_is_a_parse_error_with_its_path(text: str, path: str) -> None:
    """An unquoted number in env, the commonest mistake, ends the start and says where it is."""
    with pytest.raises(AicrError) as caught:
        load(text, source="config.yaml")
    said = text_of(caught.value)
    assert "failed to parse config file" in said
    assert path in said


@pytest.mark.covers("P11-7")
@pytest.mark.parametrize(
    ("seconds", "fine"), [(599, False), (600, True), (4294967296, True), (4294967297, False)]
)
def test_a_token_lives_ten_minutes_to_two_to_the_32_seconds(seconds: int, fine: bool) -> None:
    """The bounds of Kubernetes belong to the allowed range."""
    made = {**TOKEN, "connectorTokenExpirationSeconds": seconds}
    if fine:
        token = loaded(made).token
        assert token is not None
        assert token.expiration_seconds == seconds
    else:
        said = (
            f"connectorTokenExpirationSeconds must be between 600 and 4294967296, got {seconds}: "
        )
        assert said in refusal(made)


def test_the_rules_are_checked_in_their_order() -> None:
    """Of several faults the first of spec 1.2 is named."""
    document = {
        "initContainers": [{"name": "a"}, {"name": "a"}],
        "initContainerPlacement": "x",
        "connectorTokenAudience": "x",
    }
    assert "duplicate" in refusal(document)
    assert "Placement" in refusal({**document, "initContainers": []})


@pytest.mark.covers("P11-5", "P11-12", "P-009", "P-018", "P-026")
def test_with_coordination_off_neither_timeout_nor_discovery_is_judged() -> None:
    """A cluster without gangs starts with any of these settings, and needs no gang API."""
    config = loaded(
        {
            "gangCoordination": {"enabled": False, "timeout": "banana"},
            "gangDiscovery": {"name": "volcano"},
            "gpuDraEnabled": False,
        }
    )
    assert not config.gangs.enabled
    assert not config.needs_cluster


@pytest.mark.covers("P11-10", "P-027", "P-014")
def test_the_minimum_of_a_pod_group_has_a_default_expression() -> None:
    """Without minCountExpr it is podGroup.spec.minMember; an empty block stays the native mode."""
    config = loaded({"gangDiscovery": VOLCANO, "gangCoordination": {"enabled": True}})
    assert config.gang_discovery.min_count_expr == "podGroup.spec.minMember"
    assert not config.gang_discovery.native
    assert read_discovery({}).native
    assert read_discovery({"annotationKeys": [], "podGroupGVR": {}}).native
    assert read_discovery({"minCountExpr": "x"}).problem() is not None


@pytest.mark.parametrize("missing", ["group", "version", "resource"])
def test_a_pod_group_resource_is_named_in_full(missing: str) -> None:
    """The core group cannot hold PodGroups, so all three parts are needed."""
    block = {**VOLCANO, "podGroupGVR": {**VOLCANO["podGroupGVR"], missing: ""}}  # type: ignore[dict-item]
    assert read_discovery(block).problem() is not None


@pytest.mark.covers("P11-14")
def test_the_timeout_reaches_checks_in_whole_seconds() -> None:
    """1m30.9s is 90: what is below a second is cut off."""
    config = prepared(gangCoordination={"enabled": True, "timeout": "1m30.9s"})
    assert config.config.gangs.timeout_seconds == 90


@pytest.mark.covers("P-036", "P-052", "P-133", "P-127", "P-132")
def test_defaults_are_filled_in() -> None:
    """What is not said is as spec 1.2 and 1.3 say, and null is as good as absent."""
    config = loaded(
        {
            "initContainers": [{"name": "a", "image": "x", "defaultEnabled": None}],
            "gpuResourceNames": [],
            "connectorSocket": None,
            "gangCoordination": {"enabled": True, "masterPort": 0, "timeout": None},
        }
    )
    check = config.checks[0]
    assert (check.default_enabled, check.inherit_env, check.inherit_mounts) == (True, True, True)
    assert not check.gang_only
    assert config.gpu_resources == ("nvidia.com/gpu",)
    assert (config.dra_enabled, config.device_classes) == (True, ("gpu.nvidia.com",))
    assert config.strategy == "EXECUTE_REMEDIATION"
    assert (config.placement, config.failure_policy) == ("append", "Fail")
    gangs = config.gangs
    assert (gangs.timeout_seconds, gangs.master_port, gangs.mount_path) == (
        600,
        29500,
        "/etc/preflight",
    )
    assert gangs.mirror_claims
    assert loaded({}) == Config()


def test_what_is_probably_not_meant_is_a_warning() -> None:
    """Unknown keys, checks without an image and unknown hostPath types do not stop the start."""
    _, warnings = load(
        dump(
            {
                "initContainer": [],
                "initContainers": [{"name": "Bad_Name", "imagePullPolicey": "Always"}],
                "gangCoordination": {
                    "enabled": True,
                    "extraHostPathMounts": [
                        {"name": "a", "hostPath": "/a", "mountPath": "/a", "hostPathType": "Weird"}
                    ],
                },
            }
        ),
        source="c",
    )
    said = "\n".join(warnings)
    assert "unknown key initContainer: did you mean initContainers?" in said
    assert "unknown key initContainers[0].imagePullPolicey: did you mean imagePullPolicy?" in said
    assert "Bad_Name has no image" in said
    assert "no valid container name" in said
    assert 'unknown hostPathType "Weird"' in said


@pytest.mark.covers("P-044", "P-045", "P-046")
def test_an_entry_is_a_whole_container_and_the_controls_never_reach_the_pod() -> None:
    """Every field of an entry is injected as it stands, but for the webhook's own four."""
    check = {
        "name": "c",
        "image": "x:1",
        "command": ["run"],
        "args": ["--now"],
        "workingDir": "/w",
        "imagePullPolicy": "Always",
        "securityContext": {"runAsUser": 0, "capabilities": {"add": ["IPC_LOCK"]}},
        "envFrom": [{"configMapRef": {"name": "m"}}],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "futureField": {"deep": [1]},
        "ports": None,
        "defaultEnabled": True,
        "inheritUserEnv": True,
        "inheritUserVolumeMounts": False,
        "gangOnly": False,
    }
    from tests.preflight.admission_cases import pod, without_gangs

    reply = send(pod(), without_gangs(initContainers=[check]))
    found = reply.check("c")
    for key in ("command", "args", "workingDir", "imagePullPolicy", "securityContext", "envFrom"):
        assert found[key] == check[key]
    assert found["futureField"] == {"deep": [1]}
    assert (
        not {"defaultEnabled", "inheritUserEnv", "inheritUserVolumeMounts", "gangOnly"}
        & found.keys()
    )
    assert "ports" not in found


def test_the_built_in_default_is_what_the_chart_sets() -> None:
    """`inject` without a configuration decides as a cluster with the chart's defaults would."""
    from pathlib import Path

    from aicr.yamlio.read import load as read

    path = Path(__file__).resolve().parents[2] / "charts" / "preflight" / "values.yaml"
    values = read(path.read_text(), source="values.yaml")
    config = default_config()
    assert [check.name for check in config.checks] == [e["name"] for e in values["initContainers"]]
    for check, entry in zip(config.checks, values["initContainers"], strict=True):
        assert check.gang_only == entry.get("gangOnly", False)
        for key in ("env", "volumeMounts", "securityContext", "resources"):
            assert check.container.get(key) == entry.get(key), (check.name, key)
        assert str(check.container["image"]).startswith(f"{entry['image']['repository']}:")
    for key, ours in (
        ("gpuResourceNames", config.gpu_resources),
        ("networkResourceNames", config.network_resources),
        ("gpuDeviceClassNames", config.device_classes),
        ("ncclEnvPatterns", config.env_patterns),
        ("volumeMountPatterns", config.mount_patterns),
    ):
        assert list(ours) == values[key], key
    assert config.gangs.enabled == values["gangCoordination"]["enabled"]
    assert config.gang_discovery == GangDiscovery()


def test_the_document_of_the_tests_is_valid() -> None:
    """Cfg-A of the spec has neither faults nor doubts."""
    _, warnings = load(dump(document()), source="c")
    assert warnings == []
    assert parse(document()).gangs.enabled
