"""The part of ``aicr bundle`` that signs and pushes: ``--attest`` and ``--output oci://…``.

It is loaded only when one of its flags is given. Flags, keys and places are checked before a bundle
is made, so that what cannot end well does not begin. Source: bundler spec 1.1, 1.5, 1.8, 7.4, 7.5.
"""

from __future__ import annotations

import os
import sys

from aicr.artifacts import keyless, oci, signing
from aicr.bundle import publish
from aicr.cli import registries
from aicr.errors import AicrError, invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from typing import Final

    from aicr.bundle.api import Bundle
    from aicr.cli.console import Console

#: Where a bundle that goes to a registry is also written (bundler spec 1.5).
FOLDER: Final = "bundle"
_YES_VARIABLE: Final = "AICR_ASSUME_YES"
_TRUE: Final = ("1", "t", "true", "yes")


class Publication:
    """What is to be done with a bundle when it is made, checked beforehand.

    Attributes:
        folder: where it is written.
        address: where it is pushed to, None for nowhere.
    """

    def __init__(self, arguments: argparse.Namespace, console: Console) -> None:
        """Check all flags.

        Raises:
            AicrError: INVALID_REQUEST or NOT_FOUND for what cannot be done as asked.
        """
        from aicr.version import __version__

        self._arguments = arguments
        self._console = console
        self._version = __version__
        self.folder: str = arguments.output
        self.address: oci.Address | None = None
        if arguments.output.startswith(oci.SCHEME):
            self.address = oci.parse_address(arguments.output, default_tag=__version__)
            if self.address.digest:
                raise invalid(
                    f"{arguments.output}: a digest is what a push answers with",
                    where="--output",
                    hint="name a tag instead",
                )
            self.folder = FOLDER
        self._check_registry_flags()
        self._port: keyless.Port = keyless.Sigstore()
        self._sign = self._signer()

    def _check_registry_flags(self) -> None:
        given = self._arguments
        if self.address is None:
            for flag in ("image_refs", "plain_http", "insecure_tls", "ca_file"):
                if getattr(given, flag) not in (None, False):
                    name = f"--{flag.replace('_', '-')}"
                    raise invalid(
                        f"{name} is for bundles that are pushed",
                        where=name,
                        hint="push with --output oci://HOST/REPOSITORY:TAG, or drop the flag",
                    )
            return
        registries.check_flags(given)
        if given.image_refs is not None:
            publish.check_image_refs(given.image_refs, self.folder)

    def _signer(self) -> Callable[[bytes], bytes] | None:
        """What makes the attestation, None when none is asked for."""
        given = self._arguments
        for flag in ("signing_key", "identity_token"):
            value = getattr(given, flag)
            name = f"--{flag.replace('_', '-')}"
            if value is not None and not value.strip():
                raise invalid(f"{name} is blank", where=name, hint="drop it, or give it a value")
            if value is not None and not given.attest:
                raise invalid(
                    f"{name} is for attestations", where=name, hint="add --attest, or drop the flag"
                )
        if not given.attest:
            return None
        if given.signing_key is not None:
            if given.identity_token is not None:
                raise invalid(
                    "--signing-key and --identity-token name two signers",
                    where="--identity-token",
                    hint="keep one of the two",
                )
            password = os.environ.get(signing.PASSWORD_VARIABLE, "")
            return signing.load_private_key(given.signing_key, password=password).sign
        token = given.identity_token or os.environ.get(keyless.TOKEN_VARIABLE, "")
        self._ask_consent()
        return lambda statement: self._port.sign(statement, token)

    def _ask_consent(self) -> None:
        """Signing without a key publishes who signed: ask whoever sits at the terminal."""
        told = (
            "keyless signing writes who you are (the identity in the token, for example your e-mail "
            "address) into a public log for good"
        )
        if self._arguments.yes or os.environ.get(_YES_VARIABLE, "").lower() in _TRUE:
            return
        if sys.stdin is None or not sys.stdin.isatty():
            self._console.warn(told)
            return
        self._console.say(f"{told}. Continue? [y/N]")
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise AicrError(
                "CANCELED", "nothing was signed", where="--attest", hint="pass --yes to agree"
            )

    def finish(self, bundle: Bundle) -> str:
        """Sign, write and push *bundle*; the folder that it is in.

        Raises:
            AicrError: what keeps it from being signed or written; a failed push leaves the folder.
        """
        files = bundle.files
        if self._sign is not None:
            files = publish.attested(files, self._sign, tool_version=self._version)
            bundle.files = files
        package = None
        if self.address is not None:
            package = publish.package(
                files,
                self.address.tag,
                deployer=(self._arguments.deployer or "helm").strip().lower(),
                version=self._version,
                repository=self.address.repository,
            )
        bundle.write(self.folder)
        if self.address is not None and package is not None:
            self._push(self.address, package)
        return self.folder

    def _push(self, address: oci.Address, package: oci.Package) -> None:
        try:
            with registries.connect(address.registry, self._arguments, self._console) as registry:
                digest = registry.push(address, package)
        except AicrError as error:
            raise publish.push_failed(error, self.folder) from error
        if self._arguments.image_refs is not None:
            publish.write_image_refs(self._arguments.image_refs, digest)
        self._console.write(f"pushed {address}@{digest}\n")
