"""The flags about signing and registries, and what the registry flags become.

The parser of ``aicr bundle`` is built at every start, so this module imports nothing of what the
flags are for.
"""

from __future__ import annotations

from aicr.cli.arguments import Once
from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from aicr.artifacts.registry import Registry
    from aicr.cli.console import Console


def add_registry_flags(group: Any) -> None:
    """Add ``--plain-http``, ``--insecure-tls`` and ``--ca-file``."""
    group.add_argument("--plain-http", action="store_true", help="reach the registry without TLS")
    group.add_argument(
        "--insecure-tls", action="store_true", help="do not check the registry's certificate"
    )
    group.add_argument(
        "--ca-file", action=Once, metavar="FILE", help="PEM file of authorities to believe"
    )


def check_flags(arguments: argparse.Namespace) -> None:
    """Refuse flags that contradict each other.

    Raises:
        AicrError: INVALID_REQUEST for TLS settings of a connection without TLS.
    """
    if arguments.plain_http and (arguments.insecure_tls or arguments.ca_file is not None):
        flag = "--insecure-tls" if arguments.insecure_tls else "--ca-file"
        raise invalid(
            f"{flag} is about TLS, and --plain-http goes without it",
            where=flag,
            hint="drop one of the two",
        )


def connect(host: str, arguments: argparse.Namespace, console: Console) -> Registry:
    """The registry at *host*, reached as the flags say, with docker's credentials."""
    from aicr.artifacts.registry import Registry
    from aicr.artifacts.registry_auth import docker_credentials
    from aicr.artifacts.wire import Transport

    check_flags(arguments)
    transport = Transport(
        plain_http=arguments.plain_http,
        insecure_tls=arguments.insecure_tls,
        ca_file=arguments.ca_file or "",
    )
    return Registry(host, transport, docker_credentials(console.warn))


def add_publish_flags(parser: Any) -> None:
    """Add the flags of ``aicr bundle`` that ``bundle_publish`` answers for."""
    sign = parser.add_argument_group("attestation")
    sign.add_argument("--attest", action="store_true", help="sign the list of the bundle's files")
    sign.add_argument(
        "--signing-key",
        action=Once,
        metavar="FILE",
        help="private key (PEM) to sign with; without it, keyless through sigstore",
    )
    sign.add_argument(
        "--identity-token",
        action=Once,
        metavar="TOKEN",
        help="identity for keyless signing; better in COSIGN_IDENTITY_TOKEN",
    )
    sign.add_argument(
        "--yes",
        "--assume-yes",
        action="store_true",
        help="agree that keyless signing publishes who signed",
    )
    push = parser.add_argument_group("registry (with --output oci://HOST/REPOSITORY[:TAG])")
    push.add_argument(
        "--image-refs", action=Once, metavar="FILE", help="file to receive the pushed digest"
    )
    add_registry_flags(push)


def asks_to_publish(arguments: argparse.Namespace) -> bool:
    """Whether any flag of ``add_publish_flags``, or a registry as output, was given."""
    names = ("attest", "signing_key", "identity_token", "image_refs", "plain_http", "insecure_tls")
    return arguments.output.startswith("oci://") or any(
        getattr(arguments, name) not in (None, False) for name in (*names, "ca_file")
    )
