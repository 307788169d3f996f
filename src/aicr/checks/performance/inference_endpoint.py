"""Where the workload is asked, and whether it answers: a real chat completion, not a health page.

`frontend_service` and `gateway_service` choose a Service, `port_of` its port, `content_of` judges an
answer; these are pure. The probe goes to the ready endpoints behind the Service, so that neither the
cluster's DNS nor its proxy has to be reachable from where the check runs; the load generator, which
runs in the cluster, uses the Service. One request may take long: the first one of a fresh worker
captures graphs and compiles kernels. Source: validators spec 7.3 "Endpoint"; requirements V-310, V-340.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from aicr.checks.conformance.endpoints import ENDPOINT_SLICE, addresses
from aicr.checks.performance.inference_workload import CHAT_PATH, NAME, PORT
from aicr.checks.sdk.context import Context
from aicr.errors import NOT_FOUND, TIMEOUT, AicrError

GATEWAY: Final = "inference-gateway"
#: Bytes of an answer that are read.
LARGEST: Final = 8 * 1024
_GATEWAY_LABEL: Final = "gateway.networking.k8s.io/gateway-name"
_SERVICE_LABEL: Final = "kubernetes.io/service-name"
#: Services beside a gateway that serve no traffic.
_OTHERS: Final = ("controller-manager", "webhook", "metrics")
_PROMPT: Final = "Say hello."

Document = Mapping[str, Any]


def frontend_service(services: Iterable[Document]) -> Document | None:
    """The Service of Dynamo's frontend in the run's namespace."""
    wanted = f"{NAME}-frontend"
    return next((each for each in services if each["metadata"]["name"] == wanted), None)


def gateway_service(services: Iterable[Document]) -> Document | None:
    """The Service of the gateway: by its label, else by name, the shortest name first."""
    fitting = [
        each
        for each in services
        if _is_of_gateway(each) and not any(word in _name(each) for word in _OTHERS)
    ]
    fitting.sort(key=lambda each: (not _labelled(each), len(_name(each)), _name(each)))
    return fitting[0] if fitting else None


def _is_of_gateway(service: Document) -> bool:
    return _labelled(service) or GATEWAY in _name(service)


def _labelled(service: Document) -> bool:
    return (service["metadata"].get("labels") or {}).get(_GATEWAY_LABEL) == GATEWAY


def port_of(service: Document) -> int:
    """The port to ask: 8000, else the one named http, else the first, else 8000."""
    ports = (service.get("spec") or {}).get("ports") or []
    if any(each.get("port") == PORT for each in ports):
        return PORT
    for each in ports:
        if each.get("name") == "http":
            return int(each["port"])
    return int(ports[0]["port"]) if ports else PORT


def url_of(service: Document) -> str:
    """Where a pod of the cluster asks."""
    metadata = service["metadata"]
    return f"http://{metadata['name']}.{metadata['namespace']}.svc:{port_of(service)}"


def question(model: str) -> dict[str, Any]:
    """The body of the probe."""
    return {
        "model": model,
        "messages": [{"role": "user", "content": _PROMPT}],
        "max_tokens": 16,
        "temperature": 0,
        "stream": False,
    }


def content_of(status: int, body: str) -> str:
    """What the model said.

    Raises:
        ValueError: with the reason, for an answer that is no completion or has no content.
    """
    if status != 200:
        raise ValueError(f"HTTP {status}: {body.strip()[:200]}")
    try:
        answer = json.loads(body)
        message = answer["choices"][0]["message"]
        said = message.get("content") or message.get("reasoning_content")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        raise ValueError(f"no chat completion: {body.strip()[:200]}") from None
    if not isinstance(said, str) or not said.strip():
        raise ValueError("the completion has no content")
    return said


async def wait_serving(
    context: Context, service: Document, model: str, headers: Mapping[str, str], seconds: float
) -> str:
    """Ask until there is an answer with content; what the model said.

    Args:
        context: of the check.
        service: see `frontend_service` and `gateway_service`.
        model: as it is served.
        headers: of the request.
        seconds: in which there must be an answer.

    Raises:
        AicrError: TIMEOUT with the last reason.
    """
    metadata = service["metadata"]
    place = f"Service {metadata['namespace']}/{metadata['name']}:{port_of(service)}"
    limit = context.timeout(seconds)
    end = context.clock.now() + limit
    why = "it was not asked"
    while True:
        try:
            hosts = await _hosts(context, service)
            if not hosts:
                raise ValueError("no ready endpoint")
            left = max(0.1, end - context.clock.now())
            return await _ask(hosts[0], model, headers, min(left, context.timeouts.inference_probe))
        except ValueError as error:
            why = str(error)
        if context.clock.now() + context.timeouts.inference_poll >= end:
            break
        await context.clock.sleep(context.timeouts.inference_poll)
    raise AicrError(
        TIMEOUT,
        f"timed out waiting for inference endpoint to serve requests: {place} gave no chat "
        f"completion within {limit:g} s; last: {why}",
        hint="kubectl logs of frontend and workers; AICR_INFERENCE_PERF_HEALTH_TIMEOUT gives it longer",
    )


async def _hosts(context: Context, service: Document) -> Sequence[str]:
    metadata = service["metadata"]
    slices = await context.cluster.list(
        ENDPOINT_SLICE, namespace=metadata["namespace"], labels={_SERVICE_LABEL: metadata["name"]}
    )
    try:
        return addresses(service, slices, port_of(service))
    except AicrError as error:
        if error.code != NOT_FOUND:
            raise
        raise ValueError(error.message) from error


async def _ask(host: str, model: str, headers: Mapping[str, str], seconds: float) -> str:
    # Here, so that a check's metadata can be read without the transport (see aicr checks).
    import aiohttp

    try:
        async with (
            asyncio.timeout(seconds),
            aiohttp.ClientSession() as session,
            session.post(
                f"http://{host}{CHAT_PATH}",
                json=question(model),
                headers=dict(headers),
                allow_redirects=False,
            ) as answer,
        ):
            body = b""
            async for chunk in answer.content.iter_chunked(LARGEST):
                body += chunk
                if len(body) > LARGEST:
                    raise ValueError(f"the answer is longer than {LARGEST} bytes")
            return content_of(answer.status, body.decode("utf-8", "replace"))
    except TimeoutError:
        raise ValueError(f"no answer in {seconds:g} s") from None
    except (aiohttp.ClientError, OSError) as error:
        raise ValueError(str(error) or type(error).__name__) from error


def _name(service: Document) -> str:
    return str(service["metadata"]["name"])
