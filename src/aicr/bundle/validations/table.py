"""Which functions the registry may name, and where each one lives.

Names only: a function's module is imported when a rendered component wires it, so that a bundle
pays for the checks it runs. The lint rules read the names from here as well.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: ``validations[].function`` of the registry -> (module of this package, function).
FUNCTIONS: Final[dict[str, tuple[str, str]]] = {
    "CheckWorkloadSelectorMissing": ("selectors", "workload_selector"),
    "CheckAcceleratedSelectorMissing": ("selectors", "accelerated_selector"),
    "CheckHostMofedWithoutNetworkOperator": ("mofed", "host_mofed"),
    "CheckWildcardAcceleratedToleration": ("tolerations", "wildcard_toleration"),
    "CheckGB300HostKernelGranule": ("kernel", "kernel_granule"),
    "CheckNPDNotDuplicatingProviderNPD": ("npd", "provider_detector"),
    "CheckDriverOwnershipCoherence": ("driver_ownership", "driver_ownership"),
    "CheckMariaDBOperatorOwnershipCoherence": ("mariadb", "operator_ownership"),
    "CheckGKETCPXOInterfacesCoherence": ("tcpxo", "interfaces"),
    "CheckNVSentinelDriverLabelDetectable": ("nvsentinel_labels", "driver_label"),
    "CheckNVSentinelRuntimeClassCoherence": ("nvsentinel_runtime_class", "runtime_class"),
    "CheckNVSentinelTracingEndpointRequired": ("nvsentinel_tracing", "tracing_endpoint"),
    "CheckNVSentinelNicHealthMonitorRequiresMetadataCollector": (
        "nvsentinel_nic",
        "nic_health_monitor",
    ),
    "CheckNVSentinelPreflightDCGMReachable": ("nvsentinel_preflight", "dcgm_reachable"),
    "CheckNVSentinelPreflightGangSchedulerRequired": ("nvsentinel_gang", "gang_scheduler"),
    "CheckNVSentinelDatastorePrerequisites": ("datastore", "prerequisites"),
}
