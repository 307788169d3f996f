"""Laws of lint: it never falls over, and a tree without an error loads and resolves.

Trees are made by damaging one that is sound: lines are dropped, doubled, moved in, or replaced by what
people write by mistake.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.lint.broken_trees import NAMES, files
from tests.recipe.trees import write

from aicr.catalog.catalog import Catalog
from aicr.errors import AicrError
from aicr.lint.findings import ERROR
from aicr.lint.run import lint
from aicr.recipe.criteria import Criteria
from aicr.recipe.match import stated_words
from aicr.recipe.resolve import resolve

SOUND = {
    "registry.yaml": """\
kind: ComponentRegistry
apiVersion: aicr.run/v1beta1
components:
  - name: app
    displayName: App
    valueOverrideKeys: [application]
    helm:
      defaultRepository: https://charts.example.com
      defaultChart: example/app
      defaultVersion: "1.2.3"
      defaultNamespace: app
    nodeScheduling:
      system:
        nodeSelectorPaths: [nodeSelector]
        tolerationPaths: [tolerations]
    healthCheck:
      assertFile: checks/app/health-check.yaml
    mixinSafeOverridePaths: [extra]
""",
    "overlays/base.yaml": """\
kind: RecipeMetadata
apiVersion: aicr.run/v1beta1
metadata:
  name: base
spec:
  constraints:
    - name: K8s.server.version
      value: ">= 1.30"
  componentRefs:
    - name: app
      type: Helm
      valuesFile: components/app/values.yaml
      manifestFiles:
        - components/app/manifests/map.yaml
""",
    "overlays/eks.yaml": """\
kind: RecipeMetadata
apiVersion: aicr.run/v1beta1
metadata:
  name: eks
spec:
  criteria:
    service: eks
  mixins:
    - os-ubuntu
  componentRefs:
    - name: app
      overrides:
        driver:
          enabled: false
    - name: database
      type: Helm
      source: https://charts.example.com
      chart: database
      version: 2.0.0
      dependencyRefs: [app]
  validation:
    deployment:
      timeout: 10m
      checks: [works]
""",
    "overlays/aks.yaml": """\
kind: RecipeMetadata
apiVersion: aicr.run/v1beta2
metadata:
  name: aks
spec:
  criteria:
    service: aks
  profile:
    name: stack
    default: one
    values:
      one:
        componentRefs:
          - name: app
            overrides: {driver: {mode: a}}
      two:
        componentRefs:
          - name: app
            overrides: {driver: {mode: b}}
""",
    "mixins/os-ubuntu.yaml": """\
kind: RecipeMixin
apiVersion: aicr.run/v1beta1
metadata:
  name: os-ubuntu
spec:
  constraints:
    - name: OS.release.ID
      value: ubuntu
  componentRefs:
    - name: app
      overrides:
        extra: true
""",
    "components/app/values.yaml": 'driver:\n  enabled: true\n  version: "580"\n',
    "components/app/manifests/map.yaml": (
        "kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: map\n"
        "data:\n  version: {{ .Values.app.driver.version | quote }}\n"
    ),
    "checks/app/health-check.yaml": """\
apiVersion: chainsaw.kyverno.io/v1alpha1
kind: Test
metadata:
  name: app
spec:
  steps:
    - try:
        - assert:
            resource:
              apiVersion: apps/v1
              kind: Deployment
              metadata:
                name: app
                namespace: app
              status:
                (availableReplicas >= `1`): true
""",
    "validators/catalog.yaml": """\
apiVersion: validator.nvidia.com/v1alpha1
kind: ValidatorCatalog
validators:
  - name: works
    phase: deployment
    image: repo.example.com/checks:v1
    timeout: 5m
""",
}
#: What a value becomes when somebody mistypes it.
VALUES = [
    "",
    "[]",
    "{}",
    "24.10",
    "no",
    "null",
    ">= 1",
    "!x",
    "'",
    "eks",
    "app",
    "- a",
    "{{",
    "a: b",
]


@st.composite
def damaged(draw: st.DrawFn) -> dict[str, str]:
    """The sound tree with one to three damages."""
    found = dict(SOUND)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(sorted(found)))
        lines = found[path].split("\n")
        at = draw(st.integers(0, len(lines) - 1))
        action = draw(st.sampled_from(["drop", "double", "value", "indent", "key", "file"]))
        if action == "drop":
            del lines[at]
        elif action == "double":
            lines.insert(at, lines[at])
        elif action == "value":
            head, colon, _ = lines[at].partition(":")
            lines[at] = f"{head}{colon} {draw(st.sampled_from(VALUES))}"
        elif action == "indent":
            lines[at] = draw(st.sampled_from(["  ", "\t", "- "])) + lines[at]
        elif action == "key":
            lines[at] = lines[at].replace("e", "", 1)
        elif path not in ("registry.yaml", "overlays/base.yaml"):
            del found[path]
            continue
        found[path] = "\n".join(lines)
    return found


def check(content: dict[str, str]) -> None:
    """Judge a tree, and hold the verdict against loader and resolver."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), content)
        report = lint(folder, alone=True)
        for finding in report.findings:
            assert finding.line >= 1
            assert finding.column >= 1
            assert finding.message
            assert finding.file.startswith(folder)
        if report.count(ERROR):
            return
        catalog = Catalog.from_dir(folder)
        for overlay in catalog.overlays.values():
            words = stated_words(overlay)
            if overlay["spec"].get("criteria") is not None and words:
                resolve(catalog, Criteria().replaced(**words))


def test_the_sound_tree_is_sound() -> None:
    """The laws below start from a tree without an error."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), SOUND)
        assert [f.text() for f in lint(folder, alone=True).findings if f.severity == ERROR] == []


@given(damaged())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_damaged_tree_is_judged_and_without_error_it_resolves(content: dict[str, str]) -> None:
    """Whatever a slip of the keyboard makes of a tree, lint answers, and its silence is a promise."""
    check(content)


@pytest.mark.parametrize(
    ("path", "line", "value"),
    [
        ("registry.yaml", "        nodeSelectorPaths:", "24.10"),
        ("registry.yaml", "    helm:", "[]"),
        ("overlays/eks.yaml", "spec:", "24.10"),
        ("overlays/eks.yaml", "  criteria:", "24.10"),
        ("overlays/eks.yaml", "  validation:", "[deployment]"),
        ("overlays/aks.yaml", "    values:", "one"),
        ("checks/app/health-check.yaml", "              kind:", "[]"),
        ("checks/app/health-check.yaml", "    - try:", "{assert: 1}"),
        ("validators/catalog.yaml", "validators:", "works"),
    ],
)
def test_a_value_of_another_kind_is_a_finding(path: str, line: str, value: str) -> None:
    """A scalar where a map belongs, and the reverse, is told and never trips a rule."""
    lines = SOUND[path].split("\n")
    at = next(number for number, text in enumerate(lines) if text.startswith(line))
    end = at + 1
    indent = len(line) - len(line.lstrip())
    while len(lines[end]) - len(lines[end].lstrip()) > indent:
        end += 1
    damaged_file = "\n".join([*lines[:at], f"{line} {value}", *lines[end:]])
    check({**SOUND, path: damaged_file})


@given(st.sampled_from(NAMES), st.data())
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_broken_tree_with_a_file_less_is_judged(name: str, data: st.DataObject) -> None:
    """Removing files uncovers other problems; lint answers all the same."""
    content = files(name)
    dropped = data.draw(st.sets(st.sampled_from(sorted(content)), max_size=3))
    check({path: text for path, text in content.items() if path not in dropped})


def test_the_loader_agrees_that_a_damaged_header_is_an_error() -> None:
    """The check that the laws share does fail where lint and loader differ."""
    content = {**SOUND, "overlays/eks.yaml": "a: 1\na: 2\n"}
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), content)
        try:
            Catalog.from_dir(folder)
        except AicrError:
            assert lint(folder, alone=True).count(ERROR)
        else:
            raise AssertionError("the loader took a file with a duplicate key")
