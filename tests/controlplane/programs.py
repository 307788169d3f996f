"""The command lines of the four programs, each flag with the reason it is there.

It must not know: how the programs are started and stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.controlplane.certificates import Pair

#: Alpha features that the product is tested with: the Workload and PodGroup kinds.
GATES = ("GenericWorkload=true",)
#: Without this one the scheduler ignores PodGroups and silently binds part of a gang.
GANG_GATES = (*GATES, "GangScheduling=true")
#: Makes the Job controller write Workload and PodGroup for an Indexed Job; API server and controller
#: manager only, and off by default because a test of our own gangs must not get a second one.
JOB_GATE = "WorkloadWithJob=true"


class Files(NamedTuple):
    """What the command lines point to."""

    authority: Path
    serving: Pair
    kubelet_client: Pair
    front_proxy: Pair
    signer: tuple[Path, Path]
    tokens: Path
    controller_manager: Path
    scheduler: Path


def etcd(program: Path, data: Path, client: int, peer: int) -> list[str]:
    """The store, on loopback."""
    url, peers = f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peer}"
    return [
        str(program),
        f"--data-dir={data}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=default={peers}",
        # Nothing here has to survive a power cut, and syncing dominates on slow disks.
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def apiserver(
    program: Path, files: Files, host: str, port: int, store: int, gates: Sequence[str]
) -> list[str]:
    """The API server, with real authentication, RBAC and admission."""
    return [
        str(program),
        f"--etcd-servers=http://127.0.0.1:{store}",
        # On the plane's bridge, so that pods in their network namespaces reach it too.
        f"--bind-address={host}",
        f"--advertise-address={host}",
        f"--secure-port={port}",
        f"--tls-cert-file={files.serving.certificate}",
        f"--tls-private-key-file={files.serving.key}",
        # People log in with client certificates of the one authority, or with the token file.
        f"--client-ca-file={files.authority}",
        f"--token-auth-file={files.tokens}",
        # Aggregated API servers (metrics and the like in tests) trust this header set.
        f"--requestheader-client-ca-file={files.authority}",
        "--requestheader-allowed-names=front-proxy",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-username-headers=X-Remote-User",
        f"--proxy-client-cert-file={files.front_proxy.certificate}",
        f"--proxy-client-key-file={files.front_proxy.key}",
        f"--service-account-key-file={files.signer[1]}",
        f"--service-account-signing-key-file={files.signer[0]}",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-cluster-ip-range=10.0.0.0/16",
        # Roles are checked as in production: a missing rule of ours must fail here.
        "--authorization-mode=RBAC",
        # Validators of hardware ask for privileged pods.
        "--allow-privileged=true",
        # How it reaches node agents for logs and exec; they ask for this client certificate.
        f"--kubelet-client-certificate={files.kubelet_client.certificate}",
        f"--kubelet-client-key={files.kubelet_client.key}",
        f"--kubelet-certificate-authority={files.authority}",
        # The Hostname address is tried first otherwise, and it resolves nowhere.
        "--kubelet-preferred-address-types=InternalIP",
        f"--feature-gates={','.join(gates)}",
        "--runtime-config=scheduling.k8s.io/v1alpha2=true",
        # Without it SIGTERM takes a minute while watches are open.
        "--shutdown-watch-termination-grace-period=2s",
        # A test plane has one API server; keeping a lease of its address is of no use.
        "--endpoint-reconciler-type=none",
        "--profiling=false",
    ]


def _kubeconfigs(path: Path) -> list[str]:
    # The last two let the program check who asks for its own metrics; it does not start without.
    return [
        f"--kubeconfig={path}",
        f"--authentication-kubeconfig={path}",
        f"--authorization-kubeconfig={path}",
    ]


def controller_manager(
    program: Path, files: Files, port: int, gates: Sequence[str], node_grace: int
) -> list[str]:
    """The controllers; the program exits if the API server is not up when it starts."""
    return [
        str(program),
        *_kubeconfigs(files.controller_manager),
        # One instance: an election would only delay the start.
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        # Signs service account tokens' legacy secrets, and publishes kube-root-ca.crt.
        f"--service-account-private-key-file={files.signer[0]}",
        f"--root-ca-file={files.authority}",
        # Each controller acts with its own built-in role, as in production.
        "--use-service-account-credentials=true",
        # The default rates (20 a second) make a gang take twice as long, and hundreds of nodes minutes.
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
        f"--feature-gates={','.join(gates)}",
        # Hollow nodes do not renew leases unless asked to; see plane.ControlPlane.
        f"--node-monitor-grace-period={node_grace}s",
        "--profiling=false",
    ]


def scheduler(program: Path, files: Files, port: int) -> list[str]:
    """The scheduler, which binds gangs all or nothing."""
    return [
        str(program),
        *_kubeconfigs(files.scheduler),
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
        f"--feature-gates={','.join(GANG_GATES)}",
        "--profiling=false",
    ]
