"""Typed configuration: choices that change values and toggles, never which overlays match (spec 4.12)."""

from __future__ import annotations

from aicr.contract.documents import type_name
from aicr.errors import invalid, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from aicr.catalog.types import ComponentRef
    from aicr.recipe.criteria import Criteria

ACCOUNTING_MODES: Final = ("disabled", "customer-managed", "aicr-provided")
RUNTIME_INVENTORY: Final = ("enabled", "disabled")
#: Components that exist only to serve accounting that we provide ourselves.
PROVIDED_ACCOUNTING: Final = (
    "mariadb-operator-crds",
    "mariadb-operator",
    "slurm-accounting-mariadb",
)
TCPXO_RUNTIME: Final = "torch-distributed-tcpxo"
_TCPXO_INTERFACES: Final = tuple(f"eth{n}" for n in range(1, 9))
_NETWORK: Final = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_MAX_NETWORK_LENGTH: Final = 41


def parse_interfaces(text: str) -> list[dict[str, str]]:
    """``eth1=network,eth2=network,…`` as the list that ``configuration.gke.tcpxoInterfaces`` holds.

    Raises:
        AicrError: INVALID_REQUEST for another form.
    """
    found = []
    for part in text.split(","):
        interface, equals, network = part.strip().partition("=")
        if not equals or not interface or not network:
            raise invalid(
                f"invalid interface mapping: {part.strip()!r}",
                where="--gke-tcpxo-interfaces",
                hint="write eth1=<network>,eth2=<network>,…,eth8=<network>",
            )
        found.append({"interfaceName": interface, "network": network})
    return found


def check_configuration(configuration: dict[str, Any], criteria: Criteria) -> None:
    """Check every typed choice.

    Raises:
        AicrError: INVALID_REQUEST naming the path and the valid values.
    """
    _known_keys(configuration, ("gke", "runtimeInventory", "slurm"), "")
    if configuration.get("gke") is not None:
        _known_keys(configuration["gke"], ("tcpxoInterfaces",), "gke.")
    slurm = configuration.get("slurm")
    if slurm is not None:
        _known_keys(slurm, ("accounting",), "slurm.")
        _known_keys(slurm.get("accounting") or {}, ("mode",), "slurm.accounting.")
        mode = (slurm.get("accounting") or {}).get("mode")
        if criteria.platform != "slurm":
            raise invalid(
                "Slurm accounting mode can only be set when recipe platform is slurm",
                where="--slurm-accounting-mode",
                hint="add --platform slurm, or drop the flag",
            )
        if mode not in ACCOUNTING_MODES:
            raise invalid(
                f'invalid Slurm accounting mode "{mode}": must be one of '
                f"{', '.join(ACCOUNTING_MODES)}",
                where="--slurm-accounting-mode",
                hint="leave it out for disabled",
            )
    inventory = configuration.get("runtimeInventory")
    if inventory is not None and inventory not in RUNTIME_INVENTORY:
        raise invalid(
            f'invalid runtime inventory "{inventory}": must be one of enabled, disabled',
            where="--runtime-inventory",
            hint="leave it out for what the recipe has",
        )
    interfaces = (configuration.get("gke") or {}).get("tcpxoInterfaces")
    if interfaces is not None:
        _check_interfaces(interfaces)


def _known_keys(block: Any, known: tuple[str, ...], trail: str) -> None:
    if not isinstance(block, dict):
        name = f"configuration.{trail}".rstrip(".")
        raise invalid(f"{name} must be a map, found {type_name(block)}")
    for key in block:
        if key not in known:
            near = nearest(str(key), list(known))
            raise invalid(
                f'unknown configuration "{trail}{key}"',
                hint=f'did you mean "{trail}{near}"?' if near else f"known: {', '.join(known)}",
            )


def _check_interfaces(interfaces: Any) -> None:
    where = "--gke-tcpxo-interfaces"
    hint = "the GPU networks of the cluster: kubectl get networks.networking.gke.io"
    if not isinstance(interfaces, list) or not all(
        isinstance(entry, dict) and all(isinstance(text, str) for text in entry.values())
        for entry in interfaces
    ):
        raise invalid(
            "tcpxoInterfaces must be a list of {interfaceName, network}", where=where, hint=hint
        )
    names = [entry.get("interfaceName", "") for entry in interfaces]
    if sorted(names) != list(_TCPXO_INTERFACES):
        raise invalid(
            f"exactly eight interfaces are needed, eth1 to eth8 each once; found "
            f"{', '.join(names) or 'none'}",
            where=where,
            hint=hint,
        )
    import re

    networks: dict[str, str] = {}
    for entry in interfaces:
        network, interface = entry.get("network", ""), entry["interfaceName"]
        if len(network) > _MAX_NETWORK_LENGTH or not re.fullmatch(_NETWORK, network):
            raise invalid(
                f'network "{network}" of {interface} is not a lower-case name of at most '
                f"{_MAX_NETWORK_LENGTH} characters that starts with a letter",
                where=where,
                hint=hint,
            )
        if network == "default" or "gpu-nic" not in network:
            raise invalid(
                f'network "{network}" of {interface} is not a GPU network (its name must contain '
                f"gpu-nic)",
                where=where,
                hint=hint,
            )
        if network in networks:
            raise invalid(
                f'network "{network}" is given to both {networks[network]} and {interface}',
                where=where,
                hint=hint,
            )
        networks[network] = interface


def apply_configuration(
    refs: dict[str, ComponentRef], configuration: dict[str, Any], criteria: Criteria
) -> dict[str, Any]:
    """Apply the choices to the refs, in place, and return the ``configuration`` block of the recipe.

    Defaults are written down: a slurm recipe says which accounting mode it has.

    Raises:
        AicrError: INVALID_REQUEST when a recipe needs a choice that was not made.
    """
    block: dict[str, Any] = {}
    if criteria.platform == "slurm":
        mode = ((configuration.get("slurm") or {}).get("accounting") or {}).get("mode", "disabled")
        block["slurm"] = {"accounting": {"mode": mode}}
        _set(refs, "slinky-slurm", ["accounting", "enabled"], mode != "disabled")
        for name in PROVIDED_ACCOUNTING:
            _set(refs, name, ["enabled"], mode == "aicr-provided")
    inventory = configuration.get("runtimeInventory")
    if inventory is not None:
        if inventory == "enabled" and "k8s-aibom" not in refs:
            raise invalid(
                "runtime inventory is provided by component k8s-aibom, which this recipe does not "
                "declare",
                where="--runtime-inventory",
                hint="drop the flag",
            )
        block["runtimeInventory"] = inventory
        _set(refs, "k8s-aibom", ["enabled"], inventory == "enabled")
    interfaces = (configuration.get("gke") or {}).get("tcpxoInterfaces")
    ships_runtime = ships_tcpxo_runtime(refs)
    if interfaces is not None:
        if not ships_runtime:
            raise invalid(
                f"this recipe does not ship {TCPXO_RUNTIME}, so tcpxoInterfaces would have no "
                f"effect",
                where="--gke-tcpxo-interfaces",
                hint="drop the flag; the recipe of --service gke --accelerator h100 --intent "
                "training --os cos --platform kubeflow ships it",
            )
        block["gke"] = {"tcpxoInterfaces": [dict(entry) for entry in interfaces]}
        mapping = [dict(entry) for entry in interfaces]
        _set(refs, "kubeflow-trainer", ["tcpxoInterfaces"], mapping)
    elif ships_runtime:
        raise invalid(
            f"this recipe ships {TCPXO_RUNTIME} and requires configuration.gke.tcpxoInterfaces; "
            f"supply --gke-tcpxo-interfaces eth1=<network>,…,eth8=<network>",
            hint="list the cluster's GPU networks: kubectl get networks.networking.gke.io",
        )
    return block


def ships_tcpxo_runtime(refs: dict[str, ComponentRef]) -> bool:
    """Whether some ref ships the GKE TCPXO training runtime."""
    return any(
        file.rpartition("/")[2].startswith(TCPXO_RUNTIME)
        for ref in refs.values()
        for file in ref.get("manifestFiles") or ()
    )


def _set(refs: dict[str, ComponentRef], name: str, path: list[str], value: Any) -> None:
    ref = refs.get(name)
    if ref is None:
        return
    from aicr.catalog.fields import REF_ORDER
    from aicr.values.merge import deep_merge

    wanted: Any = value
    for key in reversed(path):
        wanted = {key: wanted}
    merged: Any = dict(ref)
    merged["overrides"] = deep_merge(ref.get("overrides") or {}, wanted, null_deletes=False)
    refs[name] = {key: merged[key] for key in REF_ORDER if key in merged}  # type: ignore[assignment]
