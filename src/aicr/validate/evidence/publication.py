"""Publishing a bundle that is on disk: push, sign, attach, point.

```
folder ─push─► artifact digest ─statement about it─► sign ─► file beside it ─attach─► registry
                                                                            └──► pointer
```
The order is fixed: nothing is signed that was not accepted by the registry, and a signature is on disk
before it is attached, so that a cut at any place loses nothing that cannot be done again. Without an
address, a key signs the statement about the recipe. Source: validators spec 9.5.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aicr.artifacts import oci
from aicr.artifacts.registry_auth import docker_credentials
from aicr.artifacts.wire import Transport
from aicr.errors import AicrError, invalid
from aicr.validate.evidence import (
    bounded,
    bundle,
    canonical,
    folder,
    inventory,
    pointer,
    predicate,
    signer,
)
from aicr.validate.evidence.referrers import Referring, package
from aicr.validate.evidence.times import EvidenceTimes

PUSH: Final = "--push"


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be done with a bundle.

    Attributes:
        directory: the folder that holds ``summary-bundle``, or is one.
        address: where it is pushed to; None for nowhere.
        signing: how it is signed; None for not at all.
        transport: how the registry is reached.
        warn: takes a line about the registry's configuration.
    """

    directory: str
    address: oci.Address | None
    signing: signer.Signing | None
    transport: Transport = dataclasses.field(default_factory=Transport)
    warn: Callable[[str], None] = lambda text: None


def address_of(text: str, *, default_tag: str = "evidence") -> oci.Address:
    """The address to push to; ``oci://`` may be left out.

    Raises:
        AicrError: INVALID_REQUEST for what is no address, or one with a digest.
    """
    full = text if text.startswith(oci.SCHEME) else f"{oci.SCHEME}{text}"
    found = oci.parse_address(full, default_tag=default_tag, flag=PUSH)
    if found.digest:
        raise invalid(
            f"{text}: a digest is what a push answers with", where=PUSH, hint="name a tag instead"
        )
    return found


def default_tag(claims: predicate.Claims) -> str:
    """The tag of an address that has none: the recipe, and what tells clusters apart."""
    short = canonical.digest(canonical.text(claims.predicate.get("fingerprint") or {}))[:12]
    return f"{claims.recipe_name}-{short}"


def publish(order: Order) -> list[str]:
    """Push and sign what is in the order's folder, and write the pointer; lines for people.

    Raises:
        AicrError: INVALID_REQUEST when the folder holds no evidence; what registry and signing
            service raise. The bundle on disk stays as it is, with what was done to it.
    """
    root = summary_of(order.directory)
    files, problems = folder.read(root)
    problems += inventory.examine(files) if not problems else []
    if problems:
        raise invalid(
            f"{root} is not a whole evidence bundle: {'; '.join(problems[:3])}",
            hint="nothing was pushed; make the evidence anew",
        )
    claims = _claims(files, root)
    if order.signing is None and inventory.ATTESTATION in files:
        raise invalid(
            "the evidence is signed, and what is pushed would not be",
            where="--no-sign",
            hint="drop --no-sign: what is pushed is signed anew",
        )
    held = {path: data for path, data in files.items() if path != inventory.ATTESTATION}
    times = EvidenceTimes.from_environment(os.environ)
    lines: list[str] = []
    subject, digest = claims.subject, claims.digest
    manifest: oci.Blob | None = None
    address = order.address
    if address is not None:
        made = package(held, version=str(claims.predicate.get("aicrVersion") or ""))
        manifest = made.manifest
        pushed = bounded.within(
            times.push, "pushing the evidence", lambda: _push(order, address, made)
        )
        subject, digest = str(address), pushed.partition(":")[2]
        lines.append(f"evidence pushed to {address}@{pushed}")
        if inventory.ATTESTATION not in files:
            # So that what was pushed can be found even if nobody gets to sign it.
            _point(order, root, claims, manifest, None)
    signed: pointer.Signer | None = None
    if order.signing is not None:
        statement = predicate.statement(claims.predicate, subject, digest, claims.type)
        attestation = order.signing.sign(statement)
        folder.add(os.path.join(root, inventory.ATTESTATION), attestation)
        signed = signer.who(attestation, order.signing.key)
        lines.append(f"evidence signed by {signed.identity}")
        if address is not None and manifest is not None:
            target, about = address, manifest
            bounded.within(
                times.push,
                "attaching the signature",
                lambda: _attach(order, target, about, attestation),
            )
    lines += _point(order, root, claims, manifest, signed)
    return lines


def summary_of(directory: str) -> str:
    """The folder with the bundle: *directory* itself, or its ``summary-bundle``.

    Raises:
        AicrError: NOT_FOUND or INVALID_REQUEST when neither has a recipe and a manifest.
    """
    below = os.path.join(directory, folder.SUMMARY)
    for root in (below, directory):
        if all(
            os.path.isfile(os.path.join(root, name)) for name in (bundle.RECIPE, inventory.MANIFEST)
        ):
            return root
    folder.read(directory)
    raise invalid(
        f"{directory} holds no evidence: {bundle.RECIPE} and {inventory.MANIFEST} are not in it, nor "
        f"in {folder.SUMMARY}/",
        hint="name the folder that --emit-attestation wrote",
    )


def pointer_file(directory: str) -> str:
    """Where the pointer of the evidence in *directory* lies: beside a bare summary folder, which is a
    closed world of its own, else in the folder.

    Raises:
        AicrError: as `summary_of`.
    """
    bare = summary_of(directory) == directory
    place = os.path.dirname(os.path.abspath(directory)) if bare else directory
    return os.path.join(place, folder.POINTER)


def statement_of(directory: str) -> predicate.Claims:
    """What the evidence in *directory* claims.

    Raises:
        AicrError: INVALID_REQUEST when it holds no evidence.
    """
    root = summary_of(directory)
    files, _ = folder.read(root)
    return _claims(files, root)


def connect(order: Order, host: str) -> Referring:
    """The registry at *host*, with docker's credentials."""
    return Referring(host, order.transport, docker_credentials(order.warn))


def _claims(files: Mapping[str, bytes], root: str) -> predicate.Claims:
    data = files.get(inventory.STATEMENT)
    if data is None:
        raise invalid(f"{root} has no {inventory.STATEMENT}", hint="make the evidence anew")
    claims = predicate.parse(data, inventory.STATEMENT)
    if claims.predicate["manifest"]["digest"] != canonical.digest(files[inventory.MANIFEST]):
        raise invalid(
            f"{inventory.STATEMENT} is about another {inventory.MANIFEST} than the one beside it",
            hint="nothing was pushed or signed; make the evidence anew",
        )
    return claims


def _push(order: Order, address: oci.Address, made: oci.Package) -> str:
    try:
        with connect(order, address.registry) as registry:
            return registry.push(address, made)
    except AicrError as error:
        raise _kept(error, order, "the evidence was not pushed") from error


def _attach(order: Order, address: oci.Address, about: oci.Blob, attestation: bytes) -> None:
    try:
        with connect(order, address.registry) as registry:
            registry.attach(address, about, attestation)
    except AicrError as error:
        raise _kept(error, order, "the evidence was pushed, but its signature was not") from error


def _kept(error: AicrError, order: Order, what: str) -> AicrError:
    return AicrError(
        error.code,
        f"{what}; it lies in {order.directory}",
        where=error.where or PUSH,
        hint=error.hint or f"try again: aicr evidence publish {order.directory} --push …",
    )


def _point(
    order: Order,
    root: str,
    claims: predicate.Claims,
    manifest: oci.Blob | None,
    signed: pointer.Signer | None,
) -> Sequence[str]:
    """Write the pointer, and say where it belongs."""
    made: dict[str, Any] = pointer.document(
        claims.predicate,
        claims.type,
        oci="" if order.address is None else str(order.address),
        digest="" if manifest is None else manifest.digest,
        signer=signed,
    )
    path = pointer_file(order.directory)
    folder.add(path, canonical.text(made))
    if manifest is not None and signed is not None:
        belongs = pointer.commit_path(claims.recipe_name, manifest.digest, signed)
        return [f"pointer: {path}; commit it as {belongs}"]
    why = "pushed" if manifest is None else "signed"
    return [f"pointer: {path}; the evidence is not {why}: aicr evidence publish {order.directory}"]
