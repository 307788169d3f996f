"""Who may reach the gateway, the A4X storage class, and Slurm's accounting contract."""

from __future__ import annotations

from typing import Any

import pytest
from tests.bundle.sample_catalogues import World

GATEWAY = "agentgateway"
PRIVATE = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"]


def gateway(ranges: str) -> World:
    """A gateway whose values file says this about its ranges."""
    return World(GATEWAY, files={f"components/{GATEWAY}/values.yaml": ranges})


@pytest.mark.parametrize("text", ["", "allowedSourceRanges:\n", "allowedSourceRanges: []\n"])
def test_ranges_that_nobody_set_are_the_private_networks(text: str) -> None:
    """A load balancer without ranges is open to everybody (bundler spec 0.7)."""
    made = gateway(text).plan()
    assert made.components[0].values["allowedSourceRanges"] == PRIVATE
    (note,) = made.notes
    assert "private networks only" in note


def test_ranges_that_were_set_stay() -> None:
    """Checked, and written as they are."""
    made = gateway("allowedSourceRanges: [192.0.2.0/24, '2001:db8::/32']\n").plan()
    assert made.components[0].values["allowedSourceRanges"] == ["192.0.2.0/24", "2001:db8::/32"]
    assert made.notes == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[0.0.0.0/0]", "0.0.0.0/0"),
        ("['::/0']", "::/0"),
        ("[10.0.0.0/8, 0.0.0.0/0]", "0.0.0.0/0"),
        ("[0.0.0.0/1, 128.0.0.0/1]", "0.0.0.0/0"),
    ],
)
def test_a_range_of_everybody_is_allowed_and_loudly_said(text: str, shown: str) -> None:
    """Also when two halves add up to it (bundler spec 0.7)."""
    (note,) = gateway(f"allowedSourceRanges: {text}\n").plan().notes
    assert f"{shown}: EVERY source" in note


@pytest.mark.covers("B10-84")
@pytest.mark.parametrize(
    "text",
    [
        "[10.0.0.1/8]",
        "[10.0.0.0]",
        "[10.0.0.0/255.0.0.0]",
        "[a/8]",
        "[1]",
        "10.0.0.0/8",
        "{a: b}",
        "[10.0.0.0/33]",
    ],
)
def test_ranges_that_are_no_networks_are_refused(text: str) -> None:
    """Not a list, not text, not CIDR, or host bits set (bundler spec 0.7)."""
    error = gateway(f"allowedSourceRanges: {text}\n").refused()
    assert f"{GATEWAY}:allowedSourceRanges" in error.message


@pytest.mark.parametrize("path", ["allowedSourceRanges", "allowedSourceRanges.x"])
def test_the_ranges_are_not_left_to_the_installation(path: str) -> None:
    """The Gateway is rendered with the bundle, so an open range could not be closed later."""
    assert "who may reach" in gateway("").refused(dynamic=[f"{GATEWAY}:{path}"]).message


A4X = "components/dynamo-platform/manifests/a4x-storage-class.yaml"


def dynamo(values: str = "") -> World:
    """dynamo-platform with its storage class and another manifest."""
    files = {A4X: "kind: StorageClass\n", "other.yaml": "kind: Other\n"}
    if values:
        files["components/dynamo-platform/values.yaml"] = values
    ref = {"name": "dynamo-platform", "manifestFiles": [A4X, "other.yaml"]}
    return World(ref, entries={"dynamo-platform": {"valueOverrideKeys": ["dynamo"]}}, files=files)


@pytest.mark.parametrize(
    ("values", "flags", "shipped"),
    [
        ("", {}, True),
        ("", {"set": ["dynamo:a4xStorageClass.create=false"]}, False),
        ("", {"set": ["dynamo:a4xStorageClass.create=F"]}, False),
        ("", {"set": ["dynamo:a4xStorageClass.create=true"]}, True),
        ("a4xStorageClass: {create: false}", {}, False),
        ("a4xStorageClass: {create: false}", {"set": ["dynamo:a4xStorageClass.create=true"]}, True),
    ],
)
def test_the_switch_decides_about_the_manifest_and_never_reaches_the_chart(
    values: str, flags: dict[str, Any], shipped: bool
) -> None:
    """False drops the storage class; the key is no chart value (bundler spec 0.9)."""
    made = dynamo(values).component("dynamo-platform", **flags)
    names = [name for name, _ in made.manifests]
    assert names == (["a4x-storage-class.yaml", "other.yaml"] if shipped else ["other.yaml"])
    assert made.values == {}


@pytest.mark.parametrize(
    "flags",
    [
        {"set_json": ["dynamo:a4xStorageClass.create=false"]},
        {"set_json": ['dynamo:a4xStorageClass={"create":false}']},
        {"set": ["dynamo:a4xStorageClass=false"]},
        {"set": ["dynamo:a4xStorageClass.create=no"]},
        {"dynamic": ["dynamo:a4xStorageClass.create"]},
    ],
)
def test_the_switch_is_a_scalar_only(flags: dict[str, Any]) -> None:
    """Typed and dynamic forms, and words that are no boolean, are refused (bundler spec 0.9)."""
    assert "a4xStorageClass" in dynamo().refused(**flags).message


CONNECTION = {
    "host": "db.example.com",
    "port": 3306,
    "database": "acct",
    "username": "slurm",
    "passwordKeyRef": {"name": "secret", "key": "password"},
}
PROVIDED = {
    "host": "mariadb",
    "port": 3306,
    "database": "slurm_acct_db",
    "username": "slurm",
    "passwordKeyRef": {"name": "mariadb-password", "key": "password"},
}
DATABASE = {
    "fullnameOverride": "mariadb",
    "namespaceOverride": "slurm",
    "mariadb": {
        "rootPasswordSecretKeyRef": {
            "name": "mariadb-root-password",
            "key": "root",
            "generate": True,
        },
        "username": "slurm",
        "database": "slurm_acct_db",
        "passwordSecretKeyRef": {"name": "mariadb-password", "key": "password", "generate": True},
        "cleanupPolicy": "Skip",
    },
    "users": [],
    "databases": [],
    "grants": [],
}


def slurm(
    mode: str, enabled: Any, storage: dict[str, Any], database: dict[str, Any] | None = None
) -> World:
    """A recipe with an accounting mode, and overlays that say this."""
    refs: list[dict[str, Any]] = [
        {
            "name": "slinky-slurm",
            "overrides": {"accounting": {"enabled": enabled, "storageConfig": storage}},
        }
    ]
    if database is not None:
        refs.append({"name": "slurm-accounting-mariadb", "overrides": database})
    parts: dict[str, Any] = {}
    if mode:
        parts["configuration"] = {"slurm": {"accounting": {"mode": mode}}}
    return World(*refs, **parts)


@pytest.mark.parametrize(
    ("mode", "enabled", "storage", "database"),
    [
        ("disabled", False, {}, None),
        ("customer-provided", True, CONNECTION, None),
        ("aicr-provided", True, PROVIDED, DATABASE),
    ],
)
def test_values_that_agree_with_the_mode_pass(
    mode: str, enabled: bool, storage: dict[str, Any], database: dict[str, Any] | None
) -> None:
    """Each mode of the recipe with the values it promises (bundler spec 0.6)."""
    assert slurm(mode, enabled, storage, database).plan().notes == []


@pytest.mark.parametrize(
    ("mode", "enabled", "storage", "database", "words"),
    [
        ("disabled", True, {}, None, "accounting.enabled is True; it must be false"),
        ("disabled", "false", {}, None, "must be false"),
        ("customer-provided", False, CONNECTION, None, "must be true"),
        ("customer-provided", True, {**CONNECTION, "host": ""}, None, "storageConfig.host"),
        ("customer-provided", True, {**CONNECTION, "port": 0}, None, "storageConfig.port"),
        ("customer-provided", True, {**CONNECTION, "port": 65536}, None, "storageConfig.port"),
        ("customer-provided", True, {**CONNECTION, "port": "3306"}, None, "storageConfig.port"),
        ("customer-provided", True, {**CONNECTION, "port": True}, None, "storageConfig.port"),
        (
            "customer-provided",
            True,
            {**CONNECTION, "passwordKeyRef": {"name": "x"}},
            None,
            "passwordKeyRef.key",
        ),
        ("aicr-provided", True, CONNECTION, DATABASE, "storageConfig.host"),
        ("aicr-provided", True, PROVIDED, None, "slurm-accounting-mariadb is not in the bundle"),
        ("aicr-provided", True, PROVIDED, {**DATABASE, "users": [{}]}, "users"),
        ("aicr-provided", True, PROVIDED, {**DATABASE, "namespaceOverride": "x"}, "'slurm'"),
    ],
)
def test_values_that_contradict_the_mode_are_refused(
    mode: str,
    enabled: Any,
    storage: dict[str, Any],
    database: dict[str, Any] | None,
    words: str,
) -> None:
    """Accounting records would be lost without a word (bundler spec 0.6; 0.3, step 8)."""
    error = slurm(mode, enabled, storage, database).refused()
    assert f'configuration.slurm.accounting.mode is "{mode}"' in error.message
    assert words in error.message


def test_a_recipe_from_before_the_modes_gets_a_note() -> None:
    """Accounting by an override alone still works, and is deprecated (bundler spec 0.6)."""
    (note,) = slurm("", True, CONNECTION).plan().notes
    assert "deprecated" in note
