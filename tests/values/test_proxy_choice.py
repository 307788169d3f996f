"""HTTPS_PROXY, HTTP_PROXY and NO_PROXY, as kubectl reads them."""

from __future__ import annotations

import pytest

from aicr.errors import AicrError
from aicr.values import proxy

PROXY = "http://proxy.test:3128"


@pytest.mark.parametrize(
    ("server", "environ", "expected"),
    [
        ("https://c.test", {}, ""),
        ("https://c.test", {"HTTPS_PROXY": PROXY}, PROXY),
        ("https://c.test", {"https_proxy": PROXY}, PROXY),
        ("https://c.test", {"HTTP_PROXY": PROXY}, ""),
        ("http://c.test", {"HTTP_PROXY": PROXY}, PROXY),
        ("https://c.test", {"HTTPS_PROXY": "proxy.test:3128"}, PROXY),
        ("https://localhost:6443", {"HTTPS_PROXY": PROXY}, ""),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": PROXY}, ""),
        ("https://[::1]:6443", {"HTTPS_PROXY": PROXY}, ""),
    ],
)
def test_the_proxy_depends_on_the_scheme_and_never_leads_to_this_machine(
    server: str, environ: dict[str, str], expected: str
) -> None:
    """Upper and lower case; an address without a scheme is http."""
    assert proxy.from_environment(server, environ) == expected


@pytest.mark.parametrize(
    ("no_proxy", "server", "direct"),
    [
        ("*", "https://c.test", True),
        ("c.test", "https://c.test:6443", True),
        ("test", "https://c.test", True),
        (".test", "https://c.test", True),
        (".c.test", "https://c.test", False),
        ("*.test", "https://c.test", True),
        ("est", "https://c.test", False),
        ("C.TEST", "https://c.test", True),
        ("c.test:6443", "https://c.test:6443", True),
        ("c.test:443", "https://c.test", True),
        ("c.test:6443", "https://c.test", False),
        ("10.1.0.0/16", "https://10.1.2.3:6443", True),
        ("10.1.0.0/16", "https://10.2.2.3:6443", False),
        ("10.1.2.3", "https://10.1.2.3", True),
        ("10.1.2.3:6443", "https://10.1.2.3:6443", True),
        ("fd00::/8", "https://[fd00::1]:6443", True),
        ("[fd00::1]:6443", "https://[fd00::1]:6443", True),
        ("10.0.0.0/99, c.test", "https://c.test", True),
        ("", "https://c.test", False),
        (" , ", "https://c.test", False),
    ],
)
def test_no_proxy_lists_names_addresses_ranges_and_ports(
    no_proxy: str, server: str, direct: bool
) -> None:
    """The rules of Go's net/http; an entry that is nonsense matches nothing."""
    environ = {"HTTPS_PROXY": PROXY, "no_proxy": no_proxy}
    assert (proxy.from_environment(server, environ) == "") == direct


def test_a_proxy_that_we_cannot_use_is_refused_without_its_password() -> None:
    """SOCKS needs another library; ignoring it would go around the proxy."""
    with pytest.raises(AicrError) as caught:
        proxy.from_environment("https://c.test", {"HTTPS_PROXY": "socks5://u:hunter2@p:1080"})
    assert "socks5://p:1080" in caught.value.message
    assert "hunter2" not in str(caught.value)
    assert caught.value.where == "HTTPS_PROXY"
