"""Readiness gates: after a component, a Job that ends when the component's own test passes.

```
readiness.yaml of the component, else its health check ─► attach ─► gate ─► NNN-<c>-readiness/
                                                                      ServiceAccount, ClusterRole, binding,
                                                                      ConfigMap (the test), Job (aicr-gate)
```
Without a gate, "installed" means that Helm has handed objects to the cluster. With it, whatever
depends on a component waits until its test has passed for a while. The gate reads and never writes;
what it may read is what its test looks at.

Where the Job is run by Helm it is a hook, so that the release ends when the gate does; Argo CD
would read that as a hook of its own, so it gets the Job as an object that is replaced (bundler spec
2.8; decisions 41, 53, 68). It must not know folders or how a deployer orders releases.
"""

from __future__ import annotations

import re

from aicr import yamlio
from aicr.bundle import manifests
from aicr.bundle.options import parse_scheduling, tolerate_all
from aicr.catalog.registry import shipped_check
from aicr.errors import invalid
from aicr.yamlio import write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, Final

    from aicr.bundle.options import BundleOptions
    from aicr.bundle.plan import Component
    from aicr.catalog.tree import Tree

CHAINSAW: Final = "chainsaw.kyverno.io"
#: Says that a test without assertions is meant (validators spec 8, rule of the no-op).
NO_OP: Final = "aicr/no-op-check"
TEMPLATE: Final = "templates/readiness.yaml"
#: Formats whose Jobs are synced by Argo CD.
ARGO: Final = ("argocd", "argocd-helm")

IMAGE: Final = "aicr-gate"
LOCAL_REGISTRY: Final = "aicr.local"

#: One evaluation, the pause between two, how long all must pass in a row, and when to give up.
EVALUATION: Final = "2m"
POLL: Final = "10s"
STABILITY: Final = "30s"
MAX_WAIT: Final = "1h30m"
#: Seconds until Kubernetes ends the Job: the gate's own limit and five minutes.
DEADLINE: Final = 5700
BACKOFF_LIMIT: Final = 6
#: A ConfigMap holds at most a mebibyte.
MAX_TEST_BYTES: Final = 1 << 20

_NETWORK_OPERATOR: Final = "network-operator"
_NIC_GROUP: Final = "mellanox.com"
_NIC_POLICY: Final = "NicClusterPolicy"
_READ: Final = ["get", "list", "watch"]
#: Core objects without Secrets, which a gate reads only if its test names one.
_CORE: Final = [
    "configmaps",
    "endpoints",
    "events",
    "limitranges",
    "namespaces",
    "nodes",
    "persistentvolumeclaims",
    "persistentvolumes",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "serviceaccounts",
    "services",
]
_RELEASE: Final = r"v?(\d+\.\d+\.\d+(?:-[0-9A-Za-z.]+)?)"


def attach(components: Iterable[Component], tree: Tree) -> list[str]:
    """Give each component the test that its gate will run; notes on those that have none.

    A component's own ``readiness.yaml`` comes before its health check (decision 68).

    Raises:
        AicrError: INVALID_REQUEST for a test that is no chainsaw Test, or looks at nothing.
    """
    every = list(components)
    without = []
    for component in every:
        found = _find(component, tree)
        if found is None:
            without.append(component.name)
        elif component.name != _NETWORK_OPERATOR or any(map(_has_nic_policy, every)):
            tests = check_test(found[1], found[0])
            # A test that says of itself that it looks at nothing needs no Job to pass.
            if any(_asserts(test) for test in tests):
                component.readiness = found
    if not without:
        return []
    return [
        f"no readiness gate for {', '.join(without)}: neither a readiness.yaml nor a health check"
    ]


def check_test(text: str, source: str) -> list[dict[str, Any]]:
    """The Tests in *text*.

    Raises:
        AicrError: INVALID_REQUEST for another kind of document, a Test without any assertion, and
            text that no ConfigMap could hold (bundler spec 2.8).
    """
    if len(text.encode()) > MAX_TEST_BYTES:
        raise invalid(f"the readiness test has more than {MAX_TEST_BYTES} bytes", where=source)
    tests: list[dict[str, Any]] = yamlio.read_fast_all(text, source=source)
    if not tests:
        raise invalid("the readiness test is empty", where=source)
    for test in tests:
        version, kind = (
            (test.get("apiVersion"), test.get("kind")) if isinstance(test, dict) else (None, None)
        )
        if not (isinstance(version, str) and CHAINSAW in version and kind == "Test"):
            raise invalid(
                f"a readiness test must be kind Test of {CHAINSAW}, not {kind!r} of {version!r}",
                where=source,
                hint=f"write apiVersion: {CHAINSAW}/v1alpha1 and kind: Test",
            )
        if not _asserts(test) and not _is_no_op(test):
            raise invalid(
                "the readiness test asserts nothing, so it would pass whatever happens",
                where=source,
                hint="add an assert or an error operation to one of its steps, or annotate it with "
                f'{NO_OP}: "true" if that is meant',
            )
    return tests


def gate_image(version: str, registry: str = "") -> str:
    """The gate's image for a version of this program (bundler spec 2.8, decision 41).

    A release is tagged `v<version>`; anything that is no release is `dev`.
    """
    found = re.fullmatch(_RELEASE, version)
    tag = f"v{found[1]}" if found and not version.endswith("-next") else "dev"
    return f"{registry.rstrip('/') or LOCAL_REGISTRY}/{IMAGE}:{tag}"


def gate_values(options: BundleOptions) -> dict[str, Any]:
    """The values of a gate's chart: its image, so that a mirror can be named at install time.

    Raises:
        AicrError: INVALID_REQUEST for a registry with which no image can be named.
    """
    # Not at the top: only a bundle with gates needs them.
    from aicr.contract.container import IMAGE_REGISTRY
    from aicr.contract.images import pull_policy
    from aicr.values import references

    image = gate_image(options.version, options.image_registry)
    if not references.is_reference(image):
        raise invalid(
            f"{options.image_registry!r} cannot be the registry of an image",
            where=IMAGE_REGISTRY,
            hint="write HOST[:PORT][/PATH], for example registry.example/gpu, or unset it",
        )
    return {"image": image, "imagePullPolicy": pull_policy(image)}


def gate(component: Component, options: BundleOptions, deployer: str) -> dict[str, bytes]:
    """The templates of a component's gate; empty when it has no test.

    Args:
        component: what is waited for.
        options: for the placement of the gate's pod, which runs where the controllers do.
        deployer: canonical name of the output format.
    """
    if component.readiness is None:
        return {}
    source, text = component.readiness
    name, namespace = f"{component.name}-readiness-gate", component.namespace
    labels = {
        "app.kubernetes.io/component": "readiness-gate",
        "app.kubernetes.io/managed-by": "Helm",
        "app.kubernetes.io/name": name,
    }
    cluster_name = f"{name}-{namespace}"
    bundle = f"{component.name}-readiness-bundle"
    objects: list[dict[str, Any]] = [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": cluster_name, "labels": labels},
            "rules": _rules(component.name, yamlio.read_fast_all(text, source=source)),
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": cluster_name, "labels": labels},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": cluster_name,
            },
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": bundle, "namespace": namespace, "labels": labels},
            "data": {f"{component.name}.yaml": text},
        },
    ]
    parts = [manifests.escape_for_helm(write.dump(each)) for each in objects]
    job = _job(component, options, deployer, labels, bundle)
    return {TEMPLATE: "---\n".join([*parts, write.dump(job)]).encode()}


def _job(
    component: Component,
    options: BundleOptions,
    deployer: str,
    labels: dict[str, str],
    bundle: str,
) -> dict[str, Any]:
    name, namespace = f"{component.name}-readiness-gate", component.namespace
    annotations = {
        "helm.sh/hook": "post-install,post-upgrade",
        "helm.sh/hook-delete-policy": "before-hook-creation",
    }
    if deployer in ARGO:
        annotations = {"argocd.argoproj.io/sync-options": "Replace=true,Force=true"}
    scheduling = parse_scheduling(options)
    pod: dict[str, Any] = {
        "serviceAccountName": name,
        # Not Never: a failed pod would stay in the namespace, where the tests of the component
        # look for failed pods.
        "restartPolicy": "OnFailure",
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "tolerations": scheduling.system_tolerations or [tolerate_all()],
    }
    if scheduling.system_selector:
        pod["nodeSelector"] = dict(scheduling.system_selector)
    pod["containers"] = [
        {
            "name": "gate",
            "image": "{{ .Values.image }}",
            "imagePullPolicy": "{{ .Values.imagePullPolicy }}",
            "args": [
                "--bundle=/bundle",
                f"--namespace={namespace}",
                f"--timeout={EVALUATION}",
                f"--poll-interval={POLL}",
                f"--stability-window={STABILITY}",
                f"--max-wait={MAX_WAIT}",
            ],
            "resources": {
                "requests": {"cpu": "50m", "memory": "128Mi"},
                "limits": {"cpu": "500m", "memory": "256Mi"},
            },
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": True,
            },
            "volumeMounts": [{"name": "bundle", "mountPath": "/bundle", "readOnly": True}],
        }
    ]
    pod["volumes"] = [{"name": "bundle", "configMap": {"name": bundle}}]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": labels,
            "annotations": annotations,
        },
        "spec": {
            "backoffLimit": BACKOFF_LIMIT,
            "activeDeadlineSeconds": DEADLINE,
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def _rules(component: str, tests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Read access to the usual objects, and to every kind that the tests look at."""
    core = list(_CORE)
    resources: dict[str, list[str]] = {
        "": core,
        "apps": ["*"],
        "batch": ["*"],
        "nvidia.com": ["*"],
        "operators.coreos.com": ["clusterserviceversions"],
        "apiextensions.k8s.io": ["customresourcedefinitions"],
    }
    if component == _NETWORK_OPERATOR:
        resources[_NIC_GROUP] = ["nicclusterpolicies"]
    for group, kind in _looked_at(tests):
        if group == "":
            if kind == "Secret" and "secrets" not in core:
                core.append("secrets")
        elif not _covered(group, kind, resources.get(group, [])):
            resources[group] = ["*"]
    return [
        {"apiGroups": [group], "resources": resources[group], "verbs": _READ}
        for group in sorted(resources)
    ]


def _covered(group: str, kind: str, held: list[str]) -> bool:
    """Whether the resources of a group that are held include a kind; plurals are plain here."""
    plural = kind.lower()
    return "*" in held or f"{plural}s" in held or f"{plural[:-1]}ies" in held


def _looked_at(tests: list[dict[str, Any]]) -> list[tuple[str, str]]:
    found = set()
    for test in tests:
        for node in _maps(test.get("spec")):
            version, kind = node.get("apiVersion"), node.get("kind")
            if isinstance(version, str) and isinstance(kind, str):
                group, slash, _ = version.partition("/")
                found.add((group if slash else "", kind))
    return sorted(found)


def _asserts(test: dict[str, Any]) -> bool:
    steps = (test.get("spec") or {}).get("steps")
    return any(key in node for node in _maps(steps) for key in ("assert", "error"))


def _is_no_op(test: dict[str, Any]) -> bool:
    annotations = (test.get("metadata") or {}).get("annotations") or {}
    return bool(annotations.get(NO_OP) == "true")


def _maps(node: Any) -> Iterator[dict[str, Any]]:
    pending = [node]
    while pending:
        here = pending.pop()
        if isinstance(here, dict):
            yield here
            pending += here.values()
        elif isinstance(here, list):
            pending += here


def _find(component: Component, tree: Tree) -> tuple[str, str] | None:
    path = f"components/{component.name}/readiness.yaml"
    if tree.exists(path):
        return path, tree.read_text(path)
    ref = component.ref
    if ref.get("healthCheckSkip"):
        return None
    inline = ref.get("healthCheckAsserts")
    if inline:
        return f"{component.name}: healthCheckAsserts", inline
    linked: Any = (component.entry.get("healthCheck") or {}).get("assertFile")
    if linked and tree.exists(linked):
        text = shipped_check(ref, component.entry, tree)
        return None if text is None else (linked, text)
    return None


def _has_nic_policy(component: Component) -> bool:
    return any(
        _NIC_GROUP in text and _NIC_POLICY in text
        for _, text in [*component.pre_manifests, *component.manifests]
    )
