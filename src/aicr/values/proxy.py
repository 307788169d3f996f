"""Which proxy leads to a server: HTTPS_PROXY, HTTP_PROXY and NO_PROXY as kubectl and helm read them.

Pure; the environment is passed in. One rule for clusters, registries and files at an address. It is
that of Go's net/http, because users set these variables so that kubectl works: lower case as well as
upper case, loopback never through a proxy, NO_PROXY with domains, addresses, ranges and ports. It
must not know who connects, nor kubeconfig.

Source: golang.org/x/net/http/httpproxy.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from urllib.parse import SplitResult, unquote, urlsplit

from aicr.errors import invalid
from aicr.values.basic_login import basic

SCHEMES = ("http", "https")


def from_environment(server: str, environ: Mapping[str, str]) -> str:
    """The proxy's URL for *server*, or "" for a direct connection."""
    parts = urlsplit(server)
    name = "HTTPS_PROXY" if parts.scheme == "https" else "HTTP_PROXY"
    proxy = environ.get(name) or environ.get(name.lower()) or ""
    if not proxy or _bypassed(parts, environ.get("NO_PROXY") or environ.get("no_proxy") or ""):
        return ""
    return checked(proxy if "://" in proxy else f"http://{proxy}", name)


def checked(proxy: str, where: str) -> str:
    """*proxy* if it is one that we can use; INVALID_REQUEST, without its credentials, if not."""
    try:
        parts = urlsplit(proxy)
        usable = parts.scheme in SCHEMES and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:  # brackets that do not match, a port that is no number
        usable = False
    if not usable:
        raise invalid(
            f"the proxy {shown(proxy)} is not an http:// or https:// address",
            where=where,
            hint="SOCKS proxies are not supported; use an HTTP proxy, or a tunnel to the server",
        )
    return proxy


def shown(url: str) -> str:
    """*url* without user name and password, for messages."""
    # By hand, because what is wrong with an address must not keep it from being named in the error.
    scheme, slashes, rest = url.partition("://")
    place = rest if slashes else scheme
    netloc = re.split(r"[/?#]", place, maxsplit=1)[0]
    bare = netloc.rpartition("@")[2] + place[len(netloc) :]
    return f"{scheme}://{bare}" if slashes else bare


def authorization(url: str) -> str:
    """The Proxy-Authorization header of the credentials in *url*, "" if there are none."""
    parts = urlsplit(url)
    if parts.username is None:
        return ""
    return basic(unquote(parts.username), unquote(parts.password or ""))


def _bypassed(server: SplitResult, no_proxy: str) -> bool:
    host = (server.hostname or "").lower()
    port = server.port or (443 if server.scheme == "https" else 80)
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    return any(
        _matches(entry.strip().lower(), host, port, address) for entry in no_proxy.split(",")
    )


def _matches(
    entry: str, host: str, port: int, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None
) -> bool:
    if not entry:
        return False
    if entry == "*":
        return True
    if "/" in entry:
        try:
            return address is not None and address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    name, wanted_port = _split_port(entry)
    if wanted_port and wanted_port != str(port):
        return False
    listed = _address(name)
    if listed is not None:
        return listed == address
    if name.startswith("*."):
        name = name[1:]
    if name.startswith("."):
        return host.endswith(name)
    return host == name or host.endswith(f".{name}")


def _split_port(entry: str) -> tuple[str, str]:
    if entry.startswith("["):
        name, _, rest = entry[1:].partition("]")
        return name, rest.removeprefix(":")
    if entry.count(":") == 1:
        name, _, port = entry.partition(":")
        return name, port
    return entry, ""


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
