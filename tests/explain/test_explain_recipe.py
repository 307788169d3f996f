"""Explaining what is not a value: fields, constraints, checks, order, overlays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.program import Result, aicr
from tests.explain.layers import QUERY, write
from tests.recipe.trees import V1, constraint, document, overlay
from tests.recipe.trees import snapshot as readings


@pytest.fixture(autouse=True)
def _data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The data directory of ``layers``, beside which the commands run."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "sky")


def explain(*words: str) -> Result:
    """Explain a part of the recipe of that directory."""
    return aicr("explain", "--data", "sky", *QUERY, *words)


GOLDEN = {
    "constraints.K8s.server.version": """\
constraints.K8s.server.version = ">= 1.32 < 1.36"

    overlay acme           ">= 1.30"            sky/overlays/acme.yaml:10
    overlay acme-training  ">= 1.32"            sky/overlays/acme-training.yaml:14
=>  profile sky=clear      narrows by "< 1.36"  sky/overlays/acme-training.yaml:36
""",
    "components.weather.version": """\
components.weather.version = "2.0.0"

    registry               "1.0.0" (default)  sky/registry.yaml:11
=>  overlay acme-training  "2.0.0"            sky/overlays/acme-training.yaml:17
""",
    "components.weather.source": """\
components.weather.source = "https://charts.example.com"

=>  registry  "https://charts.example.com" (default)  sky/registry.yaml:9
""",
    "components.weather.dependencyRefs.cert-manager": """\
components.weather.dependencyRefs[cert-manager] = "cert-manager"

=>  overlay acme    adds it       sky/overlays/acme.yaml:16
    mixin forecast  lists it too  sky/mixins/forecast.yaml:12
""",
    "validation.conformance.checks": """\
validation.conformance.checks.sunshine is deleted

    overlay acme           adds it          sky/overlays/acme.yaml:25
=>  overlay acme-training  clears the list  sky/overlays/acme-training.yaml:23
""",
    "validation.readiness": """\
validation: 3 entries

  readiness.timeout            "5m"          overlay acme-training  sky/overlays/acme-training.yaml:25
  readiness.checks.rain        "rain"        overlay acme           sky/overlays/acme.yaml:28
  readiness.checks.rain-again  "rain-again"  overlay acme-training  sky/overlays/acme-training.yaml:28
""",
    "validation.readiness.checks.rain": """\
validation.readiness.checks.rain = "rain"

=>  overlay acme           adds it       sky/overlays/acme.yaml:28
    overlay acme-training  lists it too  sky/overlays/acme-training.yaml:27
""",
    "criteria": """\
criteria: 2 entries

  service  "acme"      overlay acme           sky/overlays/acme.yaml:7
  intent   "training"  overlay acme-training  sky/overlays/acme-training.yaml:9
""",
    "overlays.acme": """\
+  acme  sky/overlays/acme.yaml:6  matches service=acme, and acme-training inherits from it
""",
    "overlays.eks": "is for service=eks and not acme\n",
    "overlays.h100-any": "needs accelerator=h100 as well, which was not asked for\n",
    "metadata.excludedOverlays": """\
no overlay was excluded; only a snapshot (--snapshot) excludes any
""",
}


@pytest.mark.parametrize("selector", GOLDEN)
def test_a_part_of_a_recipe_is_explained(selector: str) -> None:
    """Fields, constraints, checks and overlays come with the layers that made them."""
    ran = explain(selector)
    assert (ran.status, ran.err) == (0, "")
    # The built-in base has a constraint of its own, whose line is not ours to fix here.
    found = "".join(
        line for line in ran.out.splitlines(keepends=True) if "overlay base " not in line
    )
    assert found.endswith(GOLDEN[selector])


def test_the_summary_says_what_was_merged_and_what_one_more_word_would_add() -> None:
    """Overlays in merge order, mixins, profile, and the next criterion that would matter."""
    out = explain().out
    assert out.startswith("recipe for service=acme intent=training\n")
    states = [line.split()[1] for line in out.splitlines() if line.startswith("+")]
    assert states[0] == "base"
    assert states[-2:] == ["acme", "acme-training"]
    assert "mixin forecast, listed by acme-training (sky/mixins/forecast.yaml:1)" in out
    assert "profile sky=clear (the default), declared by acme-training" in out
    assert "other values: cloudy" in out
    assert "--accelerator h100 would add h100-any" in out


@pytest.mark.parametrize(
    ("selector", "chain"),
    [
        ("deploymentOrder.weather.nfd", ["weather -> nfd"]),
        ("deploymentOrder.nfd.weather", ["weather -> nfd"]),
        (
            "deploymentOrder.kube-prometheus-stack",
            ["kube-prometheus-stack -> prometheus-operator-crds"],
        ),
        ("deploymentOrder.nfd.cert-manager", []),
    ],
)
def test_an_order_is_explained_by_its_chain_of_dependencies(
    selector: str, chain: list[str]
) -> None:
    """Each edge has the line that declared it; components without a chain are alphabetical."""
    out = explain(selector).out
    assert [
        line.partition("  ")[0] for line in out.replace("\n  ", "\n").splitlines() if " -> " in line
    ] == chain
    assert ("alphabetical" in out) == (not chain)
    if "weather" in selector:
        assert "mixin forecast  sky/mixins/forecast.yaml:13" in out
        assert "tier 1" in out


def test_a_chain_runs_through_a_component_that_is_not_deployed(tmp_path: Path) -> None:
    """A disabled component keeps what depends on it behind what it depends on."""
    overlay_file = tmp_path / "sky" / "overlays" / "acme-rain.yaml"
    refs = [
        {
            "name": "rain",
            "type": "Helm",
            "source": "https://x.example",
            "chart": "rain",
            "version": "1.0.0",
            "dependencyRefs": ["fog"],
        },
        {
            "name": "fog",
            "type": "Helm",
            "source": "https://x.example",
            "chart": "fog",
            "version": "1.0.0",
            "dependencyRefs": ["weather"],
            "overrides": {"enabled": False},
        },
    ]
    text = overlay("acme-rain", {"service": "acme"}, base="acme", componentRefs=refs)
    overlay_file.write_text(text, encoding="utf-8")
    ran = explain("deploymentOrder.rain.weather")
    assert ran.err == ""
    out = ran.out
    assert "rain -> fog" in out
    assert "fog -> weather" in out
    assert "waits for weather" in out
    explain("deploymentOrder.fog").refused(3, "is disabled", "components.fog.overrides")
    assert "enabled = false" in explain("components.fog.overrides.enabled").out
    assert "disabled" in explain("components").out


def snapshot(path: Path, version: str) -> str:
    """A snapshot file with a server version."""
    found = readings({"K8s.server": {"version": version}, "OS.release": {"ID": "ubuntu"}})
    path.write_text(json.dumps(found), encoding="utf-8")
    return str(path)


def test_an_overlay_that_a_snapshot_excludes_names_constraint_reading_and_line(
    tmp_path: Path,
) -> None:
    """The failing constraint is shown with what was read and where it is stated."""
    text = """\
kind: RecipeMetadata
apiVersion: aicr.run/v1beta1
metadata:
  name: acme-newest
spec:
  criteria:
    service: acme
  constraints:
    - name: K8s.server.version
      value: ">= 1.40"
"""
    (tmp_path / "sky" / "overlays" / "acme-newest.yaml").write_text(text, encoding="utf-8")
    taken = snapshot(tmp_path / "snapshot.json", "v1.33.1")
    ran = explain("--os", "any", "metadata.excludedOverlays", "--snapshot", taken)
    assert ran.status == 0, ran.err
    assert ran.out.splitlines() == [
        "-  acme-newest  sky/overlays/acme-newest.yaml:6  matches service=acme, but not the snapshot",
        "      K8s.server.version: expected >= 1.40, got v1.33.1, sky/overlays/acme-newest.yaml:10",
    ]
    assert "-  acme-newest" in explain("--os", "any", "--snapshot", taken).out
    assert (
        "-  acme-newest" in explain("overlays.acme-newest", "--os", "any", "--snapshot", taken).out
    )


def test_a_refusal_because_of_a_snapshot_names_the_same_places(tmp_path: Path) -> None:
    """When nothing is left, the error still says which constraint of which file failed."""
    (tmp_path / "sky" / "overlays" / "acme-training.yaml").unlink()
    taken = snapshot(tmp_path / "snapshot.json", "v1.29.0")
    ran = aicr(
        *("explain", "--data", "sky", "--service", "acme", "--snapshot", taken),
    )
    ran.refused(
        2,
        "overlay acme was left out: K8s.server.version expected >= 1.30, got v1.29.0",
        "where: sky/overlays/acme.yaml:10",
    )


def test_a_mixin_that_rules_an_overlay_out_is_named_by_its_own_line(tmp_path: Path) -> None:
    """A constraint that a mixin brings fails at the mixin's line."""
    profile_free = overlay("acme-wet", {"service": "acme", "intent": "inference"}, mixins=["wet"])
    (tmp_path / "sky" / "overlays" / "acme-wet.yaml").write_text(profile_free, encoding="utf-8")
    (tmp_path / "sky" / "overlays" / "acme-dry.yaml").write_text(
        overlay("acme-dry", {"service": "acme", "intent": "inference"}), encoding="utf-8"
    )
    mixin = document(
        "RecipeMixin",
        "aicr.run/v1beta1",
        "wet",
        spec={"constraints": [constraint("OS.release.ID", "ubuntu")]},
    )
    (tmp_path / "sky" / "mixins" / "wet.yaml").write_text(mixin, encoding="utf-8")
    path = tmp_path / "snapshot.json"
    found = readings({"K8s.server": {"version": "v1.33.1"}, "OS.release": {"ID": "rhel"}})
    assert found["apiVersion"] == V1
    path.write_text(json.dumps(found), encoding="utf-8")
    ran = aicr(
        *("explain", "--data", "sky", "--service", "acme", "--intent", "inference"),
        *("--os", "any", "--snapshot", path, "metadata.excludedOverlays", "-t", "json"),
    )
    (row,) = json.loads(ran.out)["overlays"]
    assert row["overlay"] == "acme-wet"
    (failure,) = row["failures"]
    assert failure["where"].startswith("sky/mixins/wet.yaml:")
    assert (failure["expected"], failure["actual"]) == ("ubuntu", "rhel")
