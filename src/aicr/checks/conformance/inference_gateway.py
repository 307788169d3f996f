"""inference-gateway: the Gateway for inference is programmed, has endpoints, and is not open to the world
by accident.

A condition counts only when it is about the newest generation of its object. A load balancer is open
when its source ranges are absent or add up to every address of a family; that is evidence and a warning,
or a failure where a scoped gateway is asked for. What the recipe does not declare and is there all the
same is checked (decision 64). Source: validators spec 6.2, 3.4; requirements V-103 to V-105.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from aicr.checks.conformance.endpoints import ENDPOINT_SLICE
from aicr.checks.conformance.exposure import is_open, load_balancers, ready_endpoints
from aicr.checks.conformance.required import listed, required, required_crd
from aicr.checks.sdk import CONFORMANCE, Capability, Check, Context, Setting, failed, require
from aicr.checks.sdk.cluster_reads import established, find, probe
from aicr.errors import NOT_FOUND, AicrError, invalid
from aicr.kube import kinds

GATEWAY: Final = "gateway.networking.k8s.io/v1/Gateway"
GATEWAY_CLASS: Final = "gateway.networking.k8s.io/v1/GatewayClass"
NAME: Final = "inference-gateway"
#: Component → namespace when the recipe does not say; newest first.
COMPONENTS: Final = {"agentgateway": "agentgateway-system", "kgateway": "kgateway-system"}
CRDS: Final = ("gateways.gateway.networking.k8s.io", "httproutes.gateway.networking.k8s.io")
#: The group moved when the API became stable; either serves.
POOLS: Final = (
    "inferencepools.inference.networking.k8s.io",
    "inferencepools.inference.networking.x-k8s.io",
)
SCOPED: Final = "AICR_REQUIRE_SCOPED_INFERENCE_GATEWAY"
_TRUE: Final = frozenset({"1", "t", "true", "y", "yes", "on"})
_FALSE: Final = frozenset({"", "0", "f", "false", "n", "no", "off"})

Document = Mapping[str, Any]


async def run(context: Context) -> None:
    """Gateway and its class, CRDs, endpoints, then who can reach it."""
    scoped = truthy(context.environ.get(SCOPED, ""))
    gateway, namespace = await _gateway(context)
    name = str((gateway.get("spec") or {}).get("gatewayClassName") or "")
    gateway_class = await required(context, GATEWAY_CLASS, name)
    for kind, document, wanted in (
        ("GatewayClass", gateway_class, "Accepted"),
        ("Gateway", gateway, "Programmed"),
    ):
        context.out(f"{kind} {document['metadata']['name']}: {condition(document, wanted)[1]}")
    for kind, document, wanted in (
        ("GatewayClass", gateway_class, "Accepted"),
        ("Gateway", gateway, "Programmed"),
    ):
        holds, words = condition(document, wanted)
        if not holds:
            raise failed(
                f"{kind} {document['metadata']['name']} is not {wanted}: {words}",
                hint=f"kubectl describe {kind.lower()} -A",
            )
    await _crds(context)
    slices = await listed(context, ENDPOINT_SLICE, namespace)
    ready = ready_endpoints(slices, NAME)
    context.out(f"Ready endpoints of {NAME}: {ready}")
    if not ready:
        raise failed(
            f"no ready endpoint behind {NAME} in {namespace}",
            code=NOT_FOUND,
            hint=f"kubectl get pods,endpointslices -n {namespace}",
        )
    _exposure(context, await listed(context, kinds.SERVICE, namespace), scoped)


async def _gateway(context: Context) -> tuple[Document, str]:
    """The Gateway and its namespace: where the recipe says, else where components put it."""
    declared = [name for name in COMPONENTS if context.component(name) is not None]
    tried: tuple[Document | None, AicrError | None] = (None, None)
    namespace, component = "", ""
    for component in declared[:1] or list(COMPONENTS):
        ref = context.component(component) or {}
        namespace = str(ref.get("namespace") or COMPONENTS[component])
        tried = await probe(context, GATEWAY, NAME, namespace)
        if tried[0] is not None or (tried[1] is not None and tried[1].code != NOT_FOUND):
            break
    gateway, error = tried
    subject = f"Gateway {NAME}" + (f" in {namespace}" if declared else "")
    if not declared and gateway is None:
        component = next(iter(COMPONENTS))
    require(context, Capability(component, subject), error, gateway is not None)
    assert gateway is not None
    return gateway, namespace


async def _crds(context: Context) -> None:
    found = [await required_crd(context, name) for name in CRDS]
    pools = [await find(context, kinds.CUSTOM_RESOURCE_DEFINITION, name) for name in POOLS]
    served = [pool for pool in pools if pool is not None]
    if not served:
        raise failed(
            f"CustomResourceDefinition {POOLS[0]} not found",
            code=NOT_FOUND,
            hint="install the CRDs of the inference extension of the Gateway API",
        )
    for crd in [*found, *served[:1]]:
        name = crd["metadata"]["name"]
        if not established(crd):
            raise failed(f"CustomResourceDefinition {name} is not established")
        context.out(f"CRD {name}: established")


def _exposure(context: Context, services: Iterable[Document], scoped: bool) -> None:
    """Say who can reach the gateway's load balancers; fail for an open one if *scoped*."""
    balancers = load_balancers(services, NAME)
    if not balancers:
        context.out("Exposure: no LoadBalancer Service")
    wide = []
    for service in balancers:
        name = service["metadata"]["name"]
        ranges = (service.get("spec") or {}).get("loadBalancerSourceRanges") or []
        everybody = is_open(ranges)
        said = f"open to any source ({', '.join(ranges) or 'no source ranges'})"
        context.out(f"Exposure: Service {name}: {said if everybody else ', '.join(ranges)}")
        if everybody:
            wide.append(name)
            context.log.warning("Service %s of %s is %s", name, NAME, said)
    if wide and scoped:
        raise failed(
            f"the load balancer of {NAME} is open to any source: Service {', '.join(wide)}",
            hint="set spec.loadBalancerSourceRanges (allowedSourceRanges of agentgateway), or do not "
            f"set {SCOPED}",
        )


def condition(document: Document, kind: str) -> tuple[bool, str]:
    """Whether a condition is True for the newest generation, and its state in a few words."""
    generation = int((document.get("metadata") or {}).get("generation") or 0)
    for each in (document.get("status") or {}).get("conditions") or []:
        if each.get("type") != kind:
            continue
        if int(each.get("observedGeneration") or generation) < generation:
            return False, f"{kind} is about an older generation"
        said = " ".join(str(each.get(key) or "") for key in ("reason", "message")).strip()
        state = str(each.get("status") or "Unknown")
        return state == "True", f"{kind}={state}" + (f" ({said})" if said else "")
    return False, f"{kind} is not reported"


def truthy(text: str) -> bool:
    """What a switch in the environment says.

    Raises:
        AicrError: INVALID_REQUEST for what is neither yes nor no: guessing would switch a safeguard off.
    """
    word = text.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise invalid(f'{SCOPED} is "{text}"', hint="use true or false")


CHECK = Check(
    name="inference-gateway",
    phase=CONFORMANCE,
    summary="the inference gateway is programmed and has endpoints",
    run=run,
    timeout="5m",
    details=f"""\
Looks at Gateway `{NAME}` in the namespace of `agentgateway` (older: `kgateway`), at its GatewayClass, at
the CRDs of gateways, HTTP routes and inference pools, and at the EndpointSlices of Services whose name
contains `{NAME}`.

- Passes when the class is Accepted, the Gateway Programmed, the CRDs established, and an endpoint ready.
- Fails when one of these is absent or not so. A LoadBalancer Service that any source can reach (no
  `loadBalancerSourceRanges`, or ranges with `0.0.0.0/0` or `::/0`) is recorded and warned about, and
  fails when `{SCOPED}` is true.
- Skips when there is no such Gateway and the recipe declares neither component.
""",
    reads=(
        "gateways and gatewayclasses",
        "customresourcedefinitions",
        "endpointslices and services of the gateway's namespace",
    ),
    capabilities=tuple(COMPONENTS),
    settings=(Setting(SCOPED, "false", "fail when any source can reach the gateway"),),
)
