"""helmfile: tiers as files, chains as needs, and values that come through as they are."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from tests.bundle.sample_plans import CONFIG_MAP, chart, component, plan_of
from tests.deployers.chain_parsers import PARSERS
from tests.deployers.deployer_plans import (
    CATALOGUE,
    TEMPLATE_EATERS,
    diamond,
    generate,
    owner,
    real_files,
    real_plan,
)

from aicr.artifacts import checksums
from aicr.bundle import info, layout
from aicr.bundle.deployers import helmfile
from aicr.bundle.plan import Plan
from aicr.errors import AicrError

parse = PARSERS["helmfile"]

GOLDEN = """\
# Made by aicr; change the recipe or the flags and make the bundle again.
repositories:
  - name: registry-example-5000-charts
    url: registry.example:5000/charts
    oci: true
helmDefaults:
  wait: true
  timeout: 600
  createNamespace: true
  deleteWait: true
  deleteTimeout: 900
releases:
  - name: gpu-operator-pre
    namespace: gpu-operator
    chart: ./003-gpu-operator-pre
    values:
      - ./003-gpu-operator-pre/values.yaml
    createNamespace: false
  - name: gpu-operator
    namespace: gpu-operator
    chart: registry-example-5000-charts/gpu-operator
    version: v26.3.1+build.2
    values:
      - ./004-gpu-operator/values.yaml
    needs:
      - gpu-operator/gpu-operator-pre
  - name: gpu-operator-post
    namespace: gpu-operator
    chart: ./005-gpu-operator-post
    values:
      - ./005-gpu-operator-post/values.yaml
    disableValidation: true
    needs:
      - gpu-operator/gpu-operator
"""


def page(files: dict[str, tuple[bytes, int]], path: str) -> Any:
    """A helmfile as a document."""
    return yaml.safe_load(files[path][0])


def releases(files: dict[str, tuple[bytes, int]]) -> dict[str, dict[str, Any]]:
    """All releases of a bundle by name."""
    return {
        release["name"]: release
        for path in files
        if path.startswith(("level-", "helmfile")) and path.endswith(".yaml")
        for release in page(files, path).get("releases", [])
    }


@pytest.mark.covers("B10-59", "C-122", "C-125", "F1")
def test_each_tier_is_a_file_and_the_files_come_in_sequence() -> None:
    """helmfile.yaml names one level file for each tier, in order (5.2, decision 54)."""
    files = generate("helmfile", diamond())
    assert page(files, "helmfile.yaml") == {
        "helmfiles": [{"path": f"level-{n}.yaml"} for n in (1, 2, 3)]
    }
    assert "level-4.yaml" not in files
    names = [
        [item["name"] for item in page(files, f"level-{n}.yaml")["releases"]] for n in (1, 2, 3)
    ]
    assert names == [
        ["aws-efa", "cert-manager"],
        ["gpu-operator-pre", "gpu-operator", "gpu-operator-post"],
        ["dynamo", "kai-scheduler", "kai-scheduler-post"],
    ]


@pytest.mark.covers("B10-59", "C-122")
def test_one_tier_has_its_level_file_too() -> None:
    """A single tier is written as level-1.yaml like any other (decision 54)."""
    files = generate("helmfile", plan_of(chart("a"), chart("b")))
    assert page(files, "helmfile.yaml") == {"helmfiles": [{"path": "level-1.yaml"}]}
    assert [item["name"] for item in page(files, "level-1.yaml")["releases"]] == ["a", "b"]


def test_a_level_file_is_written_as_the_golden_says() -> None:
    """Keys, their order, aliases, OCI form and chains of one tier (5.2)."""
    assert generate("helmfile", diamond())["level-2.yaml"][0].decode() == GOLDEN


@pytest.mark.covers("C-124", "C-104", "C-105", "C-123")
def test_within_a_tier_only_a_components_own_releases_wait_for_each_other() -> None:
    """Independent components carry no edge; a dependent waits for all of the tier before (5.2)."""
    parsed = parse(generate("helmfile", diamond()))
    assert parsed.waits["aws-efa"] == parsed.waits["cert-manager"] == set()
    assert parsed.before("kai-scheduler") == {
        *("aws-efa", "cert-manager"),
        *("gpu-operator-pre", "gpu-operator", "gpu-operator-post"),
    }
    assert "dynamo" not in parsed.before("kai-scheduler-post")


@pytest.mark.covers("C-132", "C-128", "C-106")
def test_serial_is_one_chain_in_deployment_order_even_across_tiers() -> None:
    """b, a needing b, c: the chain is b, a, c, which no sequence of tiers gives (decision 54)."""
    plan = plan_of(chart("b"), chart("a", dependencyRefs=["b"]), chart("c"))
    files = generate("helmfile", plan, serial=True)
    assert not [path for path in files if path.startswith("level-")]
    parsed = parse(files)
    assert parsed.releases == ["b", "a", "c"]
    assert parsed.is_chain()
    assert parse(generate("helmfile", diamond(), serial=True)).is_chain()


@pytest.mark.covers("C-129")
def test_without_serial_nothing_is_chained_across_components() -> None:
    """The flag is off by default (seed)."""
    assert not parse(generate("helmfile", plan_of(chart("a"), chart("b")))).is_chain()


@pytest.mark.covers("F2")
@pytest.mark.parametrize("serial", [False, True])
def test_values_that_look_like_templates_arrive_unchanged(serial: bool) -> None:
    """helmfile takes files without .gotmpl as they are (field case F2)."""
    files = generate("helmfile", diamond(), serial=serial)
    assert parse(files).values["gpu-operator"] == TEMPLATE_EATERS
    assert not [path for path in files if path.endswith(".gotmpl")]


@pytest.mark.covers("F2")
@pytest.mark.parametrize(
    "text", ["ref+vault://a/b#c", "x ref+awssecrets://y", "secretref+sops://f"]
)
def test_a_value_that_helmfile_would_look_up_is_refused(text: str) -> None:
    """helmfile replaces ref+scheme:// in any values file; such a value would not be the recipe's."""
    plan = plan_of(chart("a", values={"list": [{"deep": text}]}))
    with pytest.raises(AicrError) as caught:
        generate("helmfile", plan)
    assert caught.value.code == "INVALID_REQUEST"
    assert "ref+" in caught.value.message
    assert caught.value.where == "001-a/values.yaml"


@pytest.mark.parametrize("text", ["ref+", "ref+ x://", "preferred://x", "a+ref://x"])
def test_text_that_only_resembles_a_reference_is_kept(text: str) -> None:
    """Only ref+scheme:// is special."""
    files = generate("helmfile", plan_of(chart("a", values={"k": text})))
    assert parse(files).values["a"] == {"k": text}


@pytest.mark.parametrize("field", ["version", "chart", "source"])
def test_braces_in_chart_coordinates_are_refused(field: str) -> None:
    """An old helmfile evaluates templates in helmfile.yaml itself."""
    value = "https://x.example/{{a}}" if field == "source" else "a{{b}}"
    with pytest.raises(AicrError, match="template braces"):
        generate("helmfile", plan_of(chart("a", **{field: value})))


@pytest.mark.covers("B10-62")
@pytest.mark.parametrize("version", ["1.2.3", "1.2.4"])
def test_only_the_audited_chart_gets_the_crd_hook(version: str) -> None:
    """A presync hook runs apply-crds.sh for the pinned chart; another version takes it away (2.6)."""
    files = generate("helmfile", plan_of(chart("a", version=version, entry=owner("a"))))
    hooks = releases(files)["a"].get("hooks")
    if version == "1.2.3":
        assert hooks == [
            {
                "events": ["presync"],
                "showlogs": True,
                "command": "bash",
                "args": [
                    "./001-a/apply-crds.sh",
                    "--kube-context={{ .Release.KubeContext }}",
                ],
            }
        ]
        assert files["001-a/apply-crds.sh"][1] == 0o755
    else:
        assert hooks is None
        assert "001-a/apply-crds.sh" not in files


@pytest.mark.covers("C-031", "C-032")
@pytest.mark.parametrize(
    ("name", "validation"),
    [
        ("gpu-operator", None),
        ("gpu-operator-post", True),
        ("gpu-operator-pre", None),
        ("dynamo", True),
        ("kai-scheduler-post", None),
    ],
)
def test_validation_is_off_where_the_crds_come_with_the_chart(
    name: str, validation: bool | None
) -> None:
    """Primary with self-referring CRDs, post with the chart's CRDs; nothing else (5.2)."""
    found = releases(generate("helmfile", diamond()))[name]
    assert found.get("disableValidation") is validation


@pytest.mark.covers("C-116")
@pytest.mark.parametrize("name", ["kai-scheduler", "kai-scheduler-post"])
def test_kai_scheduler_is_not_waited_for(name: str) -> None:
    """All of the component's own releases: wait false, 20 minutes (5.0.5)."""
    found = releases(generate("helmfile", diamond()))[name]
    assert (found["wait"], found["timeout"]) == (False, 1200)


def test_a_gate_is_waited_for_even_of_kai_scheduler() -> None:
    """A readiness gate keeps its wait and has 95 minutes (5.0.5, decision 53)."""
    plan = plan_of(chart("kai-scheduler"), chart("z", dependencyRefs=["kai-scheduler"]))
    folders = layout.folders(plan)
    folders.insert(1, gate_of(folders[0]))
    files = helmfile.generate(plan, folders)
    found = releases(files)["kai-scheduler-readiness"]
    assert (found["wait"], found["timeout"]) == (True, 5700)
    assert found["needs"] == ["kai-scheduler/kai-scheduler"]
    assert "kai-scheduler-readiness" in parse(files).before("z")


def gate_of(primary: layout.Folder) -> layout.Folder:
    """A readiness folder of a component, as the local format has it."""
    name = f"{primary.parent}-readiness"
    return layout.Folder(
        dir=f"900-{name}",
        release=name,
        parent=primary.parent,
        phase="readiness",
        kind=layout.LOCAL_HELM,
        namespace=primary.namespace,
        create_namespace=True,
        files={
            "Chart.yaml": (b"apiVersion: v2\n", 0o644),
            "values.yaml": (b"{}\n", 0o644),
            "cluster-values.yaml": (b"{}\n", 0o644),
            "templates/readiness.yaml": (CONFIG_MAP.encode(), 0o644),
        },
    )


def test_cluster_values_are_read_only_where_there_are_dynamic_paths() -> None:
    """The second values file is listed for components with --dynamic paths (5.2)."""
    dynamic = chart("b", values={"keep": 1, "later": {"x": 2}})
    dynamic.dynamic = [["later", "x"]]
    files = generate("helmfile", plan_of(chart("a"), dynamic))
    found = releases(files)
    assert found["a"]["values"] == ["./001-a/values.yaml"]
    assert found["b"]["values"] == ["./002-b/values.yaml", "./002-b/cluster-values.yaml"]
    assert parse(files).values["b"] == {"keep": 1, "later": {"x": 2}}


@pytest.mark.covers("F7")
def test_an_oci_source_keeps_its_port_and_version() -> None:
    """No scheme in the URL, the port is no tag, the version is as pinned (field case F7)."""
    files = generate("helmfile", diamond())
    level = page(files, "level-2.yaml")
    assert level["repositories"] == [
        {
            "name": "registry-example-5000-charts",
            "url": "registry.example:5000/charts",
            "oci": True,
        }
    ]
    found = releases(files)["gpu-operator"]
    assert found["chart"] == "registry-example-5000-charts/gpu-operator"
    assert found["version"] == "v26.3.1+build.2"


def test_repositories_are_sorted_and_only_those_used() -> None:
    """Each file lists what its own releases need, by name (5.2)."""
    plan = plan_of(
        chart("a", source="https://z.example/charts/"),
        chart("b", source="https://a.example"),
        chart("c", source="https://a.example"),
        chart("d", source="https://later.example", dependencyRefs=["a"]),
    )
    files = generate("helmfile", plan)
    assert page(files, "level-1.yaml")["repositories"] == [
        {"name": "a-example", "url": "https://a.example"},
        {"name": "z-example-charts", "url": "https://z.example/charts"},
    ]
    assert [r["name"] for r in page(files, "level-2.yaml")["repositories"]] == ["later-example"]


def test_two_urls_never_share_an_alias() -> None:
    """URLs that sanitise to one name are told apart by a digest, whatever their order."""
    plan = plan_of(
        chart("a", source="https://x.example/b"), chart("b", source="https://x-example/b")
    )
    aliases = helmfile.repository_aliases(layout.folders(plan))
    assert len(set(aliases.values())) == 2
    assert all(alias.startswith("x-example-b-") for alias in aliases.values())


def test_a_bundle_without_upstream_charts_has_no_repositories() -> None:
    """An empty list would make helmfile look for repositories (5.2)."""
    files = generate("helmfile", plan_of(component("a", manifests=[("m.yaml", CONFIG_MAP)])))
    assert "repositories" not in page(files, "level-1.yaml")


def test_the_file_set_is_complete_and_consistent() -> None:
    """Folders, helmfiles, page, recipe, info and checksums that match (2.9)."""
    files = generate("helmfile", diamond())
    assert {path for path in files if "/" not in path} == {
        *("helmfile.yaml", "level-1.yaml", "level-2.yaml", "level-3.yaml"),
        *("README.md", "recipe.yaml", "bundle-info.yaml", "checksums.txt"),
    }
    assert files["checksums.txt"][0] == checksums.checksums_txt(
        {path: held for path, held in files.items() if path != "checksums.txt"}
    )
    document = info.read(files["bundle-info.yaml"][0].decode())
    assert document["build"]["deployer"] == "helmfile"
    assert document["layout"]["entrypoint"] == "helmfile.yaml"
    assert not any("manifest" in release for release in document["layout"]["releases"])
    assert files["helmfile.yaml"][1] == 0o644


@pytest.mark.parametrize("serial", [False, True])
def test_the_page_says_how_to_deploy_and_to_take_away(serial: bool) -> None:
    """README names the commands and, for a chain, why apply is not one of them (2.9)."""
    text = generate("helmfile", diamond(), serial=serial)["README.md"][0].decode()
    assert "helmfile sync" in text
    assert "helmfile destroy" in text
    assert ("Use `sync`, not `apply`" in text) is serial
    assert "they\nwin over `values.yaml`" not in text


@pytest.mark.parametrize("recipe", sorted(CATALOGUE))
@pytest.mark.parametrize("serial", [False, True])
@pytest.mark.covers("C-103", "C-105")
def test_the_catalogue_keeps_every_declared_dependency(recipe: str, serial: bool) -> None:
    """Every release of a dependency is done before any release of its dependent."""
    parsed = parse(real_files(recipe, "helmfile", serial))
    check_dependencies(parsed, real_plan(recipe))
    if serial:
        assert parsed.is_chain()


def check_dependencies(parsed: Any, plan: Plan) -> None:
    """The graph of the plan holds in what was read back."""
    folders = layout.folders(plan)
    assert sorted(parsed.releases) == sorted(folder.release for folder in folders)
    for folder in folders:
        needed = set(plan.dependencies[folder.parent])
        wanted = {other.release for other in folders if other.parent in needed}
        assert wanted <= parsed.before(folder.release), folder.release


@pytest.mark.parametrize("recipe", sorted(CATALOGUE))
def test_the_catalogue_gets_the_values_of_the_plan(recipe: str) -> None:
    """What helm reads is what was planned, for every component."""
    parsed = parse(real_files(recipe, "helmfile"))
    for item in real_plan(recipe).components:
        assert parsed.values[item.name] == item.values, item.name


@pytest.mark.parametrize("vendored", [False, True])
def test_a_vendored_chart_is_not_looked_for_in_a_repository(vendored: bool) -> None:
    """helm would resolve the dependency that lies in charts/ already; skipDeps keeps it from it."""
    plan = plan_of(component("a", manifests=[("m.yaml", CONFIG_MAP)]))
    folders = layout.folders(plan)
    if vendored:
        folders[0].files["charts/a-1.0.0.tgz"] = (b"archive", 0o644)
    files = helmfile.generate(plan, folders)
    assert releases(files)["a"].get("skipDeps", False) is vendored
