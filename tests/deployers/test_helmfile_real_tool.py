"""The real helmfile on what we write: it reads every level, and renders a bundle through real helm.

Upstream charts cannot be had without a network, and all but `helmfile list` pull those from OCI
registries. So bundles of the catalogue are listed; what is planned has no such chart, and what is
rendered comes from a chart repository on the loopback interface.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from tests import tools
from tests.bundle import chart_repository
from tests.bundle.sample_plans import CONFIG_MAP, chart, component, plan_of
from tests.bundle.stub_cluster import StubCluster
from tests.bundle.test_scripts import CRDS
from tests.deployers import gitops_plans as plans
from tests.deployers import parse_back
from tests.deployers.built_tools import built, run
from tests.deployers.deployer_plans import TEMPLATE_EATERS, generate
from tests.deployers.test_argocd_flux_fleet_catalogue import RECIPES, written
from tests.tools_build import TOOLS

from aicr.bundle import output
from aicr.yamlio import read

pytestmark = pytest.mark.tools

ROLE = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: r\n"
#: A chart that says which values it was given, in a form that no template language touches.
ECHO = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-echo}
data: {values: {{ .Values.texts | toJson | b64enc }}}
"""


def helmfile(bundle: Path, home: Path, *words: str) -> str:
    """Run helmfile in a bundle with the real helm, and homes of their own for both."""
    return run(
        *(built("helmfile"), "--helm-binary", tools.helm(), "--no-color", *words),
        home=home,
        at=bundle,
        extra={f"HELM_{kind}_HOME": str(home / kind) for kind in ("CACHE", "CONFIG", "DATA")},
    )


def test_helmfile_is_of_the_pinned_release(tmp_path: Path) -> None:
    """What the report of a run names is what was built."""
    assert (
        helmfile(tmp_path, tmp_path, "--version").strip()
        == f"helmfile version {TOOLS['helmfile'].version}"
    )


@pytest.mark.parametrize("serial", [False, True])
@pytest.mark.parametrize("name", sorted(RECIPES))
def test_helmfile_finds_every_release_of_a_bundle(tmp_path: Path, name: str, serial: bool) -> None:
    """Through all levels, each release of the bundle is there with its namespace, and enabled."""
    bundle = written(name, "helmfile", tmp_path / "b", serial=serial)
    listed = json.loads(
        helmfile(bundle, tmp_path / "home", "list", "--skip-charts", "--output", "json")
    )
    info = parse_back.document(bundle / "bundle-info.yaml")["layout"]["releases"]
    assert {(each["name"], each["namespace"]) for each in listed} == {
        (each["name"], each["namespace"]) for each in info
    }
    assert all(each["enabled"] and each["installed"] for each in listed)


@pytest.mark.parametrize("serial", [False, True])
def test_helmfile_will_follow_the_order_of_the_recipe(tmp_path: Path, serial: bool) -> None:
    """Its own plan (`helmfile show-dag`): file after file, and in a file group after group."""
    plan = plans.plan_of(*plans.graph(), deployer="helmfile", serial=serial)
    bundle = plans.written(plan, tmp_path / "b")
    found: dict[str, set[str]] = {}
    done: set[str] = set()
    for group in groups(helmfile(bundle, tmp_path / "home", "show-dag")):
        found.update((release, set(done)) for release in group)
        done |= group
    wanted = parse_back.expected(bundle)
    assert found.keys() == wanted.keys()
    assert all(found[name] >= needed for name, needed in wanted.items())
    if serial:
        assert parse_back.closure(found) == parse_back.closure(
            parse_back.chained(parse_back.releases(bundle))
        )


def groups(printed: str) -> list[set[str]]:
    """Names of the releases that helmfile deploys at the same time, in its order."""
    made: list[set[str]] = []
    number = ""
    for line in printed.splitlines():
        words = line.split()
        if words[0] == "GROUP":
            number = ""
            continue
        if words[0] != number:
            made.append(set())
            number = words[0]
        made[-1].add(words[1].rpartition("/")[2])
    return made


@pytest.mark.covers("F2")
@pytest.mark.parametrize("serial", [False, True])
def test_helmfile_hands_values_to_helm_byte_for_byte(tmp_path: Path, serial: bool) -> None:
    """Rendered by helmfile and helm, a chart gets the very texts of the recipe (field case F2)."""
    charts = tmp_path / "charts"
    chart_repository.packaged(charts, "echo", "1.2.3", {"templates/echo.yaml": ECHO})
    with chart_repository.served(charts) as address:
        plan = plan_of(
            chart("echo", source=address, values={"texts": TEMPLATE_EATERS}),
            component("extras", manifests=[("m.yaml", CONFIG_MAP)], dependencyRefs=["echo"]),
        )
        output.write_bundle(generate("helmfile", plan, serial=serial), str(tmp_path / "b"))
        (tmp_path / "home").mkdir()
        rendered = helmfile(tmp_path / "b", tmp_path / "home", "template")
    objects: dict[str, Any] = {
        each["metadata"]["name"]: each for each in read.load_all(rendered, source="template")
    }
    assert objects.keys() == {"echo-echo", "settings"}
    assert json.loads(base64.b64decode(objects["echo-echo"]["data"]["values"])) == TEMPLATE_EATERS


@pytest.mark.parametrize("context", ["prod", ""], ids=["named", "current"])
def test_the_crd_hook_goes_where_helmfile_goes(tmp_path: Path, context: str) -> None:
    """CRDs are applied to the cluster of `helmfile --kube-context`, not to the current one (5.2)."""
    entry = {
        "ownsCRDs": True,
        "helm": {
            "defaultRepository": "https://charts.example.com",
            "defaultChart": "x",
            "defaultVersion": "1.2.3",
        },
    }
    output.write_bundle(generate("helmfile", plan_of(chart("x", entry=entry))), str(tmp_path / "b"))
    cluster = StubCluster(tmp_path / "stub")
    cluster.answer("helm-list", "x\n")
    cluster.answer("helm-show", CRDS)
    run(
        built("helmfile"),
        *("--helm-binary", str(cluster.bin / "helm"), "--no-color"),
        *(("--kube-context", context) if context else ()),
        "sync",
        home=tmp_path,
        at=tmp_path / "b",
        extra={"PATH": str(cluster.bin), "STUB": str(cluster.root), "KUBE_CONTEXT": "elsewhere"},
    )
    words = f"--context {context} " if context else ""
    assert cluster.calls("kubectl") == [
        f"kubectl {words}apply --server-side --force-conflicts -f -"
    ]
    upgrade = next(call for call in cluster.calls("helm") if " upgrade --install x " in call)
    assert ("--kube-context prod" in upgrade) is bool(context)


def test_helmfile_destroys_in_reverse_and_waits_for_each_release(tmp_path: Path) -> None:
    """The last tier goes first, in a tier what needs others, and nothing before it is gone (5.2)."""
    first = component("first", manifests=[("m.yaml", CONFIG_MAP)], pre_manifests=[("p.yaml", ROLE)])
    second = component("second", manifests=[("n.yaml", CONFIG_MAP)], dependencyRefs=["first"])
    output.write_bundle(generate("helmfile", plan_of(first, second)), str(tmp_path / "b"))
    cluster = StubCluster(tmp_path / "stub")
    cluster.answer("helm-list", "NAME\tNAMESPACE\nsomething\tns\n")
    run(
        *(built("helmfile"), "--helm-binary", str(cluster.bin / "helm"), "--no-color", "destroy"),
        home=tmp_path,
        at=tmp_path / "b",
        extra={"PATH": str(cluster.bin), "STUB": str(cluster.root)},
    )
    removed = [call for call in cluster.calls("helm") if " delete " in f"{call} "]
    assert [call.split()[2] for call in removed] == ["second", "first", "first-pre"]
    assert all("--wait --timeout 900s" in call for call in removed)


def test_helmfile_lints_the_charts_of_a_bundle(tmp_path: Path) -> None:
    """`helmfile lint` runs helm lint over each release that carries its chart with it."""
    plan = plan_of(
        component("first", manifests=[("m.yaml", CONFIG_MAP)]),
        component("second", manifests=[("n.yaml", CONFIG_MAP)], dependencyRefs=["first"]),
    )
    output.write_bundle(generate("helmfile", plan), str(tmp_path / "b"))
    text = helmfile(tmp_path / "b", tmp_path, "lint", "--args", "--strict")
    assert text.count("1 chart(s) linted, 0 chart(s) failed") == 2
