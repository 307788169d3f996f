"""Addresses that a bundle would give away: those that hold a password or a token.

A bundle goes into Git or a registry, and its recipe, its objects and its README repeat the addresses of
charts and of the bundle itself. What lets somebody in has to come from where the tool runs.

This module must not know what an address is for. Source: issue 5 ("secrets never in Git outputs").
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Over these a user name alone is a token: `https://TOKEN@host`. Over ssh it is just a name.
_WEB: Final = ("http", "https", "oci")


def holds_secret(address: str) -> bool:
    """Whether *address* has a password in it, or a user part where that can be a token.

    >>> holds_secret("https://ghp_x@github.com/o/r.git"), holds_secret("ssh://git@github.com/o/r")
    (True, False)
    """
    scheme, found, rest = address.removeprefix("git::").partition("://")
    user, at, _ = rest.partition("/")[0].rpartition("@")
    return bool(found and at) and (":" in user or scheme.lower() in _WEB)
