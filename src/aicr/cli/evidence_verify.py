"""``aicr evidence verify``: is evidence whole, who vouches for it, and what does it record."""

from __future__ import annotations

import os

from aicr.cli.arguments import Once, Parser
from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Final

    from aicr.artifacts.signers import Expected
    from aicr.cli.console import Console
    from aicr.validate.evidence.verification import Report

FORMATS: Final = ("text", "json")
#: Status of a run that found something (decision 46).
FOUND: Final = 8
_EXAMPLES = """\
examples:
  aicr evidence verify ./evidence
  aicr evidence verify ./evidence --key signer.pub
  aicr evidence verify recipes/evidence/h100-eks-training/…/sha256-….yaml
  aicr evidence verify oci://registry.example/evidence:h100-eks-training \\
      --format json

SOURCE is the folder that aicr validate --emit-attestation wrote, a pointer
file, or an address in a registry. A folder needs no network. Evidence that
nobody signed yet is pending, which is no failure unless you name a signer.

For this command exit status 8 means that the evidence is not valid, or that it
is valid and records checks that failed; "result" in the JSON form tells the
two apart.
"""


def parser() -> Parser:
    """The parser of this command."""
    from aicr.cli import registries

    found = Parser(
        prog="aicr evidence verify",
        usage="aicr evidence verify SOURCE [flags]",
        description="Verify a bundle of recipe evidence.",
        epilog=_EXAMPLES,
    )
    found.add_argument("source", nargs="?", default=None, metavar="SOURCE", help="what to verify")
    trust = found.add_argument_group("whom to trust")
    trust.add_argument("--key", action=Once, metavar="FILE", help="public key (PEM) of the signer")
    trust.add_argument(
        "--certificate-identity-regexp",
        "--expected-identity-regexp",
        action=Once,
        metavar="PATTERN",
        help="anchored pattern of the signer's identity",
    )
    trust.add_argument(
        "--certificate-oidc-issuer",
        "--expected-issuer",
        action=Once,
        metavar="URL",
        help="who must have vouched for it (with a pattern, default: GitHub Actions)",
    )
    trust.add_argument(
        "--trust-root", action=Once, metavar="FILE", help="sigstore trusted_root.json to use"
    )
    trust.add_argument(
        "--no-rekor",
        action="store_true",
        help="with --key: accepted for old scripts; key signatures here are in no log",
    )
    found.once("--format", "-t", metavar="NAME", help="text (default) or json")
    registries.add_registry_flags(found.add_argument_group("registry"))
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Verify, print the report, and say by the status whether all is well."""
    from aicr.cli.formats import check_format, render
    from aicr.validate.evidence import verification

    chosen = check_format(arguments.format or None, FORMATS)
    if not arguments.source:
        raise invalid(
            "name the evidence to verify", where="SOURCE", hint="aicr evidence verify ./evidence"
        )
    report = _verified(arguments, console, _trust(arguments))
    if chosen == "json":
        console.write(render(report.document(), "json"))
    else:
        console.write(_text(report))
    return 0 if report.result == verification.PASSED else FOUND


def _verified(arguments: argparse.Namespace, console: Console, trust: Expected) -> Report:
    from aicr.artifacts import oci
    from aicr.artifacts.registry_auth import docker_credentials
    from aicr.artifacts.wire import Transport
    from aicr.cli import registries
    from aicr.validate.evidence import verification
    from aicr.validate.evidence.referrers import Referring

    def connect(host: str) -> Referring:
        transport = Transport(
            plain_http=arguments.plain_http,
            insecure_tls=arguments.insecure_tls,
            ca_file=arguments.ca_file or "",
        )
        return Referring(host, transport, docker_credentials(console.warn))

    source: str = arguments.source
    registries.check_flags(arguments)
    if source.startswith(oci.SCHEME):
        address = oci.parse_address(source, flag="SOURCE")
        if not address.reference:
            raise invalid(
                f"{source} has neither a tag nor a digest",
                where="SOURCE",
                hint="add :TAG or @sha256:…",
            )
        return verification.verify_published(address, trust, connect)
    if os.path.isfile(source):
        return verification.verify_pointer(source, trust, connect)
    return verification.verify_folder(source, trust)


def _trust(arguments: argparse.Namespace) -> Expected:
    from aicr.artifacts import signing
    from aicr.artifacts.signers import Expected
    from aicr.artifacts.trust import DEFAULT_ISSUER, check_identity_regexp

    pattern = arguments.certificate_identity_regexp
    issuer = arguments.certificate_oidc_issuer
    if arguments.no_rekor and arguments.key is None:
        raise invalid(
            "--no-rekor is for key signatures only",
            where="--no-rekor",
            hint="name the public key with --key, or drop the flag",
        )
    if arguments.key is not None and (pattern is not None or issuer is not None):
        raise invalid(
            "--key and an identity name two signers",
            where="--key",
            hint="keep the one that fits how the evidence was signed",
        )
    if pattern is not None:
        check_identity_regexp(pattern)
    return Expected(
        key=None if arguments.key is None else signing.load_public_key(arguments.key),
        identity_regexp=pattern or "",
        issuer=issuer or (DEFAULT_ISSUER if pattern else ""),
        trust_root=arguments.trust_root or "",
    )


def _text(report: Report) -> str:
    from aicr.cli.formats import one_line

    lines = [f"evidence:   {report.source}"]
    claims = report.claims
    if claims is not None:
        recipe = claims.predicate["recipe"]
        lines.append(f"recipe:     {recipe['name']} (sha256:{recipe['digest']})")
        lines.append(f"attested:   {claims.predicate['attestedAt']}")
    signed = report.signature
    if report.signer is not None:
        signed += f" by {report.signer.identity}"
        if not report.pinned:
            signed += " (not a signer that you named)"
    lines.append(f"signature:  {signed}")
    if claims is not None:
        redaction = claims.predicate.get("redaction")
        lines.append(
            f"redaction:  {redaction.get('policy')} version {redaction.get('version')}"
            if isinstance(redaction, dict)
            else "redaction:  none"
        )
        for phase, counts in claims.predicate["phases"].items():
            said = ", ".join(
                f"{counts[key]} {key}"
                for key in ("passed", "failed", "skipped", "other")
                if key in counts
            )
            lines.append(f"  {phase}: {said}")
    lines += [f"  - {problem}" for problem in report.errors]
    lines += [f"  note: {notice}" for notice in report.notices]
    verdicts = {
        "passed": "PASSED",
        "recorded-failures": "VALID, and it records checks that did not pass",
        "invalid": f"FAILED at {report.failed_step}",
    }
    lines.append(f"verify: {verdicts[report.result]}")
    # Names and words in evidence are a stranger's: none may look like a line of ours.
    return "".join(f"{one_line(line)}\n" for line in lines)
