"""Kubeflow Trainer for the length of a run (validators spec 7.2 "Execution")."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.checks_nccl.bench import CRDS, RUN_ID, Bench, controller, crd, validation
from tests.kube.fakeapi import refuse

from aicr.checks.performance import nccl_lock, nccl_trainer
from aicr.checks.performance.nccl_variants import DEFAULT
from aicr.checks.sdk.outcome import could_not_tell
from aicr.contract import labels
from aicr.errors import INTERNAL, INVALID_REQUEST, NOT_FOUND, AicrError
from aicr.kube import kinds
from aicr.yamlio.write import dump

Document = dict[str, Any]


def manifests(path: Path, *, available: int = 1, established: bool = True) -> dict[str, str]:
    """Settings that name a file with all parts of Trainer."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount"}
    documents = [
        *(crd(name, established=established) for name in CRDS),
        {**account, "metadata": {"name": "trainer", "namespace": "kubeflow"}},
        controller(available=available),
    ]
    file = path / "trainer.yaml"
    file.write_text("---\n".join(dump(one) for one in documents))
    return {"AICR_NCCL_TRAINER_MANIFESTS": str(file)}


def bench(environ: dict[str, str], **more: Any) -> Bench:
    """A cluster without Trainer."""
    given = validation({"nccl-all-reduce-bw": ">= 1"})
    return Bench(DEFAULT, given, settings={"environ": environ}, **{"trainer": False, **more})


def parts(scene: Bench) -> list[str]:
    """What of Trainer is there."""
    assert scene.api is not None
    kinds_ = (
        "customresourcedefinitions.apiextensions.k8s.io",
        "deployments.apps",
        "serviceaccounts",
    )
    return sorted(name for kind in kinds_ for _, name in scene.api.objects.get(kind, {}))


def test_an_absent_trainer_is_installed_for_the_run_and_removed_again(tmp_path: Path) -> None:
    """In the order of the file, and back."""
    scene = bench(manifests(tmp_path))
    assert scene.judge() is None
    assert "Kubeflow Trainer installed for this run: 4 objects" in scene.seen.lines
    assert parts(scene) == []
    assert scene.api is not None
    gone = [line.rpartition("/")[2] for line in scene.api.seen if line.startswith("DELETE ")]
    assert [name for name in gone if name in (*CRDS, "trainer")] == ["trainer", *reversed(CRDS)]


def test_what_was_there_before_is_neither_changed_nor_removed(tmp_path: Path) -> None:
    """Only the missing part is made, and only it goes."""
    scene = bench(manifests(tmp_path)).put(kinds.CUSTOM_RESOURCE_DEFINITION, crd(CRDS[0]))
    assert scene.judge() is None
    assert parts(scene) == [CRDS[0]]


def test_an_installed_trainer_stays_while_another_run_is_there(tmp_path: Path) -> None:
    """It may use it; the log says so."""
    name = "aicr-nccl-perf-net-11111111"
    other = {"metadata": {"name": name, "labels": {**nccl_lock.OWNERSHIP, labels.RUN_ID: "other"}}}
    scene = bench(manifests(tmp_path)).put(kinds.NAMESPACE, other)
    assert scene.judge() is None
    assert f"Kubeflow Trainer stays: {name} may use it" in scene.seen.log
    assert len(parts(scene)) == 4
    assert nccl_lock.name_of("default", RUN_ID) not in scene.left


@pytest.mark.parametrize(
    ("options", "said"),
    [({"established": False}, "was not established"), ({"available": 0}, "was not available")],
    ids=["crd", "controller"],
)
def test_a_trainer_that_does_not_come_up_fails_and_is_removed(
    options: Any, said: str, tmp_path: Path
) -> None:
    """A verdict with how long was waited."""
    scene = bench(manifests(tmp_path, **options))
    scene.timeouts = replace(scene.timeouts, trainer_crd_established=0.2, trainer_controller=0.2)
    error = scene.judge()
    assert error is not None
    assert said in error.message
    assert parts(scene) == []


def test_a_declared_trainer_that_is_incomplete_is_not_repaired(tmp_path: Path) -> None:
    """NOT_FOUND naming the part: the recipe promised it."""
    given = validation({"nccl-all-reduce-bw": ">= 1"}, manifestFiles=[])
    scene = Bench(DEFAULT, given, trainer=False, settings={"environ": manifests(tmp_path)}).put(
        kinds.CUSTOM_RESOURCE_DEFINITION, *map(crd, CRDS)
    )
    error = scene.judge()
    assert error is not None
    assert (error.code, could_not_tell(error)) == (NOT_FOUND, "")
    assert "kubeflow-trainer-controller-manager not found" in error.message
    assert parts(scene) == sorted(CRDS)


@pytest.mark.parametrize(
    ("text", "said"),
    [(None, "cannot be read"), ("", "holds no object"), ("a: 1\n", "document 1 is no object")],
    ids=["no file", "empty", "no object"],
)
def test_manifests_that_are_none_are_refused(text: str | None, said: str, tmp_path: Path) -> None:
    """INVALID_REQUEST, nothing created."""
    path = tmp_path / "x.yaml"
    if text is not None:
        path.write_text(text)
    scene = bench({"AICR_NCCL_TRAINER_MANIFESTS": str(path)})
    error = scene.judge()
    assert error is not None
    assert (error.code, said in str(error)) == (INVALID_REQUEST, True)
    assert parts(scene) == []


def test_a_part_that_cannot_be_created_takes_the_others_back(tmp_path: Path) -> None:
    """Named, as could-not-tell."""
    scene = bench(manifests(tmp_path))
    scene.fault("POST .*/serviceaccounts", refuse(422, "Invalid", "no"))
    error = scene.judge()
    assert error is not None
    assert (error.code, could_not_tell(error)) == (INTERNAL, INTERNAL)
    assert "cannot install ServiceAccount/trainer" in error.message
    assert parts(scene) == []


def test_a_stream_of_manifests_keeps_its_order() -> None:
    """Empty documents are no objects and no error."""
    text = "---\n---\n" + "---\n".join(
        f"apiVersion: v1\nkind: {name.upper()}\nmetadata: {{name: {name}}}\n" for name in "ab"
    )
    assert [one["kind"] for one in nccl_trainer.manifests(text, "x")] == ["A", "B"]
    with pytest.raises(AicrError):
        nccl_trainer.manifests("[1]", "x")
