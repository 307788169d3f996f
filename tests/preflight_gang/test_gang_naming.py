"""Gang ids → names and labels of ConfigMaps."""

from __future__ import annotations

import hashlib
import re

import pytest

from aicr.preflight.gang.naming import config_map_name, distinct_name, names_of, sanitize

A = "a"
VOLCANO = "volcano-preflight-test-ns-preflight-test-0649344f-37d9-4aa5-be11-be4366dac797"
SIXTY = "volcano-team-a-podgroup-5f1c2d3e-0000-4aaa-bbbb-123456789abc"
SYMBOLS = "a821cf5c9ba958c46e94979df3c03ec7266a50468f5bbfc280d54cd015cb530"
ROWS = [
    ("osmo-with-kai-team-a-myjob", "preflight-osmo-with-kai-team-a-myjob", ""),
    (
        "kubernetes-team-a-training.workers",
        "preflight-kubernetes-team-a-training-workers",
        "kubernetes-team-a-training-workers",
    ),
    ("Kubernetes-NS-Job_1", "preflight-kubernetes-ns-job-1", "kubernetes-ns-job-1"),
    (
        VOLCANO,
        "preflight-volcano-preflight-test-ns-preflight-test-064-ee34124a",
        "volcano-preflight-test-ns-preflight-test-0649344f-37d9-ee34124a",
    ),
    (SIXTY, "preflight-volcano-team-a-podgroup-5f1c2d3e-0000-4aaa-b-cff5a679", ""),
    (A * 53, "preflight-" + A * 53, ""),
    (A * 54, "preflight-" + A * 44 + "-a3f01b69", ""),
    (A * 64, "preflight-" + A * 44 + "-ffe054fe", A * 54 + "-ffe054fe"),
    (A * 100, "preflight-" + A * 44 + "-28165978", A * 54 + "-28165978"),
    ("@#$%^&*()", "preflight-a821cf5c9ba958c46e94979df3c03ec7266a50468f5b-a821cf5c", SYMBOLS),
    (
        "-----",
        "preflight-73be087e93080f9e436892b7d182df66394bc79dbf5d-73be087e",
        hashlib.sha256(b"-----").hexdigest()[:63],
    ),
    ("ünïcode-gang", "preflight-n-code-gang", "n-code-gang"),
]


@pytest.mark.covers("P11-74", "P-123", "P-120")
@pytest.mark.parametrize(("gang_id", "name", "label"), ROWS, ids=[row[0][:30] for row in ROWS])
def test_names_are_as_published_to_the_bit(gang_id: str, name: str, label: str) -> None:
    """Operators and checks find the ConfigMap by them."""
    assert config_map_name(gang_id) == name
    assert sanitize(gang_id) == (label or gang_id)


def test_capital_letters_that_become_two_count_as_one() -> None:
    """As Go lowers them: a dotted capital I is an i."""
    assert sanitize("İx") == "ix"
    assert sanitize("") == ""


@pytest.mark.covers("J5")
def test_ids_that_share_a_name_have_different_second_names() -> None:
    """``job.1``, ``job-1``, ``job--1``, ``Job_1``: the hash is of the id as it was."""
    ids = [f"volcano-ns-{name}" for name in ("job.1", "job-1", "job--1", "Job_1")]
    assert {config_map_name(gang_id) for gang_id in ids} == {"preflight-volcano-ns-job-1"}
    second = [distinct_name(gang_id) for gang_id in ids]
    assert len(set(second)) == 4
    for name in second:
        assert re.fullmatch(r"preflight-volcano-ns-job-1-[0-9a-f]{8}", name)


@pytest.mark.covers("J5")
def test_long_ids_with_one_beginning_differ() -> None:
    """80 characters, the first 60 the same."""
    ids = ["x" * 60 + "a" * 20, "x" * 60 + "b" * 20]
    names = [config_map_name(gang_id) for gang_id in ids]
    assert len(set(names)) == 2
    assert all(len(name) <= 63 for name in names)
    assert names_of(ids[0]) == (names[0],)
