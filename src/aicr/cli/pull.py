"""``aicr pull``: a bundle out of a registry, checked, into a folder."""

from __future__ import annotations

from aicr.cli.arguments import Parser
from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from aicr.cli.console import Console

_EXAMPLES = """\
examples:
  aicr pull oci://registry.example/gpu/bundle:v1 -o bundle
  aicr pull oci://registry.example/gpu/bundle@sha256:… -o bundle
  aicr pull oci://localhost:5000/bundle:v1 -o bundle --plain-http

What arrives is held against its digest and against its own checksums.txt
before anything is written. Who made it is a question for aicr verify.
"""


def parser() -> Parser:
    """The parser of this command."""
    from aicr.cli import registries

    found = Parser(
        prog="aicr pull",
        description="Fetch a bundle that was pushed with aicr bundle --output oci://…",
        epilog=_EXAMPLES,
    )
    found.add_argument("address", nargs="?", default=None, metavar="ADDRESS", help="oci://…")
    found.once("--output", "-o", metavar="DIR", help="folder to create, or a bundle to replace")
    registries.add_registry_flags(found.add_argument_group("registry"))
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Fetch, check, write, and print the digest."""
    from aicr.artifacts import oci
    from aicr.bundle import publish
    from aicr.cli import registries

    if not arguments.address:
        raise invalid(
            "name the address of the bundle", where="ADDRESS", hint="aicr pull oci://… -o bundle"
        )
    if arguments.output is None:
        raise invalid("flag --output is required", hint="name the folder to create: -o bundle")
    address = oci.parse_address(arguments.address, flag="ADDRESS")
    if not address.reference:
        raise invalid(
            f"{arguments.address} has neither a tag nor a digest",
            where="ADDRESS",
            hint="add :TAG or @sha256:…",
        )
    with registries.connect(address.registry, arguments, console) as registry:
        files, digest = publish.fetch(registry, address)
    from aicr.bundle.output import write_bundle

    write_bundle(files, arguments.output)
    console.write(f"{digest}\n")
    console.say(
        f"{len(files)} files in {arguments.output}; who made them: aicr verify {arguments.output}"
    )
    return 0
