"""The real terraform and OpenTofu on what we write: layout, graph, and strings evaluated by itself.

The provider for Helm cannot be had without a network, so the releases are stood in for by
`terraform_data`, which is built in. All else of the bundle is as generated.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests import tools_build
from tests.bundle.sample_plans import chart, plan_of
from tests.deployers import built_tools
from tests.deployers.built_tools import built
from tests.deployers.deployer_plans import TEMPLATE_EATERS, diamond, generate, real_files

from aicr.bundle import output
from aicr.yamlio import read

Files = dict[str, tuple[bytes, int]]

STAND_IN = """
resource "terraform_data" "this" {
  input = {
    name   = var.name
    chart  = var.chart
    values = [for path in var.values_files : file(path)]
    slots  = [for slot in [var.pre, var.post, var.readiness] : slot.name if slot != null]
  }
}

output "release" {
  value = terraform_data.this.output
}
"""


@pytest.fixture(scope="module", params=["terraform", pytest.param("tofu", marks=pytest.mark.tools)])
def tool(request: pytest.FixtureRequest) -> str:
    """Path of terraform, if it is there, and of OpenTofu as `make test-tools` builds it."""
    if request.param == "tofu":
        return built("tofu")
    found = shutil.which("terraform")
    if found is None:
        pytest.skip("terraform is not on PATH")
    return found


def run(tool: str, folder: Path, *words: str) -> str:
    """Run the tool in a folder and return what it printed."""
    settings = {
        "TF_CLI_CONFIG_FILE": os.devnull,
        "CHECKPOINT_DISABLE": "1",
        "TF_IN_AUTOMATION": "1",
    }
    return built_tools.run(tool, *words, home=folder, at=folder, extra=settings)


def written(files: Files, folder: Path) -> Path:
    """A bundle on disk."""
    output.write_bundle(files, str(folder / "bundle"))
    return folder / "bundle"


def stand_in(files: Files) -> Files:
    """The bundle without the provider, its releases replaced."""
    made = dict(files)
    made["versions.tf"] = (b"", 0o644)
    made["modules/component/main.tf"] = (STAND_IN.encode(), 0o644)
    made["modules/component/outputs.tf"] = (b"", 0o644)
    return made


@pytest.mark.tools
def test_opentofu_is_of_the_pinned_release(tmp_path: Path) -> None:
    """What the report of a run names is what was built."""
    printed = run(built("tofu"), tmp_path, "version").splitlines()
    assert printed[0] == f"OpenTofu {tools_build.TOOLS['tofu'].version}"


@pytest.mark.parametrize("child", [False, True])
def test_fmt_would_change_nothing(tool: str, tmp_path: Path, child: bool) -> None:
    """Every .tf file is laid out as the tool lays it out (5.6)."""
    flags = {"terraform_child_module": child, "terraform_cluster_rollover": True}
    folder = written(generate("terraform", diamond(), **flags), tmp_path)
    run(tool, folder, "fmt", "-check", "-diff", "-recursive")


@pytest.mark.parametrize("recipe", ["eks-training", "gke-inference"])
def test_fmt_would_change_nothing_in_the_catalogue(tool: str, tmp_path: Path, recipe: str) -> None:
    """The same for real recipes."""
    run(tool, written(real_files(recipe, "terraform"), tmp_path), "fmt", "-check", "-recursive")


@pytest.mark.covers("F2", "B10-58")
def test_the_tool_itself_reads_every_string_and_value_as_its_text(
    tool: str, tmp_path: Path
) -> None:
    """Applied with stand-ins, the arguments are the exact texts (field case F2)."""
    plan = plan_of(
        *(
            chart(f"c{number}", chart=text.replace("\n", "").replace("\t", "").replace(" ", "-"))
            for number, text in enumerate(['$${X}${a}%%{if}"b\\c', "%{for}", '${upper("x")}'])
        ),
        chart("values", values=TEMPLATE_EATERS, dependencyRefs=["c0"]),
    )
    folder = written(stand_in(generate("terraform", plan)), tmp_path)
    run(tool, folder, "init", "-input=false", "-no-color")
    run(tool, folder, "apply", "-input=false", "-auto-approve", "-no-color")
    releases: dict[str, Any] = json.loads(run(tool, folder, "output", "-json", "releases"))
    for item in plan.components:
        assert releases[item.name]["chart"] == item.ref["chart"]
    values = read.load(releases["values"]["values"][0], source="values.yaml")
    assert values == TEMPLATE_EATERS


@pytest.mark.covers("C-111")
def test_the_tool_accepts_the_graph_of_the_catalogue(tool: str, tmp_path: Path) -> None:
    """References, types and the absence of circles are checked by the tool itself."""
    folder = written(stand_in(real_files("eks-training", "terraform")), tmp_path)
    run(tool, folder, "init", "-input=false", "-no-color")
    run(tool, folder, "validate", "-no-color")
    graph = run(tool, folder, "graph")
    assert "module.gpu_operator" in graph
