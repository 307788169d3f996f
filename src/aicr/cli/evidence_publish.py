"""``aicr evidence publish``: push and sign a bundle of evidence that is on disk."""

from __future__ import annotations

import os

from aicr.cli.arguments import Once, Parser
from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from aicr.cli.console import Console
    from aicr.validate.evidence.publication import Order

_EXAMPLES = """\
examples:
  aicr evidence publish ./evidence --push oci://registry.example/evidence
  aicr evidence publish ./evidence --push oci://registry.example/evidence \\
      --signing-key key.pem
  aicr evidence publish ./evidence --signing-key key.pem
  aicr evidence publish ./evidence --push oci://localhost:5000/evidence \\
      --no-sign --plain-http

Without a key the signature is made through sigstore, which writes who you are
into a public log. Without --push, a key signs the bundle where it is. What was
signed before is signed anew under the same predicate type.
"""


def parser() -> Parser:
    """The parser of this command."""
    from aicr.cli import registries

    found = Parser(
        prog="aicr evidence publish",
        usage="aicr evidence publish DIR --push REF [flags]",
        description="Push a bundle of evidence to a registry, sign it, and write its pointer.",
        epilog=_EXAMPLES,
    )
    found.add_argument("directory", nargs="?", default=None, metavar="DIR", help="the evidence")
    found.once("--push", metavar="REF", help="oci://HOST[:PORT]/REPOSITORY[:TAG]")
    found.once(
        "--pointers-dir", metavar="DIR", help="root of a repository to put the pointer into as well"
    )
    sign = found.add_argument_group("signature")
    for flag, metavar, words in (
        ("--signing-key", "FILE", "private key (PEM); without it, through sigstore"),
        ("--identity-token", "TOKEN", "identity to sign with; better in COSIGN_IDENTITY_TOKEN"),
    ):
        sign.add_argument(flag, action=Once, metavar=metavar, help=words)
    for flag, words in (
        ("--no-sign", "push only"),
        ("--oidc-device-flow", "log in with a code on another device"),
    ):
        sign.add_argument(flag, action="store_true", help=words)
    sign.add_argument(
        "--yes", "-y", "--assume-yes", action="store_true", help="agree that signing names you"
    )
    registries.add_registry_flags(found.add_argument_group("registry"))
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Push, sign, point; print what was done."""
    from aicr.validate.evidence import publication

    _check(arguments)
    for line in publication.publish(_order(arguments, console)):
        console.say(line)
    if arguments.pointers_dir is not None:
        console.write(f"{_place(arguments)}\n")
    return 0


def _check(arguments: argparse.Namespace) -> None:
    from aicr.cli import registries

    if not arguments.directory:
        raise invalid(
            "name the evidence", where="DIR", hint="aicr evidence publish ./evidence --push oci://…"
        )
    registries.check_flags(arguments)
    if arguments.push is None and arguments.signing_key is None:
        raise invalid(
            "flag --push is required",
            where="--push",
            hint="or sign where it is, with --signing-key FILE",
        )
    if arguments.no_sign and (arguments.signing_key or arguments.identity_token):
        raise invalid(
            "--no-sign contradicts the flag that says how to sign",
            where="--no-sign",
            hint="drop one of the two",
        )


def _order(arguments: argparse.Namespace, console: Console) -> Order:
    from aicr.artifacts.wire import Transport
    from aicr.validate.evidence import attesting, identity, publication

    address = None
    if arguments.push is not None:
        publication.address_of(arguments.push)
        claims = publication.statement_of(arguments.directory)
        address = publication.address_of(
            arguments.push, default_tag=publication.default_tag(claims)
        )
    signing = None
    if not arguments.no_sign:
        request = {"signingKey": arguments.signing_key}
        there = identity.somebody_there()
        token = arguments.identity_token or ""
        if not arguments.signing_key:
            token = token or os.environ.get("COSIGN_IDENTITY_TOKEN", "")
        signing = attesting.signing_of(
            attesting.load_key(request),
            token,
            os.environ,
            identity.Prompt(console.say, identity.asking(console.say) if there else None, there),
            device_flow=arguments.oidc_device_flow or _on("AICR_OIDC_DEVICE_FLOW"),
            assume_yes=arguments.yes or _on("AICR_ASSUME_YES"),
        )
    return publication.Order(
        directory=arguments.directory,
        address=address,
        signing=signing,
        transport=Transport(
            plain_http=arguments.plain_http,
            insecure_tls=arguments.insecure_tls,
            ca_file=arguments.ca_file or "",
        ),
        warn=console.warn,
    )


def _place(arguments: argparse.Namespace) -> str:
    """Put the pointer into a repository; its path there."""
    from aicr.validate.evidence import pointer, publication

    path = publication.pointer_file(arguments.directory)
    with open(path, "rb") as stream:
        return pointer.place(arguments.pointers_dir, stream.read())


def _on(variable: str) -> bool:
    return os.environ.get(variable, "").strip().lower() in ("1", "t", "true", "yes", "on")
