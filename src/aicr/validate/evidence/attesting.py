"""From the request of a finished run to a bundle on disk, and to a registry if it was asked for.

The steps are those of the specification: build (60 s), write, and then publish. What is written is
written even when checks failed, and stays when publishing fails. The request is the plain document that
``aicr validate`` makes. Source: validators spec 9.3, 9.5, 1.3 step 15.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from aicr.artifacts import signing
from aicr.artifacts.signers import Expected
from aicr.artifacts.wire import Transport
from aicr.errors import invalid, not_found
from aicr.validate.evidence import (
    bill,
    bounded,
    bundle,
    canonical,
    folder,
    identity,
    inventory,
    pointer,
    predicate,
    publication,
    signer,
    verification,
)
from aicr.validate.evidence.cncf_files import now, stamp
from aicr.validate.evidence.times import EvidenceTimes

FULL: Final = (
    "warning: --full: the evidence holds everything that was seen: names of nodes, addresses, logs and "
    "whatever checks printed. Do not publish it"
)


def attest(
    request: Mapping[str, Any],
    *,
    say: Callable[[str], None] | None = None,
    confirm: Callable[[str], bool] | None = None,
    clock: Callable[[], datetime] = now,
    environ: Mapping[str, str] | None = None,
) -> list[str]:
    """Write, push and sign the evidence of a run; lines for people, unless *say* takes them.

    Args:
        request: ``out``, ``recipe``, ``snapshot``, ``reports`` (phase → report), ``images``,
            ``catalogVersion``, ``catalog`` (of the recipe, or None), ``full``, ``bom`` (path), ``push``,
            ``sign``, ``signingKey`` (path), ``plainHTTP``, ``insecureTLS``, ``identityToken``,
            ``deviceFlow``, ``assumeYes``.
        say: takes each line as it comes.
        confirm: asks a person; None when nobody can be asked.
        clock: when it is attested.
        environ: the environment.

    Raises:
        AicrError: INVALID_REQUEST for what cannot be meant or built, TIMEOUT past a bound, CONFLICT
            for a folder of somebody else's, and what registry and signing service raise.
    """
    environ = os.environ if environ is None else environ
    out = str(request.get("out") or "")
    if not out:
        raise invalid("evidence needs a folder", where=folder.FLAG, hint=f"{folder.FLAG} DIR")
    replace = check_folder(out)
    key = load_key(request)
    push = str(request.get("push") or "")
    if push:
        publication.address_of(push)
    lines: list[str] = []
    say = say or lines.append
    if request.get("full"):
        say(FULL)
    times = EvidenceTimes.from_environment(environ)
    deadline = bounded.Deadline(times.bundle, "building the evidence")
    built = bundle.build(_content(request, stamp(clock())), deadline)
    files = {f"{folder.SUMMARY}/{path}": data for path, data in built.files.items()}
    files[folder.POINTER] = canonical.text(pointer.document(built.predicate, predicate.V3))
    folder.write(files, out, replace=replace)
    say(f"evidence of {built.name} written to {out}")
    if not push and key is None:
        say(f"it is not signed: aicr evidence publish {out} --push oci://HOST/REPOSITORY")
        return lines
    wants = bool(request.get("sign", True))
    order = publication.Order(
        directory=out,
        address=_address(push, built),
        signing=_signing(
            request, key, environ, identity.Prompt(say, confirm, identity.somebody_there())
        )
        if wants
        else None,
        transport=Transport(
            plain_http=bool(request.get("plainHTTP")),
            insecure_tls=bool(request.get("insecureTLS")),
        ),
        warn=lambda text: say(f"warning: {text}"),
    )
    for line in publication.publish(order):
        say(line)
    return lines


def check_folder(out: str) -> bool:
    """Whether an older bundle of ours stands at *out* and is to be replaced.

    Raises:
        AicrError: CONFLICT when something else does.
    """
    if not folder.occupied(out):
        return False
    found = verification.verify_folder(out, Expected(), signatures=False)
    if found.errors:
        raise folder.foreign(out, found.errors)
    return True


def load_key(request: Mapping[str, Any]) -> signing.PrivateKey | None:
    """The key to sign with, or None.

    Raises:
        AicrError: as ``signing.load_private_key``; INVALID_REQUEST when it is told not to sign.
    """
    path = str(request.get("signingKey") or "")
    if not path:
        return None
    if not request.get("sign", True):
        raise invalid(
            "--signing-key and --no-sign contradict each other",
            where="--no-sign",
            hint="drop one of the two",
        )
    return signing.load_private_key(path, password=os.environ.get(signing.PASSWORD_VARIABLE, ""))


def read_bill(path: str) -> bytes:
    """The bill in a file; b"" for no path.

    Raises:
        AicrError: NOT_FOUND or INVALID_REQUEST when it cannot be read as one.
    """
    if not path:
        return b""
    try:
        with open(path, "rb") as stream:
            data = stream.read(bill.MAX_BYTES + 1)
    except FileNotFoundError:
        raise not_found(f"no such file: {path}", where=bill.FLAG) from None
    except OSError as error:
        raise invalid(f"{path} cannot be read: {error.strerror}", where=bill.FLAG) from error
    bill.check(data, path)
    return data


def _content(request: Mapping[str, Any], attested_at: str) -> bundle.Content:
    from aicr.version import __version__

    full = bool(request.get("full"))
    return bundle.Content(
        recipe=request.get("recipe") or {},
        snapshot=request.get("snapshot") or {},
        reports=request.get("reports") or {},
        images=list(request.get("images") or ()),
        catalog_version=str(request.get("catalogVersion") or ""),
        version=__version__,
        attested_at=attested_at,
        full=full,
        bom=read_bill(str(request.get("bom") or "")),
        known_images=frozenset() if full else _known_images(request.get("catalog")),
    )


def _known_images(catalog: Any) -> frozenset[str]:
    """Names of the images of the catalogue; they are public already."""
    if catalog is None:
        return frozenset()
    from aicr.bundle import bom

    return bill.names_of(bom.of_catalog(catalog, version="").images)


def _address(push: str, built: bundle.Bundle) -> Any:
    if not push:
        return None
    claims = predicate.parse(built.files[inventory.STATEMENT], inventory.STATEMENT)
    return publication.address_of(push, default_tag=publication.default_tag(claims))


def _signing(
    request: Mapping[str, Any],
    key: signing.PrivateKey | None,
    environ: Mapping[str, str],
    prompt: identity.Prompt,
) -> signer.Signing:
    return signing_of(
        key,
        "" if key is not None else str(request.get("identityToken") or ""),
        environ,
        prompt,
        device_flow=bool(request.get("deviceFlow")),
        assume_yes=bool(request.get("assumeYes")),
    )


def signing_of(
    key: signing.PrivateKey | None,
    token: str,
    environ: Mapping[str, str],
    prompt: identity.Prompt,
    *,
    device_flow: bool,
    assume_yes: bool,
) -> signer.Signing:
    """How to sign, with a key or as a person; who that is, is asked when it is time to sign.

    Raises:
        AicrError: INVALID_REQUEST for a key and a token at once.
    """
    if key is not None and token:
        raise invalid(
            "--signing-key and --identity-token name two signers",
            where="--identity-token",
            hint="keep one of the two",
        )

    def ask() -> str:
        identity.consent(prompt, assume_yes=assume_yes)
        return identity.token(token, environ, prompt, device_flow=device_flow)

    return signer.Signing(key=key, token=ask, times=EvidenceTimes.from_environment(environ))
