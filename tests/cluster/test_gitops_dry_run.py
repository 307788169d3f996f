"""A real API server with the CRDs of Argo CD, Flux and Fleet judges every object that we write.

`kubectl apply --dry-run=server --validate=strict` sends each object through decoding, schema
validation and admission, and keeps none. The CRDs are ours (see ``gitops_crds``), so that a field
that is not in the published API is refused instead of kept.
"""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, cast

import pytest
from tests import tools
from tests.cluster.check_runs import served
from tests.controlplane.client import Client, eventually
from tests.controlplane.fixtures import make_namespace
from tests.controlplane.plane import ControlPlane
from tests.deployers import gitops_crds, parse_back
from tests.deployers.test_argocd_flux_fleet_catalogue import FLAGS, RECIPES, recipe, written

from aicr.bundle import layout
from aicr.bundle.api import make_bundle
from aicr.bundle.options import BundleOptions
from aicr.recipe.recipe import Recipe
from aicr.yamlio import read, write

pytestmark = pytest.mark.cluster

#: Where the objects of the deployers go; the tools make these themselves when they are installed.
NAMESPACES: Final = ("argocd", "fleet-default", "flux-system")
PUBLISHED: Final[dict[str, Any]] = {"oci_reference": "oci://r.example:5000/team/stack:1.2.3"}
#: Deployer and flags of each kind of bundle.
BUNDLES: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "argocd": ("argocd", {}),
    "argocd-helm": ("argocd-helm", {}),
    "flux-git": ("flux", {}),
    "flux-oci": ("flux", PUBLISHED),
    "fleet-gitrepo": ("fleet", {}),
    "fleet-helmop": ("fleet", {"fleet_mode": "helmop"}),
}
#: A HelmOp installs upstream charts only, so the components with a chart of ours stay out of its bundle.
HELM_OP: Final = "fleet-helmop"
Kubectl = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def kubectl(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """kubectl on the plane, with the CRDs and the namespaces there; both go afterwards."""
    home = tmp_path_factory.mktemp("home")
    config = str(plane.kubeconfig)

    def run(*words: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [tools.kubectl(), f"--cache-dir={home}", *words],
            env={"KUBECONFIG": config, "HOME": str(home)},
            input=text,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    client = plane.client()
    for name in NAMESPACES:
        make_namespace(client, name)
    folder = str(gitops_crds.FOLDER)
    made = run("apply", "--server-side", "-f", folder)
    assert made.returncode == 0, made.stderr
    waited = run("wait", "--for=condition=Established", "--timeout=60s", "-f", folder)
    assert waited.returncode == 0, waited.stderr
    # What the server says about its kinds comes later than they do.
    for definition in gitops_crds.definitions().values():
        spec = definition["spec"]
        wanted = {version["name"] for version in spec["versions"]}
        eventually(
            f"{spec['names']['kind']} to be known",
            functools.partial(known, client, spec["group"], spec["names"]["plural"], wanted),
        )
    yield run
    run("delete", "--wait=false", "-f", folder)
    for name in NAMESPACES:
        client.delete("Namespace", name)


def known(client: Client, group: str, plural: str, versions: set[str]) -> bool:
    """Whether the server says that it serves a kind in these versions."""
    found = served(client, group)
    return all(plural in (found.get(version) or ()) for version in versions)


def bundle_of(name: str, bundle: str, folder: Path) -> Path:
    """A bundle of a recipe, written."""
    deployer, flags = BUNDLES[bundle]
    if bundle != HELM_OP:
        return written(name, deployer, folder, **flags)
    whole = recipe(name)
    planned = make_bundle(whole, BundleOptions(version="1.0.0", **FLAGS)).plan
    own = {each.parent for each in layout.folders(planned) if each.kind != layout.UPSTREAM_HELM}
    refs = [
        {**ref, "overrides": {"enabled": False}} if ref["name"] in own else ref
        for ref in whole.document["componentRefs"]
    ]
    part = Recipe(cast("Any", {**whole.document, "componentRefs": refs}), whole.catalog)
    options = BundleOptions(deployer=deployer, version="1.0.0", **FLAGS, **flags)
    make_bundle(part, options).write(str(folder))
    return folder


def given(bundle: Path) -> list[dict[str, Any]]:
    """Every object that the bundle gives to the cluster, as its tool reads them."""
    deployer = parse_back.document(bundle / "bundle-info.yaml")["build"]["deployer"]
    if deployer == "argocd-helm":
        return parse_back.rendered(bundle)
    if deployer == "argocd":
        paths = [bundle / "app-of-apps.yaml", *sorted(bundle.glob("*/application.yaml"))]
    elif deployer == "flux":
        listed = parse_back.document(bundle / "kustomization.yaml")["resources"]
        paths = [bundle / path for path in listed]
    else:
        paths = [
            path for path in (bundle / "gitrepo.yaml", bundle / "helmops.yaml") if path.exists()
        ]
    texts = [path.read_text(encoding="utf-8") for path in paths]
    return [item for text in texts for item in read.load_all(text, source=deployer)]


def judged(kubectl: Kubectl, items: list[dict[str, Any]]) -> subprocess.CompletedProcess[str]:
    """What the server says to these objects."""
    text = "---\n".join(write.dump(item) for item in items)
    return kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", text=text)


@pytest.mark.parametrize("bundle", sorted(BUNDLES))
@pytest.mark.parametrize("name", sorted(RECIPES))
def test_the_server_takes_every_object(
    kubectl: Kubectl, tmp_path: Path, name: str, bundle: str
) -> None:
    """Server dry-run under strict field validation refuses none of them (issue of the deployers)."""
    folder = bundle_of(name, bundle, tmp_path / "b")
    items = given(folder)
    done = judged(kubectl, items)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(items)
    assert all(line.endswith("(server dry run)") for line in lines)
    assert done.stderr == ""


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_the_server_takes_the_flux_folder_as_kubectl_builds_it(
    kubectl: Kubectl, tmp_path: Path, name: str
) -> None:
    """`kubectl apply -k` on the bundle itself, which is the documented first step."""
    folder = bundle_of(name, "flux-git", tmp_path / "b")
    done = kubectl("apply", "--dry-run=server", "--validate=strict", "-k", str(folder))
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == len(given(folder))


@pytest.mark.parametrize(
    ("bundle", "kind", "path", "value", "words"),
    [
        ("argocd", "Application", ("spec", "sync"), {}, 'unknown field "spec.sync"'),
        (
            *("argocd", "Application", ("spec", "syncPolicy", "automated", "selfheal"), True),
            'unknown field "spec.syncPolicy.automated.selfheal"',
        ),
        (
            *("argocd", "Application", ("spec", "syncPolicy", "automated", "prune"), "yes"),
            "spec.syncPolicy.automated.prune: Invalid value",
        ),
        (
            *("flux-git", "HelmRelease", ("spec", "install", "createNamespaces"), True),
            'unknown field "spec.install.createNamespaces"',
        ),
        (
            *("flux-git", "HelmRelease", ("spec", "interval"), "five minutes"),
            "spec.interval: Invalid value",
        ),
        (
            *("flux-git", "HelmRelease", ("spec", "releaseName"), "r" * 54),
            "spec.releaseName: Too long",
        ),
        (
            *("flux-git", "HelmRelease", ("spec", "chartRef"), {}),
            "spec.chartRef.kind: Required value",
        ),
        ("flux-git", "HelmRepository", ("spec", "url"), "r.example", "spec.url: Invalid value"),
        ("flux-oci", "OCIRepository", ("spec", "tag"), "v1", 'unknown field "spec.tag"'),
        (
            *("flux-oci", "ArtifactGenerator", ("spec", "artifacts", 0, "path"), "x"),
            'unknown field "spec.artifacts[0].path"',
        ),
        ("fleet-gitrepo", "GitRepo", ("spec", "path"), "x", 'unknown field "spec.path"'),
        (
            *("fleet-helmop", "HelmOp", ("spec", "helm", "takeownership"), True),
            'unknown field "spec.helm.takeownership"',
        ),
    ],
)
def test_the_server_refuses_a_wrong_field(
    kubectl: Kubectl,
    tmp_path: Path,
    bundle: str,
    kind: str,
    path: tuple[str | int, ...],
    value: Any,
    words: str,
) -> None:
    """One wrong field in one of our objects is told by its path; else the check proves nothing."""
    items = given(bundle_of("eks", bundle, tmp_path / "b"))
    item = next(each for each in items if each["kind"] == kind)
    place: Any = item
    for segment in path[:-1]:
        place = place[segment]
    assert path[-1] not in place or place[path[-1]] != value
    place[path[-1]] = value
    done = judged(kubectl, [item])
    assert done.returncode != 0
    assert words in done.stderr


@pytest.mark.parametrize("name", sorted(gitops_crds.definitions()))
def test_the_crds_are_those_of_the_shapes(name: str) -> None:
    """`python -m tests.deployers.gitops_crds` writes them; no kind is missing, none is open."""
    text = (gitops_crds.FOLDER / name).read_text(encoding="utf-8")
    assert text == write.dump(gitops_crds.definitions()[name])
    assert {path.name for path in gitops_crds.FOLDER.iterdir()} == set(gitops_crds.definitions())
