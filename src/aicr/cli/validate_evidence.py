"""The one place where ``aicr validate`` reaches the evidence package.

``aicr.validate.evidence`` makes pages and bundles from a finished run. It is imported here and
nowhere else, when a flag asks for it; an installation without it says so before anything runs,
because a run of an hour that ends without its evidence is worse than none.
"""

from __future__ import annotations

from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Protocol

    from aicr.cli.validate_flags import Options
    from aicr.cli.validate_inputs import Inputs
    from aicr.validate.results import PhaseResult

    class Package(Protocol):
        """What the evidence package offers."""

        def render_cncf(self, report: dict[str, Any], directory: str) -> Sequence[str]:
            """Write the CNCF pages of a merged report; lines for people (spec 9.1)."""

        def collect_cncf(
            self, directory: str, features: Sequence[str], *, policy: str, kubeconfig: str
        ) -> Sequence[str]:
            """Collect a submission by behaviour (spec 9.2); INTERNAL when a section failed."""

        def attest(self, request: dict[str, Any]) -> Sequence[str]:
            """Write, and push and sign if asked to, the bundle of a run (spec 9.3 to 9.5)."""


def wanted(options: Options) -> bool:
    """Whether a command line asks for evidence of any kind."""
    return bool(options.evidence_dir or options.emit_attestation)


def package(options: Options) -> Package:
    """The evidence package.

    Raises:
        AicrError: INVALID_REQUEST when this installation has none.
    """
    import importlib

    flag = "--evidence-dir" if options.evidence_dir else "--emit-attestation"
    try:
        found: Any = importlib.import_module("aicr.validate.evidence")
    except ModuleNotFoundError as error:
        if error.name != "aicr.validate.evidence":
            raise
        raise invalid(
            "this version of aicr cannot write evidence", where=flag, hint=f"run without {flag}"
        ) from error
    return found  # type: ignore[no-any-return]


def write(
    options: Options,
    inputs: Inputs,
    found: Sequence[PhaseResult],
    merged: dict[str, Any],
    say: Any,
) -> None:
    """Write what the flags ask for, also when checks have failed.

    Raises:
        AicrError: what the package could not write, push or sign.
    """
    if options.evidence_dir:
        for line in package(options).render_cncf(merged, options.evidence_dir):
            say(line)
    if options.emit_attestation:
        for line in package(options).attest(_request(options, inputs, found)):
            say(line)


def _request(options: Options, inputs: Inputs, found: Sequence[PhaseResult]) -> dict[str, Any]:
    """What a bundle is made from: documents of the run, and where it goes."""
    if inputs.snapshot is None:
        raise invalid("evidence needs a snapshot", where="--emit-attestation")
    arguments = options.arguments
    return {
        "out": options.emit_attestation,
        "recipe": inputs.recipe.document,
        "snapshot": inputs.snapshot,
        "reports": {result.phase: dict(result.report) for result in found},
        "catalogVersion": inputs.catalog.version,
        "images": sorted({entry.image for entry in inputs.catalog.entries}),
        "full": bool(arguments.full),
        "bom": arguments.bom or "",
        "push": options.push,
        "sign": not arguments.no_sign,
        "plainHTTP": bool(arguments.plain_http),
        "insecureTLS": bool(arguments.insecure_tls),
        "identityToken": options.value("identity_token", "COSIGN_IDENTITY_TOKEN") or "",
        "deviceFlow": bool(options.value("oidc_device_flow", "AICR_OIDC_DEVICE_FLOW")),
        "assumeYes": bool(arguments.yes),
    }
