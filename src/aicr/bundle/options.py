"""What a caller asks of `aicr bundle`, and how each flag is read.

``BundleOptions`` keeps the flags as they were typed; ``parse_scheduling`` and the ``parse_*``
functions turn them into plain values, or into an error that names the flag. Command line, library
and server all go through these functions, so a toleration means the same everywhere.

Labels and taints are read by ``node_flags``. This module must not know recipes, components or files.
"""

from __future__ import annotations

from aicr.bundle.node_flags import (
    EFFECTS,
    check_label,
    parse_selector,
    parse_taint,
    parse_toleration,
    parse_tolerations,
    taint_text,
    tolerate_all,
)
from aicr.contract.object_names import SUBDOMAIN_LENGTH, has_subdomain_form
from aicr.errors import invalid, nearest
from aicr.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, Final

__all__ = [
    "EFFECTS",
    "FLEET_MODE",
    "FLEET_WORKSPACE",
    "FLUX_NAMESPACE",
    "FLUX_OCI_SOURCE_NAME",
    "KNOWN_DEPLOYERS",
    "TARGET_REVISION",
    "BundleOptions",
    "Scheduling",
    "check_label",
    "parse_deployer",
    "parse_nodes",
    "parse_scheduling",
    "parse_selector",
    "parse_storage_class",
    "parse_taint",
    "parse_toleration",
    "parse_tolerations",
    "taint_text",
    "tolerate_all",
]

#: Bundle formats this version writes.
KNOWN_DEPLOYERS: Final = (
    "argocd",
    "argocd-helm",
    "fleet",
    "flux",
    "helm",
    "helmfile",
    "terraform",
)
FLUX_NAMESPACE: Final = "flux-system"
FLUX_OCI_SOURCE_NAME: Final = "aicr-bundle"
FLEET_MODE: Final = "gitrepo"
FLEET_WORKSPACE: Final = "fleet-default"
TARGET_REVISION: Final = "main"


class BundleOptions:
    """The flags of one bundle run, as typed (bundler spec 1.1).

    Args:
        deployer: output format; see ``KNOWN_DEPLOYERS``.
        set: ``component:path=value`` texts.
        set_json: ``component:path=<json>`` texts.
        set_file: ``component:path=<file>`` texts.
        system_node_selector: ``key=value`` texts for management nodes.
        system_node_tolerations: toleration texts for management nodes.
        accelerated_node_selector: ``key=value`` texts for GPU nodes.
        accelerated_node_tolerations: toleration texts for GPU nodes.
        workload_selector: ``key=value`` texts that identify training pods.
        workload_gate: the taint that GPU nodes carry until they are ready, or "".
        nodes: expected number of GPU nodes; 0 leaves the charts' figure.
        storage_class: class for block volumes, or "" when the flag was not given.
        shared_storage_class: class for shared volumes, or "" when the flag was not given.
        version: version of this program, written to the bundle.
        data_files: files of an external data directory by relative path, copied to ``data/``.
        dynamic: ``component:path`` texts of values that are given when the bundle is installed.
        serial: install one component after another, whatever the graph allows.
        readiness_hooks: add a gate that waits for each component to be ready.
        vendor_charts: pull the charts and put them into the bundle.
        chart_dir: folder of charts at hand, as ``<name>-<version>.tgz``, or "".
        image_registry: takes the place of the registry of images that are ours, or "".
        dra_eviction_node_label: ``key=value`` that opts in to the DRA eviction contract, or "".
        repo: address of the Git or OCI repository that a GitOps tool reads the bundle from, or "".
        target_revision: branch, tag or commit in that repository.
        app_name: name of the parent Application or Fleet app; "" takes the deployer's own.
        flux_namespace: where Flux objects go.
        flux_oci_source_name: OCIRepository that publishes the bundle, for Flux.
        fleet_mode: ``gitrepo`` or ``helmop``.
        fleet_workspace: namespace of the Fleet objects.
        terraform_child_module: write a module to be called, without provider blocks.
        terraform_cluster_rollover: see the Terraform deployer.
        oci_reference: ``oci://registry/repository[:tag]`` that the bundle is published to, or "".
        oci_plain_http: that registry is without TLS.
        oci_insecure_tls: nobody checks that registry's certificate.
        bundlers: names of the only components that the bundle may hold; none given means all. There
            is no flag for it: a command line says ``--set <component>:enabled=false``.
    """

    __slots__ = (
        "accelerated_node_selector",
        "accelerated_node_tolerations",
        "app_name",
        "bundlers",
        "chart_dir",
        "data_files",
        "deployer",
        "dra_eviction_node_label",
        "dynamic",
        "fleet_mode",
        "fleet_workspace",
        "flux_namespace",
        "flux_oci_source_name",
        "image_registry",
        "nodes",
        "oci_insecure_tls",
        "oci_plain_http",
        "oci_reference",
        "readiness_hooks",
        "repo",
        "serial",
        "set",
        "set_file",
        "set_json",
        "shared_storage_class",
        "storage_class",
        "system_node_selector",
        "system_node_tolerations",
        "target_revision",
        "terraform_child_module",
        "terraform_cluster_rollover",
        "vendor_charts",
        "version",
        "workload_gate",
        "workload_selector",
    )

    def __init__(
        self,
        *,
        deployer: str = "helm",
        set: Iterable[str] = (),
        set_json: Iterable[str] = (),
        set_file: Iterable[str] = (),
        system_node_selector: Iterable[str] = (),
        system_node_tolerations: Iterable[str] = (),
        accelerated_node_selector: Iterable[str] = (),
        accelerated_node_tolerations: Iterable[str] = (),
        workload_selector: Iterable[str] = (),
        workload_gate: str = "",
        nodes: int = 0,
        storage_class: str = "",
        shared_storage_class: str = "",
        version: str = __version__,
        data_files: Mapping[str, bytes] | None = None,
        dynamic: Iterable[str] = (),
        serial: bool = False,
        readiness_hooks: bool = False,
        vendor_charts: bool = False,
        chart_dir: str = "",
        image_registry: str = "",
        dra_eviction_node_label: str = "",
        repo: str = "",
        target_revision: str = TARGET_REVISION,
        app_name: str = "",
        flux_namespace: str = FLUX_NAMESPACE,
        flux_oci_source_name: str = FLUX_OCI_SOURCE_NAME,
        fleet_mode: str = FLEET_MODE,
        fleet_workspace: str = FLEET_WORKSPACE,
        terraform_child_module: bool = False,
        terraform_cluster_rollover: bool = False,
        oci_reference: str = "",
        oci_plain_http: bool = False,
        oci_insecure_tls: bool = False,
        bundlers: Iterable[str] = (),
    ) -> None:
        self.deployer = deployer
        self.set = tuple(set)
        self.set_json = tuple(set_json)
        self.set_file = tuple(set_file)
        self.system_node_selector = tuple(system_node_selector)
        self.system_node_tolerations = tuple(system_node_tolerations)
        self.accelerated_node_selector = tuple(accelerated_node_selector)
        self.accelerated_node_tolerations = tuple(accelerated_node_tolerations)
        self.workload_selector = tuple(workload_selector)
        self.workload_gate = workload_gate
        self.nodes = nodes
        self.storage_class = storage_class
        self.shared_storage_class = shared_storage_class
        self.version = version
        self.data_files: dict[str, bytes] = dict(data_files or {})
        self.dynamic = tuple(dynamic)
        self.serial = serial
        self.readiness_hooks = readiness_hooks
        self.vendor_charts = vendor_charts
        self.chart_dir = chart_dir
        self.image_registry = image_registry
        self.dra_eviction_node_label = dra_eviction_node_label
        self.repo = repo
        self.target_revision = target_revision
        self.app_name = app_name
        self.flux_namespace = flux_namespace
        self.flux_oci_source_name = flux_oci_source_name
        self.fleet_mode = fleet_mode
        self.fleet_workspace = fleet_workspace
        self.terraform_child_module = terraform_child_module
        self.terraform_cluster_rollover = terraform_cluster_rollover
        self.oci_reference = oci_reference
        self.oci_plain_http = oci_plain_http
        self.oci_insecure_tls = oci_insecure_tls
        self.bundlers = tuple(bundlers)


class Scheduling:
    """The placement and storage flags, read. An empty field is a flag that was not given."""

    __slots__ = (
        "accelerated_selector",
        "accelerated_tolerations",
        "nodes",
        "shared_storage_class",
        "storage_class",
        "system_selector",
        "system_tolerations",
        "workload_gate",
        "workload_selector",
    )

    def __init__(
        self,
        *,
        system_selector: dict[str, str] | None = None,
        system_tolerations: list[dict[str, Any]] | None = None,
        accelerated_selector: dict[str, str] | None = None,
        accelerated_tolerations: list[dict[str, Any]] | None = None,
        workload_selector: dict[str, str] | None = None,
        workload_gate: dict[str, Any] | None = None,
        nodes: int = 0,
        storage_class: str = "",
        shared_storage_class: str = "",
    ) -> None:
        self.system_selector = system_selector or {}
        self.system_tolerations = system_tolerations or []
        self.accelerated_selector = accelerated_selector or {}
        self.accelerated_tolerations = accelerated_tolerations or []
        self.workload_selector = workload_selector or {}
        self.workload_gate = workload_gate
        self.nodes = nodes
        self.storage_class = storage_class
        self.shared_storage_class = shared_storage_class


def parse_scheduling(options: BundleOptions) -> Scheduling:
    """Read every placement and storage flag of a run.

    Raises:
        AicrError: INVALID_REQUEST naming the flag and the expected form.
    """
    return Scheduling(
        system_selector=parse_selector(options.system_node_selector, "--system-node-selector"),
        system_tolerations=parse_tolerations(
            options.system_node_tolerations, "--system-node-toleration"
        ),
        accelerated_selector=parse_selector(
            options.accelerated_node_selector, "--accelerated-node-selector"
        ),
        accelerated_tolerations=parse_tolerations(
            options.accelerated_node_tolerations, "--accelerated-node-toleration"
        ),
        workload_selector=parse_selector(options.workload_selector, "--workload-selector"),
        workload_gate=parse_taint(options.workload_gate, "--workload-gate"),
        nodes=parse_nodes(options.nodes),
        storage_class=_given_class(options.storage_class, "--storage-class"),
        shared_storage_class=_given_class(options.shared_storage_class, "--shared-storage-class"),
    )


def parse_deployer(text: str, known: Sequence[str] = KNOWN_DEPLOYERS) -> str:
    """The deployer a flag value names: trimmed, any letter case, empty means helm.

    Raises:
        AicrError: INVALID_REQUEST listing the valid names in order (bundler spec 1.1).
    """
    name = text.strip().lower() or "helm"
    if name in known:
        return name
    close = nearest(name, list(known))
    raise invalid(
        f'invalid deployer "{text}": must be one of {", ".join(sorted(known))}',
        where="--deployer",
        hint=f"did you mean {close}?" if close else f"pass one of {', '.join(sorted(known))}",
    )


def parse_nodes(value: int) -> int:
    """The node estimate.

    Raises:
        AicrError: INVALID_REQUEST when it is negative or not a whole number.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise invalid(
            f"invalid --nodes {value!r}: must be a whole number of nodes, 0 or more",
            where="--nodes",
            hint="0 leaves the charts' own figure",
        )
    return value


def parse_storage_class(text: str, flag: str) -> str:
    """The class name a given flag holds, trimmed.

    Raises:
        AicrError: INVALID_REQUEST when it is blank or no Kubernetes object name.
    """
    name = text.strip()
    if not name:
        raise invalid(
            f"{flag} must not be blank",
            where=flag,
            hint="name a StorageClass of the cluster, or drop the flag to use the default class",
        )
    if len(name) > SUBDOMAIN_LENGTH or not has_subdomain_form(name):
        raise invalid(
            f'invalid {flag} "{text}": not a valid object name',
            where=flag,
            hint="lower-case letters, digits, '-' and '.', as `kubectl get storageclass` lists it",
        )
    return name


def _given_class(text: str, flag: str) -> str:
    return parse_storage_class(text, flag) if text else ""
