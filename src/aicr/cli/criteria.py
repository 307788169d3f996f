"""Criteria from flags, a criteria file, a config file and a snapshot, in that order of precedence.

Source: recipe spec 1.10 and 6.5.
"""

from __future__ import annotations

from aicr.catalog.criteria_values import FIELDS
from aicr.catalog.fields import CRITERIA_STRINGS
from aicr.cli.arguments import Once, Parser, Switch, whole_number
from aicr.cli.catalogs import load_catalog
from aicr.cli.sources import read_input
from aicr.errors import AicrError, invalid
from aicr.recipe.criteria import ANY, Criteria, check_not_empty, check_value, normalise
from aicr.recipe.resolve import resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from aicr.catalog.catalog import Catalog
    from aicr.cli.console import Console
    from aicr.recipe.recipe import Recipe

NO_CRITERIA = (
    "--service, --accelerator, --intent, --os, --platform, --nodes, --criteria, or use --snapshot to "
    "load from a snapshot file"
)

#: What a note of a fingerprint means for whoever asked (recipe spec 1.10).
_NOTES = {
    "multi-gpu": "the nodes have several GPU products, so no accelerator follows; give --accelerator",
    "unknown-sku": "a GPU product is none that criteria name; give --accelerator",
    "multi-region": "the nodes are in several regions, so no region is recorded",
    "unreadable-labels": "the node labels cannot be read; collect the snapshot again, or give "
    "--accelerator",
}


def add_flags(parser: Parser) -> None:
    """The flags by which a person says what they have."""
    group = parser.add_argument_group("criteria")
    add_words(group)
    _once(group, "--nodes", metavar="N", type=whole_number, help="number of workers (advisory)")
    _once(group, "--criteria", metavar="FILE", help="RecipeCriteria file or address; flags win")
    _once(group, "--snapshot", "-s", metavar="FILE", help="Snapshot of the cluster; flags win")
    _once(
        group,
        "--kubeconfig",
        "-k",
        metavar="FILE",
        help="cluster of a cm://NAMESPACE/NAME (KUBECONFIG)",
    )
    choices = parser.add_argument_group("choices")
    _once(
        choices, "--profile", metavar="NAME=VALUE", help="value of the profile the recipe declares"
    )
    _once(
        choices,
        "--slurm-accounting-mode",
        metavar="MODE",
        help="slurm recipes: disabled, customer-managed or aicr-provided",
    )
    _once(choices, "--runtime-inventory", metavar="STATE", help="enabled or disabled")
    _once(
        choices,
        "--gke-tcpxo-interfaces",
        metavar="LIST",
        help="GKE H100 training: eth1=<network>,…,eth8=<network>",
    )
    add_catalogue(parser)


def add_words(group: Any) -> None:
    """The flags of the five words."""
    _once(group, "--service", metavar="NAME", help="Kubernetes service: eks, gke, aks, kind, …")
    _once(group, "--accelerator", "--gpu", metavar="NAME", help="GPU: h100, gb200, b200, a100, …")
    _once(group, "--intent", metavar="NAME", help="training or inference")
    _once(group, "--os", metavar="NAME", help="worker node OS: ubuntu, cos, rhel, …")
    _once(group, "--platform", metavar="NAME", help="workload platform: kubeflow, dynamo, slurm, …")


def add_catalogue(parser: Parser) -> None:
    """The flags by which a person says which catalogue is meant, and the file that may say it all."""
    data = parser.add_argument_group("catalogue and config file")
    _once(data, "--data", metavar="DIR", help="directory laid over the built-in catalogue")
    data.add_argument(
        "--criteria-strict",
        action=Switch,
        const=True,
        help="accept only criteria values of the built-in catalogue",
    )
    data.add_argument(
        "--no-criteria-strict",
        action=Switch,
        const=False,
        dest="criteria_strict",
        help="accept those of --data as well, whatever the config file says (default)",
    )
    _once(data, "--config", metavar="FILE", help="AICRConfig file or address; flags win")


def _once(group: Any, *flags: str, **options: Any) -> None:
    group.add_argument(*flags, action=Once, **options)


def resolve_arguments(arguments: argparse.Namespace, console: Console) -> Recipe:
    """Resolve what the command line asks for; warnings go to the console.

    Raises:
        AicrError: everything that is wrong with flags, files, criteria or the combination.
    """
    catalog = load_catalog(arguments, console)
    strict = is_strict(arguments)
    stated: dict[str, Any] = words_of(arguments, catalog, strict)
    said = {field: f"--{field} {word}" for field, word in stated.items()}
    if arguments.nodes is not None and arguments.nodes > 0:
        stated["nodes"] = arguments.nodes
    if arguments.criteria is not None:
        for field, value in _from_file(arguments.criteria, catalog, strict, console).items():
            if field not in stated:
                stated[field] = value
                said[field] = f"{field} {value} of {arguments.criteria}"
    if "configured" in arguments:
        for line in arguments.configured.add_criteria(stated, said, catalog, strict):
            console.say(line)
    snapshot, detected = _from_snapshot(arguments.snapshot, arguments.kubeconfig or "", console)
    derived = []
    for field, value in detected.items():
        if field not in stated:
            stated[field] = value
            derived.append(field)
        elif field in FIELDS and normalise(field, stated[field]) != value:
            console.warn(f"{said[field]} overrides what the snapshot says ({value})")
    criteria = Criteria(**stated)
    check_not_empty(criteria, NO_CRITERIA)
    try:
        recipe = resolve(
            catalog,
            criteria,
            snapshot=snapshot,
            profile=arguments.profile or "",
            configuration=_configuration(arguments),
            strict=strict,
            derived=derived,
        )
    except AicrError as error:
        if _tell_left_out(error.context, console):
            error.hint = (
                "the overlays above would cover it: make the nodes meet these constraints and take a "
                "snapshot that shows it, or give criteria that need no such overlay"
            )
        raise
    for warning in recipe.warnings:
        console.warn(warning)
    _tell_left_out(recipe.document["metadata"], console)
    return recipe


def _tell_ignored(document: dict[str, Any], decoder: Any, console: Console) -> None:
    """Say which keys of a criteria file count for nothing: a misspelt one makes a wider recipe."""
    from aicr.errors import nearest

    known = (*CRITERIA_STRINGS, "nodes")
    for key in document.get("spec") or {}:
        if key not in known:
            near = nearest(str(key), list(known))
            meant = f'; did you mean "{near}"?' if near else f"; known: {', '.join(known)}"
            console.warn(f'{decoder.where(("spec", key))}: unknown key "{key}" is ignored{meant}')
    for key in document:
        if key in known:
            console.warn(
                f'{decoder.where((key,))}: "{key}" is ignored at the top of the file; write it under '
                "spec"
            )


def _tell_left_out(found: Any, console: Console) -> bool:
    """Say which overlays a snapshot ruled out, and why; whether there were any."""
    for entry in found.get("constraintWarnings") or ():
        actual = entry.get("actual")
        says = f"says {actual}" if actual else "has no such reading"
        console.warn(
            f"overlay {entry['overlay']} left out: {entry['constraint']} wants {entry['expected']}, "
            f"and the snapshot {says}"
        )
    return bool(found.get("constraintWarnings"))


def is_strict(arguments: argparse.Namespace) -> bool:
    """Whether only criteria values of the built-in catalogue count: flag or file, else environment."""
    import os

    if arguments.criteria_strict is not None:
        return bool(arguments.criteria_strict)
    return os.environ.get("AICR_CRITERIA_STRICT", "").strip().lower() in ("1", "true", "yes", "on")


def words_of(arguments: argparse.Namespace, catalog: Catalog, strict: bool) -> dict[str, Any]:
    """The words that flags state, as typed.

    Raises:
        AicrError: INVALID_REQUEST for a word that the catalogue does not know.
    """
    stated: dict[str, Any] = {}
    for field in FIELDS:
        value = getattr(arguments, field)
        if value is not None:
            try:
                check_value(field, value, catalog, strict=strict, where=f"--{field}")
            except AicrError as error:
                label = "OS" if field == "os" else field
                raise invalid(f"failed to parse {label} type") from error
            stated[field] = value
    return stated


def _from_file(source: str, catalog: Catalog, strict: bool, console: Console) -> dict[str, Any]:
    from aicr.catalog.decoder import Decoder
    from aicr.contract.documents import check_header
    from aicr.yamlio import jsontext, read

    extension = _extension(source)
    if extension not in ("", "yaml", "yml", "json"):
        raise invalid(
            f"cannot tell the format of criteria file {source}: its name must end in .yaml, .yml or "
            f".json",
            hint="rename the file",
        )
    text = read_input(source, what="criteria file")
    if extension == "json":
        value = jsontext.load_json(text, source=source)
        positions = jsontext.positions(text, source=source)
    else:
        value, positions = read.load_with_positions(text, source=source, mode="helm")
    notice = check_header(value, "RecipeCriteria", source=source)
    if notice:
        console.warn(notice)
    decoder = Decoder(value, positions, strict=False)
    spec = decoder.criteria(value.get("spec"), ("spec",))
    _tell_ignored(value, decoder, console)
    found: dict[str, Any] = {}
    for field in CRITERIA_STRINGS:
        if spec.get(field) and spec[field] != ANY:
            place = decoder.where(("spec", field))
            try:
                check_value(field, spec[field], catalog, strict=strict, where=place)
            except AicrError as error:
                raise invalid(f"invalid {field} in criteria spec") from error
            found[field] = spec[field]
    if spec.get("nodes"):
        found["nodes"] = spec["nodes"]
    return found


def _extension(source: str) -> str:
    """What follows the last dot of a name, lower-cased; "" for stdin, pipes and plain names."""
    if source.startswith(("http://", "https://")):
        source = source.partition("?")[0].partition("#")[0]
    return (
        source.rpartition("/")[2].rpartition(".")[2].lower()
        if "." in source.rpartition("/")[2]
        else ""
    )


def _from_snapshot(
    source: str | None, kubeconfig: str, console: Console
) -> tuple[Any, dict[str, Any]]:
    if source is None:
        return None, {}
    from aicr.snapshot import document, fingerprint

    text = read_input(source, what="snapshot file", kubeconfig=kubeconfig)
    snapshot, notices = document.load(text, source)
    for notice in notices:
        console.warn(notice)
    found = fingerprint.fingerprint(snapshot)
    for note in found.get("notes") or ():
        console.warn(f"{source}: {note}: {_NOTES[note]}")
    detected = {field: found[field] for field in FIELDS if found.get(field)}
    if found.get("nodes"):
        detected["nodes"] = found["nodes"]
    said = ", ".join(f"{field}={value}" for field, value in detected.items())
    console.say(f"snapshot {source}: {said or 'no criteria could be read'}")
    return snapshot, detected


def _configuration(arguments: argparse.Namespace) -> dict[str, Any]:
    configuration: dict[str, Any] = {}
    if arguments.slurm_accounting_mode is not None:
        configuration["slurm"] = {"accounting": {"mode": arguments.slurm_accounting_mode}}
    if arguments.runtime_inventory is not None:
        configuration["runtimeInventory"] = arguments.runtime_inventory
    if arguments.gke_tcpxo_interfaces is not None:
        interfaces = arguments.gke_tcpxo_interfaces
        if isinstance(interfaces, str):
            from aicr.recipe.configuration import parse_interfaces

            interfaces = parse_interfaces(interfaces)
        configuration["gke"] = {"tcpxoInterfaces": interfaces}
    return configuration
