"""AdmissionReview v1: bytes in, bytes out.

`read` takes the request apart, `answer` writes the reply for a decision. The reply has only what the API
server reads: the request is not sent back. `review` is both with a decision between, for callers that
need nothing of a cluster. Source: preflight spec 2.3; decision 21.
"""

from __future__ import annotations

import binascii
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from aicr.errors import AicrError, invalid
from aicr.preflight.admission import claims as claim_facts
from aicr.preflight.admission.decision import NO_CHECKS, Decision, decide, refused
from aicr.preflight.admission.devices import devices
from aicr.preflight.admission.gang_port import Membership
from aicr.preflight.admission.pod import view
from aicr.preflight.admission.prepared import Prepared

#: What the API server shows of one warning, in bytes of header text.
LONGEST_WARNING: Final = 250

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class Request:
    """What the API server asks."""

    uid: str
    namespace: str
    pod: object
    """The object as it was sent."""
    dry_run: bool
    excuse: str
    """Why this request is none of preflight's business; "" if it is the creation of a pod."""


def read(body: bytes) -> Request:
    """The request in *body*.

    Raises:
        AicrError: INVALID_REQUEST ``failed to unmarshal admission review`` for anything else.
    """
    try:
        document = _decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise _malformed(str(error)) from None
    if type(document) is not dict:
        raise _malformed("not a map")
    if document.get("kind", "AdmissionReview") != "AdmissionReview":
        raise _malformed("another kind")
    if document.get("apiVersion", "admission.k8s.io/v1") != "admission.k8s.io/v1":
        raise _malformed("apiVersion is not admission.k8s.io/v1")
    request = document.get("request")
    if request is None:
        return Request("", "", None, False, "there is no request")
    if type(request) is not dict:
        raise _malformed("request is not a map")
    uid, namespace = request.get("uid") or "", request.get("namespace") or ""
    if type(uid) is not str or type(namespace) is not str:
        raise _malformed("uid and namespace are text")
    return Request(
        uid=uid,
        namespace=namespace,
        pod=request.get("object"),
        dry_run=request.get("dryRun") is True,
        excuse=_excuse(request),
    )


def _excuse(request: dict[str, Any]) -> str:
    operation = request.get("operation") or "CREATE"
    if operation != "CREATE":
        return f"operation {operation}"
    if request.get("subResource"):
        return f"subresource {request['subResource']}"
    kind = request.get("kind")
    name = kind.get("kind") if type(kind) is dict else None
    return f"kind {name}" if name not in (None, "", "Pod") else ""


def _malformed(detail: str) -> AicrError:
    return invalid("failed to unmarshal admission review", context={"detail": detail})


def answer(uid: str, decision: Decision) -> bytes:
    """The reply to request *uid*."""
    response: dict[str, Any] = {"uid": uid, "allowed": decision.allowed}
    if decision.message:
        response["status"] = {"message": decision.message, "code": decision.code}
    elif decision.patch:
        response["patchType"] = "JSONPatch"
        encoded = binascii.b2a_base64(_encode(decision.patch), newline=False)
        response["patch"] = encoded.decode("ascii")
    if decision.warnings:
        response["warnings"] = [_short(warning) for warning in decision.warnings]
    return _encode(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    )


def _short(warning: str) -> str:
    text = f"preflight: {warning}"
    return text if len(text) <= LONGEST_WARNING else f"{text[: LONGEST_WARNING - 3]}..."


def review(
    body: bytes,
    prepared: Prepared,
    membership: Membership | None = None,
    facts: claim_facts.Facts = claim_facts.NONE,
) -> bytes:
    """The reply to *body*, with what is known of the pod's gang and claims.

    Raises:
        AicrError: INVALID_REQUEST when *body* is no AdmissionReview.
    """
    request = read(body)
    return answer(request.uid, judge(request, prepared, membership, facts))


def judge(
    request: Request,
    prepared: Prepared,
    membership: Membership | None = None,
    facts: claim_facts.Facts = claim_facts.NONE,
) -> Decision:
    """The decision for *request*; never raises for what the request holds."""
    if request.excuse:
        return Decision(NO_CHECKS, request.excuse)
    try:
        pod = view(request.pod, request.namespace)
        found = devices(pod, prepared.resources)
    except AicrError as error:
        return refused(error)
    return decide(pod, found, prepared, membership, facts)
