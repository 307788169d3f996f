from __future__ import annotations

import subprocess
from typing import Any

import pytest
from tests import tools

from aicr.bundle import charts
from aicr.errors import AicrError
from aicr.yamlio import read

AWKWARD = "it's $(id) `id` \\ \" ; & | * # é\tend"


def env(ref: dict[str, Any]) -> str:
    """upstream.env of a ref called gpu-operator."""
    return charts.upstream_env({"name": "gpu-operator", **ref}).decode()


@pytest.mark.parametrize(
    ("ref", "chart", "repo", "version"),
    [
        (
            {
                "source": "https://c.example.com/nvidia",
                "chart": "gpu-operator",
                "version": "v1.2.3",
            },
            "gpu-operator",
            "https://c.example.com/nvidia",
            "v1.2.3",
        ),
        (
            {"source": "https://c.example.com/", "chart": "nvidia/gpu"},
            "gpu",
            "https://c.example.com",
            "",
        ),
        ({"source": "http://c.example.com"}, "gpu-operator", "http://c.example.com", ""),
        (
            {"source": "oci://ghcr.io/org/charts", "chart": "kai", "version": "v1"},
            "oci://ghcr.io/org/charts/kai",
            "",
            "v1",
        ),
        (
            {"source": "oci://ghcr.io/kai/kai", "chart": "kai", "version": "v1"},
            "oci://ghcr.io/kai/kai/kai",
            "",
            "v1",
        ),
    ],
)
def test_upstream_env_names_the_chart_as_helm_takes_it(
    ref: dict[str, str], chart: str, repo: str, version: str
) -> None:
    """HTTP: name and URL; OCI: the full reference; the version as pinned (bundler spec 2.3)."""
    assert env(ref) == f"CHART='{chart}'\nREPO='{repo}'\nVERSION='{version}'\n"


@pytest.mark.covers("F7")
def test_an_oci_source_that_ends_in_the_chart_is_the_whole_reference() -> None:
    """A port is no tag, the version keeps its +, and the name is not appended twice (F7)."""
    source = "oci://registry.example:5000/charts/gpu-operator"
    assert env({"source": source, "version": "v26.3.1+build.2"}) == (
        f"CHART='{source}'\nREPO=''\nVERSION='v26.3.1+build.2'\n"
    )


@pytest.mark.parametrize(
    "ref",
    [
        {"source": "git@example.com:x"},
        {"source": "./chart"},
        {"source": "--repo=https://evil.example.com"},
        {"source": "https://c.example.com", "chart": "--post-renderer"},
        {"source": "https://c.example.com", "version": "-v"},
        {"source": "https://c.example.com/a b"},
        {"source": "https://c.example.com\n"},
    ],
)
def test_a_source_that_helm_would_misread_is_refused(ref: dict[str, str]) -> None:
    """Only http(s) and oci URLs, and no text that is an option or several words."""
    with pytest.raises(AicrError) as caught:
        env(ref)
    assert caught.value.code == "INVALID_REQUEST"
    assert "gpu-operator" in caught.value.message


@pytest.mark.parametrize("text", ["", "plain", "'", "''", AWKWARD, "two\nlines"])
def test_quoted_text_is_one_word_to_a_shell(text: str) -> None:
    """Whatever a value holds, a shell reads it back unchanged and runs none of it (2.3)."""
    bash = tools.program("bash", "install bash")
    script = f"printf %s {charts.shell_quote(text)}"
    done = subprocess.run([bash, "-c", script], capture_output=True, check=True)
    assert done.stdout.decode() == text


def test_values_are_sorted_and_empty_ones_are_an_empty_map() -> None:
    """Sorted keys, two blanks, {} for nothing (2.3)."""
    assert charts.values_yaml({}) == b"{}\n"
    text = charts.values_yaml({"b": 1, "a": {"d": [1], "c": "on"}}).decode()
    assert text == 'a:\n  c: "on"\n  d:\n    - 1\nb: 1\n'
    assert list(read.load(text, source="values.yaml")) == ["a", "b"]


@pytest.mark.parametrize("name", ["1e3", "on", "12", "null"])
def test_a_chart_name_is_text_whatever_it_looks_like(name: str) -> None:
    """A release called 12 is not a number in Chart.yaml."""
    document = read.load(charts.chart_yaml(name).decode(), source="Chart.yaml")
    assert document["name"] == name
