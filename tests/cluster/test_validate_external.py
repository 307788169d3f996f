"""A check of somebody's own, exactly as docs/validate.md has it, on a real control plane."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.cluster.validate_runs import Case, left_of, recipe
from tests.controlplane.fixtures import make_namespace
from tests.controlplane.nodes import Node
from tests.controlplane.plane import ControlPlane

pytestmark = pytest.mark.cluster

PAGE = Path(__file__).resolve().parents[2] / "docs" / "validate.md"
BLOCK = re.compile(r"<!-- file: (?P<path>\S+) -->\n```\w*\n(?P<text>.*?)```", re.DOTALL)


def written(folder: Path) -> Path:
    """Write the files of the page; returns their folder."""
    found = {match["path"]: match["text"] for match in BLOCK.finditer(PAGE.read_text())}
    assert set(found) == {
        "site/registry.yaml",
        "site/validators/catalog.yaml",
        "site-checks/check.sh",
    }
    for path, text in found.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ControlPlane, Path]]:
    """A plane whose nodes have the image of the page."""
    folder = written(tmp_path_factory.mktemp("site"))
    images = folder / "images.yaml"
    script = str(folder / "site-checks" / "check.sh")
    images.write_text(yaml.safe_dump({"registry.example/site-checks:v1": ["/bin/sh", script]}))
    with ControlPlane([Node("runs", cpu="4")], images=[images]) as plane:
        make_namespace(plane.client(), "checks")
        yield plane, folder


@pytest.mark.covers("V-442")
@pytest.mark.parametrize(
    ("approved", "status", "exit_status", "message"),
    [
        ("v1.35 v1.36", "passed", 0, None),
        ("v1.35", "failed", 8, "v1.36.2 is not approved"),
    ],
)
def test_the_example_of_the_page_runs(
    site: tuple[ControlPlane, Path],
    tmp_path: Path,
    approved: str,
    status: str,
    exit_status: int,
    message: str | None,
) -> None:
    """Its catalogue, its script: evidence, result line, reason, and nothing left."""
    plane, folder = site
    case = Case(tmp_path, plane.kubeconfig)
    case.write(recipe(deployment=["approved-version"]))
    data = tmp_path / "data"
    for path in ("registry.yaml", "validators/catalog.yaml"):
        text = (folder / "site" / path).read_text()
        (data / path).write_text(text.replace("v1.35 v1.36", approved))
    ended = case.run("-n", "checks", "--phase", "deployment")
    assert ended.status == exit_status, ended.err
    test = ended.tests["approved-version"]
    assert test["status"] == status
    assert test["stdout"][0] == f"server v1.36.2, approved: {approved}"
    assert test.get("message", "").strip() == (message or "")
    assert ("RESULT v1.36.2 is approved" in ended.err) is (status == "passed")
    assert left_of(plane.client().call, ended.run_id) == []
