"""``aicr preflight probe``: ask a running webhook for one decision; the chart's ``helm test`` runs it."""

from __future__ import annotations

from aicr.cli.arguments import Parser
from aicr.errors import INTERNAL, SERVICE_UNAVAILABLE, AicrError, invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any, Final

    from aicr.cli.console import Console

_UID: Final = "preflight-probe"
_MOST: Final = 1 << 20
_EXAMPLES = """\
examples:
  aicr preflight probe https://preflight.nvsentinel.svc:443 --ca-file ca.crt
  helm test preflight --namespace nvsentinel

Sends a dry-run review of a pod without GPUs, which a healthy webhook admits
unchanged, over a connection whose certificate must be good for the name in the
address. Exit status: 0 it does; 8 it answers wrongly; 6 it cannot be reached
or trusted.
"""


def parser() -> Parser:
    """The parser of this command."""
    found = Parser(
        prog="aicr preflight probe",
        description="Ask a running webhook for one decision and judge the answer.",
        epilog=_EXAMPLES,
    )
    found.add_argument("address", metavar="URL", help="https address of the webhook")
    found.once("--ca-file", metavar="FILE", help="certificate authority to trust, PEM")
    found.once("--timeout", metavar="SECONDS", help="how long to wait for the answer (10)")
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Ask once; the exit status says what came back."""
    # The path is ours to add; who copies it from a webhook configuration brings it along.
    address = arguments.address.rstrip("/").removesuffix("/mutate")
    if not address.startswith("https://"):
        raise invalid(
            f"{arguments.address!r} is no https address",
            where="aicr preflight probe",
            hint="webhooks are served over TLS only, for example https://preflight.nvsentinel.svc",
        )
    text = arguments.timeout or "10"
    if not (text.isascii() and text.isdigit() and 0 < int(text[:5]) <= 3600):
        raise invalid(f"invalid number {text!r}", where="--timeout", hint="1 to 3600")
    judge(_ask(f"{address}/mutate", arguments.ca_file, int(text)))
    console.write(f"{address} admits pods as it should\n")
    return 0


def review() -> dict[str, Any]:
    """A dry-run review of a pod that no check is for."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "preflight-probe"},
        "spec": {"containers": [{"name": "main", "image": "none"}]},
    }
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": _UID,
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "operation": "CREATE",
            "namespace": "default",
            "dryRun": True,
            "object": pod,
        },
    }


def judge(answer: Any) -> None:
    """Raise INTERNAL unless *answer* admits the probe's pod unchanged."""
    response = answer.get("response") if isinstance(answer, dict) else None
    if not isinstance(response, dict) or response.get("uid") != _UID:
        said = "it does not answer the review that it was sent"
    elif response.get("allowed") is not True:
        status = response.get("status") or {}
        said = f"it refuses a pod without GPUs: {status.get('message') or 'without a reason'}"
    elif response.get("patch"):
        said = "it changes a pod without GPUs"
    else:
        return
    raise AicrError(
        INTERNAL,
        f"the webhook is wrong: {said}",
        hint="kubectl logs -n NAMESPACE deploy/preflight; is something else listening there?",
    )


def _ask(url: str, authority: str | None, seconds: int) -> Any:
    import json
    import ssl
    import urllib.error
    import urllib.request

    try:
        trust = ssl.create_default_context(cafile=authority)
    except FileNotFoundError:
        raise invalid(
            f"there is no file {authority}", where="--ca-file", hint="check the path"
        ) from None
    except OSError as error:
        # ssl.SSLError is one: a file that holds no certificate.
        raise invalid(
            f"cannot read {authority}: {error.strerror or error}",
            where="--ca-file",
            hint="it must be a readable PEM file; in the cluster it is ca.crt of the webhook's Secret",
        ) from error
    request = urllib.request.Request(
        url, json.dumps(review()).encode(), {"Content-Type": "application/json"}, method="POST"
    )
    # No proxy: the address is one of the cluster's own.
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trust)
    )
    try:
        with opener.open(request, timeout=seconds) as reply:
            return json.loads(reply.read(_MOST))
    except urllib.error.HTTPError as error:
        with error:
            raise AicrError(
                INTERNAL, f"the webhook is wrong: it answers HTTP {error.code}", where=url
            ) from error
    except (OSError, urllib.error.URLError) as error:
        raise AicrError(
            SERVICE_UNAVAILABLE,
            f"the webhook cannot be reached: {getattr(error, 'reason', error)}",
            where=url,
            hint="are its pods ready, and is its certificate good for this name?",
        ) from error
    except ValueError as error:
        raise AicrError(
            INTERNAL, "the webhook is wrong: its answer is no JSON", where=url
        ) from error
