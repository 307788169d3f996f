"""What an AICRConfig document may say, and how wrong ones are answered."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict

import pytest

from aicr.contract import config_types
from aicr.contract.config import Config, load
from aicr.errors import INVALID_REQUEST, AicrError

PAGE = Path(__file__).resolve().parents[2] / "docs" / "config.md"
HEADER = "kind: AICRConfig\napiVersion: aicr.run/v1beta1\n"

#: One value for every field.
WHOLE: dict[str, Any] = {
    "snapshot": {
        "output": {"path": "snapshot.yaml", "format": "yaml", "template": ""},
        "agent": {
            "namespace": "aicr",
            "image": "",
            "imagePullSecrets": ["a"],
            "jobName": "job",
            "serviceAccountName": "sa",
            "nodeSelector": {"pool": "gpu"},
            "tolerations": [],
            "requireGpu": False,
            "runtimeClassName": "nvidia",
            "os": "ubuntu",
            "requests": "cpu=1",
            "limits": "cpu=2",
        },
        "execution": {
            "timeout": "5m",
            "noCleanup": True,
            "privileged": False,
            "maxNodesPerEntry": 0,
        },
    },
    "recipe": {
        "criteria": {
            "service": "eks",
            "accelerator": "h100",
            "intent": "training",
            "os": "ubuntu",
            "platform": "kubeflow",
            "nodes": 2,
        },
        "profile": "a=b",
        "configuration": {
            "slurm": {"accounting": {"mode": "disabled"}},
            "gke": {"tcpxoInterfaces": [{"interfaceName": "eth1", "network": "gpu-nic-1"}]},
            "runtimeInventory": "enabled",
        },
        "input": {"snapshot": ""},
        "output": {"path": "recipe.yaml", "format": "yaml"},
        "data": "dir",
        "criteriaStrict": False,
    },
    "bundle": {
        "input": {"recipe": "recipe.yaml"},
        "output": {"target": "bundle", "imageRefs": "refs"},
        "deployment": {
            "deployer": "helm",
            "repo": "",
            "set": ["a:b=c"],
            "dynamic": ["a:b"],
            "vendorCharts": False,
            "appName": "",
        },
        "scheduling": {
            "systemNodeSelector": {"a": "b"},
            "systemNodeTolerations": ["a=b:NoSchedule"],
            "acceleratedNodeSelector": {},
            "acceleratedNodeTolerations": [],
            "workloadGate": "",
            "workloadSelector": {"a": "b"},
            "nodes": 0,
            "storageClass": "fast",
            "sharedStorageClass": "shared",
            "draEvictionNodeLabel": "a=b",
        },
        "attestation": {
            "enabled": False,
            "certificateIdentityRegexp": "",
            "oidcDeviceFlow": False,
            "fulcioURL": "",
            "rekorURL": "",
            "signingKey": "",
        },
        "registry": {"insecureTLS": False, "plainHTTP": False},
    },
    "validate": {
        "input": {"recipe": "recipe.yaml", "snapshot": "snapshot.yaml"},
        "agent": {
            "namespace": "aicr",
            "image": "",
            "imagePullSecrets": [],
            "jobName": "job",
            "serviceAccountName": "sa",
            "nodeSelector": {},
            "tolerations": ["a=b:NoSchedule"],
            "requireGpu": True,
        },
        "execution": {
            "phases": ["deployment", "conformance", "performance", "all"],
            "failOnError": False,
            "failFast": True,
            "noCluster": False,
            "noCleanup": False,
            "timeout": "1h30m",
            "skipChecks": ["a"],
        },
        "evidence": {
            "cncf": {"dir": "d", "cncfSubmission": False, "features": []},
            "attestation": {
                "out": "o",
                "bom": "",
                "push": "",
                "plainHTTP": False,
                "insecureTLS": False,
            },
        },
    },
    "verify": {
        "policy": {"minTrustLevel": "max", "requireCreator": "a", "cliVersionConstraint": ">= 1"},
        "trust": {"certificateIdentityRegexp": "", "key": "k.pem", "trustRoot": ""},
    },
}


def document(**spec: Any) -> str:
    """A config with sections, as JSON."""
    return json.dumps({"kind": "AICRConfig", "apiVersion": "aicr.run/v1beta1", "spec": spec})


def fields(kind: Any) -> set[str]:
    """Every field name below a type."""
    found: set[str] = set()
    if get_origin(kind) is list:
        return fields(get_args(kind)[0])
    if is_typeddict(kind):
        for name, inner in get_type_hints(kind).items():
            found |= {name} | fields(inner)
    return found


def refused(text: str) -> AicrError:
    """The refusal of a document, whose code is always the same."""
    with pytest.raises(AicrError) as caught:
        load(text, "c.yaml")
    assert caught.value.code == INVALID_REQUEST
    return caught.value


def test_every_field_of_every_section_is_read() -> None:
    """A file that says everything there is to say is taken as it is, and nothing is missing here."""
    found = load(document(**WHOLE), "c.yaml")
    assert found.document["spec"] == WHOLE

    def names(value: Any) -> set[str]:
        if isinstance(value, list):
            return {name for item in value for name in names(item)}
        if not isinstance(value, dict):
            return set()
        return set(value) | {name for item in value.values() for name in names(item)}

    assert fields(config_types.Spec) - names(WHOLE) == set()


def test_the_manual_names_every_field() -> None:
    """No field without a word in the manual, and the example there is one."""
    page = PAGE.read_text(encoding="utf-8")
    words = set(re.findall(r"\w+", page))
    assert fields(config_types.Spec) - words == set()
    example = re.search(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert example is not None
    assert load(example[1], "docs").get("bundle", "scheduling", "nodes") == 8


def test_an_absent_field_is_not_false_and_not_empty() -> None:
    """Booleans have three states, and a path through nothing leads to nothing (spec 6.5)."""
    said = load(document(recipe={"criteriaStrict": False}), "c.yaml")
    unsaid = load(document(recipe={"data": "d"}), "c.yaml")
    assert said.get("recipe", "criteriaStrict") is False
    assert unsaid.get("recipe", "criteriaStrict") is None
    assert unsaid.get("bundle", "scheduling", "nodes") is None
    assert unsaid.get("recipe", "data", "deeper") is None


def test_a_key_with_nothing_behind_it_is_absent() -> None:
    """An editor leaves such keys; they are no values."""
    text = HEADER + "metadata:\nspec:\n  recipe:\n    data: d\n    criteria:\n  bundle:\n"
    assert load(text, "c.yaml").get("recipe", "criteria") is None


@pytest.mark.parametrize("api", ["aicr.nvidia.com/v1alpha1", "", None])
def test_the_header_of_v0_11_1_is_read_with_a_notice(api: str | None) -> None:
    """Decision 48: old headers are accepted, and said to be old."""
    whole: dict[str, Any] = {"kind": "AICRConfig", "spec": {"recipe": {"data": "d"}}}
    if api is not None:
        whole["apiVersion"] = api
    assert "aicr.run/v1beta1" in load(json.dumps(whole), "c.yaml").notice


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("kind: AICRConfig\napiVersion: aicr.run/v1alpha2\n", "was retired in v1.0.0"),
        ("kind: AICRConfig\napiVersion: aicr.run/v1\n", 'expected "aicr.run/v1beta1"'),
        ("kind: RecipeCriteria\napiVersion: aicr.run/v1\n", 'expected "AICRConfig"'),
        ("apiVersion: aicr.run/v1beta1\n", 'invalid kind ""'),
        ("kind: AICRCOnfig\napiVersion: aicr.run/v1beta1\n", 'invalid kind "AICRCOnfig"'),
    ],
)
def test_another_header_is_refused(header: str, words: str) -> None:
    """Only AICRConfig of this track is a config (spec 0.3, 0.4)."""
    assert words in refused(header + "spec: {recipe: {data: d}}\n").message


@pytest.mark.parametrize("text", ["", "- a\n", "text\n", "5\n"])
def test_what_is_no_map_is_no_config(text: str) -> None:
    """An empty file, a list or a word is refused with what to write."""
    error = refused(text)
    assert "expected an AICRConfig document" in error.message
    assert error.hint


@pytest.mark.parametrize(
    "body", ["", "spec:\n", "spec: {}\n", "spec:\n  recipe:\n", "spec: {recipe: , bundle: }\n"]
)
def test_a_file_that_says_nothing_is_refused(body: str) -> None:
    """At least one section must be there (spec 6.5)."""
    error = refused(HEADER + body)
    assert "at least one of spec.snapshot, spec.recipe, spec.bundle, spec.validate" in error.message


@pytest.mark.parametrize(
    ("body", "field", "place", "hint"),
    [
        ("spce: {}\n", "spce", "3:1", 'did you mean "spec"?'),
        ("spec: {recipes: {}}\n", "spec.recipes", "3:8", 'did you mean "recipe"?'),
        (
            "spec:\n  bundle:\n    scheduling:\n      storageClas: x\n",
            "spec.bundle.scheduling.storageClas",
            "6:7",
            'did you mean "storageClass"?',
        ),
        (
            "spec:\n  recipe:\n    criteria:\n      gpu: h100\n",
            "spec.recipe.criteria.gpu",
            "6:7",
            "known: service, accelerator",
        ),
        (
            "spec: {recipe: {configuration: {gke: {tcpxoInterfaces: [{name: eth1}]}}}}\n",
            "spec.recipe.configuration.gke.tcpxoInterfaces[0].name",
            "3:58",
            "known: interfaceName, network",
        ),
        (
            "spec: {bundle: {attestation: {identityToken: x}}}\n",
            "spec.bundle.attestation.identityToken",
            "3:31",
            "COSIGN_IDENTITY_TOKEN",
        ),
        ("metadata: {nmae: x}\nspec: {}\n", "metadata.nmae", "3:12", 'did you mean "name"?'),
        ("spec: {verify: {policy: {max: x}}}\n", "spec.verify.policy.max", "3:26", "minTrustLevel"),
    ],
)
def test_an_unknown_field_is_refused_with_its_place_and_the_nearest(
    body: str, field: str, place: str, hint: str
) -> None:
    """Strict in every section, whichever command reads the file (bundler spec 1.6)."""
    error = refused(HEADER + body)
    assert error.message == f'unknown field "{field}"'
    assert error.where == f"c.yaml:{place}"
    assert hint in error.hint


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ("§recipe: []", "spec.recipe must be a map, found a list"),
        ("recipe: {data: §5}", "spec.recipe.data must be a string, not a number (5)"),
        ("recipe: {data: §on}", "spec.recipe.data must be a string, not a boolean (on)"),
        ("recipe: {criteriaStrict: §'yes'}", "must be true or false, found text"),
        ("recipe: {criteria: {nodes: §1.5}}", "0 or more, found 1.5"),
        ("recipe: {criteria: {nodes: §-1}}", "0 or more, found -1"),
        ("recipe: {criteria: {nodes: §true}}", "0 or more, found true"),
        ("recipe: {criteria: {nodes: §'8'}}", "0 or more, found text"),
        ("bundle: {deployment: {set: §a:b=c}}", "deployment.set must be a list, found text"),
        ("bundle: {deployment: {set: [a, ]}, input: §x}", "spec.bundle.input must be a map"),
        ("bundle: {deployment: {set: [§~]}}", "spec.bundle.deployment.set[0] is empty"),
        ("bundle: {scheduling: {§workloadSelector: [a=b]}}", "must be a map, found a list"),
        (
            "bundle: {scheduling: {systemNodeSelector: {a: §true}}}",
            "spec.bundle.scheduling.systemNodeSelector.a must be a string, not a boolean (true)",
        ),
        (
            "bundle: {scheduling: {systemNodeSelector: {a: §}}}",
            "spec.bundle.scheduling.systemNodeSelector.a must be a string, not null",
        ),
        (
            "validate: {execution: {phases: [§deploymnt]}}",
            'spec.validate.execution.phases[0]: "deploymnt" is not one of deployment',
        ),
        (
            "validate: {execution: {timeout: §5 minutes}}",
            'spec.validate.execution.timeout: invalid duration "5 minutes"',
        ),
        ("snapshot: {execution: {timeout: §soon}}", 'invalid duration "soon"'),
    ],
)
def test_a_value_of_another_type_is_refused_with_its_place(section: str, words: str) -> None:
    """Types are checked with file, line and column (at the mark); text must be text (43)."""
    before, _, after = f"spec: {{{section}}}\n".partition("§")
    error = refused(f"{HEADER}{before}{after}")
    assert words in error.message
    assert error.chain()[-1].hint
    line, column = error.where.split(":")[1:]
    assert (int(line), int(column)) == (3, len(before) + 1)


def test_criteria_and_a_snapshot_exclude_each_other() -> None:
    """A file queries by criteria or by a snapshot, not both (spec 6.5)."""
    both = {"criteria": {"service": "eks"}, "input": {"snapshot": "s.yaml"}}
    error = refused(document(recipe=both))
    assert "spec.recipe.criteria and spec.recipe.input.snapshot exclude" in error.message
    for part in ("criteria", "input"):
        assert load(document(recipe={part: both[part]}), "c.yaml")
    assert load(document(recipe={**both, "criteria": {}}), "c.yaml")


@pytest.mark.parametrize(
    ("written", "bundled", "agree"),
    [
        ("recipe.yaml", "recipe.yaml", True),
        ("./recipe.yaml", "recipe.yaml", True),
        ("out/../recipe.yaml", "recipe.yaml", True),
        ("recipe.yaml", "other.yaml", False),
        ("-", "recipe.yaml", False),
        ("recipe.yaml", "", True),
        ("", "other.yaml", True),
    ],
)
def test_the_recipe_written_is_the_recipe_bundled(written: str, bundled: str, agree: bool) -> None:
    """Both paths must agree when both are given (bundler spec 1.6)."""
    text = document(recipe={"output": {"path": written}}, bundle={"input": {"recipe": bundled}})
    if agree:
        assert isinstance(load(text, "c.yaml"), Config)
    else:
        assert "would be made from another recipe" in refused(text).message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEADER + "spec: {recipe: {data: a, data: b}}\n", 'duplicate key "data"'),
        (HEADER + "spec:\n\trecipe: {}\n", "cannot start any token"),
        (HEADER + "spec: {}\n---\nkind: x\n", "expected one YAML document, found 2"),
        ('{"kind": "AICRConfig", "spec": {"recipe": {"data": "a", "data": "b"}}}', "duplicate key"),
        ('{"kind": "AICRConfig",}', "not valid JSON"),
    ],
)
def test_what_readers_disagree_on_is_refused(text: str, words: str) -> None:
    """The one YAML reader, and the one JSON reader, read configs as well."""
    error = refused(text)
    assert words in error.message
    assert error.where.startswith("c.yaml:")
