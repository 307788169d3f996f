"""The one place where ``aicr validate`` reaches the evidence package.

``aicr.validate.evidence`` makes pages and bundles from a finished run. It is imported here and
nowhere else, when a flag asks for it; an installation without it says so before anything runs,
because a run of an hour that ends without its evidence is worse than none. For the same reason all
that flags say is tried beforehand: addresses, key, bill of materials, folder.
"""

from __future__ import annotations

from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
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

        def attest(
            self,
            request: dict[str, Any],
            *,
            say: Callable[[str], None] | None = None,
            confirm: Callable[[str], bool] | None = None,
        ) -> Sequence[str]:
            """Write, and push and sign if asked to, the bundle of a run (spec 9.3 to 9.5)."""


def wanted(options: Options) -> bool:
    """Whether a command line asks for evidence of any kind."""
    return bool(options.evidence_dir or options.emit_attestation)


def package(options: Options) -> Package:
    """The evidence package, once it is known that what the flags say can be done.

    Raises:
        AicrError: INVALID_REQUEST when this installation has none, and for an address, a key, a bill
            or a folder that cannot be used.
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
    if options.emit_attestation:
        _check(options)
    return found  # type: ignore[no-any-return]


def _check(options: Options) -> None:
    """Try what a bundle will need and flags alone decide."""
    import os

    from aicr.artifacts import oci, signing

    arguments = options.arguments
    if options.push:
        full = (
            options.push if options.push.startswith(oci.SCHEME) else f"{oci.SCHEME}{options.push}"
        )
        if oci.parse_address(full, flag="--push").digest:
            raise invalid(
                f"{options.push}: a digest is what a push answers with",
                where="--push",
                hint="name a tag instead",
            )
    if arguments.plain_http and arguments.insecure_tls:
        raise invalid(
            "--insecure-tls is about TLS, and --plain-http goes without it",
            where="--insecure-tls",
            hint="drop one of the two",
        )
    key = options.arguments.signing_key or ""
    if key and arguments.no_sign:
        raise invalid(
            "--signing-key and --no-sign contradict each other",
            where="--no-sign",
            hint="drop one of the two",
        )
    if key:
        signing.load_private_key(key, password=os.environ.get(signing.PASSWORD_VARIABLE, ""))
    if arguments.bom:
        from aicr.validate.evidence import attesting

        attesting.read_bill(arguments.bom)
    if os.path.lexists(options.emit_attestation):
        from aicr.validate.evidence import attesting

        attesting.check_folder(options.emit_attestation)


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
        request = _request(options, inputs, found)
        for line in package(options).attest(request, say=say, confirm=_confirm(say)):
            say(line)


def _confirm(say: Callable[[str], None]) -> Callable[[str], bool] | None:
    """Asks whoever sits at the terminal; None when nobody does."""
    from aicr.validate.evidence.identity import asking, somebody_there

    return asking(say) if somebody_there() else None


def _on(value: Any) -> bool:
    """A switch, or the variable that stands for it."""
    return value is True or str(value or "").strip().lower() in ("1", "t", "true", "yes", "on")


def _request(options: Options, inputs: Inputs, found: Sequence[PhaseResult]) -> dict[str, Any]:
    """What a bundle is made from: documents of the run, and where it goes."""
    import os

    if inputs.snapshot is None:
        raise invalid(
            "evidence needs a snapshot",
            where="--emit-attestation",
            hint="name one with --snapshot; aicr snapshot takes one",
        )
    arguments = options.arguments
    return {
        "out": options.emit_attestation,
        "recipe": inputs.recipe.document,
        "snapshot": inputs.snapshot,
        "reports": {result.phase: dict(result.report) for result in found},
        "catalog": inputs.recipe.catalog,
        "catalogVersion": inputs.catalog.version,
        "images": sorted({entry.image for entry in inputs.catalog.entries}),
        "full": bool(arguments.full),
        "bom": arguments.bom or "",
        "push": options.push,
        "sign": not arguments.no_sign,
        "signingKey": options.arguments.signing_key or "",
        "plainHTTP": bool(arguments.plain_http),
        "insecureTLS": bool(arguments.insecure_tls),
        "identityToken": options.value("identity_token", "COSIGN_IDENTITY_TOKEN") or "",
        "deviceFlow": _on(options.value("oidc_device_flow", "AICR_OIDC_DEVICE_FLOW")),
        "assumeYes": bool(arguments.yes) or _on(os.environ.get("AICR_ASSUME_YES")),
    }
