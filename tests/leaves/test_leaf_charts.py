"""Real tools judge all that is written for all leaves: helm, Kubernetes' schemas, bash, shellcheck.

Many bundles share a chart, a values file or a script to the byte; each content is looked at once.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests import tools
from tests.catalogue.catalogue_files import RECIPES, load, mixins, overlays
from tests.leaves.bundle_folders import Folder, digest, distinct, document, folders, planned_text
from tests.leaves.kubernetes_objects import SINCE, duplicates, minor, problems
from tools.leaf_table import Outcome

from aicr import yamlio
from aicr.bundle import charts
from aicr.cli.console import Console
from aicr.cli.main import main

#: The oldest Kubernetes that the catalogue admits, and the one that the control-plane tests run.
KUBERNETES = ("1.25", "1.36")

#: Takes up what no overlay of ours does, so that these manifests are judged as well.
LABELLED = """\
kind: RecipeMetadata
apiVersion: aicr.run/v1beta1
metadata:
  name: kind-labelled
spec:
  base: kind
  criteria:
    service: kind
    platform: labelled
  mixins:
    - gpu-operator-nvidia-driver-cr
    - os-talos
  componentRefs:
    - name: dra-node-labeler
      type: Helm
      overrides:
        enabled: true
        labelKey: example.com/dra
        labelValue: "true"
    - name: gpu-operator
      type: Helm
      overrides:
        driver:
          nvidiaDriverCRD:
            enabled: true
        nvidiaDriver:
          driverType: gpu
"""
NO_COMPONENTS = """\
kind: ComponentRegistry
apiVersion: aicr.run/v1beta1
components: []
"""


Item = TypeVar("Item")
Result = TypeVar("Result")


def at_once(work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Results of *work* in the order of *items*, two at a time."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        return list(pool.map(work, items))


def command(*words: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run a program with a home of its own and no cluster."""
    places = {f"HELM_{kind}_HOME": str(home / kind) for kind in ("CACHE", "CONFIG", "DATA")}
    return subprocess.run(
        words,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8", **places},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of an external overlay with the component that no leaf of ours has."""
    root = tmp_path_factory.mktemp("labelled")
    (root / "data" / "overlays").mkdir(parents=True)
    (root / "data" / "registry.yaml").write_text(NO_COMPONENTS)
    (root / "data" / "overlays" / "labelled.yaml").write_text(LABELLED)
    data, recipe, bundle = (str(root / name) for name in ("data", "recipe.yaml", "bundle"))
    query = ["--service", "kind", "--platform", "labelled"]
    for words in (
        ["recipe", "--data", data, *query, "-o", recipe],
        ["bundle", "--data", data, "-r", recipe, "-o", bundle],
    ):
        heard = StringIO()
        assert main(words, Console(StringIO(), heard)) == 0, heard.getvalue()
    return root / "bundle"


@pytest.fixture(scope="module")
def all_folders(bundled: list[Outcome], labelled: Path) -> list[Folder]:
    """The numbered folders of all bundles."""
    places = [labelled, *(outcome.bundle for outcome in bundled)]
    return [folder for place in places for folder in folders(place)]


@pytest.fixture(scope="module")
def local_charts(all_folders: list[Folder]) -> list[Folder]:
    """One folder of every distinct chart of ours."""
    seen: dict[str, Folder] = {}
    for folder in all_folders:
        if folder.is_chart:
            seen.setdefault(digest(folder.path), folder)
    return list(seen.values())


@pytest.fixture(scope="module")
def scripts(bundled: list[Outcome], labelled: Path) -> list[Path]:
    """One file of every distinct script."""
    places = [labelled, *(outcome.bundle for outcome in bundled)]
    return distinct([path for place in places for path in sorted(place.rglob("*.sh"))])


@pytest.fixture(scope="module")
def rendered(
    local_charts: list[Folder], tmp_path_factory: pytest.TempPathFactory
) -> list[tuple[Folder, str]]:
    """What helm makes of every chart with the values files beside it."""
    helm, home = tools.helm(), tmp_path_factory.mktemp("helm")

    def render(folder: Folder) -> tuple[Folder, str]:
        values = [
            word
            for name in ("values", "cluster-values")
            for word in ("-f", str(folder.path / f"{name}.yaml"))
        ]
        words = ["template", folder.release, str(folder.path), "--namespace", folder.namespace]
        done = command(helm, *words, *values, home=home)
        assert done.returncode == 0, f"{folder.path}: {done.stderr}"
        return folder, done.stdout

    return at_once(render, local_charts)


def objects(text: str) -> list[dict[str, Any]]:
    """The objects of a rendered chart."""
    found: list[dict[str, Any]] = yamlio.read_fast_all(text, source="helm template")
    return found


def test_the_leaves_bring_every_manifest_that_an_overlay_names(
    local_charts: list[Folder],
) -> None:
    """No manifest escapes the checks of this file because no row asks for it."""
    named = {
        Path(path).name
        for overlay in (*overlays().values(), *mixins().values())
        for ref in overlay["spec"].get("componentRefs") or ()
        for field in ("manifestFiles", "preManifestFiles")
        for path in ref.get(field) or ()
    }
    brought = {path.name for folder in local_charts for path in folder.path.glob("templates/*")}
    assert named
    assert named - brought == set()


def test_helm_lint_has_nothing_to_say_about_any_chart(
    local_charts: list[Folder], tmp_path: Path
) -> None:
    """Every chart that we write passes `helm lint --strict`."""
    helm = tools.helm()
    done = at_once(
        lambda folder: command(helm, "lint", "--strict", str(folder.path), home=tmp_path),
        local_charts,
    )
    said = [
        each.stdout + each.stderr
        for each in done
        if each.returncode or re.search(r"\[(WARNING|ERROR)\]", each.stdout + each.stderr)
    ]
    assert said == []


def test_helm_renders_every_chart_to_the_manifests_as_planned(
    rendered: list[tuple[Folder, str]],
) -> None:
    """Helm's templating neither eats nor adds an object (F2)."""
    for folder, text in rendered:
        assert "<no value>" not in text, folder.path
        templates = sorted(folder.path.glob("templates/*"))
        planned = [item for path in templates for item in objects(planned_text(path))]
        found = objects(text)
        assert sorted(map(repr, found)) == sorted(map(repr, planned)), folder.path


def test_kubernetes_would_take_every_object(rendered: list[tuple[Folder, str]]) -> None:
    """Kinds of Kubernetes satisfy its strict schemas, others have a sound envelope."""
    wrong = {
        f"{folder.path.name}: {item['kind']}": found
        for folder, text in rendered
        for item in objects(text)
        if (found := problems(item, folder.namespace, KUBERNETES))
    }
    assert wrong == {}
    twice = {folder.path.name: found for folder, text in rendered if (found := twins(text))}
    assert twice == {}


def test_a_leaf_admits_no_kubernetes_that_lacks_its_kinds(bundled: list[Outcome]) -> None:
    """Who has an object of a young version says so in the floor of the Kubernetes version."""
    wrong = set()
    judged = 0
    for outcome in bundled:
        floor = max(
            minor(found[1])
            for item in document(outcome.recipe)["constraints"]
            if item["name"] == "K8s.server.version"
            for found in [re.match(r">= ([0-9.]+[0-9])", item["value"])]
            if found
        )
        for path in outcome.bundle.glob("*/templates/*"):
            for item in objects(planned_text(path)):
                if since := SINCE.get(item["apiVersion"]):
                    judged += 1
                    if floor < minor(since):
                        wrong.add((outcome.leaf.overlay, item["kind"], since))
    assert judged
    assert wrong == set()


def twins(text: str) -> list[str]:
    """Objects that a rendered chart has more than once."""
    return duplicates(objects(text))


def test_the_oldest_checked_kubernetes_is_the_oldest_that_the_catalogue_admits() -> None:
    """The floor of the base overlay is the version whose schemas are used."""
    constraints = load(RECIPES / "overlays" / "base.yaml")["spec"]["constraints"]
    assert {"name": "K8s.server.version", "value": f">= {KUBERNETES[0]}"} in constraints


def test_helm_reads_the_values_that_were_planned(all_folders: list[Folder], tmp_path: Path) -> None:
    """Every values file, fed to a chart that prints its values, comes out as we read it."""
    chart = tmp_path / "echo"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_bytes(charts.chart_yaml("echo"))
    (chart / "templates" / "echo.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: echo\n"
        "data:\n  values: {{ .Values | toJson | b64enc }}\n"
    )
    helm = tools.helm()
    files = distinct(
        [
            folder.path / name
            for folder in all_folders
            for name in ("values.yaml", "cluster-values.yaml")
        ]
    )

    def read_by_helm(path: Path) -> tuple[Path, Any]:
        done = command(helm, "template", "echo", str(chart), "-f", str(path), home=tmp_path)
        assert done.returncode == 0, f"{path}: {done.stderr}"
        [item] = objects(done.stdout)
        return path, json.loads(base64.b64decode(item["data"]["values"]))

    for path, values in at_once(read_by_helm, files):
        assert without_nulls(values) == without_nulls(document(path)), path


def without_nulls(value: Any) -> Any:
    """A value without the keys that are null: to helm they say "no value"."""
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return value


def test_bash_reads_every_script(scripts: list[Path], tmp_path: Path) -> None:
    """`bash -n` finds no syntax error."""
    bash = tools.program("bash", "install bash")
    done = at_once(lambda path: command(bash, "-n", str(path), home=tmp_path), scripts)
    assert [each.stderr for each in done if each.returncode or each.stderr] == []


def test_shellcheck_has_nothing_to_say_about_any_script(
    scripts: list[Path], tmp_path: Path
) -> None:
    """Every script passes shellcheck at its most talkative default level."""
    program = tools.shellcheck()
    halves = [half for half in (scripts[::2], scripts[1::2]) if half]
    done = at_once(
        lambda half: command(program, "-s", "bash", *map(str, half), home=tmp_path), halves
    )
    assert [each.stdout + each.stderr for each in done if each.returncode] == []
