"""What helm makes of the argocd-helm chart: lint, Applications, values byte for byte, guards."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import pytest
from tests.bundle.sample_plans import CONFIG_MAP, chart, component
from tests.deployers import gitops_plans as plans
from tests.deployers import parse_back

from aicr.bundle.deployers import gitops
from aicr.bundle.plan import Component, Plan
from aicr.yamlio import read, write

PROFILE = {
    "name": "driver",
    "value": "managed",
    "ownedPaths": {"a": ["driver.enabled", "driver.rdma"], "b": ["x"], "gone": ["y"]},
}


def plan_of(*components: Component, **options: Any) -> Plan:
    """A plan for argocd-helm."""
    return plans.plan_of(*components, deployer="argocd-helm", **options)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of the small plan, with one dynamic path and a profile."""
    a, b = plans.pair()
    a.values["driver"] = {"enabled": True, "rdma": {"on": False}}
    plan = plan_of(
        plans.deferred(a, ["driver", "version"]),
        b,
        component("m", manifests=[("m.yaml", CONFIG_MAP)]),
        recipe={"metadata": {"version": "1.4.0", "selectedProfile": PROFILE}},
    )
    return plans.written(plan, tmp_path_factory.mktemp("argocd-helm") / "b")


def applications(chart_folder: Path, *arguments: str) -> dict[str, dict[str, Any]]:
    """The rendered Applications by name."""
    found = parse_back.rendered(chart_folder, *arguments)
    assert {item["kind"] for item in found} == {"Application"}
    return {item["metadata"]["name"]: item for item in found}


def values_of(application: dict[str, Any]) -> Any:
    """The values that Argo CD would give to helm."""
    return read.load(application["spec"]["source"]["helm"]["values"], source="values")


def refusal(chart_folder: Path, *arguments: str) -> str:
    """What helm says when it refuses to render."""
    url = ("--set", "repoURL=oci://registry.example/team")
    done = parse_back.run_helm("template", "x", str(chart_folder), *url, *arguments)
    assert done.returncode != 0
    return done.stderr


def test_helm_finds_nothing_to_complain_about(bundle: Path) -> None:
    """helm lint --strict: no warning and no error."""
    done = parse_back.run_helm("lint", "--strict", str(bundle))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[WARNING]" not in done.stdout + done.stderr
    assert "[ERROR]" not in done.stdout + done.stderr


@pytest.mark.covers("F2")
def test_values_come_out_byte_for_byte(tmp_path: Path) -> None:
    """Without values of the installation, an Application has the very text of the file (F2)."""
    bundle = plans.written(plan_of(*plans.pair()), tmp_path / "b")
    spec = applications(bundle)["a"]["spec"]
    assert spec["source"]["helm"]["values"] == (bundle / "static/a.yaml").read_text()
    assert values_of(applications(bundle)["a"]) == {"texts": plans.EATEN, "replicas": 2}


@pytest.mark.covers("F2")
@pytest.mark.parametrize("ending", ["x\n\n\n", "\n", "x\n", "x", "", "  \n \n"])
def test_values_that_end_in_blank_lines_keep_them(tmp_path: Path, ending: str) -> None:
    """A block of text at the end of the file is where bytes get lost (F2)."""
    plan = plan_of(chart("a", values={"z": f"text {ending}"}))
    bundle = plans.written(plan, tmp_path / "b")
    text = applications(bundle)["a"]["spec"]["source"]["helm"]["values"]
    assert text == (bundle / "static/a.yaml").read_text()


@pytest.mark.covers("F2")
def test_values_survive_the_merge_with_values_of_the_installation(tmp_path: Path) -> None:
    """Given values win at any depth, false, zero and null included; texts stay what they are."""
    item = chart(
        "a", values={"texts": plans.EATEN, "on": True, "m": {"k": 1, "gone": 2}, "l": [1], "n": 5}
    )
    bundle = plans.written(plan_of(item), tmp_path / "b")
    given = {
        "a": {"on": False, "m": {"k": "{{ x }} ${y}", "gone": None}, "l": [], "n": 0, "new": 1}
    }
    (tmp_path / "given.yaml").write_text(write.dump(given))
    made = applications(bundle, "-f", str(tmp_path / "given.yaml"))
    assert values_of(made["a"]) == {
        "texts": plans.EATEN,
        "on": False,
        "m": {"k": "{{ x }} ${y}"},
        "l": [],
        "n": 0,
        "new": 1,
    }


def test_values_that_helm_cannot_write_are_refused_and_not_lost(tmp_path: Path) -> None:
    """helm's toYaml answers an error with nothing at all; the release would get no value (F2)."""
    bundle = plans.written(plan_of(chart("a", values={"k": "\x7f", "n": 1})), tmp_path / "b")
    assert values_of(applications(bundle)["a"]) == {"k": "\x7f", "n": 1}
    assert "cannot write the values" in refusal(bundle, "--set", "a.other=1")


def test_a_value_called_error_is_not_taken_for_one(tmp_path: Path) -> None:
    """helm's fromYaml answers an error with a map of that key."""
    bundle = plans.written(plan_of(chart("a", values={"Error": "x"})), tmp_path / "b")
    made = applications(bundle, "--set", "a.n=1")
    assert values_of(made["a"]) == {"Error": "x", "n": 1}


def test_dynamic_values_and_their_stubs_reach_the_application(bundle: Path) -> None:
    """A stub is an empty text until it is given (bundler spec 2.4)."""
    assert values_of(applications(bundle)["a"])["driver"]["version"] == ""
    made = applications(bundle, "--set-string", "a.driver.version=580")
    assert values_of(made["a"])["driver"] == {
        "enabled": True,
        "rdma": {"on": False},
        "version": "580",
    }


def test_the_parent_hands_all_values_on(bundle: Path) -> None:
    """It is this very chart again, so it needs what was given (bundler spec 5.4)."""
    parent = applications(bundle, "--set-string", "a.driver.version=580")["aicr-stack"]["spec"]
    source = parent["source"]
    assert (source["repoURL"], source["path"]) == ("oci://registry.example/team/aicr-bundle", ".")
    assert source["targetRevision"] == "1.4.0"
    values = source["helm"]["valuesObject"]
    assert values["repoURL"] == "oci://registry.example/team"
    assert values["a"]["driver"]["version"] == "580"
    assert parent["destination"] == {
        "server": "https://kubernetes.default.svc",
        "namespace": "argocd",
    }


def test_a_chart_repository_over_http_takes_the_chart_field(tmp_path: Path) -> None:
    """Only in a registry is the chart a part of the address (bundler spec 5.4)."""
    bundle = plans.written(plan_of(chart("a")), tmp_path / "b")
    done = parse_back.run_helm(
        "template",
        "x",
        str(bundle),
        "--set",
        "repoURL=https://charts.example/,targetRevision=9.9.9",
    )
    assert done.returncode == 0, done.stderr
    [parent] = [
        item
        for item in read.load_all(done.stdout, source="helm")
        if item["metadata"]["name"] == "aicr-stack"
    ]
    source = parent["spec"]["source"]
    assert source["repoURL"] == "https://charts.example"
    assert (source["chart"], source["targetRevision"]) == ("aicr-bundle", "9.9.9")
    assert "path" not in source


def test_local_charts_are_paths_in_the_published_chart(bundle: Path) -> None:
    """They come from the registry that the chart is in (bundler spec 5.4)."""
    source = applications(bundle)["b-post"]["spec"]["source"]
    assert source == {
        "repoURL": "oci://registry.example/team/aicr-bundle",
        "targetRevision": "1.4.0",
        "path": "004-b-post",
        "helm": {"releaseName": "b-post"},
    }


def test_a_recipe_of_upstream_charts_installs_without_publishing(tmp_path: Path) -> None:
    """Without the parent nothing needs an address (bundler spec 5.4)."""
    bundle = plans.written(plan_of(chart("a"), chart("b")), tmp_path / "b")
    done = parse_back.run_helm(
        "template", "x", str(bundle), "--set", "deployer.includeRootApp=false"
    )
    assert done.returncode == 0, done.stderr
    names = [item["metadata"]["name"] for item in read.load_all(done.stdout, source="helm")]
    assert names == ["a", "b"]


@pytest.mark.parametrize("part", ["deployer.includeRootApp=true", "deployer.includeRootApp=false"])
def test_a_missing_address_is_named(bundle: Path, part: str) -> None:
    """The message says which value to set."""
    done = parse_back.run_helm("template", "x", str(bundle), "--set", part)
    assert done.returncode != 0
    assert "set repoURL to" in done.stderr


@pytest.mark.covers("F4")
@pytest.mark.parametrize(
    "prefix", ["", "eu-", "customer-production-eu-central-1-cluster-0007-", "a--"]
)
def test_helm_cuts_names_as_the_other_deployer_does(tmp_path: Path, prefix: str) -> None:
    """The prefix is given at installation, so the cut is made there too (F4)."""
    names = ["a", "kube-prometheus-stack", "abc-def.ghi-jkl", "n" * 53]
    items = [chart(name, namespace="ns") for name in names]
    bundle = plans.written(plan_of(*items), tmp_path / "b")
    made = applications(bundle, "--set-string", f"deployer.namePrefix={prefix}")
    wanted = {gitops.fitted(prefix + name, 53) for name in names}
    assert set(made) == {*wanted, "aicr-stack"}


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ("appName=a", "name of the parent Application"),
        ("deployer.namePrefix=UPPER", "does not match pattern"),
        ("deployer.destinationServer=http://x", "does not match pattern"),
        ("deployer.project=Bad", "does not match pattern"),
        ("deployer.other=1", "additional properties"),
        ("typo.x=1", "additional properties"),
        ("a=text", "object"),
        ("m.x=1", "rendered with the bundle"),
    ],
)
def test_wrong_values_are_refused_at_installation(bundle: Path, given: str, part: str) -> None:
    """By the schema or by a guard, with words that say what is wrong (bundler spec 5.4)."""
    assert part in refusal(bundle, "--set", given)


@pytest.mark.parametrize(
    "given",
    [
        "a.driver.enabled=false",
        "a.driver.enabled=null",
        "b.x=null",
        "a.driver=text",
        "a.driver.rdma.on=true",
        "a.driver.rdma.useHost=1",
        "b.x.deep=1",
    ],
)
def test_owned_paths_cannot_be_given(bundle: Path, given: str) -> None:
    """At, above and below the path (bundler spec 5.4)."""
    assert "owned by the profile driver=managed" in refusal(bundle, "--set", given)


@pytest.mark.parametrize("given", ["a.driver.other=1", "a.replicas=3", "b.y=1", "b.enabled.x=1"])
def test_other_paths_can_be_given(bundle: Path, given: str) -> None:
    """A neighbour of an owned path is free."""
    assert applications(bundle, "--set", given)


def test_a_recipe_without_a_profile_has_no_lock() -> None:
    """The template is only there when it is needed (bundler spec 5.4)."""
    assert "templates/aicr-profile-lock.yaml" not in plans.files_of(plan_of(chart("a")))


def test_cascading_deletion_is_written_into_the_chart(tmp_path: Path) -> None:
    """Finalizers are decided when the bundle is made (bundler spec 5.4)."""
    plan = plan_of(chart("a"), set=["deployer:cascadeDelete=true"])
    for item in applications(plans.written(plan, tmp_path / "b")).values():
        assert item["metadata"]["finalizers"] == ["resources-finalizer.argocd.argoproj.io"]


@pytest.mark.covers("C-119", "C-120", "C-128", "C-130")
@pytest.mark.parametrize("serial", [False, True])
def test_the_order_is_that_of_the_recipe(tmp_path: Path, serial: bool) -> None:
    """Waves as the argocd deployer writes them (bundler spec 5.0.3)."""
    bundle = plans.written(plan_of(*plans.graph(), serial=serial), tmp_path / "b")
    found, wanted = parse_back.before(bundle), parse_back.expected(bundle)
    assert found.keys() == wanted.keys()
    assert all(found[name] >= needed for name, needed in wanted.items())
    if serial:
        waves = parse_back.argocd_helm_waves(bundle)
        assert [waves[name] for name in parse_back.releases(bundle)] == list(range(len(waves)))


def test_both_argo_cd_deployers_make_the_same_children(tmp_path: Path) -> None:
    """Only the source differs."""
    charts = plans.written(plan_of(*plans.graph()), tmp_path / "chart")
    plain = plans.written(
        plans.plan_of(*plans.graph(), deployer="argocd", version="1.0.0"), tmp_path / "plain"
    )
    for name, item in applications(charts, "--set", "deployer.includeRootApp=false").items():
        [path] = plain.glob(f"[0-9][0-9][0-9]-{name}/application.yaml")
        other = parse_back.document(path)
        assert item["metadata"] == other["metadata"]
        for key in ("project", "destination", "syncPolicy", "ignoreDifferences"):
            assert item["spec"].get(key) == other["spec"].get(key), (name, key)


def test_the_packaged_chart_is_whole_and_keeps_no_secrets(bundle: Path, tmp_path: Path) -> None:
    """What is published renders the same, has the local charts, and not the recipe."""
    done = parse_back.run_helm("package", str(bundle), "--destination", str(tmp_path))
    assert done.returncode == 0, done.stderr
    [archive] = tmp_path.glob("*.tgz")
    with tarfile.open(archive) as held:
        names = {name.partition("/")[2] for name in held.getnames()}
    assert {"static/a.yaml", "004-b-post/Chart.yaml", "004-b-post/templates/settings.yaml"} <= names
    assert names.isdisjoint({"recipe.yaml", "checksums.txt", "001-a/values.yaml"})
    assert applications(archive) == applications(bundle)
