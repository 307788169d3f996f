from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
from tests.bundle.sample_plans import CONFIG_MAP, chart, plan_of

from aicr.artifacts import checksums
from aicr.bundle import info, layout
from aicr.bundle.deployers import helm
from aicr.bundle.options import BundleOptions
from aicr.errors import AicrError
from aicr.yamlio import read, write


def files_of(options: BundleOptions | None = None) -> dict[str, tuple[bytes, int]]:
    """The files of a bundle of one component with manifests."""
    plan = plan_of(chart("a", namespace="ns", manifests=[("m.yaml", CONFIG_MAP)]))
    plan.options = options or BundleOptions(version="dev")
    return helm.generate(plan, layout.folders(plan))


def document(options: BundleOptions | None = None) -> dict[str, Any]:
    """bundle-info.yaml of that bundle, read back strictly."""
    return info.read(files_of(options)["bundle-info.yaml"][0].decode())


def test_bundle_info_says_how_the_bundle_was_made() -> None:
    """Deployer, recipe digest, settings, entry point and releases in order (bundler spec 2.10)."""
    files = files_of(BundleOptions(version="1.2.3"))
    digest = hashlib.sha256(files["recipe.yaml"][0]).hexdigest()
    assert info.read(files["bundle-info.yaml"][0].decode()) == {
        "apiVersion": "aicr.run/v1",
        "kind": "BundleInfo",
        "metadata": {"version": "1.2.3"},
        "build": {
            "deployer": "helm",
            "recipe": {"path": "recipe.yaml", "digest": f"sha256:{digest}", "version": "1.0.0"},
            "settings": {
                "checksums": True,
                "attested": False,
                "vendorCharts": False,
                "readinessHooks": False,
                "serial": False,
            },
        },
        "layout": {
            "entrypoint": "deploy.sh",
            "releases": [
                {
                    "name": "a",
                    "component": "a",
                    "namespace": "ns",
                    "path": "001-a",
                    "manifest": "001-a/install.sh",
                },
                {
                    "name": "a-post",
                    "component": "a",
                    "namespace": "ns",
                    "path": "002-a-post",
                    "manifest": "002-a-post/install.sh",
                },
            ],
        },
    }


def test_settings_hold_the_flags_that_were_given() -> None:
    """Storage classes and placement appear when they were asked for, and only then (2.10)."""
    options = BundleOptions(
        storage_class="gp3",
        shared_storage_class="efs",
        system_node_selector=["b=2", "a=1"],
        accelerated_node_tolerations=["gpu=true:NoSchedule"],
    )
    settings = document(options)["build"]["settings"]
    assert settings["storageClass"] == "gp3"
    assert settings["sharedStorageClass"] == "efs"
    tolerations = [{"key": "gpu", "operator": "Equal", "value": "true", "effect": "NoSchedule"}]
    assert settings["nodeScheduling"] == {
        "system": {"selector": {"a": "1", "b": "2"}},
        "accelerated": {"tolerations": tolerations},
    }


def test_root_files_have_their_modes_and_are_all_listed() -> None:
    """recipe.yaml and checksums.txt are private; every file but the list is in it (2.9, 7.1)."""
    files = files_of(BundleOptions(data_files={"overlays/x.yaml": b"a: 1\n"}))
    modes = {path: mode for path, (_, mode) in files.items() if "/" not in path}
    assert modes == {
        "README.md": 0o644,
        "bundle-info.yaml": 0o644,
        "checksums.txt": 0o600,
        "deploy.sh": 0o755,
        "recipe.yaml": 0o600,
    }
    assert files["data/overlays/x.yaml"] == (b"a: 1\n", 0o644)
    listed, problems = checksums.parse(files["checksums.txt"][0])
    assert problems == []
    assert set(listed) == set(files) - {"checksums.txt"}


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a//b"])
def test_external_data_stays_inside_data(path: str) -> None:
    """A path that leaves data/ is refused."""
    with pytest.raises(AicrError, match="external data file"):
        files_of(BundleOptions(data_files={path: b""}))


def test_recipe_yaml_is_the_recipe_of_this_bundle() -> None:
    """It reads back as the document that was handed in (2.9)."""
    plan = plan_of(chart("a"))
    files = helm.generate(plan, layout.folders(plan))
    assert read.load(files["recipe.yaml"][0].decode(), source="recipe.yaml") == plan.recipe


def change(*keys: str | int, to: Any) -> Callable[[dict[str, Any]], None]:
    """A function that sets one place of a document."""

    def apply(root: Any) -> None:
        for key in keys[:-1]:
            root = root[key]
        root[keys[-1]] = to

    return apply


def drop(*keys: str) -> Callable[[dict[str, Any]], None]:
    """A function that removes one place of a document."""

    def apply(root: Any) -> None:
        for key in keys[:-1]:
            root = root[key]
        del root[keys[-1]]

    return apply


SETTINGS = ("build", "settings")
RELEASE = ("layout", "releases", 0)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (change("extra", to=1), "unknown field extra"),
        (change("build", "when", to="now"), "unknown field build.when"),
        (change(*SETTINGS, "color", to="red"), "unknown field build.settings.color"),
        (change(*RELEASE, "wave", to=1), "unknown field layout.releases[0].wave"),
        (change("kind", to="Bundle"), "invalid kind"),
        (change("apiVersion", to="aicr.run/v9"), "invalid apiVersion"),
        (drop("apiVersion"), "must say apiVersion"),
        (drop("layout"), "layout is missing"),
        (drop("build", "recipe", "digest"), "build.recipe.digest is missing"),
        (drop(*SETTINGS, "serial"), "build.settings.serial is missing"),
        (change("metadata", "version", to=1), "metadata.version must be text"),
        (change("build", to=[]), "build must be a map"),
        (change(*SETTINGS, "attested", to="no"), "must be true or false"),
        (change(*SETTINGS, "appName", to=1), "build.settings.appName must be text"),
        (change(*SETTINGS, "components", to="a"), "must be a list of names"),
        (change(*SETTINGS, "nodeScheduling", to={"gpu": {}}), "nodeScheduling.gpu"),
        (
            change(*SETTINGS, "nodeScheduling", to={"system": {"selector": []}}),
            "selector must be a map",
        ),
        (
            change(*SETTINGS, "nodeScheduling", to={"system": {"tolerations": {}}}),
            "tolerations must be a list",
        ),
        (change("layout", "releases", to={}), "layout.releases must be a list"),
        (change("layout", "entrypoint", to="../x"), "leads out of the tree"),
        (change("layout", "provenance", to="/x"), "is absolute"),
        (change(*RELEASE, "path", to="/001-a"), "is absolute"),
        (change(*RELEASE, "manifest", to="a/../../b"), "leads out of the tree"),
        (change("build", "recipe", "path", to=""), "must be text"),
    ],
)
def test_the_reader_is_strict(spoil: Callable[[dict[str, Any]], None], words: str) -> None:
    """Unknown, missing, mistyped fields and paths outside the bundle are refused (2.10)."""
    held = document()
    spoil(held)
    with pytest.raises(AicrError) as caught:
        info.read(write.dump(held))
    assert caught.value.code == "INVALID_REQUEST"
    assert words in caught.value.message


@pytest.mark.parametrize("text", ["", "[]", "a: [", "text"])
def test_text_that_is_no_document_is_refused(text: str) -> None:
    """An AicrError, whatever the text is."""
    with pytest.raises(AicrError):
        info.read(text)
