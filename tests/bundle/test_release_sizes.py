"""Helm's record of a release must fit into a Secret."""

from __future__ import annotations

import base64
import gzip
import json
import random

import pytest
from tests.bundle.sample_plans import CONFIG_MAP, chart, component, plan_of

from aicr.bundle import layout, sizes
from aicr.errors import AicrError


def noise(size: int) -> str:
    """Text of this many bytes that hardly compresses; the same in every run."""
    return base64.b64encode(random.Random(1).randbytes(size * 3 // 4)).decode()


def config_map(size: int) -> str:
    """A ConfigMap of about this size."""
    return f"{CONFIG_MAP}  more: {noise(size)}\n"


def test_a_small_chart_passes_without_a_word() -> None:
    """The usual case."""
    folders = layout.folders(plan_of(component("x", manifests=[("m.yaml", CONFIG_MAP)])))
    assert sizes.check(folders) == []


def test_a_chart_that_helm_could_not_record_is_refused() -> None:
    """Although each of its objects is small enough (issue 5)."""
    manifests = [(f"m{number}.yaml", config_map(300_000)) for number in range(4)]
    folders = layout.folders(plan_of(component("x", manifests=manifests)))
    with pytest.raises(AicrError) as caught:
        sizes.check(folders)
    assert caught.value.code == "INVALID_REQUEST"
    assert caught.value.where == "x"
    assert "1024 KiB" in caught.value.message


def test_values_that_helm_could_not_record_are_refused() -> None:
    """Also for a chart that is pulled: of its record the values are known (issue 5)."""
    folders = layout.folders(plan_of(chart("x", values={"text": noise(1_500_000)})))
    with pytest.raises(AicrError) as caught:
        sizes.check(folders)
    assert caught.value.code == "INVALID_REQUEST"
    assert caught.value.where == "x"
    assert "ConfigMap" in (caught.value.hint or "")
    small = layout.folders(plan_of(chart("x", values={"text": "word " * 200_000})))
    assert sizes.check(small) == []


def test_a_chart_that_comes_near_is_a_note() -> None:
    """The estimate is not exact, so the last tenth is said."""
    low, high = 300_000, 700_000
    while high - low > 2_000:
        middle = (low + high) // 2
        text = config_map(middle).encode()
        size = sizes.estimate({"templates/m.yaml": text}, text, {})
        low, high = (middle, high) if size < sizes.LIMIT * 0.95 else (low, middle)
    folders = layout.folders(plan_of(component("x", manifests=[("m.yaml", config_map(low))])))
    (note,) = sizes.check(folders)
    assert "a little more" in note


def test_the_estimate_is_what_helm_would_store() -> None:
    """Gzipped JSON in base64; charts inside the chart are no part of it."""
    files = {
        "templates/a.yaml": config_map(50_000).encode(),
        "charts/b.tgz": b"x" * 10_000,
        "README.md": b"read me",
        "values.yaml": b"a: 1",
    }
    manifest = config_map(50_000)
    record = {
        "name": "x",
        "chart": {
            "metadata": {"name": "x", "version": "0.1.0"},
            "templates": [
                {
                    "name": "templates/a.yaml",
                    "data": base64.b64encode(files["templates/a.yaml"]).decode(),
                }
            ],
            "values": {"a": 1},
            "files": [{"name": "README.md", "data": base64.b64encode(b"read me").decode()}],
        },
        "config": {"a": 1},
        "manifest": manifest,
    }
    stored = len(base64.b64encode(gzip.compress(json.dumps(record).encode(), 9)))
    assert abs(sizes.estimate(files, manifest.encode(), {"a": 1}) - stored) < stored * 0.02
