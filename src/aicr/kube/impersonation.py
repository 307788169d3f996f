"""Impersonation settings of a kubeconfig → request headers.

Pure. It must not know requests.

Source: k8s.io/client-go/transport (impersonatingRoundTripper), clientcmd validation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from aicr.errors import invalid
from aicr.kube import entries

#: Characters of a header name (RFC 7230 token) besides letters and digits, without the percent sign.
_TOKEN: Final = frozenset(b"!#$&'*+-.^_`|~")


def headers(user: Mapping[str, Any], where: str) -> tuple[tuple[str, str], ...]:
    """``as``, ``as-uid``, ``as-groups`` and ``as-user-extra`` as headers.

    INVALID_REQUEST for the others without ``as``, which the server would refuse with every request, and
    for values with line breaks.
    """
    name, uid = entries.text(user, "as", where), entries.text(user, "as-uid", where)
    groups = entries.texts(user, "as-groups", where)
    extra = entries.mapping(user, "as-user-extra", where)
    if not name and (uid or groups or extra):
        raise invalid(
            "as-uid, as-groups and as-user-extra need as",
            where=where,
            hint="say with as which user they belong to",
        )
    found = [("Impersonate-User", name)] if name else []
    if uid:
        found.append(("Impersonate-Uid", uid))
    found += [("Impersonate-Group", group) for group in groups]
    for key in extra:
        values = entries.texts(extra, key, where)
        found += [(f"Impersonate-Extra-{_escaped(str(key))}", value) for value in values]
    for header, value in found:
        if any(mark in value for mark in "\r\n\0"):
            raise invalid(f"the value of {header} has a line break", where=where)
    return tuple(found)


def _escaped(key: str) -> str:
    """*key* as a part of a header's name; what no name may have as ``%XX``, which the server undoes."""
    return "".join(
        chr(byte) if byte in _TOKEN or (chr(byte).isalnum() and byte < 128) else f"%{byte:02X}"
        for byte in key.lower().encode()
    )
