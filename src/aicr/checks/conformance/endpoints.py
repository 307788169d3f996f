"""HTTP reads of a Service's pods: metrics and queries.

A Service is asked through its ready endpoints, by address, so that neither the cluster's DNS nor its
proxy has to be reachable from where the check runs; the answer is the same. A Service with no ready
endpoint is a verdict: nobody serves it. An endpoint that does not answer is not: the network between may
be at fault. At most `LARGEST` bytes are read. Source: validators spec 6.2 (accelerator-metrics,
ai-service-metrics) and 11 (HTTP body).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final

from aicr.checks.conformance.required import listed
from aicr.checks.sdk.context import Context
from aicr.checks.sdk.outcome import failed
from aicr.errors import INTERNAL, SERVICE_UNAVAILABLE, AicrError
from aicr.kube.kinds import Resource

ENDPOINT_SLICE: Final = Resource(
    "discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", True, "endpointslice"
)
_SERVICE_NAME: Final = "kubernetes.io/service-name"
LARGEST: Final = 1024 * 1024
#: Endpoints that are tried before a Service counts as not reachable.
TRIES: Final = 3

Document = Mapping[str, Any]


def addresses(service: Document, slices: Iterable[Document], port: int) -> list[str]:
    """``host:port`` of the ready endpoints behind a port of a Service, sorted.

    Raises:
        AicrError: NOT_FOUND when the Service has no such port.
    """
    ports = [
        each for each in (service.get("spec") or {}).get("ports") or [] if each.get("port") == port
    ]
    name = str(service["metadata"]["name"])
    if not ports:
        raise failed(f"Service {name} has no port {port}", code="NOT_FOUND")
    wanted = ports[0].get("name") or ""
    found = set()
    for each in slices:
        targets = [
            target["port"]
            for target in each.get("ports") or []
            if (target.get("name") or "") == wanted and target.get("port")
        ]
        for endpoint in each.get("endpoints") or []:
            # A condition that is not stated counts as ready.
            if (endpoint.get("conditions") or {}).get("ready") is False:
                continue
            for host in endpoint.get("addresses") or []:
                shown = f"[{host}]" if ":" in host else host
                found |= {f"{shown}:{target}" for target in targets}
    return sorted(found)


async def fetch(context: Context, service: Document, port: int, path: str) -> str:
    """What a Service answers at *path*, which begins with a slash.

    Raises:
        AicrError: SERVICE_UNAVAILABLE when it has no ready endpoint (a verdict) or none answers;
            INTERNAL when it answers with an error.
    """
    name = str(service["metadata"]["name"])
    namespace = str(service["metadata"]["namespace"])
    slices = await listed(context, ENDPOINT_SLICE, namespace, {_SERVICE_NAME: name})
    hosts = addresses(service, slices, port)
    where = f"Service {namespace}/{name}:{port}"
    if not hosts:
        raise failed(
            f"{where} has no ready endpoint",
            code=SERVICE_UNAVAILABLE,
            hint=f"kubectl get pods -n {namespace} shows why none is ready",
        )
    seconds = context.timeout(context.timeouts.resource_verification)
    why: list[str] = []
    for host in hosts[:TRIES]:
        try:
            return await get(f"http://{host}{path}", seconds)
        except AicrError as error:
            if error.code != SERVICE_UNAVAILABLE:
                raise AicrError(error.code, f"{where}: {error.message}", hint=error.hint) from error
            why.append(error.message)
    raise AicrError(
        SERVICE_UNAVAILABLE,
        f"{where} cannot be reached: {'; '.join(why)}",
        hint="the check must run where pods' addresses are reachable; look for network policies",
    )


async def get(url: str, seconds: float) -> str:
    """The text at *url*.

    Raises:
        AicrError: SERVICE_UNAVAILABLE when there is no answer in time or a 5xx; INTERNAL for another
            status, and for more than `LARGEST` bytes.
    """
    # Here, so that a check's metadata can be read without the transport (see aicr checks).
    import aiohttp

    try:
        async with (
            asyncio.timeout(seconds),
            aiohttp.ClientSession() as session,
            session.get(url, allow_redirects=False) as answer,
        ):
            if answer.status >= 500:
                raise AicrError(SERVICE_UNAVAILABLE, f"GET {url}: HTTP {answer.status}")
            if answer.status != 200:
                raise AicrError(INTERNAL, f"GET {url}: HTTP {answer.status}")
            body = b""
            async for chunk in answer.content.iter_chunked(64 * 1024):
                body += chunk
                if len(body) > LARGEST:
                    raise AicrError(INTERNAL, f"GET {url}: more than {LARGEST} bytes")
    except TimeoutError as error:
        raise AicrError(SERVICE_UNAVAILABLE, f"GET {url}: no answer in {seconds:g} s") from error
    except (aiohttp.ClientError, OSError) as error:
        reason = str(error) or type(error).__name__
        raise AicrError(SERVICE_UNAVAILABLE, f"GET {url}: {reason}") from error
    return body.decode("utf-8", "replace")
