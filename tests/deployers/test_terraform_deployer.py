"""Terraform: the declared graph on module calls, slots, digests, forms, and strings that are text."""

from __future__ import annotations

import itertools
from typing import Any

import hcl2
import pytest
from tests.bundle.sample_plans import CONFIG_MAP, chart, component, plan_of
from tests.deployers.chain_parsers import PARSERS, hcl_text, terraform_calls
from tests.deployers.deployer_plans import (
    CATALOGUE,
    TEMPLATE_EATERS,
    diamond,
    generate,
    owner,
    real_files,
    real_plan,
)
from tests.deployers.test_helmfile_deployer import check_dependencies, gate_of

from aicr.artifacts import checksums
from aicr.bundle import info, layout
from aicr.bundle.deployers import terraform
from aicr.bundle.options import BundleOptions
from aicr.errors import AicrError

parse = PARSERS["terraform"]
Files = dict[str, tuple[bytes, int]]

GOLDEN = """\
# Made by aicr; change the recipe or the flags and make the bundle again.
module "nfd" {
  source = "./modules/component"

  name          = "nfd"
  namespace     = "nfd"
  repository    = "https://charts.example.com"
  chart         = "nfd"
  chart_version = "v1.2.3"
  values_files  = ["${path.module}/001-nfd/values.yaml"]
  wait          = var.wait
  timeout       = var.timeout
}

module "kai_scheduler" {
  source = "./modules/component"

  name          = "kai-scheduler"
  namespace     = "kai"
  repository    = "oci://registry.example:5000/charts"
  chart         = "kai-scheduler"
  chart_version = "1.0.0+b.2"
  values_files  = ["${path.module}/002-kai-scheduler/values.yaml"]

  # Its workloads become ready only later, when there are nodes and queues for them,
  # so these two do not follow the variables.
  wait    = false
  timeout = 1200

  post = {
    name             = "kai-scheduler-post"
    chart            = "${path.module}/003-kai-scheduler-post"
    digest           = "sha256:DIGEST"
    values_files     = ["${path.module}/003-kai-scheduler-post/values.yaml"]
    create_namespace = true
  }

  depends_on = [module.nfd]
}
"""


def module_file(files: Files, name: str = "main") -> Any:
    """A file of modules/component, parsed."""
    return hcl2.loads(files[f"modules/component/{name}.tf"][0].decode())


def releases(files: Files) -> dict[str, dict[str, Any]]:
    """The helm_release resources of the module by slot."""
    found: dict[str, dict[str, Any]] = {}
    for block in module_file(files)["resource"]:
        for kind, labelled in block.items():
            if hcl_text(kind) == "helm_release":
                found.update((hcl_text(label), body) for label, body in labelled.items())
    return found


def test_main_tf_is_written_as_the_golden_says() -> None:
    """Arguments, their order and alignment, literal waiting, slots and edges (5.6)."""
    plan = plan_of(
        chart("nfd", version="v1.2.3"),
        component(
            "kai-scheduler",
            namespace="kai",
            source="oci://registry.example:5000/charts",
            version="1.0.0+b.2",
            manifests=[("q.yaml", CONFIG_MAP)],
            dependencyRefs=["nfd"],
        ),
    )
    files = generate("terraform", plan)
    digest = terraform_calls(files)["kai_scheduler"]["post"]["digest"]
    written = files["main.tf"][0].decode().replace(hcl_text(digest), "sha256:DIGEST")
    assert written == GOLDEN


@pytest.mark.covers("C-111", "C-112", "F1", "C-104")
def test_a_call_depends_on_exactly_what_its_component_declares() -> None:
    """One call a component; the edge is on the call, and there is none without a dependency."""
    calls = terraform_calls(generate("terraform", diamond()))
    assert {name: call.get("depends_on") for name, call in calls.items()} == {
        "aws_efa": None,
        "cert_manager": None,
        "gpu_operator": ["${module.cert_manager}"],
        "dynamo": ["${module.gpu_operator}"],
        "kai_scheduler": ["${module.gpu_operator}"],
    }


@pytest.mark.covers("C-113", "C-114", "C-105")
def test_slots_chain_inside_the_module_so_an_edge_covers_them() -> None:
    """A dependent of gpu-operator starts after its pre, chart and post, and not after aws-efa."""
    parsed = parse(generate("terraform", diamond()))
    assert parsed.before("dynamo") == {
        *("cert-manager", "gpu-operator-pre", "gpu-operator", "gpu-operator-post"),
    }
    assert parsed.waits["gpu-operator"] == {"gpu-operator-pre"}
    assert parsed.waits["gpu-operator-post"] == {"gpu-operator"}


@pytest.mark.covers("C-113")
def test_the_module_chains_its_releases_and_leaves_absent_slots_out() -> None:
    """pre, this, post, readiness: each depends on the one before; absent ones have count 0 (5.6)."""
    found = releases(generate("terraform", diamond()))
    assert list(found) == ["pre", "this", "post", "readiness"]
    assert {slot: body.get("depends_on") for slot, body in found.items()} == {
        "pre": None,
        "this": ["${helm_release.pre}"],
        "post": ["${helm_release.this}"],
        "readiness": ["${helm_release.this}", "${helm_release.post}"],
    }
    for slot in ("pre", "post", "readiness"):
        assert found[slot]["count"].strip("${}") == f"var.{slot} == null ? 0 : 1"
    assert "count" not in found["this"]


@pytest.mark.covers("C-115", "C-116", "C-117", "C-118")
def test_the_gate_always_waits_and_has_its_own_time() -> None:
    """Neither var.wait nor var.timeout reaches the readiness slot; its Job is a hook (5.6)."""
    found = releases(generate("terraform", diamond()))
    assert (found["readiness"]["wait"], found["readiness"]["timeout"]) in (
        (True, 5700),
        ("${true}", 5700),
        ("true", 5700),
    )
    assert "wait_for_jobs" not in found["readiness"]
    for slot in ("pre", "this", "post"):
        assert found[slot]["wait"] == "${var.wait}"
        assert found[slot]["timeout"] == "${var.timeout}"


@pytest.mark.covers("C-113", "C-114", "C-116")
def test_a_gate_is_a_slot_of_its_components_call() -> None:
    """Also of a component that is not waited for; what depends on it waits for the gate."""
    plan = plan_of(chart("kai-scheduler"), chart("z", dependencyRefs=["kai-scheduler"]))
    folders = layout.folders(plan)
    folders.insert(1, gate_of(folders[0]))
    files = terraform.generate(plan, folders)
    call = terraform_calls(files)["kai_scheduler"]
    assert hcl_text(call["readiness"]["name"]) == "kai-scheduler-readiness"
    assert "kai-scheduler-readiness" in parse(files).before("z")


@pytest.mark.covers("B10-57", "C-116")
def test_kai_scheduler_has_literals_and_a_reason() -> None:
    """wait = false and timeout = 1200, not the variables (5.0.5)."""
    text = generate("terraform", plan_of(chart("kai-scheduler"), chart("a")))["main.tf"][0].decode()
    own, _, others = text.partition('module "a"')
    assert "  wait    = false\n  timeout = 1200\n" in own
    assert "  # Its workloads become ready only later" in own
    assert "= var.wait\n" in others


@pytest.mark.covers("C-133", "C-128")
def test_serial_chains_every_call_to_the_one_before() -> None:
    """Declared edges are left out: the chain holds them (5.0.4)."""
    files = generate("terraform", diamond(), serial=True)
    calls = terraform_calls(files)
    labels = list(calls)
    assert "depends_on" not in calls[labels[0]]
    for before, label in itertools.pairwise(labels):
        assert calls[label]["depends_on"] == [f"${{module.{before}}}"]
    assert parse(files).is_chain()


@pytest.mark.covers("B10-56", "F1")
def test_an_edge_to_a_removed_component_leaves_no_trace() -> None:
    """No depends_on argument and no reference to it (5.6)."""
    plan = plan_of(chart("a"))
    plan.dependencies["a"] = ["gone"]
    text = generate("terraform", plan)["main.tf"][0].decode()
    assert "depends_on" not in text
    assert "gone" not in text


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("gpu-operator", "gpu_operator"),
        ("gpu.operator", "gpu_operator"),
        ("1password-connect", "_1password_connect"),
        ("a1", "a1"),
    ],
)
def test_labels_are_names_of_the_language(name: str, label: str) -> None:
    """Other characters become an underscore; a leading digit gets one (5.6)."""
    assert terraform.label(name) == label


@pytest.mark.covers("B10-55")
def test_two_components_with_one_label_are_refused() -> None:
    """The message names both and the module label (5.6)."""
    with pytest.raises(AicrError) as caught:
        generate("terraform", plan_of(chart("gpu-operator"), chart("gpu.operator", namespace="x")))
    assert caught.value.code == "INVALID_REQUEST"
    for word in ("module label", "gpu-operator", "gpu.operator", "gpu_operator"):
        assert word in caught.value.message


@pytest.mark.covers("F7")
def test_an_oci_chart_keeps_its_scheme_port_and_version() -> None:
    """Repository and chart are apart, as the provider documents; nothing is stripped (F7)."""
    call = terraform_calls(generate("terraform", diamond()))["gpu_operator"]
    assert [hcl_text(call[key]) for key in ("repository", "chart", "chart_version")] == [
        "oci://registry.example:5000/charts",
        "gpu-operator",
        "v26.3.1+build.2",
    ]


@pytest.mark.covers("F2", "B10-58")
def test_values_and_coordinates_are_never_templates() -> None:
    """Values are read with file(); what stands in main.tf is escaped (field case F2)."""
    plan = plan_of(chart("a", chart="${var.x}%{if}", values=TEMPLATE_EATERS))
    files = generate("terraform", plan)
    assert parse(files).values["a"] == TEMPLATE_EATERS
    assert '"$${var.x}%%{if}"' in files["main.tf"][0].decode()
    assert hcl_text(terraform_calls(files)["a"]["chart"]) == "${var.x}%{if}"
    for body in releases(files).values():
        assert "file(path)" in str(body["values"])


def test_cluster_values_are_listed_only_with_dynamic_paths() -> None:
    """They come second, so they win (5.6)."""
    dynamic = chart("b", values={"keep": 1, "later": {"x": 2}})
    dynamic.dynamic = [["later", "x"]]
    files = generate("terraform", plan_of(chart("a"), dynamic))
    calls = terraform_calls(files)
    assert len(calls["a"]["values_files"]) == 1
    assert [hcl_text(path, {"path.module": "."}) for path in calls["b"]["values_files"]] == [
        "./002-b/values.yaml",
        "./002-b/cluster-values.yaml",
    ]
    assert parse(files).values["b"] == {"keep": 1, "later": {"x": 2}}
    assert "- `002-b/cluster-values.yaml`" in files["README.md"][0].decode()


def test_a_changed_manifest_changes_the_digest_and_nothing_else_does() -> None:
    """A release of local files says its content, so that a plan sees a change (5.6)."""

    def digest(text: str, values: dict[str, Any]) -> str:
        plan = plan_of(chart("a", manifests=[("m.yaml", text)], values=values))
        found: str = terraform_calls(generate("terraform", plan))["a"]["post"]["digest"]
        return found

    assert digest(CONFIG_MAP, {}) == digest(CONFIG_MAP, {"x": 1})
    assert digest(CONFIG_MAP, {}) != digest(CONFIG_MAP.replace("value", "other"), {})


def test_a_component_of_manifests_alone_is_a_local_chart_with_a_digest() -> None:
    """No repository and no version; the chart is its folder (5.6)."""
    plan = plan_of(component("a", manifests=[("m.yaml", CONFIG_MAP)]))
    call = terraform_calls(generate("terraform", plan))["a"]
    assert hcl_text(call["chart"], {"path.module": "."}) == "./001-a"
    assert hcl_text(call["digest"]).startswith("sha256:")
    assert "repository" not in call
    assert "chart_version" not in call


def test_a_declared_namespace_is_not_made_by_helm_as_well() -> None:
    """create_namespace is false for the folder whose template holds the Namespace (2.2)."""
    calls = terraform_calls(generate("terraform", diamond()))
    assert str(calls["gpu_operator"]["pre"]["create_namespace"]) in ("False", "false", "${false}")


def test_the_root_form_connects_by_itself() -> None:
    """Provider, connection variables and an example of them (5.6)."""
    files = generate("terraform", diamond())
    assert 'provider "helm"' in files["versions.tf"][0].decode()
    text = files["variables.tf"][0].decode()
    for name in ("kubeconfig_path", "kube_context", "cluster_host", "cluster_token"):
        assert f'variable "{name}"' in text
    assert 'default     = "~/.kube/config"' in text
    assert "terraform.tfvars.example" in files
    assert text.count("sensitive   = true") == 3


def test_the_child_form_leaves_the_provider_to_its_caller() -> None:
    """No provider block, no connection variable, no example; the entry point stays (5.6)."""
    files = generate("terraform", diamond(), terraform_child_module=True)
    everything = b"".join(data for path, (data, _) in files.items() if path.endswith(".tf"))
    for word in (b'provider "', b"kubeconfig", b"cluster_host", b"cluster_token"):
        assert word not in everything
    assert "terraform.tfvars.example" not in files
    document = info.read(files["bundle-info.yaml"][0].decode())
    assert document["layout"]["entrypoint"] == "main.tf"


@pytest.mark.parametrize("child", [False, True])
def test_a_rollover_replaces_every_release_when_the_cluster_changes(child: bool) -> None:
    """Off by default; on, each release is replaced with a resource keyed on the address (5.6)."""
    plain = generate("terraform", diamond(), terraform_child_module=child)
    assert all(b"terraform_data" not in data for data, _ in plain.values())
    flags = {"terraform_child_module": child, "terraform_cluster_rollover": True}
    files = generate("terraform", diamond(), **flags)
    for slot, body in releases(files).items():
        trigger = body["lifecycle"][0]["replace_triggered_by"]
        assert trigger == ["${terraform_data.cluster}"], slot
    variable = "cluster_endpoint" if child else "cluster_host"
    for call in terraform_calls(files).values():
        assert call["cluster"] == f"${{var.{variable}}}"
    assert f'variable "{variable}"' in files["variables.tf"][0].decode()
    assert variable in files["README.md"][0].decode()


@pytest.mark.covers("B10-62")
@pytest.mark.parametrize("version", ["1.2.3", "1.2.4"])
def test_the_page_says_that_crds_are_not_applied(version: str) -> None:
    """apply-crds.sh is never run; the page says so, and lists the scripts there are (5.6)."""
    plan = plan_of(chart("a", version=version, entry=owner("a")))
    files = generate("terraform", plan)
    text = files["README.md"][0].decode()
    assert "Terraform does not\nrun `apply-crds.sh`" in text
    assert ("bash ./001-a/apply-crds.sh" in text) is (version == "1.2.3")
    assert all(b"apply-crds" not in data for p, (data, _) in files.items() if p.endswith(".tf"))


def test_the_file_set_is_complete_and_consistent() -> None:
    """Root, module, folders, page, recipe, info and checksums that match (2.9, 5.6)."""
    files = generate("terraform", diamond())
    assert {path for path in files if not path[:3].isdigit()} == {
        *("main.tf", "versions.tf", "variables.tf", "outputs.tf", "terraform.tfvars.example"),
        *(f"modules/component/{name}.tf" for name in ("main", "variables", "outputs")),
        *("README.md", "recipe.yaml", "bundle-info.yaml", "checksums.txt"),
    }
    assert files["checksums.txt"][0] == checksums.checksums_txt(
        {path: held for path, held in files.items() if path != "checksums.txt"}
    )
    outputs = files["outputs.tf"][0].decode()
    assert '"gpu-operator"  = module.gpu_operator.release\n' in outputs
    assert {mode for path, (_, mode) in files.items() if path.endswith(".tf")} == {0o644}


def test_the_plans_own_flags_count_when_none_are_passed() -> None:
    """A caller of the library may leave the options out."""
    plan = plan_of(chart("a"))
    plan.options = BundleOptions(deployer="terraform", terraform_child_module=True)
    files = terraform.generate(plan, layout.folders(plan))
    assert "terraform.tfvars.example" not in files


@pytest.mark.parametrize("recipe", sorted(CATALOGUE))
@pytest.mark.parametrize("serial", [False, True])
@pytest.mark.covers("C-103", "C-111")
def test_the_catalogue_has_exactly_the_declared_graph(recipe: str, serial: bool) -> None:
    """Every dependency is done before; without --serial nothing undeclared is waited for."""
    files = real_files(recipe, "terraform", serial)
    plan, parsed = real_plan(recipe), parse(files)
    check_dependencies(parsed, plan)
    if serial:
        assert parsed.is_chain()
        return
    for label, call in terraform_calls(files).items():
        name = hcl_text(call["name"])
        edges = [f"${{module.{terraform.label(edge)}}}" for edge in plan.dependencies[name]]
        assert call.get("depends_on", []) == edges, label


@pytest.mark.parametrize("recipe", sorted(CATALOGUE))
def test_the_catalogue_gets_the_planned_values(recipe: str) -> None:
    """What the provider reads is what was planned, for every component."""
    parsed = parse(real_files(recipe, "terraform"))
    for item in real_plan(recipe).components:
        assert parsed.values[item.name] == item.values, item.name
