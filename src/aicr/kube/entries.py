"""Values in entries of a kubeconfig, checked for the type that kubectl decodes them as.

The official loader hands on whatever YAML gave. Where Go would refuse to decode, so do we: a list that
is a number must not become a traceback, and a quoted ``"false"`` must not switch checks off because
text is true in Python. Numbers in the place of text are text, as sigs.k8s.io/yaml reads them. It must
not know what entries mean.

Source: k8s.io/client-go/tools/clientcmd/api/v1 (types of the fields).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from aicr.errors import invalid
from aicr.values import proxy


def mapping(entry: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    """``entry[key]`` as a mapping, empty if it is not set; INVALID_REQUEST for anything else."""
    found = entry.get(key)
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise _wrong(key, "a mapping", where)
    return found


def mappings(entry: Mapping[str, Any], key: str, where: str) -> list[Mapping[str, Any]]:
    """``entry[key]`` as a list of mappings, empty if it is not set."""
    found = _list(entry, key, where)
    if not all(isinstance(one, Mapping) for one in found):
        raise _wrong(key, "a list of mappings", where)
    return found


def texts(entry: Mapping[str, Any], key: str, where: str) -> list[str]:
    """``entry[key]`` as a list of texts, empty if it is not set."""
    found = _list(entry, key, where)
    if any(one is None or isinstance(one, Mapping | list) for one in found):
        raise _wrong(key, "a list of texts", where)
    return [str(one) for one in found]


def text(entry: Mapping[str, Any], key: str, where: str) -> str:
    """``entry[key]`` as text, "" if it is not set."""
    found = entry.get(key)
    if isinstance(found, Mapping | list):
        raise _wrong(key, "text", where)
    return "" if found is None else str(found)


def flag(entry: Mapping[str, Any], key: str, where: str) -> bool:
    """``entry[key]`` as true or false, false if it is not set; text is neither."""
    found = entry.get(key)
    if found is None:
        return False
    if not isinstance(found, bool):
        raise _wrong(key, "true or false, without quotes", where)
    return found


def address(server: str, where: str) -> str:
    """*server* as the address of an API server, without a slash at its end.

    INVALID_REQUEST for what is no http(s) address, and for one with a user, a query or a fragment:
    none of them reaches the server, and a password there would be printed with the address.
    """
    try:
        parts = urlsplit(server)
        host, scheme = parts.hostname or "", parts.scheme.lower()
        # Both raise for what cannot be connected to: a port that is none, a label that is too long.
        known = bool(host) and bool(host.encode("idna")) and (parts.port is None or parts.port >= 0)
    except ValueError as error:
        raise invalid(f"the server {proxy.shown(server)} is not an address", where=where) from error
    if scheme not in ("http", "https") or not known or any(mark.isspace() for mark in server):
        raise invalid(f"the server {proxy.shown(server)} is not an http(s) address", where=where)
    if parts.username is not None:
        raise invalid(
            f"the server {proxy.shown(server)} is given with a user name or password",
            where=where,
            hint="put username and password into the user's entry",
        )
    if parts.query or parts.fragment:
        raise invalid(f"the server {server} must not have a query or a fragment", where=where)
    return parts._replace(scheme=scheme).geturl().rstrip("/")


def _list(entry: Mapping[str, Any], key: str, where: str) -> list[Any]:
    found = entry.get(key)
    if found is None:
        return []
    if not isinstance(found, list):
        raise _wrong(key, "a list", where)
    return found


def _wrong(key: str, wanted: str, where: str) -> Exception:
    # Never the value: it may be a token.
    return invalid(
        f"{key} must be {wanted}", where=where, hint="kubectl config view shows what kubectl reads"
    )
