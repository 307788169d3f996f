"""Home and data volumes of Slurm: made and mounted where a shared class is named, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest

from aicr import Catalog, Criteria, resolve
from aicr.bundle.api import Bundle, make_bundle
from aicr.bundle.options import BundleOptions
from aicr.bundle.slurm_volumes import DEFAULT_SIZE, materialise
from aicr.errors import AicrError
from aicr.yamlio import read

SETS: dict[str, Any] = {
    "loginsets": {"slinky": {"login": {"image": {"tag": "1"}}}},
    "nodesets": {"a": {"slurmd": {}}, "b": {"slurmd": {}}},
}
FLAGS: dict[str, Any] = {
    "system_node_selector": ["pool=system"],
    "accelerated_node_selector": ["pool=gpu"],
}


def slurm(**flags: Any) -> Bundle:
    """The bundle of a Slurm recipe of the catalogue."""
    criteria = Criteria(
        service="eks", accelerator="h100", intent="training", os="ubuntu", platform="slurm"
    )
    return make_bundle(resolve(Catalog.builtin(), criteria), BundleOptions(**FLAGS, **flags))


def claims(bundle: Bundle) -> list[dict[str, Any]]:
    """The PersistentVolumeClaims in a bundle."""
    found = [data for path, (data, _) in bundle.files.items() if "shared-volumes" in path]
    return [each for data in found for each in read.load_all(data.decode(), source="claims")]


def test_without_a_class_nothing_is_made() -> None:
    """No volume, no claim, values as they were (bundler spec 0.9)."""
    assert materialise(SETS, "slurm") == (SETS, [], [])
    assert claims(slurm()) == []


def test_a_named_class_makes_claims_and_mounts_them_in_every_set() -> None:
    """--shared-storage-class gives both volumes; claims come before the chart and are kept."""
    bundle = slurm(shared_storage_class="efs")
    found = claims(bundle)
    assert [each["metadata"]["name"] for each in found] == ["slurm-home", "slurm-data"]
    for each in found:
        assert each["metadata"]["namespace"] == "slurm"
        assert each["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
        assert each["spec"] == {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "efs",
            "resources": {"requests": {"storage": DEFAULT_SIZE}},
        }
    (folder,) = {path.partition("/")[0] for path in bundle.files if "shared-volumes" in path}
    assert folder.endswith("-slinky-slurm-pre")
    (component,) = [each for each in bundle.plan.components if each.name == "slinky-slurm"]
    for kind, container in (("loginsets", "login"), ("nodesets", "slurmd")):
        own = component.values[kind]["slinky"]
        assert [
            each["persistentVolumeClaim"]["claimName"] for each in own["podSpec"]["volumes"]
        ] == [
            "slurm-home",
            "slurm-data",
        ]
        assert own[container]["volumeMounts"] == [
            {"name": "shared-home", "mountPath": "/home"},
            {"name": "shared-data", "mountPath": "/data"},
        ]
    assert sum("storage.home.size" in note for note in bundle.plan.notes) == 1


@pytest.mark.parametrize(
    ("flags", "classes"),
    [
        ({"set": ["slinky-slurm:storage.home.storageClassName=fsx"]}, {"slurm-home": "fsx"}),
        (
            {
                "shared_storage_class": "efs",
                "set_json": ['slinky-slurm:storage.data={"storageClassName":"lustre"}'],
            },
            {"slurm-home": "efs", "slurm-data": "lustre"},
        ),
        (
            {"shared_storage_class": "efs", "set_json": ["slinky-slurm:storage.data=null"]},
            {"slurm-home": "efs"},
        ),
    ],
    ids=["one by --set", "another by --set-json", "one taken away by --set-json"],
)
def test_the_last_word_about_a_class_counts(flags: dict[str, Any], classes: dict[str, str]) -> None:
    """Claims are made after typed overrides, from the values that the chart gets."""
    made = {
        each["metadata"]["name"]: each["spec"]["storageClassName"]
        for each in claims(slurm(**flags))
    }
    assert made == classes


def test_a_size_is_taken_and_not_spoken_of() -> None:
    """The default is a word of warning; a size that was given is none."""
    values = {**SETS, "storage": {"home": {"storageClassName": "x", "size": "2Ti"}}}
    _, [(_, text)], notes = materialise(values, "ns")
    assert read.load(text, source="c")["spec"]["resources"]["requests"]["storage"] == "2Ti"
    assert notes == []


def test_a_volume_that_a_set_has_already_is_left_alone() -> None:
    """What somebody wrote wins over what would be written."""
    own = {"name": "shared-home", "nfs": {"server": "s", "path": "/"}}
    values: dict[str, Any] = {
        "storage": {"home": {"storageClassName": "x", "size": "1Gi"}},
        "nodesets": {"a": {"podSpec": {"volumes": [own]}}},
    }
    made, _, _ = materialise(values, "ns")
    assert made["nodesets"]["a"]["podSpec"]["volumes"] == [own]
    assert "podSpec" in values["nodesets"]["a"]
    assert "slurmd" not in values["nodesets"]["a"]


@pytest.mark.parametrize("size", ["", "0", "-1Gi", "lots", True, [], "1 Gi"], ids=repr)
def test_what_is_no_size_is_refused(size: Any) -> None:
    """The API server would refuse the claim, and the pods would wait for it."""
    values = {"storage": {"home": {"storageClassName": "x", "size": size}}}
    with pytest.raises(AicrError, match="no size of a volume") as caught:
        materialise(values, "ns")
    assert caught.value.code == "INVALID_REQUEST"
    assert caught.value.where == "slinky-slurm:storage.home.size"


def test_volumes_that_are_no_list_are_refused() -> None:
    """They could not hold another one."""
    values = {
        "storage": {"home": {"storageClassName": "x", "size": "1Gi"}},
        "nodesets": {"a": {"podSpec": {"volumes": {"v": 1}}}},
    }
    with pytest.raises(AicrError, match="needs a list there"):
        materialise(values, "ns")


def test_a_class_cannot_be_left_to_installation() -> None:
    """Whether there is a claim is decided when the bundle is made."""
    with pytest.raises(AicrError) as caught:
        slurm(deployer="helm", dynamic=["slinky-slurm:storage.home.storageClassName"])
    assert caught.value.code == "INVALID_REQUEST"
    assert "--dynamic" in str(caught.value)
