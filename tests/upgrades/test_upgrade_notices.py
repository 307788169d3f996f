"""UPGRADING.md and its notices: written when a version lies where a recorded transition leads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.upgrades.upgrade_samples import STEP, catalogue, record, transition

from aicr.artifacts import checksums
from aicr.bundle import deployers, upgrades
from aicr.bundle.api import Bundle, make_bundle
from aicr.bundle.options import BundleOptions
from aicr.catalog.catalog import Catalog
from aicr.recipe.criteria import Criteria
from aicr.recipe.resolve import resolve

PIN = "0.19.3"


def bundle(catalog: Catalog, deployer: str = "helm") -> Bundle:
    """A bundle that has kueue."""
    criteria = Criteria(
        service="eks", accelerator="h100", intent="training", os="ubuntu", platform="kubeflow"
    )
    recipe = resolve(catalog, criteria)
    kueue: Any = {
        "name": "kueue",
        "type": "Helm",
        "source": "oci://registry.k8s.io/kueue/charts",
        "chart": "kueue",
        "version": PIN,
        "namespace": "kueue-system",
    }
    refs = [ref for ref in recipe.document["componentRefs"] if ref["name"] == "cert-manager"]
    recipe.document = {**recipe.document, "componentRefs": [*refs, kueue]}
    options = BundleOptions(
        deployer=deployer,
        system_node_selector=["pool=system"],
        accelerated_node_selector=["pool=gpu"],
    )
    return make_bundle(recipe, options)


def led_to(verdict: str = "manual", **more: Any) -> str:
    """A record whose first transition leads to the pinned version."""
    return record(transition("<0.19.0", ">=0.19.0 <=0.19.3", verdict, **more))


@pytest.mark.covers("B10-79")
@pytest.mark.parametrize("verdict", ["manual", "blocked"])
@pytest.mark.parametrize("deployer", ["helm", "helmfile", "terraform"])
def test_a_version_inside_a_transition_gets_a_page_a_notice_and_the_first_note(
    tmp_path: Path, verdict: str, deployer: str
) -> None:
    """UPGRADING.md, README notice, first note, and checksums that cover them (9.2)."""
    made = bundle(catalogue(tmp_path, led_to(verdict)), deployer)
    page = made.files["UPGRADING.md"][0].decode()
    assert page.startswith("# Read this before you upgrade\n")
    assert f"## kueue {PIN}\n" in page
    assert f"**From <0.19.0: {verdict}.** Moves." in page
    readme = made.files["README.md"][0].decode()
    assert readme.startswith("# AI cluster runtime bundle\n\n> **Upgrading?** Read [UPGRADING.md]")
    assert made.plan.notes[0].startswith("Warning: read UPGRADING.md")
    assert made.files["checksums.txt"][0] == checksums.checksums_txt(
        {path: held for path, held in made.files.items() if path != "checksums.txt"}
    )
    assert b"  UPGRADING.md\n" in made.files["checksums.txt"][0]


@pytest.mark.covers("B10-79")
@pytest.mark.parametrize(
    "text",
    [
        "transitions: [",
        "a: b\n",
        "",
        led_to().replace("summary", "sumary"),
        record(transition(), component="other"),
        led_to().replace("<0.19.0", "newer"),
    ],
)
def test_a_corrupted_record_is_a_warning_and_the_bundle_is_made(tmp_path: Path, text: str) -> None:
    """What cannot be read never fails a bundle (9.2)."""
    made = bundle(catalogue(tmp_path, text))
    assert "UPGRADING.md" not in made.files
    notes = [note for note in made.plan.notes if "upgrade of kueue" in note]
    assert len(notes) == 1
    assert notes[0].startswith("Warning: ")
    assert "components/kueue/upgrades.yaml" in notes[0]
    assert str(tmp_path) not in notes[0]
    assert "Upgrading?" not in made.files["README.md"][0].decode()


@pytest.mark.parametrize(
    "text",
    [
        record(transition("<0.20.0", ">=0.20.0 <0.21.0")),
        record(transition("<0.19.0", ">=0.19.0 <=0.19.2")),
        record(transition("<0.19.0", ">=0.19.0 <=0.19.3", "safe")),
    ],
)
def test_a_version_outside_or_safe_gets_nothing(tmp_path: Path, text: str) -> None:
    """Only manual and blocked transitions that lead here count (9.2)."""
    made = bundle(catalogue(tmp_path, text))
    assert "UPGRADING.md" not in made.files
    assert not [note for note in made.plan.notes if "upgrade" in note.lower()]


def test_only_the_steps_of_the_chosen_deployer_are_shown(tmp_path: Path) -> None:
    """Another group's steps would be wrong instructions (9.2)."""
    groups = [
        {"deployers": ["helm"], "steps": [{**STEP, "description": "For helm."}]},
        {
            "deployers": ["argocd", "argocd-helm", "flux", "helmfile"],
            "steps": [{**STEP, "description": "For others."}],
        },
    ]
    catalog = catalogue(tmp_path, led_to(stepsByDeployer=groups))
    pages = {
        name: bundle(catalog, name).files["UPGRADING.md"][0].decode()
        for name in ("helm", "helmfile", "terraform")
    }
    assert "1. For helm.\n   Why: Because.\n" in pages["helm"]
    assert "For others." not in pages["helm"]
    assert "For others." in pages["helmfile"]
    assert "For helm." not in pages["helmfile"]
    assert "No steps are recorded for terraform." in pages["terraform"]


def test_what_else_a_transition_says_is_on_the_page(tmp_path: Path) -> None:
    """Precondition, resources, way back and references."""
    text = led_to(
        precondition="No queue is active.",
        reversible=False,
        reversibleNotes="Objects are converted.",
        affectedResources=[{"group": "kueue.x-k8s.io", "kinds": ["ClusterQueue"]}],
        references=["https://notes.example"],
    )
    page = bundle(catalogue(tmp_path, text)).files["UPGRADING.md"][0].decode()
    for line in (
        "Before: No queue is active.",
        "Affected: ClusterQueue.kueue.x-k8s.io",
        "There is no way back. Objects are converted.",
        "- <https://notes.example>",
    ):
        assert f"{line}\n" in page


def test_the_look_without_reading_agrees_with_reading() -> None:
    """For the records of the catalogue, the ranges found by looking are those of the records."""
    catalog = Catalog.builtin()
    seen = 0
    for entry in catalog.registry.entries:
        record_of = upgrades.load_record(entry["name"], catalog)
        if record_of is not None:
            text = catalog.tree.read_text(entry["upgrades"]["file"])
            ranges = upgrades._target_ranges(text)
            assert ranges is not None, entry["name"]
            assert [r.text for r in ranges] == [t.to_range.text for t in record_of.transitions]
            seen += 1
    assert seen


@pytest.mark.parametrize(
    "text",
    [
        "transitions: [{from: <1, to: '=2', verdict: manual}]",
        "- to: >=1\n  verdict: manual\n",
        "- to: '=1'\n  verdict: manual\n- verdict: safe\n",
        "- to: '=1'\n  verdict: manual\n  summary: up to: here\n",
        '- "to": "=1"\n  verdict: manual\n',
        "- to: 'newest'\n  verdict: manual\n",
        "",
    ],
)
def test_a_look_that_could_miss_a_range_is_not_conclusive(text: str) -> None:
    """Then the record is read properly."""
    assert upgrades._target_ranges(text) is None


def test_files_without_notices_are_left_alone() -> None:
    """No notice, no change."""
    files = {"README.md": (b"x", 0o644)}
    assert upgrades.add_files(files, [], "helm") is files
    assert "helm" in deployers.names()
