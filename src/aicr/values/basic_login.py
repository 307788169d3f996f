"""The Authorization header of a user name and a password, for servers, registries and proxies alike.

It must not know whom it is sent to. Source: RFC 7617.
"""

from __future__ import annotations

import base64


def basic(user: str, password: str) -> str:
    """The header's value.

    >>> basic("me", "x")
    'Basic bWU6eA=='
    """
    encoded = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
    return f"Basic {encoded}"
