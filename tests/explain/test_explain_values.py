"""Explaining values: every layer that touched one, lowest first, with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.program import EKS, Result, aicr
from tests.explain.layers import QUERY, write


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data directory of ``layers``, beside which the commands run."""
    monkeypatch.chdir(tmp_path)
    return write(tmp_path / "sky")


def explain(*words: str) -> Result:
    """Explain a part of the recipe of that directory."""
    return aicr("explain", "--data", "sky", *QUERY, *words)


FOUR_LAYERS = """\
components.weather.values.driver.version = "580"

    component values       "550"  sky/components/weather/values.yaml:2
    values file            "560"  sky/components/weather/values-acme.yaml:2
     named by overlay acme, sky/overlays/acme.yaml:14
    overlay acme           "570"  sky/overlays/acme.yaml:19
=>  overlay acme-training  "580"  sky/overlays/acme-training.yaml:20
"""


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(
    "selector",
    [
        ["weather:driver.version"],
        ["components.weather.values.driver.version"],
        ["--selector", ".components.weather.values.driver.version"],
    ],
)
def test_a_value_that_four_layers_touch_is_explained_lowest_first(selector: list[str]) -> None:
    """Every layer is named with the line that sets the value, and the one in force is marked."""
    ran = explain(*selector)
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == FOUR_LAYERS


@pytest.mark.usefixtures("data")
def test_flags_of_a_bundle_are_the_last_layers() -> None:
    """--set lies over everything that the recipe says, and is shown as the flag it is."""
    ran = explain("weather:driver.version", "--set", "weather:driver.version=590")
    assert ran.out.splitlines()[0].endswith('= "590"')
    assert ran.out.splitlines()[-1] == (
        '=>  bundle flag --set weather:driver.version  "590"  command line'
    )
    assert ran.out.count("=>") == 1


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(
    ("flags", "selector", "expected"),
    [
        pytest.param(
            (),
            "weather:daemonset.tolerations",
            [
                'components.weather.values.daemonset.tolerations = [{"operator": "Exists"}]',
                "",
                '=>  bundle default tolerate-all  [{"operator": "Exists"}]  sky/registry.yaml:18',
            ],
            id="default toleration",
        ),
        pytest.param(
            ("--accelerated-node-selector", "pool=gpu"),
            "weather:daemonset.nodeSelector.pool",
            [
                'components.weather.values.daemonset.nodeSelector.pool = "gpu"',
                "",
                '=>  bundle flag --accelerated-node-selector  "gpu"  command line',
            ],
            id="placement",
        ),
        pytest.param(
            ("--set-json", 'weather:driver={"version":null}'),
            "weather:driver.version",
            [
                "components.weather.values.driver.version is deleted",
                "",
                '    component values                           "550"       '
                "sky/components/weather/values.yaml:2",
                '    values file                                "560"       '
                "sky/components/weather/values-acme.yaml:2",
                "     named by overlay acme, sky/overlays/acme.yaml:14",
                '    overlay acme                               "570"       '
                "sky/overlays/acme.yaml:19",
                '    overlay acme-training                      "580"       '
                "sky/overlays/acme-training.yaml:20",
                "=>  bundle flag --set-json weather:driver  deletes it  command line",
            ],
            id="typed null",
        ),
    ],
)
def test_what_a_bundle_writes_is_explained(
    flags: tuple[str, ...], selector: str, expected: list[str]
) -> None:
    """Placement, default tolerations and typed overrides each come with their source."""
    found = explain(selector, *flags).out.splitlines()
    assert [" ".join(line.split()) for line in found] == [
        " ".join(line.split()) for line in expected
    ]


@pytest.mark.usefixtures("data")
def test_a_selector_flag_replaces_the_map_that_was_there(tmp_path: Path) -> None:
    """What a node selector flag pushes out of its map is shown as replaced by the flag."""
    values = tmp_path / "sky" / "components" / "weather" / "values.yaml"
    text = values.read_text(encoding="utf-8")
    values.write_text(text + "daemonset:\n  nodeSelector:\n    old: x\n", encoding="utf-8")
    ran = explain("weather:daemonset.nodeSelector.old", "--accelerated-node-selector", "pool=gpu")
    assert "old is deleted" in ran.out
    assert 'replaces daemonset.nodeSelector by {"pool": "gpu"}' in ran.out


@pytest.mark.usefixtures("data")
def test_a_value_that_a_null_took_away_says_which_null() -> None:
    """A null further up is shown with the path at which it deleted."""
    lines = explain("weather:cache.emptyDir.medium").out.splitlines()
    assert lines[0] == "components.weather.values.cache.emptyDir.medium is deleted"
    assert lines[-1].split() == [
        *("=>", "overlay", "acme", "deletes", "cache.emptyDir", "sky/overlays/acme.yaml:21")
    ]


@pytest.mark.usefixtures("data")
def test_a_map_is_explained_leaf_by_leaf_with_what_was_lost() -> None:
    """Every leaf has the layer in force; leaves that a layer deleted follow."""
    lines = [line.split() for line in explain("components.weather.values").out.splitlines()]
    assert lines[0] == ["components.weather.values:", "8", "entries"]
    by_key = {line[0]: line[1:] for line in lines[2:]}
    assert by_key["driver.version"][:3] == ['"580"', "overlay", "acme-training"]
    assert by_key["driver.version"][-3:] == ["over", "3", "more"]
    assert by_key["cache.emptyDir.medium"][0] == "deleted"
    assert by_key["forecast"][1:3] == ["mixin", "forecast"]
    assert by_key["mode"][1:3] == ["profile", "sky=clear"]


@pytest.mark.usefixtures("data")
def test_another_profile_value_explains_another_line() -> None:
    """The line is that of the chosen profile value."""
    assert "sky/overlays/acme-training.yaml:40" in explain("weather:mode").out
    other = explain("weather:mode", "--profile", "sky=cloudy").out
    assert "profile sky=cloudy" in other
    assert "sky/overlays/acme-training.yaml:48" in other


def test_a_value_of_the_built_in_catalogue_is_named_from_recipes() -> None:
    """The built-in catalogue's files are named the same on every machine, whatever the folder."""
    ran = aicr("explain", *EKS, "nvidia-dra-driver-gpu:controller.affinity.nodeAffinity")
    assert ran.status == 0
    assert "affinity.nodeAffinity = null" in ran.out
    line = ran.out.splitlines()[-1]
    assert line.startswith("=>  overlay eks  null  recipes/overlays/eks/eks.yaml:")


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(
    ("selector", "status", "words"),
    [
        ("weather:driver.versoin", 3, ["no layer sets driver.versoin", "driver.version"]),
        ("weather:version", 3, ["components.weather.version"]),
        ("weather:medium", 3, ["did you mean cache.emptyDir.medium?"]),
        ("weather:labels.example.com/team", 3, [r"labels.example\.com/team"]),
        ("weather:zzz", 3, ["overlay acme, overlay acme-training, mixin forecast", "keys there"]),
        ("wether:driver", 3, ['no component "wether"', 'did you mean "weather"?']),
        ("weather", 3, ['did you mean "components.weather"?']),
        ("componets.weather", 3, ['did you mean "components"?']),
        ("components.weather.versoin", 3, ['did you mean "version"?']),
        ("components.weather.tag", 3, ["neither a layer nor the registry sets tag"]),
        ("components.weather.driver.version", 3, ["components.weather.values.driver.version"]),
        ("components.weather.dependencyRefs.nfdd", 3, ['no entry "nfdd"']),
        ("components.weather.values.a[0]", 2, ["a list is set as a whole"]),
        ("weather:a..b", 2, ["empty segment"]),
        ("constraints.K8s.server.verson", 3, ['did you mean "K8s.server.version"?']),
        ("validation.readines", 3, ['did you mean "readiness"?']),
        ("validation.readiness.chekcs", 3, ['did you mean "checks"?']),
        ("validation.readiness.checks.rian", 3, ['did you mean "rain"?']),
        ("deploymentOrder.wether", 3, ['did you mean "weather"?']),
        ("deploymentOrder.a.b.c", 2, ["for one component or for two"]),
        ("deploymentOrder.dra-node-labeler", 3, ["is disabled"]),
        ("overlays.acme-trainin", 3, ['did you mean "acme-training"?']),
        ("criteria.os", 3, ["stated: service, intent"]),
        ("metadata.version", 3, ["metadata.appliedOverlays"]),
    ],
)
def test_a_wrong_selector_names_what_was_probably_meant(
    selector: str, status: int, words: list[str]
) -> None:
    """Nothing is printed but an error with the nearest name or what there is."""
    explain(selector).refused(status, *words)


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["weather:mode", "--selector", "weather:mode"], ["given twice"]),
        (["weather:mode", "--format", "yaml"], ["valid formats are: text, json"]),
        (["weather:mode", "--set", "weather:mode=x"], ["owned by the profile"]),
        (["weather:mode", "--set", "wether:a=x"], ['did you mean "weather"?']),
        (["weather:mode", "--storage-class", ""], ["must not be blank"]),
        (["weather:mode", "--set", "weather:enabled=false"], ["selects a component"]),
        (["weather:mode", "--set", "dra-node-labeler:a=1"], ["the recipe disables it"]),
        (["weather:mode", "another"], ["unexpected argument"]),
    ],
)
def test_wrong_flags_are_refused_as_bundle_refuses_them(flags: list[str], words: list[str]) -> None:
    """Flags of a bundle that could not take effect explain nothing."""
    explain(*flags).refused(2, *words)


def test_a_kustomize_source_has_no_values_to_explain(data: Path) -> None:
    """The answer says so, instead of looking for a path."""
    overlay = data / "overlays" / "acme.yaml"
    text = overlay.read_text(encoding="utf-8").replace(
        "    - name: weather\n",
        "    - name: clouds\n      type: Kustomize\n      source: https://example.com/clouds\n"
        "      path: base\n    - name: weather\n",
    )
    overlay.write_text(text, encoding="utf-8")
    explain("clouds:a").refused(3, "Kustomize source", "components.clouds")
    assert "sky/overlays/acme.yaml:13" in explain("components.clouds.type").out


def test_a_null_that_a_later_overlay_undoes_is_not_in_force(data: Path) -> None:
    """Overlays merge before they meet the values files, so an undone null deletes nothing."""
    overlay = data / "overlays" / "acme-training.yaml"
    text = overlay.read_text(encoding="utf-8").replace(
        '        driver:\n          version: "580"\n', "        labels:\n          more: x\n"
    )
    overlay.write_text(text, encoding="utf-8")
    below = data / "overlays" / "acme.yaml"
    text = below.read_text(encoding="utf-8").replace(
        '        driver:\n          version: "570"\n', "        labels: null\n"
    )
    below.write_text(text, encoding="utf-8")
    lines = explain(r"weather:labels.example\.com/team").out.splitlines()
    assert lines[2].split()[:4] == ["=>", "component", "values", '"sky"']
    assert lines[3].split()[:4] == ["overlay", "acme", "deletes", "labels"]


def test_a_registry_entry_that_replaces_another_is_the_one_named(data: Path) -> None:
    """Where --data replaces a built-in entry, defaults come from its lines."""
    registry = data / "registry.yaml"
    text = registry.read_text(encoding="utf-8")
    own = (
        "  - name: nfd\n    displayName: NFD\n    helm:\n      defaultRepository: https://x.example\n"
        "      defaultChart: nfd\n      defaultVersion: 9.9.9\n"
    )
    registry.write_text(text + own, encoding="utf-8")
    line = text.count("\n") + 6
    out = explain("components.nfd.version").out
    assert out.splitlines()[-1].split() == [
        *("=>", "registry", '"9.9.9"', "(default)", f"sky/registry.yaml:{line}")
    ]


def test_a_values_file_is_named_by_the_last_layer_that_chose_one(data: Path) -> None:
    """The line under a values file is that of the valuesFile which won."""
    folder = data / "components" / "weather"
    (folder / "values-training.yaml").write_text("mode2: x\n", encoding="utf-8")
    overlay = data / "overlays" / "acme-training.yaml"
    text = overlay.read_text(encoding="utf-8").replace(
        "      version: 2.0.0\n",
        "      version: 2.0.0\n      valuesFile: components/weather/values-training.yaml\n",
    )
    overlay.write_text(text, encoding="utf-8")
    lines = explain("weather:mode2").out.splitlines()
    assert lines[-1].strip() == "named by overlay acme-training, sky/overlays/acme-training.yaml:18"
