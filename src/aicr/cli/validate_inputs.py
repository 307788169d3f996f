"""What ``aicr validate`` works on: recipe, catalogue of checks, snapshot, and the cluster's snapshot agent.

In the order of validators spec 1.3: everything that files can say comes before a cluster is
contacted.
"""

from __future__ import annotations

from aicr.errors import AicrError, invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from typing import Any

    from aicr.cli.console import Console
    from aicr.cli.validate_flags import Options
    from aicr.kube.client import Client
    from aicr.recipe.recipe import Recipe
    from aicr.validate.catalog import ValidatorCatalog
    from aicr.validate.environment import Setting


class Inputs:
    """The documents of one run.

    Attributes:
        recipe: with the catalogue that its files are in.
        catalog: of checks, images resolved.
        setting: what all checks are told.
        snapshot: None until it is read or taken.
        cluster: the words for what is validated, for people.
    """

    __slots__ = ("catalog", "cluster", "recipe", "setting", "snapshot")

    def __init__(self, recipe: Recipe, catalog: ValidatorCatalog, setting: Setting) -> None:
        self.recipe, self.catalog, self.setting = recipe, catalog, setting
        self.snapshot: dict[str, Any] | None = None
        self.cluster = "none (--no-cluster)"


def load(
    arguments: argparse.Namespace,
    options: Options,
    console: Console,
    environ: Mapping[str, str],
    run_id: str,
) -> Inputs:
    """Recipe, catalogue and settings; no cluster is asked, unless a document is in a ConfigMap.

    Raises:
        AicrError: INVALID_REQUEST ``--recipe is required (…)``, and for documents that
            cannot be read for what they say.
    """
    from aicr.cli.catalogs import load_catalog
    from aicr.cli.sources import read_input
    from aicr.contract import container
    from aicr.contract import images as references
    from aicr.recipe.document import load_recipe
    from aicr.validate import catalog as checks
    from aicr.validate import images
    from aicr.validate.environment import Setting
    from aicr.validate.recipe_shape import check_validation

    if not options.recipe:
        raise invalid(
            "--recipe is required (or set spec.validate.input.recipe in --config)",
            where="--recipe",
            hint="aicr recipe makes one",
        )
    tag = images.check_reference(container.IMAGE_TAG, environ.get(container.IMAGE_TAG, ""))
    registry = images.check_reference(
        container.IMAGE_REGISTRY, environ.get(container.IMAGE_REGISTRY, "")
    )
    catalog = load_catalog(arguments, console)
    text = read_input(options.recipe, what="recipe file", kubeconfig=options.kubeconfig)
    recipe = load_recipe(text, options.recipe, catalog)
    for warning in recipe.warnings:
        console.warn(str(warning))
    document: Any = recipe.document
    check_validation(document, options.recipe)
    version, commit = build()
    found = checks.load(catalog.tree)
    resolved = {
        entry.name: references.resolve(
            entry.image, version=version, commit=commit, tag=tag, registry=registry
        )
        for entry in found.entries
    }
    setting = Setting(
        run_id=run_id,
        version=version,
        commit=commit,
        registry=registry,
        tag=tag,
        node_selector=options.node_selector,
        tolerations=options.tolerations,
        environ=environ,
    )
    return Inputs(recipe, found.with_images(resolved), setting)


def build() -> tuple[str, str]:
    """(version, commit) of this program; a build without stamp is ``dev`` (decision 40)."""
    from aicr.version import __version__

    try:
        from aicr import _stamp
    except ImportError:
        return "dev", ""
    return __version__, str(_stamp.COMMIT)


def policy(inputs: Inputs, phases: tuple[str, ...], skipped: list[str], console: Console) -> str:
    """How the recipe hands out GPUs (validators spec 5.5).

    A recipe that contradicts itself stops a run with a check that is held to the answer; for the
    others it is a warning.

    Raises:
        AicrError: INVALID_REQUEST for such a recipe, and for values files that are not there.
    """
    from aicr.recipe.hydrate import resolve_values
    from aicr.validate.affinity import enabled_components
    from aicr.validate.gpu_policy import UNSPECIFIED, resolve_policy
    from aicr.validate.input_document import HELD_TO_POLICY
    from aicr.validate.phases import declared_checks

    document: Any = inputs.recipe.document
    declared = {name for phase in phases for name in declared_checks(document, phase)}
    held = sorted(declared & set(HELD_TO_POLICY) - set(skipped))
    refs: Any = enabled_components(document)
    try:
        values = {
            name: resolve_values(ref, inputs.recipe.catalog.tree) for name, ref in refs.items()
        }
        profile = (document.get("metadata") or {}).get("selectedProfile") or {}
        found, warnings = resolve_policy(values, advertiser=profile.get("advertiser") or "")
    except AicrError as error:
        if held:
            raise AicrError(
                error.code,
                f"{', '.join(held)} cannot run",
                where="GPU allocation",
                hint=error.hint,
            ) from error
        console.warn(f"{error}")
        return UNSPECIFIED
    for warning in warnings:
        console.warn(warning)
    return found


def read_snapshot(inputs: Inputs, options: Options, console: Console) -> None:
    """Read the snapshot that ``--snapshot`` names.

    Raises:
        AicrError: what cannot be read as one.
    """
    from aicr.cli.sources import read_input
    from aicr.snapshot import document

    text = read_input(options.snapshot, what="snapshot file", kubeconfig=options.kubeconfig)
    inputs.snapshot, notices = document.load(text, options.snapshot)
    for notice in notices:
        console.warn(notice)


async def take_snapshot(
    inputs: Inputs,
    options: Options,
    client: Client,
    console: Console,
    environ: Mapping[str, str],
) -> None:
    """Let an agent take the snapshot.

    Raises:
        AicrError: why it could not.
    """
    from dataclasses import replace

    from aicr.collectors import agent
    from aicr.collectors.agent_options import AgentOptions, default_image
    from aicr.collectors.limits import Limits
    from aicr.values.waiting import factor_of

    limits = Limits.from_environment(environ)
    # A factor for tests applies to what a person says as well, as it does to every default.
    factor = factor_of(environ)
    asked = AgentOptions(
        namespace=options.namespace,
        image=options.image or default_image(environ),
        image_pull_secrets=options.image_pull_secrets,
        job_name=options.job_name,
        service_account=options.service_account_name,
        node_selector=options.node_selector,
        tolerations=options.tolerations,
        require_gpu=options.require_gpu,
        cleanup=not options.no_cleanup,
        provider=_projections(options),
        run_id=inputs.setting.run_id,
        times=replace(limits, agent=options.timeout * factor),
    )
    inputs.snapshot = await agent.capture(client, asked, say=console.say)


def _projections(options: Options) -> list[dict[str, Any]]:
    from aicr.cli.sources import read_input
    from aicr.cli.validate_flags import PROJECTIONS
    from aicr.collectors import projections

    kinds = {
        "oke_addons": projections.OKE,
        "aks_gpu_pools": projections.AKS,
        "gke_gpu_pools": projections.GKE,
    }
    found = []
    for name, variable in PROJECTIONS:
        path = options.value(name, variable)
        if path:
            text = read_input(path, what=f"--{name.replace('_', '-')} file")
            found.append(projections.read(kinds[name], text, path))
    return found


def warn_ignored_projections(options: Options, console: Console) -> None:
    """Say which dumps a given snapshot makes useless; a variable alone is no intention."""
    from aicr.cli.validate_flags import PROJECTIONS

    if not options.snapshot:
        return
    for name, _ in PROJECTIONS:
        if options.is_explicit(name):
            flag = f"--{name.replace('_', '-')}"
            console.warn(f"{flag} is ignored: it is merged into a snapshot that is taken, not read")


def warn_versions(inputs: Inputs, console: Console) -> None:
    """Say when a document comes from another version (advisory)."""
    from aicr.version import __version__

    documents: list[tuple[str, Any]] = [
        ("recipe", inputs.recipe.document),
        ("snapshot", inputs.snapshot),
    ]
    for what, document in documents:
        said = str(((document or {}).get("metadata") or {}).get("version") or "")
        if said and said.removeprefix("v") != __version__:
            console.warn(f"the {what} was made by aicr {said}, and this is {__version__}")
