"""Our engine and the real chainsaw, on one API server, judge the same assertions the same way."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from tests import tools
from tests.chainsaw import (
    chainsaw_build,
    chainsaw_excuses,
    chainsaw_expressions,
    chainsaw_harness,
    chainsaw_trees,
)
from tests.chainsaw.chainsaw_case import Case
from tests.chainsaw.chainsaw_harness import ERROR, PASS
from tests.chainsaw.chainsaw_sample import CRD, GROUP, sample
from tests.controlplane import build
from tests.controlplane.client import MERGE, Client, eventually
from tests.controlplane.plane import ControlPlane

#: Another one is taken with AICR_CHAINSAW_SEED; the one that was taken is printed.
SEED: Final = int(os.environ.get("AICR_CHAINSAW_SEED", "20260115"))


def corpus(seed: int = SEED) -> list[Case]:
    """Every case."""
    return [*chainsaw_trees.cases(seed), *chainsaw_expressions.cases(seed)]


def test_every_construct_has_ten_cases_by_hand_and_by_chance() -> None:
    """Of every node, comparison, operator and function; some written by a person, most by chance."""
    counts = Counter(case.construct for case in corpus())
    assert {name: count for name, count in counts.items() if count < 10} == {}
    assert len(counts) > 140
    by_hand = sum(case.by_hand for case in corpus())
    assert 0.2 < by_hand / len(corpus()) < 0.8


def test_the_same_seed_makes_the_same_cases() -> None:
    """And another seed makes others."""
    assert corpus(7) == corpus(7)
    assert corpus(7) != corpus(8)


@pytest.mark.cluster
def test_chainsaw_and_our_engine_agree(
    plane: ControlPlane, api: Client, namespace: str, tmp_path: Path
) -> None:
    """Pass, does not hold, cannot be evaluated: the same of every case, or excused by a rule."""
    try:
        program = chainsaw_build.existing()
    except build.BuildError as error:
        pytest.skip(str(error))
    cases = corpus()
    folder = tmp_path / "tests"
    folder.mkdir()
    begun = time.monotonic()
    with prepared(plane.kubeconfig, api, namespace):
        ours = asyncio.run(chainsaw_harness.ours(plane.kubeconfig, namespace, cases))
        between = time.monotonic()
        alone = [
            chainsaw_excuses.may_crash(case, our) for case, our in zip(cases, ours, strict=True)
        ]
        theirs = chainsaw_harness.chainsaw(
            program, plane.kubeconfig, namespace, cases, alone, folder
        )
    ended = time.monotonic()
    excused: Counter[str] = Counter()
    differences = []
    for case, their, our in zip(cases, theirs, ours, strict=True):
        if their[0] == our[0]:
            continue
        rule = chainsaw_excuses.excuse(case, their, our)
        if rule is not None:
            excused[f"{rule.construct}: {rule.reason}"] += 1
            continue
        differences.append(
            f"{case.construct}: chainsaw says {their[0]}, we say {our[0]}\n"
            f"  {case.kind} {json.dumps(case.resource, ensure_ascii=False)}\n"
            f"  chainsaw: {their[1][:300]!r}\n  ours: {our[1][:300]!r}"
        )
    said = Counter(their[0] for their in theirs)
    print(
        f"\nchainsaw differential: seed {SEED}, {len(cases)} assertions of "
        f"{len({case.construct for case in cases})} constructs: {dict(said)}; "
        f"{sum(excused.values())} excused, {len(differences)} different; "
        f"ours {between - begun:.0f} s, chainsaw {ended - between:.0f} s"
    )
    for reason, count in sorted(excused.items()):
        print(f"  excused {count}: {reason}")
    assert not differences, f"{len(differences)} differences\n" + "\n".join(differences)
    failing = (len(cases) - said[PASS]) / len(cases)
    assert failing >= 0.4
    assert said[ERROR] / len(cases) >= 0.1


@contextmanager
def prepared(config: Path, api: Client, namespace: str) -> Iterator[None]:
    """The CRD, two objects of it, and one that is being removed and never goes."""
    other = sample("other", labels={"color": "red"})
    other["spec"] = {"text": "other", "int": 1}
    leaving = sample("leaving", labels={"color": "grey"}, finalizers=["test.aicr.run/stays"])
    leaving["spec"] = {"text": "leaving", "int": 0}
    for document in (CRD, sample(), other, leaving):
        text = json.dumps(document)

        def applied(text: str = text) -> bool:
            done = subprocess.run(
                [
                    *(tools.kubectl(), f"--kubeconfig={config}", f"--namespace={namespace}"),
                    *("apply", "--server-side", "-f", "-"),
                ],
                input=text,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            return done.returncode == 0

        eventually(f"{document['kind']} to be taken", applied)
    path = f"/apis/{GROUP}/v1/namespaces/{namespace}/samples"
    api.request("DELETE", f"{path}/leaving")
    assert len(api.call("GET", path)["items"]) == 3
    yield
    api.call(*("PATCH", f"{path}/leaving", {"metadata": {"finalizers": []}}), content_type=MERGE)
    api.request(
        "DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/samples.{GROUP}"
    )
