"""What the bundler owns and what it never does, with all seven deployers: knobs, contracts, no apply."""

from __future__ import annotations

import ast
import os
import re
import socket
import subprocess
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from tests import tools
from tests.bundle.chart_repository import packaged, served
from tests.bundle.sample_catalogues import World
from tests.bundle.sample_plans import CONFIG_MAP
from tests.deployers.deployer_plans import CATALOGUE

from aicr.bundle import layout
from aicr.bundle.api import make_bundle
from aicr.bundle.options import BundleOptions
from aicr.catalog.catalog import Catalog
from aicr.recipe.criteria import Criteria
from aicr.recipe.recipe import Recipe
from aicr.recipe.resolve import resolve

SEVEN: Final = ("helm", "helmfile", "argocd", "argocd-helm", "flux", "terraform", "fleet")
ENV: Final = "NODE_LABEL_FOR_GPU_POD_EVICTION"


@pytest.fixture
def programs_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """The helm and kubectl of the tests are those that a bundle finds."""
    for program in (tools.helm(), tools.kubectl()):
        monkeypatch.setenv("PATH", str(Path(program).parent), prepend=os.pathsep)


@cache
def recipe(name: str = "eks-training") -> Recipe:
    """A resolved recipe of the built-in catalogue."""
    return resolve(Catalog.builtin(), Criteria(**CATALOGUE[name][0]))


def at(values: Any, path: str) -> Any:
    """What stands at a dotted path, None when nothing does."""
    for part in path.split("."):
        values = values.get(part) if isinstance(values, dict) else None
    return values


# -- placement by paths ------------------------------------------------------------------------------


@pytest.mark.covers("C-064", "C-084")
@pytest.mark.parametrize("deployer", SEVEN)
def test_a_placement_knob_at_any_depth_needs_a_path_and_no_flag(deployer: str) -> None:
    """Controller, workers and a sidecar ten levels down: two lists of paths, the same four flags."""
    deep = "a.b.c.d.e.f.g.h.sidecar"
    entry = {
        "nodeScheduling": {
            "system": {
                "nodeSelectorPaths": ["controller.nodeSelector", f"{deep}.nodeSelector"],
                "tolerationPaths": ["controller.tolerations", f"{deep}.tolerations"],
            },
            "accelerated": {
                "nodeSelectorPaths": ["workers.nodeSelector"],
                "tolerationPaths": ["workers.tolerations"],
            },
        }
    }
    values = (
        World("app", entries={"app": entry})
        .component(
            "app",
            deployer=deployer,
            system_node_selector=["pool=system"],
            system_node_tolerations=["s:NoSchedule"],
            accelerated_node_selector=["pool=gpu"],
            accelerated_node_tolerations=["g:NoSchedule"],
        )
        .values
    )
    for place_of, pool, key in (
        ("controller", "system", "s"),
        (deep, "system", "s"),
        ("workers", "gpu", "g"),
    ):
        assert at(values, f"{place_of}.nodeSelector") == {"pool": pool}
        assert [item["key"] for item in at(values, f"{place_of}.tolerations")] == [key]
    assert {name for name in BundleOptions.__slots__ if re.search("selector|toleration", name)} == {
        "system_node_selector",
        "system_node_tolerations",
        "accelerated_node_selector",
        "accelerated_node_tolerations",
        "workload_selector",
    }


# -- contracts ---------------------------------------------------------------------------------------


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """No socket can be connected and no process started; what was tried is in the list."""
    tried: list[Any] = []

    def refuse(*words: Any, **_: Any) -> None:
        tried.append(words)
        raise AssertionError(f"a bundle tried to reach something: {words}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(subprocess.Popen, "__init__", refuse)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "there-is-none"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "192.0.2.1")
    return tried


@pytest.mark.covers("C-085", "C-086", "C-089", "C-090")
@pytest.mark.parametrize("deployer", SEVEN)
def test_what_needs_a_label_on_nodes_is_not_there_until_it_is_asked_for(
    deployer: str, offline: list[Any]
) -> None:
    """By default neither side nor the labeler is rendered, in no file of any deployer."""
    assert BundleOptions().dra_eviction_node_label == ""
    bundle = make_bundle(recipe(), BundleOptions(deployer=deployer))
    names = [item.name for item in bundle.plan.components]
    assert {"gpu-operator", "nvidia-dra-driver-gpu"} <= set(names)
    assert "dra-node-labeler" not in names
    for path, (data, _) in bundle.files.items():
        assert ENV.encode() not in data, path
        assert b"nvidia.com/dra-kubelet-plugin" not in data, path
    values = next(item.values for item in bundle.plan.components if "dra-driver" in item.name)
    assert at(values, "kubeletPlugin.nodeSelector") is None
    assert offline == []


@pytest.mark.covers("C-083", "C-085", "C-089")
@pytest.mark.parametrize("deployer", SEVEN)
def test_asked_for_it_is_written_on_both_sides_and_still_nothing_is_looked_up(
    deployer: str, offline: list[Any]
) -> None:
    """One setting, no cluster: the label is believed, not checked."""
    options = BundleOptions(deployer=deployer, dra_eviction_node_label="example.com/evict=on")
    bundle = make_bundle(recipe(), options)
    values = {item.name: item.values for item in bundle.plan.components}
    assert at(values["nvidia-dra-driver-gpu"], "kubeletPlugin.nodeSelector") == {
        "example.com/evict": "on"
    }
    assert {"name": ENV, "value": "example.com/evict"} in at(
        values["gpu-operator"], "driver.manager.env"
    )
    holders = [path for path, (data, _) in bundle.files.items() if ENV.encode() in data]
    assert any("gpu-operator" in path or path in ("main.tf", "helmfile.yaml") for path in holders)
    assert offline == []


# -- the boundary ------------------------------------------------------------------------------------

BUNDLE: Final = Path(layout.__file__).parent
#: Modules of the bundler that start a program: to build a kustomization, to pull and render charts.
STARTERS: Final = {"chart_render.py", "kustomize.py"}


@pytest.mark.covers("C-140", "C-141")
@pytest.mark.parametrize(
    "path", sorted(path.relative_to(BUNDLE).as_posix() for path in BUNDLE.rglob("*.py"))
)
def test_no_module_of_the_bundler_can_reach_a_cluster(path: str) -> None:
    """None imports a client, a socket or our cluster layer, and two start programs."""
    tree = ast.parse((BUNDLE / path).read_text(encoding="utf-8"))
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {item.name for item in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported |= {f"{node.module}.{item.name}" for item in node.names}
    banned = ("aicr.kube", "aicr.validate", "aicr.checks", "aiohttp", "kubernetes", "socket")
    assert not [name for name in imported if name.startswith(banned)]
    assert ("subprocess" in imported) == (path in STARTERS)


@pytest.mark.usefixtures("programs_on_path")
@pytest.mark.covers("C-141", "C-010")
@pytest.mark.parametrize("deployer", SEVEN)
def test_making_a_bundle_runs_helm_and_kustomize_to_read_and_never_to_apply(
    tmp_path: Path, deployer: str
) -> None:
    """With vendored charts, gates and a Kustomize source: pull, template, version, kustomize."""
    archives = tmp_path / "charts"
    packaged(archives, "app", "1.2.3", {"templates/c.yaml": CONFIG_MAP})
    (tmp_path / "k").mkdir()
    (tmp_path / "k" / "kustomization.yaml").write_text("resources: []\n")
    seen: list[list[str]] = []

    def run(command: list[str], seconds: float) -> tuple[int, bytes, bytes]:
        seen.append(command)
        if "kustomize" in command:
            return 0, CONFIG_MAP.encode(), b""
        done = subprocess.run(command, capture_output=True, timeout=seconds, check=False)
        return done.returncode, done.stdout, done.stderr

    with served(archives) as address:
        world = World(
            {"name": "app", "source": address, "chart": "app", "version": "1.2.3"},
            {"name": "k", "type": "Kustomize", "source": "https://git.example.com/k", "path": "d"},
        )
        made = Recipe(world.recipe, world.catalog())  # type: ignore[arg-type]
        make_bundle(made, BundleOptions(deployer=deployer, vendor_charts=True), run=run)
    verbs = {(Path(command[0]).name, command[1]) for command in seen}
    assert verbs <= {
        ("helm", "pull"),
        ("helm", "template"),
        ("helm", "version"),
        ("kubectl", "kustomize"),
        ("kustomize", "build"),
    }
    assert ("helm", "pull") in verbs
