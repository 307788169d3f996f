"""The weights cache of inference-perf: its class, its claim, the Job that fills it, the token."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.contexts import node
from tests.checks_inference.perf_scene import settings
from tests.checks_inference.perf_scene import storage_class as sc

from aicr.checks.performance import inference_storage as storage
from aicr.errors import INVALID_REQUEST, AicrError

Document = dict[str, Any]
PD = "pd.csi.storage.gke.io"


def disk(name: str, kind: str | None, *, default: bool = False) -> Document:
    """A class of Google's driver."""
    parameters = {} if kind is None else {"type": kind}
    return {**sc(name, default=default), "provisioner": PD, "parameters": parameters}


def google(machine: str = "", family: str = "") -> Document:
    """A node of Google's."""
    labels = {
        "node.kubernetes.io/instance-type": machine,
        "cloud.google.com/machine-family": family,
    }
    return node("gke-1", gpus=4, labels={key: text for key, text in labels.items() if text})


@pytest.mark.covers("V-314")
def test_the_class_is_the_one_that_was_asked_for_else_the_default() -> None:
    """Of several defaults the newest, as the API server chooses."""
    old, new = sc("old", default=True), sc("new", default=True)
    old["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    new["metadata"]["creationTimestamp"] = "2026-02-01T00:00:00Z"
    classes = [old, new, sc("named")]
    assert storage.storage_class(settings(), classes, node("n")) == "new"
    assert storage.storage_class(settings(storage_class="named"), classes, node("n")) == "named"


@pytest.mark.covers("V-313")
@pytest.mark.parametrize(
    ("wanted", "message", "hint"),
    [
        ("", "the model cache needs a StorageClass, and the cluster has no default one", "=off"),
        ("standart", 'StorageClass "standart" of the model cache does not exist', "standard"),
    ],
    ids=["no default", "not there"],
)
def test_no_class_fails_at_once_with_guidance(wanted: str, message: str, hint: str) -> None:
    """Not a claim that stays Pending."""
    with pytest.raises(AicrError) as caught:
        storage.storage_class(settings(storage_class=wanted), [sc("standard")], node("n"))
    assert (caught.value.code, caught.value.message) == (INVALID_REQUEST, message)
    assert hint in caught.value.hint


@pytest.mark.covers("V-316", "V-318")
@pytest.mark.parametrize(
    ("where", "kind", "fits"),
    [
        (google("a4x-highgpu-4g"), "pd-balanced", False),
        (google("a4x-highgpu-4g"), None, False),
        (google("a4x-highgpu-4g"), "hyperdisk-balanced", True),
        (google(family="a4x"), "pd-ssd", False),
        (google("a4-highgpu-8g"), "pd-balanced", False),
        (google("a3-ultragpu-8g"), "pd-balanced", False),
        (google("a3-ultragpu-8g"), "hyperdisk-balanced-high-availability", True),
        (google("a3-highgpu-8g", "a3"), "pd-balanced", True),
        (node("eks-1", gpus=8), "pd-balanced", True),
    ],
    ids=[
        *("a4x pd", "a4x no type", "a4x hyperdisk", "family label", "a4", "a3 ultra pd"),
        *("a3 ultra high availability", "a3 high", "elsewhere"),
    ],
)
@pytest.mark.parametrize("source", ["recipe or variable", "default"])
def test_disks_that_do_not_attach_to_the_node_are_refused(
    where: Document, kind: str | None, fits: bool, source: str
) -> None:
    """INVALID_REQUEST, whether the class was named or is the default."""
    classes = [disk("disks", kind, default=source == "default")]
    wanted = settings(storage_class="" if source == "default" else "disks")
    if fits:
        assert storage.storage_class(wanted, classes, where) == "disks"
        return
    with pytest.raises(AicrError) as caught:
        storage.storage_class(wanted, classes, where)
    assert caught.value.code == INVALID_REQUEST
    assert caught.value.message.startswith(
        f"StorageClass disks makes {kind or 'pd-standard'} disks, which do not attach to "
    )


@pytest.mark.covers("V-317")
def test_a_type_that_is_newer_than_the_list_can_be_added() -> None:
    """And only that one."""
    where, classes = google("a4x-highgpu-4g"), [disk("disks", "hyperdisk-next")]
    wanted = settings(storage_class="disks", extra_types=("other", "hyperdisk-next"))
    assert storage.storage_class(wanted, classes, where) == "disks"
    with pytest.raises(AicrError):
        storage.storage_class(settings(storage_class="disks", extra_types=("o",)), classes, where)


def test_a_class_of_another_driver_is_not_judged_by_google_s_list() -> None:
    """Nothing is known about it, so nothing is refused."""
    local = {**sc("local"), "provisioner": "rancher.io/local-path"}
    wanted = settings(storage_class="local")
    assert storage.storage_class(wanted, [local], google("a4x-highgpu-4g")) == "local"


@pytest.mark.covers("V-321")
def test_the_claim_is_read_write_once_in_the_class_that_was_checked() -> None:
    """The default class is named, so that what was checked is what is used."""
    assert storage.claim(settings(), "fast") == {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "aicr-model-cache"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "resources": {"requests": {"storage": "100Gi"}},
        },
    }


@pytest.mark.covers("V-320", "V-322", "V-323")
def test_the_job_that_fills_the_cache() -> None:
    """On the workers' node, once, writing as the group of the image's user, without a memory limit."""
    job = storage.populate_job(settings(model="a/b"), "0123abcd", "gpu-1", [{"operator": "Exists"}])
    assert job["metadata"]["name"] == "aicr-model-cache-populate-0123abcd"
    assert job["spec"]["backoffLimit"] == 0
    pod = job["spec"]["template"]["spec"]
    assert pod["restartPolicy"] == "Never"
    assert pod["nodeSelector"] == {"kubernetes.io/hostname": "gpu-1"}
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert pod["securityContext"] == {"fsGroup": 1000}
    (container,) = pod["containers"]
    assert container["image"] == "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.2.1"
    assert set(container["resources"]) == {"requests"}
    assert set(container["resources"]["requests"]) == {"cpu", "memory"}
    variables = {each["name"]: each for each in container["env"]}
    assert variables["AICR_MODEL"]["value"] == "a/b"
    assert variables["HF_HOME"]["value"] == container["volumeMounts"][0]["mountPath"]
    assert "readOnly" not in container["volumeMounts"][0]
    # The model reaches the program as data and never as part of it.
    assert "a/b" not in "".join(container["command"])
    assert "snapshot_download" in container["command"][-1]


@pytest.mark.covers("V-320")
def test_the_token_is_an_optional_reference_to_a_secret() -> None:
    """A run without a token starts all the same."""
    secret = storage.token_secret("hf_x")
    assert secret["metadata"]["name"] == "aicr-hf-token"
    assert secret["stringData"] == {"token": "hf_x"}
    assert storage.token_variable() == {
        "name": "HF_TOKEN",
        "valueFrom": {"secretKeyRef": {"name": "aicr-hf-token", "key": "token", "optional": True}},
    }
