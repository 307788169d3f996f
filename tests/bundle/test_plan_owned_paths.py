"""Paths that the recipe's configuration or profile owns, and overrides that try to touch them."""

from __future__ import annotations

from typing import Any, cast

import pytest

from aicr.bundle.overrides import Override, parse_overrides
from aicr.bundle.owned import allocation_notes, check_configuration, check_profile
from aicr.errors import INVALID_REQUEST, AicrError
from aicr.recipe.types import RecipeResult


def overrides(*texts: str, json: tuple[str, ...] = ()) -> list[Override]:
    """Overrides whose key is the component's name."""
    found, _ = parse_overrides(scalars=texts, files=(), jsons=json, read_file=None)
    for override in found:
        override.component = override.key
    return found


def configured(mode: str = "", interfaces: Any = None) -> RecipeResult:
    """A recipe with typed configuration."""
    configuration: dict[str, Any] = {}
    if mode:
        configuration["slurm"] = {"accounting": {"mode": mode}}
    if interfaces:
        configuration["gke"] = {"tcpxoInterfaces": interfaces}
    return cast("RecipeResult", {"configuration": configuration})


PROFILED = cast(
    "RecipeResult",
    {
        "metadata": {
            "selectedProfile": {
                "name": "gpuStack",
                "value": "azure-managed",
                "ownedPaths": {"gpu-operator": ["driver.enabled", "enabled", "toolkit"]},
            }
        }
    },
)


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        ("disabled", "slinky-slurm:accounting.enabled=true"),
        ("disabled", "slinky-slurm:accounting=null"),
        ("customer-managed", "slinky-slurm:accounting.enabled=false"),
        ("customer-managed", "slinky-slurm:enabled=false"),
        ("aicr-provided", "slinky-slurm:accounting.storageConfig.host=db"),
        ("aicr-provided", "slinky-slurm:accounting.storageConfig.passwordKeyRef.name=x"),
        ("aicr-provided", "slurm-accounting-mariadb:mariadb.database=x"),
        ("aicr-provided", "slurm-accounting-mariadb:users=null"),
        ("aicr-provided", "mariadb-operator:enabled=false"),
        ("aicr-provided", "mariadb-operator-crds:enabled=false"),
    ],
)
def test_an_accounting_mode_owns_its_paths(mode: str, text: str) -> None:
    """Equal, above and below are refused, with the configuration that owns the path."""
    with pytest.raises(AicrError, match=r"configuration\.slurm\.accounting\.mode") as caught:
        check_configuration(configured(mode), overrides(text))
    assert caught.value.code == INVALID_REQUEST


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        ("", "slinky-slurm:accounting.enabled=true"),
        ("disabled", "slinky-slurm:accounting.other=1"),
        ("customer-managed", "slinky-slurm:accounting.storageConfig.host=db.example"),
        ("aicr-provided", "slinky-slurm:controller.replicas=2"),
        ("aicr-provided", "other:accounting.enabled=true"),
        ("aicr-provided", "slurm-accounting-mariadb:mariadb.replicas=3"),
    ],
)
def test_other_paths_stay_free(mode: str, text: str) -> None:
    """A customer's own database is configured by the customer."""
    check_configuration(configured(mode), overrides(text))


def test_the_network_mapping_of_tcpxo_is_owned() -> None:
    """Its recorded value and the trainer's value have to be one; typed overrides count as well."""
    recipe = configured(interfaces=[{"interfaceName": "eth1", "network": "a-gpu-nic-1"}])
    with pytest.raises(AicrError, match=r"configuration\.gke\.tcpxoInterfaces"):
        check_configuration(recipe, overrides(json=("kubeflow-trainer:tcpxoInterfaces=[]",)))
    check_configuration(configured(), overrides(json=("kubeflow-trainer:tcpxoInterfaces=[]",)))


@pytest.mark.covers("C-072")
@pytest.mark.parametrize(
    "flags",
    [
        overrides("gpu-operator:driver.enabled=true"),
        overrides("gpu-operator:driver=x"),
        overrides("gpu-operator:toolkit.version=1"),
        overrides("gpu-operator:enabled=false"),
        overrides(json=('gpu-operator:driver={"version":"1"}',)),
    ],
    ids=lambda flags: flags[0].label,
)
def test_a_profile_owns_its_paths(flags: list[Override]) -> None:
    """Equal, above and below are refused, with the profile and how to choose another value."""
    with pytest.raises(AicrError, match="owned by the profile gpuStack=azure-managed") as caught:
        check_profile(PROFILED, flags)
    assert caught.value.code == INVALID_REQUEST
    assert "--profile gpuStack=" in caught.value.hint


def test_without_a_profile_nothing_is_locked() -> None:
    """Neighbouring paths, other components and recipes without a profile pass."""
    check_profile(PROFILED, overrides("gpu-operator:driver.version=1", "nfd:driver.enabled=true"))
    check_profile({}, overrides("gpu-operator:driver.enabled=true"))
    check_profile({"metadata": {}}, overrides("gpu-operator:driver.enabled=true"))


@pytest.mark.parametrize(
    ("text", "noted"),
    [
        ("gpu-operator:devicePlugin.enabled=false", True),
        ("gpu-operator-ocp:enabled=false", True),
        ("nvidia-dra-driver-gpu:resources.gpus.enabled=true", True),
        ("nvidia-dra-driver-gpu:resources=x", True),
        ("nvidia-dra-driver-gpu:resources.computeDomains.enabled=true", False),
        ("nfd:devicePlugin.enabled=false", False),
    ],
)
def test_changing_who_allocates_gpus_is_worth_a_note(text: str, noted: bool) -> None:
    """It is allowed, but later checks judge another policy than the recipe's."""
    assert bool(allocation_notes(overrides(text))) is noted
