"""``aicr bundle``: recipe in, deployable folder out."""

from __future__ import annotations

import os

from aicr.cli import registries
from aicr.cli.arguments import Once, Parser, Switch, whole_number
from aicr.cli.sources import read_input
from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from aicr.bundle.api import Bundle
    from aicr.cli.bundle_publish import Publication
    from aicr.cli.console import Console

_EXAMPLES = """\
examples:
  aicr bundle -r recipe.yaml -o bundle
  aicr bundle -r recipe.yaml -o bundle --system-node-selector pool=system \\
      --accelerated-node-selector nvidia.com/gpu.present=true \\
      --accelerated-node-toleration nvidia.com/gpu=present:NoSchedule
  aicr bundle -r recipe.yaml -o bundle --storage-class gp3 \\
      --system-node-selector pool=system \\
      --set gpu-operator:driver.version=580.105.08 \\
      --set-json 'nfd:worker.config={"sources":{}}'

Overrides: --set takes text, and types it only when nothing can be lost: true,
false, null, whole numbers and plain decimals. null tells Helm to drop the
chart's own default. Lists and maps need --set-json or --set-file. A dot inside
a key is written \\. and a list position [0].
"""


def parser() -> Parser:
    """The parser of this command."""
    found = Parser(
        prog="aicr bundle",
        description="Make a bundle that the deployment tool you use can install.",
        epilog=_EXAMPLES,
    )
    main = found.add_argument_group("input and output")
    _once(main, "--recipe", "-r", metavar="FILE", help="recipe file or address, - for stdin")
    _once(
        main,
        "--output",
        "-o",
        metavar="DIR",
        help="folder to create, a bundle to replace, or oci://HOST/REPOSITORY[:TAG]",
    )
    _once(
        main,
        "--deployer",
        "-d",
        metavar="NAME",
        help="helm (default), helmfile, argocd, argocd-helm, flux, terraform, fleet",
    )
    _once(main, "--data", metavar="DIR", help="directory laid over the built-in catalogue")
    _once(main, "--config", metavar="FILE", help="AICRConfig file or address; flags win")
    _once(
        main,
        "--kubeconfig",
        "-k",
        metavar="FILE",
        help="cluster of a cm://NAMESPACE/NAME (KUBECONFIG)",
    )
    main.add_argument("--debug", action="store_true", help="also print advice that needs no action")
    values = found.add_argument_group("values")
    _many(values, "--set", metavar="COMPONENT:PATH=TEXT", help="override one value")
    _many(values, "--set-json", metavar="COMPONENT:PATH=JSON", help="override with a JSON value")
    _many(values, "--set-file", metavar="COMPONENT:PATH=FILE", help="override with a YAML file")
    _many(
        values,
        "--dynamic",
        metavar="COMPONENT:PATH",
        help="leave one value to the installation: it goes to cluster-values.yaml",
    )
    place = found.add_argument_group("placement")
    for tier, nodes in (("system", "management nodes"), ("accelerated", "GPU nodes")):
        _many(place, f"--{tier}-node-selector", metavar="KEY=VALUE", help=f"label of {nodes}")
        _many(
            place,
            f"--{tier}-node-toleration",
            metavar="KEY=VALUE:EFFECT",
            help=f"taint of {nodes}",
        )
    _many(place, "--workload-selector", metavar="KEY=VALUE", help="label of training pods")
    _once(
        place,
        "--workload-gate",
        metavar="KEY=VALUE:EFFECT",
        help="taint that GPU nodes carry until they are ready",
    )
    _once(place, "--nodes", metavar="N", type=whole_number, help="expected number of GPU nodes")
    _once(place, "--storage-class", metavar="NAME", help="class for block volumes")
    _once(place, "--shared-storage-class", metavar="NAME", help="class for shared volumes")
    _once(
        place,
        "--dra-eviction-node-label",
        metavar="KEY=VALUE",
        help="run the DRA kubelet plugin on nodes with this label only, so that driver upgrades can "
        "evict its pods; every GPU node must carry the label",
    )
    _add_contents_flags(found)
    registries.add_publish_flags(found)
    return found


def _add_contents_flags(found: Parser) -> None:
    """What goes into the bundle beside values, and what only some deployers know."""
    shape = found.add_argument_group("contents")
    _switch(shape, "--serial", "install one component after another, whatever the graph allows")
    _switch(shape, "--readiness-hooks", "add a gate that waits until each component is ready")
    _switch(shape, "--vendor-charts", "put the charts into the bundle (needs helm)")
    _once(
        shape,
        "--chart-dir",
        metavar="DIR",
        help="charts at hand, as NAME-VERSION.tgz: checked; with --vendor-charts, taken instead of "
        "pulled",
    )
    special = found.add_argument_group("options of some deployers")
    _once(special, "--repo", metavar="URL", help="repository that the bundle is read from")
    _once(
        special,
        "--target-revision",
        metavar="NAME",
        help="branch, tag or commit in that repository (default main)",
    )
    _once(special, "--app-name", metavar="NAME", help="parent Application, or Fleet app")
    _once(special, "--flux-namespace", metavar="NAME", help="where Flux objects go (flux-system)")
    _once(
        special,
        "--flux-oci-source-name",
        metavar="NAME",
        help="OCIRepository that publishes the bundle (aicr-bundle)",
    )
    _once(special, "--fleet-mode", metavar="MODE", help="gitrepo (default) or helmop")
    _once(
        special,
        "--fleet-workspace",
        metavar="NAME",
        help="namespace of the Fleet objects (fleet-default); fleet-local is the local cluster",
    )
    _switch(special, "--terraform-child-module", "write a module to be called by another one")
    _switch(
        special,
        "--terraform-cluster-rollover",
        "replace the releases when the cluster behind the module is replaced",
    )


def _once(group: Any, *flags: str, **options: Any) -> None:
    group.add_argument(*flags, action=Once, **options)


def _many(group: Any, *flags: str, **options: Any) -> None:
    group.add_argument(*flags, action="append", default=[], **options)


def _switch(group: Any, flag: str, help: str) -> None:
    group.add_argument(flag, action=Switch, const=True, help=help)


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Load, plan, generate, write, and say what was done."""
    if arguments.recipe is None:
        raise invalid(
            "flag --recipe is required",
            hint="make one with: aicr recipe … -o recipe.yaml; with --config, the file can name it "
            "in spec.bundle.input.recipe",
        )
    if arguments.output is None:
        raise invalid("flag --output is required", hint="name the folder to create: -o bundle")
    if "://" in arguments.output and not arguments.output.startswith("oci://"):
        # As a folder it would be made, and the command would seem to have sent the bundle there.
        raise invalid(
            f"{arguments.output} is an address that no bundle can be written to",
            where="--output",
            hint="name a folder, or oci://HOST/REPOSITORY[:TAG]",
        )
    publication = None
    if registries.asks_to_publish(arguments):
        from aicr.cli.bundle_publish import Publication

        publication = Publication(arguments, console)
    from aicr.cli.catalogs import load_catalog
    from aicr.recipe.document import load_recipe

    catalog = load_catalog(arguments, console)
    if arguments.data:
        output = publication.folder if publication else arguments.output
        _check_apart("output folder", output, arguments.data, "--output")
        if arguments.signing_key:
            _check_apart("key", arguments.signing_key, arguments.data, "--signing-key")
    text = read_input(arguments.recipe, what="recipe file", kubeconfig=arguments.kubeconfig or "")
    recipe = load_recipe(text, arguments.recipe, catalog)
    for warning in recipe.warnings:
        console.warn(warning)
    from aicr.bundle.api import make_bundle

    bundle = make_bundle(
        recipe,
        _options(arguments, publication),
        read_file=_read_value_file,
    )
    folder = arguments.output
    if publication is None:
        bundle.write(folder)
    else:
        folder = publication.finish(bundle)
    _report(bundle, folder, console, debug=arguments.debug)
    return 0


def _check_apart(what: str, path: str, data: str, flag: str) -> None:
    """Refuse what must not become part of a bundle: another bundle, and the key that signs it."""
    inside = os.path.join(os.path.realpath(data), "")
    if os.path.join(os.path.realpath(path), "").startswith(inside):
        raise invalid(
            f"the {what} {path} lies in the data directory {data}, whose files become part of the "
            f"bundle",
            where=flag,
            hint="choose a place outside of it",
        )


def _read_value_file(path: str) -> str:
    # Needed with --set-file alone, and not imported without it.
    from aicr.bundle.value_files import read_value_file

    return read_value_file(path)


def _options(arguments: argparse.Namespace, publication: Publication | None) -> Any:
    from aicr.bundle.options import BundleOptions
    from aicr.version import __version__

    def given(value: str | None) -> str:
        # A blank that was typed is an error with a message of its own; nothing typed is nothing.
        return "" if value is None else value or " "

    return BundleOptions(
        deployer=arguments.deployer or "helm",
        set=arguments.set,
        set_json=arguments.set_json,
        set_file=arguments.set_file,
        system_node_selector=arguments.system_node_selector,
        system_node_tolerations=arguments.system_node_toleration,
        accelerated_node_selector=arguments.accelerated_node_selector,
        accelerated_node_tolerations=arguments.accelerated_node_toleration,
        workload_selector=arguments.workload_selector,
        workload_gate=arguments.workload_gate or "",
        nodes=arguments.nodes or 0,
        storage_class=given(arguments.storage_class),
        shared_storage_class=given(arguments.shared_storage_class),
        version=__version__,
        dynamic=arguments.dynamic,
        serial=bool(arguments.serial),
        readiness_hooks=bool(arguments.readiness_hooks),
        vendor_charts=bool(arguments.vendor_charts),
        chart_dir=arguments.chart_dir or "",
        dra_eviction_node_label=given(arguments.dra_eviction_node_label),
        image_registry=os.environ.get("AICR_VALIDATOR_IMAGE_REGISTRY", ""),
        oci_reference=str(publication.address or "") if publication is not None else "",
        oci_plain_http=bool(arguments.plain_http),
        oci_insecure_tls=bool(arguments.insecure_tls),
        **_special(arguments),
    )


def _special(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options that belong to some deployers, as far as they were given."""
    from aicr.bundle.deployers import canonical_name
    from aicr.bundle.flag_rules import SPECIAL, check_deployer

    deployer = canonical_name(arguments.deployer or "helm")
    given: dict[str, Any] = {}
    for name, (flag, _, deployers) in SPECIAL.items():
        value = getattr(arguments, name)
        if value is not None:
            # The default, spelled out for another deployer, is as much a mistake as anything else.
            check_deployer(flag, deployers, deployer)
            given[name] = value
    for name in ("repo", "target_revision"):
        if getattr(arguments, name):
            given[name] = getattr(arguments, name)
    return given


def _report(bundle: Bundle, target: str, console: Console, *, debug: bool = False) -> None:
    for change in bundle.plan.changes:
        console.say(f"set {change}")
    for note in bundle.plan.notes:
        console.warn(note)
    if debug:
        for advice in bundle.plan.advice:
            console.dim(f"advice: {advice}")
    size = sum(len(content) for content, _ in bundle.files.values())
    console.write(
        f"{bundle.build_type}: {len(bundle.plan.components)} components, {len(bundle.files)} files, "
        f"{size} bytes in {target}\n"
    )
    for number, step in enumerate(bundle.steps, 1):
        console.write(f"  {number}. {step.replace('<output folder>', _quoted(target))}\n")


def _quoted(path: str) -> str:
    """A path as a shell takes it for one word."""
    if all(char.isalnum() or char in "/._-+,@%" for char in path) and not path.startswith("-"):
        return path
    return "'" + ("./" + path if path.startswith("-") else path).replace("'", "'\\''") + "'"
