"""Names that other systems see: labels, annotations, volumes, environment variables.

They are the interface with operators, check images and schedulers, so they stand in one place and
nowhere else in code. This module must not hold anything that a configuration can change.
Source: preflight spec 0 and 2.5, decision 72.
"""

from __future__ import annotations

from typing import Final

OPT_IN_LABEL: Final = "nvsentinel.nvidia.com/preflight"
OPT_IN_VALUE: Final = "enabled"
CHECKS_ANNOTATION: Final = "nvsentinel.nvidia.com/preflight-checks"
GANG_ID_LABEL: Final = "nvsentinel.nvidia.com/gang-id"
MANAGED_BY_LABEL: Final = "nvsentinel.nvidia.com/managed-by"
MANAGED_BY: Final = "preflight"
#: Annotation of a mirror pod, by which the kubelet shows a static pod to the API server.
MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"

GANG_VOLUME: Final = "nvsentinel-preflight-gang-config"
SOCKET_VOLUME: Final = "nvsentinel-socket"
TOKEN_VOLUME: Final = "nvsentinel-connector-token"
SHM_VOLUME: Final = "dshm"
TOPOLOGY_VOLUME: Final = "nccl-topo"

SOCKET_HOST_PATH: Final = "/var/run/nvsentinel"
SHM_PATH: Final = "/dev/shm"
SHM_LIMIT: Final = "64Gi"
TOPOLOGY_PATH: Final = "/etc/nccl"
TOKEN_FILE: Final = "token"

NODE_NAME: Final = "NODE_NAME"
CONNECTOR_SOCKET: Final = "PLATFORM_CONNECTOR_SOCKET"
STRATEGY: Final = "PROCESSING_STRATEGY"
TOKEN_PATH: Final = "PLATFORM_CONNECTOR_TOKEN_PATH"
GANG_ID: Final = "GANG_ID"
GANG_CONFIG_DIR: Final = "GANG_CONFIG_DIR"
GANG_TIMEOUT: Final = "GANG_TIMEOUT_SECONDS"
MASTER_PORT: Final = "MASTER_PORT"
POD_NAME: Final = "POD_NAME"
POD_IP: Final = "POD_IP"
POD_UID: Final = "POD_UID"

#: Request of a check that asks for nothing (spec 2.5 step 1).
DEFAULT_CPU: Final = "100m"
DEFAULT_MEMORY: Final = "500Mi"
#: What a DRA driver of NVIDIA calls its full GPUs (decision 17).
DEFAULT_DEVICE_CLASS: Final = "gpu.nvidia.com"
DEFAULT_GPU_RESOURCE: Final = "nvidia.com/gpu"
