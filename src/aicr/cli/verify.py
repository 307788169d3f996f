"""``aicr verify``: is a bundle whole, who signed it, and is that enough."""

from __future__ import annotations

from aicr.cli.arguments import Once, Parser
from aicr.cli.formats import check_format, one_line, render
from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Final

    from aicr.artifacts.trust import Policy, Report
    from aicr.cli.console import Console

FORMATS: Final = ("text", "json")
#: Status of a run that found something (decision 46).
FOUND: Final = 8
_EXAMPLES = """\
examples:
  aicr verify ./bundle
  aicr verify ./bundle --key signer.pub
  aicr verify ./bundle --format json \\
      --certificate-identity-regexp '^https://github\\.com/acme/gpu/.*'
  aicr verify ./bundle --min-trust-level verified \\
      --cli-version-constraint '>= 0.1.0'

Every file of the bundle is compared with checksums.txt, and nothing else may
be there. Trust levels, lowest first: unknown, unverified (whole, not signed),
attested (signed), verified (signed by whom you named). Without
--min-trust-level the most that the bundle could reach is asked for.

For this command exit status 8 means that the bundle was judged and is not good
enough.
"""


def parser() -> Parser:
    """The parser of this command."""
    found = Parser(
        prog="aicr verify",
        description="Check that a bundle is whole and signed by whom you expect. Needs no network.",
        epilog=_EXAMPLES,
    )
    found.add_argument("directory", nargs="?", default=None, metavar="DIR", help="the bundle")
    policy = found.add_argument_group("what is asked")
    for flag, metavar, words in (
        ("--min-trust-level", "LEVEL", "unknown, unverified, attested, verified or max (default)"),
        ("--require-creator", "TEXT", "the exact identity or key id of the signer"),
        (
            "--cli-version-constraint",
            "EXPR",
            "version of aicr that made the bundle; a bare one means at least",
        ),
    ):
        policy.add_argument(flag, metavar=metavar, help=words, action=Once)
    trust = found.add_argument_group("whom to trust")
    for flag, metavar, words in (
        ("--key", "FILE", "public key (PEM) of the signer"),
        ("--certificate-identity-regexp", "PATTERN", "anchored pattern of the signer's identity"),
        (
            "--certificate-oidc-issuer",
            "URL",
            "who must have vouched for it (default: GitHub Actions)",
        ),
        ("--trust-root", "FILE", "sigstore trusted_root.json to use"),
    ):
        trust.add_argument(flag, metavar=metavar, help=words, action=Once)
    trust.add_argument(
        "--insecure-ignore-tlog",
        action="store_true",
        help="with --key: accepted for old scripts; key signatures here are in no log",
    )
    found.once("--config", metavar="FILE", help="AICRConfig file or address; flags win")
    found.once("--format", "-t", metavar="NAME", help="text (default) or json")
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Judge the bundle, print the report, and say by the status whether it is good enough."""
    from aicr.artifacts.trust import judge
    from aicr.values.proxy import shown

    chosen = check_format(arguments.format or None, FORMATS)
    if not arguments.directory:
        raise invalid("name the bundle to verify", where="DIR", hint="aicr verify ./bundle")
    if arguments.directory.startswith("oci://"):
        raise invalid(
            "a bundle in a registry is not verified there",
            where="DIR",
            hint=f"fetch it first: aicr pull {shown(arguments.directory)} -o bundle && aicr verify bundle",
        )
    report = judge(arguments.directory, _policy(arguments))
    if chosen == "json":
        console.write(render(report.document(), "json"))
    else:
        console.write(_text(report, arguments.directory))
    return FOUND if report.errors else 0


def _policy(arguments: argparse.Namespace) -> Policy:
    from aicr.artifacts import signing
    from aicr.artifacts.trust import DEFAULT_ISSUER, MAX, Policy

    if arguments.insecure_ignore_tlog and arguments.key is None:
        raise invalid(
            "--insecure-ignore-tlog is for key signatures only",
            where="--insecure-ignore-tlog",
            hint="name the public key with --key, or drop the flag",
        )
    if arguments.key is not None and arguments.certificate_identity_regexp is not None:
        raise invalid(
            "--key and --certificate-identity-regexp name two signers",
            where="--key",
            hint="keep the one that fits how the bundle was signed",
        )
    for flag in (
        "min_trust_level",
        "require_creator",
        "cli_version_constraint",
        "certificate_oidc_issuer",
        "trust_root",
    ):
        given = getattr(arguments, flag)
        if given is not None and not given.strip():
            name = f"--{flag.replace('_', '-')}"
            raise invalid(f"{name} is blank", where=name, hint="drop the flag")
    pattern = arguments.certificate_identity_regexp
    named = (arguments.key, pattern, arguments.require_creator)
    if arguments.certificate_oidc_issuer is not None and not any(named):
        raise invalid(
            "--certificate-oidc-issuer says who must have vouched, but not for whom",
            where="--certificate-oidc-issuer",
            hint="name the signer with --certificate-identity-regexp or --require-creator",
        )
    if pattern is not None:
        from aicr.artifacts.trust import check_identity_regexp

        check_identity_regexp(pattern)
    return Policy(
        min_trust_level=arguments.min_trust_level or MAX,
        require_creator=arguments.require_creator or "",
        version_constraint=arguments.cli_version_constraint or "",
        identity_regexp=pattern or "",
        issuer=arguments.certificate_oidc_issuer or DEFAULT_ISSUER,
        key=None if arguments.key is None else signing.load_public_key(arguments.key),
        trust_root=arguments.trust_root or "",
    )


def _text(report: Report, directory: str) -> str:
    whole = (
        f"{report.checksum_files} files as listed" if report.checksums_passed else "do not match"
    )
    signed = "no"
    if report.attested:
        signed = f"by {report.creator}"
    elif report.has_attestation:
        signed = "not verified"
    if report.attested and not report.pinned:
        signed += " (not a signer that you named)"
    lines = [
        f"bundle:        {directory}",
        f"checksums:     {whole}",
        f"attested:      {signed}",
        f"external data: {'yes' if report.external_data else 'no'}",
        f"trust level:   {report.level}",
    ]
    if report.tool_version:
        lines.insert(3, f"made by:       aicr {report.tool_version}")
    lines += [f"  - {problem}" for problem in report.errors]
    lines += [f"  next: {hint}" for hint in report.hints]
    lines.append(f"verify: {'FAILED' if report.errors else 'PASSED'}")
    return "".join(f"{one_line(line)}\n" for line in lines)
