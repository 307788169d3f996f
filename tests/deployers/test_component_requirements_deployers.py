"""What the components seed promises of every deployer, shown with all seven at once."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from tests import tools
from tests.bundle.chart_repository import helm, packaged, served
from tests.bundle.sample_catalogues import World
from tests.bundle.sample_plans import CONFIG_MAP, chart, component
from tests.deployers import gitops_plans as plans
from tests.deployers import parse_back
from tests.deployers.deployer_plans import CATALOGUE, real_files, real_plan

from aicr.bundle import layout, output
from aicr.bundle.api import make_bundle
from aicr.bundle.options import KNOWN_DEPLOYERS, BundleOptions
from aicr.catalog.catalog import Catalog
from aicr.recipe.criteria import Criteria
from aicr.recipe.recipe import Recipe
from aicr.recipe.resolve import resolve

SEVEN: Final = ("helm", "helmfile", "argocd", "argocd-helm", "flux", "terraform", "fleet")
NUMBERED: Final = re.compile(r"\d{3}-[a-z0-9.-]+")
#: The file that each deployer starts from, and what it adds to a folder of the local format.
ORCHESTRATION: Final = {
    "helm": ("deploy.sh", set[str]()),
    "helmfile": ("helmfile.yaml", set[str]()),
    "argocd": ("app-of-apps.yaml", {"application.yaml"}),
    "argocd-helm": ("templates/aicr-stack.yaml", set[str]()),
    "flux": ("kustomization.yaml", {"helmrelease.yaml"}),
    "terraform": ("main.tf", set[str]()),
    "fleet": ("gitrepo.yaml", {"fleet.yaml", ".fleetignore"}),
}
#: What a deployer leaves out because its tool reads neither of these.
SCRIPTS: Final = {"apply-crds.sh", "cluster-values.yaml", "install.sh", "upstream.env"}
LEFT_OUT: Final = {
    "argocd": SCRIPTS,
    "argocd-helm": SCRIPTS,
    # The values stand in the HelmRelease.
    "flux": SCRIPTS | {"values.yaml"},
}


@pytest.fixture
def programs_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """The helm and kubectl of the tests are those that a bundle finds."""
    for program in (tools.helm(), tools.kubectl()):
        monkeypatch.setenv("PATH", str(Path(program).parent), prepend=os.pathsep)


@cache
def recipe(name: str = "eks-training") -> Recipe:
    """A resolved recipe of the built-in catalogue."""
    return resolve(Catalog.builtin(), Criteria(**CATALOGUE[name][0]))


def folders_of(files: dict[str, tuple[bytes, int]]) -> dict[str, dict[str, bytes]]:
    """Numbered folder -> its files by their path in it."""
    found: dict[str, dict[str, bytes]] = {}
    for path, (data, _) in files.items():
        folder, slash, rest = path.partition("/")
        if slash and NUMBERED.fullmatch(folder):
            found.setdefault(folder, {})[rest] = data
    return found


def at(values: Any, path: str) -> Any:
    """What stands at a dotted path, None when nothing does."""
    for part in path.split("."):
        values = values.get(part) if isinstance(values, dict) else None
    return values


# -- one definition, seven formats -------------------------------------------------------------------


@pytest.fixture
def my_operator(tmp_path: Path) -> Catalog:
    """The catalogue with the seed's own sample laid over it: an entry, a values file, an overlay."""
    data = tmp_path / "data"
    for path, text in {
        "registry.yaml": """\
            kind: ComponentRegistry
            apiVersion: aicr.run/v1beta1
            components:
              - name: my-operator
                displayName: My Operator
                valueOverrideKeys:
                  - myoperator
                helm:
                  defaultRepository: https://charts.example.com
                  defaultChart: example/my-operator
                  defaultVersion: v1.0.0
                  defaultNamespace: my-operator
                nodeScheduling:
                  system:
                    nodeSelectorPaths: [operator.nodeSelector]
                    tolerationPaths:   [operator.tolerations]
            """,
        "components/my-operator/values.yaml": """\
            # fullnameOverride avoids the aicr-stack- prefix on resource names.
            fullnameOverride: my-operator
            operator:
              replicas: 1
            """,
        "components/my-operator/values-mycloud.yaml": """\
            operator:
              nodeSelector:
                mycloud.example.com/pool: managed
            """,
        "overlays/mycloud.yaml": """\
            kind: RecipeMetadata
            apiVersion: aicr.run/v1beta1
            metadata:
              name: mycloud
            spec:
              base: base
              criteria:
                service: mycloud
              componentRefs:
                - name: my-operator
                  type: Helm
                  valuesFile: components/my-operator/values-mycloud.yaml
                  dependencyRefs: [cert-manager]
            """,
    }.items():
        target = data / path
        target.parent.mkdir(parents=True, exist_ok=True)
        lines = text.splitlines(keepends=True)
        target.write_text("".join(line[12:] if line.strip() else line for line in lines))
    return Catalog.builtin().overlay(str(data))


@pytest.mark.covers("C-003", "C-004", "C-014", "C-015", "C-018", "C-102")
@pytest.mark.parametrize("deployer", SEVEN)
def test_a_component_is_added_with_data_alone_and_every_deployer_installs_it(
    my_operator: Catalog, tmp_path: Path, deployer: str
) -> None:
    """Entry, values, overlay: bound to its cluster shape alone, in order, with chart and values."""
    made = resolve(my_operator, Criteria(service="mycloud"))
    options = BundleOptions(
        deployer=deployer,
        version="1.0.0",
        set=["myoperator:operator.replicas=3"],
        system_node_tolerations=["dedicated=system:NoSchedule"],
    )
    bundle = make_bundle(made, options)
    found = next(item for item in bundle.plan.components if item.name == "my-operator")
    assert found.values == {
        "fullnameOverride": "my-operator",
        "operator": {
            "replicas": 3,
            "nodeSelector": {"mycloud.example.com/pool": "managed"},
            "tolerations": [
                {
                    "key": "dedicated",
                    "operator": "Equal",
                    "value": "system",
                    "effect": "NoSchedule",
                }
            ],
        },
    }
    assert (found.ref["chart"], found.namespace) == ("my-operator", "my-operator")
    bundle.write(str(tmp_path / "b"))
    assert "cert-manager" in parse_back.before(tmp_path / "b")["my-operator"]
    written = [data for path, (data, _) in bundle.files.items() if not path.startswith("data/")]
    everything = b"".join(written).decode()
    assert "https://charts.example.com" in everything
    assert "mycloud.example.com/pool" in everything
    assert "example/my-operator" not in everything
    elsewhere = resolve(my_operator, Criteria(**CATALOGUE["eks-training"][0]))
    assert "my-operator" not in elsewhere.document["deploymentOrder"]


@pytest.mark.covers("C-068", "C-003")
@pytest.mark.parametrize("deployer", SEVEN)
def test_the_node_labels_of_a_managed_cluster_work_without_any_flag(
    my_operator: Catalog, deployer: str
) -> None:
    """An overlay's values place the workload; no flag is needed and none is asked for."""
    made = resolve(my_operator, Criteria(service="mycloud"))
    bundle = make_bundle(made, BundleOptions(deployer=deployer))
    found = next(item for item in bundle.plan.components if item.name == "my-operator")
    assert at(found.values, "operator.nodeSelector") == {"mycloud.example.com/pool": "managed"}


@pytest.mark.covers("C-002", "C-067")
def test_the_real_recipes_bundle_without_flags() -> None:
    """The common case: nothing but the recipe."""
    for name in CATALOGUE:
        assert make_bundle(recipe(name)).plan.components


# -- local format ------------------------------------------------------------------------------------


@pytest.mark.covers("C-095", "C-096", "C-099", "C-100", "C-101")
@pytest.mark.parametrize("deployer", SEVEN)
@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_every_deployer_adds_its_files_to_the_one_local_format(name: str, deployer: str) -> None:
    """The same folders of the same kinds with the same bytes; orchestration lies on top."""
    assert sorted(KNOWN_DEPLOYERS) == sorted(SEVEN)
    plain = folders_of(real_files(name, "helm"))
    files = real_files(name, deployer)
    found = folders_of(files)
    entry, added = ORCHESTRATION[deployer]
    assert entry in files
    assert list(found) == list(plain)
    assert [int(folder[:3]) for folder in found] == list(range(1, len(found) + 1))
    for folder, held in plain.items():
        # Chart.yaml tells a local chart from a reference to an upstream one (bundler spec 2.3).
        assert ("Chart.yaml" in found[folder]) == ("Chart.yaml" in held)
        assert found[folder].keys() - held.keys() == added
        assert held.keys() - found[folder].keys() <= LEFT_OUT.get(deployer, set())
        for path in held.keys() & found[folder].keys():
            assert found[folder][path] == held[path], f"{folder}/{path}"


@pytest.mark.usefixtures("programs_on_path")
@pytest.mark.covers("C-010", "C-011", "C-102")
@pytest.mark.parametrize("deployer", SEVEN)
def test_a_kustomize_component_is_built_and_wrapped_for_every_deployer(
    tmp_path: Path, deployer: str
) -> None:
    """One definition; its build becomes templates/manifest.yaml of a chart that all install."""
    seen: list[list[str]] = []

    def run(command: list[str], _seconds: float) -> tuple[int, bytes, bytes]:
        seen.append(command)
        return 0, CONFIG_MAP.encode(), b""

    source = "https://git.example.com/k"
    held = component("k", type="Kustomize", source=source, path="deploy", tag="v1.0.0")
    after = chart("z", dependencyRefs=["k"])
    plan = plans.plan_of(held, after, deployer=deployer)
    files = plans.files_of(plan, layout.folders(plan, run=run))
    assert files["001-k/templates/manifest.yaml"][0] == CONFIG_MAP.encode()
    assert "001-k/Chart.yaml" in files
    assert [command[-1] for command in seen] == ["https://git.example.com/k//deploy?ref=v1.0.0"]
    output.write_bundle(files, str(tmp_path / "b"))
    assert parse_back.before(tmp_path / "b") == {"k": set(), "z": {"k"}}


@pytest.mark.covers("C-009", "C-012", "C-013")
@pytest.mark.parametrize("deployer", SEVEN)
def test_no_flag_of_placement_or_storage_reaches_a_kustomize_component(deployer: str) -> None:
    """Paths of its entry are for chart values, which it has none of; nothing is demanded either."""
    entry = {
        "helm": {},
        "kustomize": {
            "defaultSource": "https://git.example.com/k",
            "defaultPath": "deploy/production",
            "defaultTag": "v1.0.0",
        },
        "nodeScheduling": {
            "nodeCountPaths": ["count"],
            "system": {
                "nodeSelectorPaths": ["a.nodeSelector"],
                "tolerationPaths": ["a.tolerations"],
                "requireNodeSelector": True,
            },
        },
        "podScheduling": {"workload": {"workloadSelectorPaths": ["w"]}},
        "storageClassPaths": ["s"],
        "sharedStorageClassPaths": ["t"],
    }
    world = World({"name": "k", "type": "Kustomize"}, entries={"k": entry})
    bare = world.component("k", deployer=deployer)
    flagged = world.component(
        "k",
        deployer=deployer,
        system_node_selector=["a=b"],
        system_node_tolerations=["t:NoSchedule"],
        workload_selector=["q=r"],
        storage_class="x",
        shared_storage_class="y",
        nodes=3,
    )
    assert bare.values == flagged.values == {}
    assert bare.changes == flagged.changes == []
    assert {key: bare.ref[key] for key in ("source", "path", "tag")} == {
        "source": "https://git.example.com/k",
        "path": "deploy/production",
        "tag": "v1.0.0",
    }


# -- names -------------------------------------------------------------------------------------------

FULLNAME: Final = """\
{{- define "app.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains (default .Chart.Name .Values.nameOverride) .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
"""
NAMED: Final = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "app.fullname" . }}
"""


@pytest.mark.usefixtures("programs_on_path")
@pytest.mark.covers("C-019")
@pytest.mark.parametrize("vendored", [False, True])
@pytest.mark.parametrize("release", ["widget", "aicr-stack-widget"])
def test_a_full_name_keeps_release_names_out_of_the_names_of_objects(
    tmp_path: Path, vendored: bool, release: str
) -> None:
    """With the real helm and the usual helper, also below the chart that wraps a vendored one."""
    archives = tmp_path / "charts"
    packaged(archives, "app", "1.2.3", {"templates/_n.tpl": FULLNAME, "templates/c.yaml": NAMED})
    with served(archives) as address:
        world = World(
            {"name": "widget", "source": address, "chart": "app", "version": "1.2.3"},
            files={"components/widget/values.yaml": "fullnameOverride: widget\n"},
        )
        made = Recipe(world.recipe, world.catalog())  # type: ignore[arg-type]
        make_bundle(made, BundleOptions(vendor_charts=vendored)).write(str(tmp_path / "b"))
        folder = tmp_path / "b" / "001-widget"
        source = [str(folder)] if vendored else ["app", "--repo", address, "--version", "1.2.3"]
        values = ["-f", str(folder / "values.yaml"), "-f", str(folder / "cluster-values.yaml")]

        def name_of_object(*more: str) -> str:
            text = helm(tmp_path, "template", release, *source, *values, *more)
            (found,) = [item for item in yaml.safe_load_all(text) if item]
            name: str = found["metadata"]["name"]
            return name

        assert name_of_object() == "widget"
        # Without it the release's name, prefix included, gets into the object's.
        key = "app.fullnameOverride" if vendored else "fullnameOverride"
        assert name_of_object("--set", f"{key}=") == f"{release}-app"


@pytest.mark.covers("C-019")
@pytest.mark.parametrize("deployer", SEVEN)
def test_no_release_of_any_deployer_has_the_prefix_of_the_stack(deployer: str) -> None:
    """Releases are called by their folders, and a component's fullnameOverride arrives unchanged."""
    files = real_files("eks-training", deployer)
    about = yaml.safe_load(files["bundle-info.yaml"][0])
    assert [item["name"] for item in about["layout"]["releases"]] == [
        folder[4:] for folder in folders_of(files)
    ]
    everything = b"".join(data for data, _ in files.values()).decode()
    assert "aicr-stack-" not in everything
    for item in real_plan("eks-training").components:
        if "fullnameOverride" in item.values:
            assert f"fullnameOverride: {item.values['fullnameOverride']}" in everything
