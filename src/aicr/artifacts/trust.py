"""How far a bundle can be trusted, and whether that is far enough.

```
folder --checksums--> whole? --attestation--> signed? --pin--> by whom? --policy--> errors
         unknown               unverified      attested         verified
```
The level only rises by what was checked: a list that matches the tree, a signature over that list,
a signer that the caller named. A caller who names a signer gets no answer short of that signer, so
an attestation that was taken away is an error and not a lower level (decision 57: a pinned identity
or key is the highest trust, and there is no attestation of a binary).

It must not know what is in a bundle beyond the names of three files.
Source: bundler spec 7.2, 7.3; decisions 46 and 57; field case F12.
"""

from __future__ import annotations

import dataclasses
import os
import re
from typing import Any, Final

from aicr.artifacts import checksums, dsse, signers, statements
from aicr.artifacts.keyless import Port
from aicr.artifacts.signing import PublicKey
from aicr.errors import AicrError, invalid, nearest

UNKNOWN: Final = "unknown"
UNVERIFIED: Final = "unverified"
ATTESTED: Final = "attested"
VERIFIED: Final = "verified"
#: Lowest first.
LEVELS: Final = (UNKNOWN, UNVERIFIED, ATTESTED, VERIFIED)
#: The policy that asks for the most that this bundle could reach.
MAX: Final = "max"

#: What a pattern fixes at its start. An escaped sign stands for itself, and so does a dot between two
#: letters, as people write hosts; a sign before a quantifier is not fixed.
_FIXED: Final = re.compile(
    r"\^((?:(?:[A-Za-z0-9@/:_-]|\\[^A-Za-z0-9]|(?<=[A-Za-z0-9])\.(?=[A-Za-z0-9]))(?![*+?{]))*)"
)
#: A host and whose path it is, closed, so that ``acme`` does not mean ``acme-evil``.
_OWNED: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^/]+/[^/]+/")
_WHOLE: Final = re.compile(r"[^@/]+@[^@/]+|[a-z][a-z0-9+.-]*://[^/]+/.+")

BINARY_ATTESTATION: Final = "attestation/aicr-attestation.sigstore.json"
DATA: Final = "data"
#: Who vouches for identities when the caller does not say: a CI service whose workflows sign.
DEFAULT_ISSUER: Final = "https://token.actions.githubusercontent.com"


@dataclasses.dataclass(frozen=True, slots=True)
class Policy:
    """What the caller asks of a bundle.

    Attributes:
        min_trust_level: one of ``LEVELS``, or ``MAX``.
        require_creator: the exact identity or key id that must have signed, or "".
        version_constraint: constraint on the version of the program that made it, or "".
        identity_regexp: pattern that the whole identity of the signer must match, or "".
        issuer: who must have vouched for that identity.
        key: the key that must have signed, or None.
        trust_root: file with the roots of sigstore, "" for the library's own.
    """

    min_trust_level: str = MAX
    require_creator: str = ""
    version_constraint: str = ""
    identity_regexp: str = ""
    issuer: str = DEFAULT_ISSUER
    key: PublicKey | None = None
    trust_root: str = ""

    @property
    def pins(self) -> list[str]:
        """The flags that name a signer."""
        named = {
            "--key": self.key is not None,
            "--certificate-identity-regexp": bool(self.identity_regexp),
            "--require-creator": bool(self.require_creator),
        }
        return [flag for flag, given in named.items() if given]

    def expected(self, port: Port | None) -> signers.Expected:
        """The signer that is asked for; who vouched counts once somebody is named."""
        named = bool(self.identity_regexp or self.require_creator)
        return signers.Expected(
            key=self.key,
            identity_regexp=self.identity_regexp,
            identity=self.require_creator,
            issuer=self.issuer if named else "",
            trust_root=self.trust_root,
            port=port,
        )


@dataclasses.dataclass(slots=True)
class Report:
    """What was found; ``errors`` is empty when the bundle is whole and the policy is met."""

    level: str = UNKNOWN
    checksums_passed: bool = False
    checksum_files: int = 0
    attested: bool = False
    pinned: bool = False
    creator: str = ""
    tool_version: str = ""
    external_data: bool = False
    has_attestation: bool = False
    hints: list[str] = dataclasses.field(default_factory=list)
    errors: list[str] = dataclasses.field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """The JSON form (bundler spec 7.3)."""
        return {
            "trustLevel": self.level,
            "checksumsPassed": self.checksums_passed,
            "checksumFiles": self.checksum_files,
            "bundleAttested": self.attested,
            # No attestation of a binary is made or believed (decision 57).
            "binaryAttested": False,
            "identityPinned": self.pinned,
            "bundleCreator": self.creator,
            "binaryBuilder": "",
            "toolVersion": self.tool_version,
            "hasExternalData": self.external_data,
            "errors": list(self.errors),
        }


def check_level(text: str) -> str:
    """The trust level that *text* names.

    Raises:
        AicrError: INVALID_REQUEST listing the levels.
    """
    known = [*LEVELS, MAX]
    level = text.strip().lower()
    if level not in known:
        near = nearest(level, known)
        raise invalid(
            f"unknown trust level {text!r}, valid levels are: {', '.join(known)}",
            where="--min-trust-level",
            hint=f"did you mean {near}?" if near else "leave it out to ask for the most possible",
        )
    return level


def check_identity_regexp(text: str, *, where: str = "--certificate-identity-regexp") -> str:
    """A pattern that pins an identity: anchored, and not one of several at its top.

    Raises:
        AicrError: INVALID_REQUEST for a pattern that is blank, has an alternative at its top level,
            does not compile, or leaves open whose identity it is: an address needs a fixed host and
            first folder (a whole host belongs to everybody), an e-mail address all of it.
    """
    if not text.strip():
        raise invalid("the pattern of the identity is blank", where=where)
    if not text.startswith("^"):
        raise invalid(
            f"the pattern {text!r} is not anchored, so it would match inside of any identity",
            where=where,
            hint="start it with ^ and the whole address, for example ^https://github.com/acme/.*",
        )
    depth, escaped, in_class = 0, False, False
    for char in text:
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif in_class:
            in_class = char != "]"
        elif char == "[":
            in_class = True
        elif char in "()":
            depth += 1 if char == "(" else -1
        elif char == "|" and depth == 0:
            raise invalid(
                f"the pattern {text!r} has alternatives at its top level, which are not anchored",
                where=where,
                hint=r"put them in brackets after the fixed part: ^https://github\.com/acme/(a|b)/.*",
            )
    try:
        re.compile(text)
    except re.error as error:
        raise invalid(
            f"the pattern {text!r} is not usable: {error}",
            where=where,
            hint=r"write it as ^https://github\.com/acme/.*, with \ before a dot or bracket that is meant",
        ) from None
    match = _FIXED.match(text)
    fixed = re.sub(r"\\(.)", r"\1", match.group(1)) if match is not None else ""
    rest = text[match.end() :] if match is not None else text
    if not _OWNED.match(fixed) and not (_WHOLE.fullmatch(fixed) and rest in ("", "$")):
        raise invalid(
            f"the pattern {text!r} pins nobody: it must fix a host and whose path on it, or a "
            "whole identity",
            where=where,
            hint="write ^https://github.com/acme/.* for all of acme, or the whole e-mail address",
        )
    return text


def check_version_constraint(text: str) -> Any:
    """The constraint on the tool's version; a bare version means "at least".

    Raises:
        AicrError: INVALID_REQUEST for what is no constraint.
    """
    from aicr.constraints import expression

    bare = text.strip()
    try:
        return expression.parse(f">= {bare}" if bare[:1].isdigit() or bare[:1] == "v" else bare)
    except AicrError as error:
        raise invalid(
            f"the version constraint {text!r} cannot be read",
            where="--cli-version-constraint",
            hint=error.hint,
        ) from error


def judge(directory: str, policy: Policy, *, port: Port | None = None) -> Report:
    """Check the bundle at *directory* and hold it against *policy*.

    Args:
        directory: the bundle; it may be reached through a symbolic link.
        policy: what the caller asks.
        port: stands in for sigstore; the real one when None.

    Raises:
        AicrError: NOT_FOUND or INVALID_REQUEST when there is no folder to judge, or the policy
            itself makes no sense. What is wrong with the bundle is in the report.
    """
    minimum = check_level(policy.min_trust_level)
    if policy.identity_regexp:
        check_identity_regexp(policy.identity_regexp)
    constraint = (
        check_version_constraint(policy.version_constraint) if policy.version_constraint else None
    )
    problems, listing, listed = checksums.examine(directory)
    # A name that is no text of this system cannot be printed as it is.
    problems = [text.encode(errors="backslashreplace").decode() for text in problems]
    report = Report(checksum_files=len(listed), errors=problems)
    report.checksums_passed = not problems
    report.external_data = os.path.lexists(os.path.join(directory, DATA))
    attested_file = os.path.join(directory, dsse.PATH)
    report.has_attestation = has_attestation = os.path.lexists(attested_file)
    if os.path.lexists(os.path.join(directory, BINARY_ATTESTATION)):
        report.errors.append(
            f"{BINARY_ATTESTATION}: an attestation of a binary is not checked by this program"
        )
    if report.errors:
        return report
    if not has_attestation:
        report.level = UNVERIFIED
        report.errors += [
            f"the bundle carries no attestation, so {flag} cannot be met" for flag in policy.pins
        ]
        if constraint is not None and not report.errors:
            report.errors.append(
                "the bundle carries no attestation, which is what says its tool version"
            )
    else:
        _check_attestation(attested_file, listing, policy, port, report)
    _hold_against(minimum, has_attestation, constraint, policy, report)
    return report


def _check_attestation(
    path: str, listing: bytes, policy: Policy, port: Port | None, report: Report
) -> None:
    """Raise the report's level by what the attestation proves, or add why it proves nothing."""
    data, fault = checksums.read_plain(path)
    if fault:
        report.errors.append(f"{dsse.PATH}: {fault}")
        return
    try:
        found = signers.check(dsse.read(data), policy.expected(port), what="the bundle")
        claims = statements.parse(found.payload, source=dsse.PATH)
    except AicrError as error:
        report.errors += [f"{dsse.PATH}: {link.message}" for link in error.chain()]
        report.hints += [link.hint for link in error.chain() if link.hint]
        return
    other = statements.mismatch(claims, listing)
    if other:
        report.errors.append(f"{dsse.PATH}: {other}")
        return
    report.attested = True
    report.creator = found.identity
    report.pinned = found.named
    report.tool_version = claims.tool_version
    report.level = VERIFIED if found.named and not report.external_data else ATTESTED


def _hold_against(
    minimum: str, has_attestation: bool, constraint: Any, policy: Policy, report: Report
) -> None:
    """Add what of the policy is not met."""
    if report.errors:
        return
    wanted = minimum
    if minimum == MAX:
        wanted = UNVERIFIED if not has_attestation else VERIFIED
        if has_attestation and report.external_data:
            wanted = ATTESTED
    if policy.require_creator and report.creator != policy.require_creator:
        report.errors.append(
            f"the bundle was signed by {report.creator}, not by {policy.require_creator}"
        )
    elif LEVELS.index(report.level) < LEVELS.index(wanted):
        report.errors.append(f"trust level {report.level} is below {wanted}{_why(wanted, report)}")
    if constraint is not None:
        _hold_version(constraint, report)


def _why(wanted: str, report: Report) -> str:
    if report.level == UNVERIFIED:
        return ": the bundle carries no attestation"
    if report.external_data and wanted == VERIFIED:
        return ": it holds external data, which nobody but its author vouches for"
    return (
        ": whoever signed it was not named; pin the signer with --certificate-identity-regexp "
        f"(it was {report.creator})"
    )


def _hold_version(constraint: Any, report: Report) -> None:
    from aicr.constraints import expression

    if not report.tool_version:
        report.errors.append("the attestation does not say which tool version made the bundle")
        return
    try:
        outcome = expression.evaluate(constraint, report.tool_version)
    except AicrError as error:
        report.errors.append(f"tool version {report.tool_version}: {error.message}")
        return
    if not outcome.passed:
        report.errors.append(f"tool version {report.tool_version} does not meet {constraint.text}")
