"""A password given with a flag goes into the values, and is repeated nowhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.cli.program import EKS, aicr

PATH = "kube-prometheus-stack:grafana.adminPassword"
WARNING = f"{PATH} looks like a secret and stands in clear in the bundle"


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """A recipe with a chart that takes passwords."""
    path = tmp_path / "recipe.yaml"
    path.write_text(aicr("recipe", *EKS).out)
    return path


def holders(folder: Path) -> list[str]:
    """Files of a bundle that hold the password, without the number of their folder."""
    found = [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]
    return sorted(
        re.sub(r"^\d+-", "", path) for path in found if "hunter2" in (folder / path).read_text()
    )


@pytest.mark.parametrize(
    ("deployer", "place"),
    [
        ("helm", "kube-prometheus-stack/values.yaml"),
        ("helmfile", "kube-prometheus-stack/values.yaml"),
        ("argocd", "kube-prometheus-stack/values.yaml"),
        ("argocd-helm", "static/kube-prometheus-stack.yaml"),
        ("flux", "kube-prometheus-stack/helmrelease.yaml"),
        ("fleet", "kube-prometheus-stack/values.yaml"),
        ("terraform", "kube-prometheus-stack/values.yaml"),
    ],
)
def test_a_password_is_in_the_values_alone_and_in_no_line_that_is_printed(
    recipe: Path, tmp_path: Path, deployer: str, place: str
) -> None:
    """Neither stderr nor README, record or recipe; a warning names the path (issue 5)."""
    out = tmp_path / "out"
    made = aicr("bundle", "-r", recipe, "-o", out, "-d", deployer, "--set", f"{PATH}=hunter2")
    assert made.status == 0, made.err
    assert "hunter2" not in made.out + made.err
    assert f"set {PATH}: (unset) → (hidden)" in made.err
    assert WARNING in made.err
    assert place in holders(out)
    assert {Path(name).suffix for name in holders(out)} == {".yaml"}
    assert not {"README.md", "recipe.yaml", "bundle-info.yaml"} & set(holders(out))


def test_json_and_files_are_looked_through(recipe: Path, tmp_path: Path) -> None:
    """What is beside a secret is shown; each secret is warned of by its own path."""
    values = {"env": {"DB_PASSWORD": "hunter2", "DB_HOST": "db"}, "tokens": ["hunter2"]}
    (tmp_path / "v.yaml").write_text(json.dumps(values))
    made = aicr(
        *("bundle", "-r", recipe, "-o", tmp_path / "out"),
        *("--set-file", f"kube-prometheus-stack:extra={tmp_path / 'v.yaml'}"),
        *("--set-json", f"kube-prometheus-stack:more={json.dumps(values)}"),
    )
    assert made.status == 0, made.err
    assert "hunter2" not in made.err
    assert '"DB_HOST": "db", "DB_PASSWORD": "(hidden)"' in made.err
    for key in ("extra", "more"):
        for rest in ("env.DB_PASSWORD", "tokens[0]"):
            assert f"kube-prometheus-stack:{key}.{rest} looks like a secret" in made.err


def test_values_that_are_no_secrets_are_shown_and_not_warned_of(
    recipe: Path, tmp_path: Path
) -> None:
    """Decision 6: every applied override prints old and new."""
    made = aicr(
        *("bundle", "-r", recipe, "-o", tmp_path / "out"),
        *("--set", "kube-prometheus-stack:grafana.admin.existingSecret=grafana-login"),
        *("--set", "kube-prometheus-stack:grafana.admin.passwordKey=password"),
    )
    assert made.status == 0, made.err
    assert '"grafana-login"' in made.err
    assert "looks like a secret" not in made.err


@pytest.mark.parametrize(
    "words",
    [
        ("--set", "kube-prometheus-stack.grafana.adminPassword=hunter2"),
        ("--set", "kube-prometheus-stack:grafana..adminPassword=hunter2"),
        ("--set", "kube-prometheus-stack:grafana.adminPassword={hunter2}"),
        ("--set", "prom:grafana.adminPassword=hunter2"),
        ("--set-json", "kube-prometheus-stack:grafana.adminPassword={hunter2"),
        ("--set-json", 'kube-prometheus-stack.grafana.adminPassword="hunter2"'),
        ("--dynamic", "kube-prometheus-stack:grafana.adminPassword=hunter2"),
    ],
    ids=["no colon", "empty segment", "list", "component", "JSON", "JSON without colon", "dynamic"],
)
def test_a_flag_that_is_refused_does_not_repeat_the_password(
    recipe: Path, tmp_path: Path, words: tuple[str, str]
) -> None:
    """The path says which flag it is; logs of CI keep what is printed."""
    result = aicr("bundle", "-r", recipe, "-o", tmp_path / "out", *words)
    result.refused(2, words[0])
    assert "hunter2" not in result.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("form", ["text", "json"])
def test_explain_says_where_a_password_comes_from_and_not_what_it_is(form: str) -> None:
    """The layers are the answer; a log of them is no place for the value."""
    result = aicr(
        *("explain", *EKS, "--format", form),
        *("--set", f"{PATH}=hunter2", "--set", "kube-prometheus-stack:grafana.replicas=2"),
        "components.kube-prometheus-stack.values.grafana",
    )
    assert result.status == 0, result.err
    assert "hunter2" not in result.out + result.err
    assert "(hidden)" in result.out
    assert "--set" in result.out
    assert '"grafana"' in result.out
