"""bundle-info.yaml, and the files that every bundle has at its root.

```
deployer files + recipe + plan --complete--> all files, with recipe.yaml, bundle-info.yaml,
                                             data/ and, last, checksums.txt
```
bundle-info.yaml says how a bundle was made and which releases it holds, without a time or a path of
the machine that made it, so that equal inputs give equal bytes. ``read`` is its strict reader; it
is how a folder is recognised as a bundle of ours.

This module must not know how a deployer works. Source: bundler spec 2.9, 2.10; decision 3.
"""

from __future__ import annotations

from aicr import yamlio
from aicr.artifacts import checksums
from aicr.errors import AicrError, invalid
from aicr.yamlio import write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Final

    from aicr.bundle.layout import Folder
    from aicr.bundle.options import BundleOptions
    from aicr.bundle.plan import Plan

    Files = dict[str, tuple[bytes, int]]

API_VERSION: Final = "aicr.run/v1"
KIND: Final = "BundleInfo"
BUNDLE_INFO: Final = "bundle-info.yaml"
RECIPE: Final = "recipe.yaml"
README: Final = "README.md"
DATA: Final = "data"
MODE: Final = 0o644
#: Values and overrides in a recipe may be secrets.
SECRET_MODE: Final = 0o600

_SETTINGS_FLAGS: Final = ("checksums", "attested", "vendorCharts", "readinessHooks", "serial")
_SETTINGS_TEXTS: Final = (
    "repoURL",
    "targetRevision",
    "appName",
    "storageClass",
    "sharedStorageClass",
)
_SETTINGS: Final = (*_SETTINGS_FLAGS, "components", *_SETTINGS_TEXTS, "nodeScheduling")


def settings(options: BundleOptions) -> dict[str, Any]:
    """`build.settings`: the flags that shaped the bundle, those not given left out."""
    made: dict[str, Any] = {flag: flag == "checksums" for flag in _SETTINGS_FLAGS}
    from aicr.bundle.options import TARGET_REVISION, parse_scheduling

    made["vendorCharts"] = options.vendor_charts
    made["readinessHooks"] = options.readiness_hooks
    made["serial"] = options.serial
    if options.bundlers:
        made["components"] = sorted(set(options.bundlers))
    for key, text in (("repoURL", options.repo), ("appName", options.app_name)):
        if text:
            made[key] = text
    if options.repo or options.target_revision != TARGET_REVISION:
        made["targetRevision"] = options.target_revision
    flags = parse_scheduling(options)
    if flags.storage_class:
        made["storageClass"] = flags.storage_class
    if flags.shared_storage_class:
        made["sharedStorageClass"] = flags.shared_storage_class
    tiers = {}
    for tier, selector, tolerations in (
        ("system", flags.system_selector, flags.system_tolerations),
        ("accelerated", flags.accelerated_selector, flags.accelerated_tolerations),
    ):
        given: dict[str, Any] = {}
        if selector:
            given["selector"] = dict(sorted(selector.items()))
        if tolerations:
            given["tolerations"] = tolerations
        if given:
            tiers[tier] = given
    if tiers:
        made["nodeScheduling"] = tiers
    return made


def bundle_info(
    *,
    deployer: str,
    entrypoint: str,
    recipe_yaml: bytes,
    recipe_version: str,
    version: str,
    folders: Iterable[Folder],
    manifest: str,
    build_settings: Mapping[str, Any],
    provenance: str = "",
) -> dict[str, Any]:
    """The BundleInfo document (bundler spec 2.10).

    Args:
        deployer: name of the deployer.
        entrypoint: the file to start with, relative to the bundle.
        recipe_yaml: bytes of recipe.yaml, for its digest.
        recipe_version: `metadata.version` of the recipe, or "".
        version: version of this program.
        folders: the releases, in deployment order.
        manifest: name of the file in each folder that deploys it, or "" when there is none.
        build_settings: see ``settings``.
        provenance: the file that tells where vendored charts came from, or "".
    """
    recipe: dict[str, Any] = {
        "path": RECIPE,
        "digest": f"sha256:{checksums.sha256_hex(recipe_yaml)}",
    }
    if recipe_version:
        recipe["version"] = recipe_version
    releases = []
    for folder in folders:
        release = {
            "name": folder.release,
            "component": folder.parent,
            "namespace": folder.namespace,
            "path": folder.dir,
        }
        if manifest:
            release["manifest"] = f"{folder.dir}/{manifest}"
        releases.append(release)
    layout: dict[str, Any] = {"entrypoint": entrypoint}
    if provenance:
        layout["provenance"] = provenance
    layout["releases"] = releases
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"version": version},
        "build": {"deployer": deployer, "recipe": recipe, "settings": dict(build_settings)},
        "layout": layout,
    }


def complete(
    files: Files,
    plan: Plan,
    folders: list[Folder],
    *,
    deployer: str,
    entrypoint: str,
    manifest: str,
) -> Files:
    """A deployer's files with the common root files added, checksums last (bundler spec 2.9).

    Raises:
        AicrError: INVALID_REQUEST for an external data file whose path leaves `data/`.
    """
    made: Files = dict(files)
    recipe, options = plan.recipe, plan.options
    for path, data in options.data_files.items():
        problem = checksums.path_problem(path)
        if problem:
            raise invalid(f"external data file {path!r} {problem}", where="--data")
        made[f"{DATA}/{path}"] = (data, MODE)
    recipe_yaml = write.dump(recipe).encode()
    made[RECIPE] = (recipe_yaml, SECRET_MODE)
    metadata = recipe.get("metadata") or {}
    vendored = [(each.parent, each.vendored) for each in folders if each.vendored is not None]
    if vendored:
        from aicr.bundle.vendor import PROVENANCE, provenance

        made[PROVENANCE] = (write.dump(provenance(vendored)).encode(), MODE)
    document = bundle_info(
        deployer=deployer,
        entrypoint=entrypoint,
        recipe_yaml=recipe_yaml,
        recipe_version=str(metadata.get("version") or ""),
        version=options.version,
        folders=folders,
        manifest=manifest,
        build_settings=settings(options),
        provenance=PROVENANCE if vendored else "",
    )
    made[BUNDLE_INFO] = (write.dump(document).encode(), MODE)
    made[checksums.CHECKSUMS] = (checksums.checksums_txt(made), checksums.MODE)
    return made


def read(text: str, *, source: str = BUNDLE_INFO) -> dict[str, Any]:
    """The BundleInfo document in *text*, checked.

    Raises:
        AicrError: INVALID_REQUEST for text that is no YAML, another kind, an unknown or missing
            field, a field of the wrong type, or a path that leaves the bundle (bundler spec 2.10).
    """
    from aicr.contract.documents import check_header

    document = yamlio.read_fast(text, source=source, mode="v3")
    check_header(document, KIND, source=source)
    if document.get("apiVersion") != API_VERSION or document.get("kind") != KIND:
        raise _wrong(f"a {KIND} must say apiVersion: {API_VERSION} and kind: {KIND}", source)
    root = _fields(document, "", source, ("metadata", "build", "layout"), ("apiVersion", "kind"))
    metadata = _fields(root["metadata"], "metadata", source, ("version",))
    _text(metadata, "metadata", "version", source)
    build = _fields(root["build"], "build", source, ("deployer", "recipe", "settings"))
    _text(build, "build", "deployer", source)
    recipe = _fields(build["recipe"], "build.recipe", source, ("path", "digest"), ("version",))
    _path(recipe, "build.recipe", "path", source)
    _text(recipe, "build.recipe", "digest", source)
    if "version" in recipe:
        _text(recipe, "build.recipe", "version", source)
    flags = _fields(build["settings"], "build.settings", source, _SETTINGS_FLAGS, _SETTINGS)
    for flag in _SETTINGS_FLAGS:
        if not isinstance(flags[flag], bool):
            raise _wrong(f"build.settings.{flag} must be true or false", source)
    for key in _SETTINGS_TEXTS:
        if key in flags:
            _text(flags, "build.settings", key, source)
    _components(flags, source)
    _node_scheduling(flags, source)
    layout = _fields(root["layout"], "layout", source, ("entrypoint", "releases"), ("provenance",))
    _path(layout, "layout", "entrypoint", source)
    if "provenance" in layout:
        _path(layout, "layout", "provenance", source)
    if not isinstance(layout["releases"], list):
        raise _wrong("layout.releases must be a list", source)
    for index, item in enumerate(layout["releases"]):
        place = f"layout.releases[{index}]"
        names = ("name", "component", "namespace")
        release = _fields(item, place, source, (*names, "path"), ("manifest",))
        for key in names:
            _text(release, place, key, source)
        _path(release, place, "path", source)
        if "manifest" in release:
            _path(release, place, "manifest", source)
    return root


def _components(flags: dict[str, Any], source: str) -> None:
    chosen = flags.get("components", [])
    if not isinstance(chosen, list) or not all(isinstance(name, str) for name in chosen):
        raise _wrong("build.settings.components must be a list of names", source)


def _node_scheduling(flags: dict[str, Any], source: str) -> None:
    place = "build.settings.nodeScheduling"
    tiers = _fields(flags.get("nodeScheduling", {}), place, source, (), ("system", "accelerated"))
    for tier, held in tiers.items():
        fields = _fields(held, f"{place}.{tier}", source, (), ("selector", "tolerations"))
        if not isinstance(fields.get("selector", {}), dict):
            raise _wrong(f"{place}.{tier}.selector must be a map", source)
        if not isinstance(fields.get("tolerations", []), list):
            raise _wrong(f"{place}.{tier}.tolerations must be a list", source)


def _wrong(message: str, source: str) -> AicrError:
    return invalid(
        message, where=source, hint="aicr bundle writes this file: make the bundle again"
    )


def _fields(
    value: Any, place: str, source: str, needed: tuple[str, ...], allowed: tuple[str, ...] = ()
) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(f"{place or 'the document'} must be a map", source)
    prefix = f"{place}." if place else ""
    for key in value:
        if key not in needed and key not in allowed:
            raise _wrong(f"unknown field {prefix}{key}", source)
    for key in needed:
        if key not in value:
            raise _wrong(f"{prefix}{key} is missing", source)
    return value


def _text(holder: dict[str, Any], place: str, key: str, source: str) -> str:
    value = holder[key]
    if not isinstance(value, str) or not value:
        raise _wrong(f"{place}.{key} must be text", source)
    return value


def _path(holder: dict[str, Any], place: str, key: str, source: str) -> None:
    path = _text(holder, place, key, source)
    problem = checksums.path_problem(path)
    if problem:
        raise _wrong(f"{place}.{key} {path!r} {problem}", source)
