"""A connection that ends early is resumed, or fails with nothing half."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
from tests.oci.registry_server import CuttingProxy, ask

from aicr.artifacts import oci
from aicr.artifacts.registry import Registry
from aicr.artifacts.registry_session import ATTEMPTS
from aicr.artifacts.wire import Transport
from aicr.errors import SERVICE_UNAVAILABLE, TIMEOUT, AicrError

FAST = Transport(plain_http=True, chunk=60_000, pause=0.01, timeout=20)


def package() -> oci.Package:
    """A package whose layer does not compress, so that it takes several chunks."""
    return oci.bundle_package({"x.bin": (os.urandom(200_000), 0o644)}, version="1")


@pytest.mark.parametrize("after", [2_000, 30_000, 100_000])
def test_a_push_that_is_cut_once_goes_on_and_is_whole(after: int, registry: str) -> None:
    """Wherever the cut falls in the upload, the blob that arrives has its digest."""
    sent = package()
    cut_once = [True]

    def cut(number: int, up: int, down: int) -> bool:
        del number, down
        if up <= after:
            return False
        # Asked by the threads of both directions at once: one of them takes it.
        with contextlib.suppress(IndexError):
            return cut_once.pop()
        return False

    with CuttingProxy(registry, cut) as proxy, Registry(proxy.host, FAST) as client:
        address = oci.Address(proxy.host, f"cut/push{after}", "v1")
        digest = client.push(address, sent)
        assert proxy.cuts == 1
    status, body = ask(registry, "GET", f"/v2/cut/push{after}/manifests/v1")
    assert (status, oci.digest_of(body)) == (200, digest)
    layer = sent.blobs[1]
    status, body = ask(registry, "GET", f"/v2/cut/push{after}/blobs/{layer.digest}")
    assert (status, body) == (200, layer.data)


def test_a_push_that_is_cut_again_and_again_fails_and_moves_no_tag(registry: str) -> None:
    """The manifest goes last, so the tag does not exist; the error counts the attempts."""
    with (
        CuttingProxy(registry, lambda number, up, down: up > 20_000) as proxy,
        Registry(proxy.host, FAST) as client,
        pytest.raises(AicrError, match=f"was cut off {ATTEMPTS} times") as caught,
    ):
        client.push(oci.Address(proxy.host, "cut/never", "v1"), package())
    assert caught.value.code == SERVICE_UNAVAILABLE
    assert ask(registry, "GET", "/v2/cut/never/manifests/v1")[0] == 404


def test_an_older_tag_stays_when_a_push_over_it_is_cut(registry: str) -> None:
    """Whoever pulls meanwhile gets the old bundle, whole."""
    old = oci.bundle_package({"old": (b"", 0o644)}, version="1")
    with Registry(registry, FAST) as client:
        digest = client.push(oci.Address(registry, "cut/tag", "v1"), old)
    with (
        CuttingProxy(registry, lambda number, up, down: up > 20_000) as proxy,
        Registry(proxy.host, FAST) as client,
        pytest.raises(AicrError),
    ):
        client.push(oci.Address(proxy.host, "cut/tag", "v1"), package())
    assert oci.digest_of(ask(registry, "GET", "/v2/cut/tag/manifests/v1")[1]) == digest


def test_a_pull_that_is_cut_goes_on_where_it_was(registry: str) -> None:
    """The rest is asked for with a range; the digest is of the joined bytes."""
    sent = package()
    with Registry(registry, FAST) as client:
        client.push(oci.Address(registry, "cut/pull", "v1"), sent)
    layer = sent.blobs[1]

    def cut(number: int, up: int, down: int) -> bool:
        del up
        return number <= 2 and down > 70_000

    with CuttingProxy(registry, cut) as proxy, Registry(proxy.host, FAST) as client:
        assert client.pull_blob("cut/pull", layer.digest, len(layer.data)) == layer.data
        assert proxy.cuts == 2


def test_a_pull_that_is_cut_again_and_again_writes_nothing(registry: str, tmp_path: Path) -> None:
    """Not even the folder is made."""
    from tests.cli.program import aicr

    sent = package()
    with Registry(registry, FAST) as client:
        client.push(oci.Address(registry, "cut/none", "v1"), sent)
    with CuttingProxy(registry, lambda number, up, down: down > 5_000) as proxy:
        result = aicr(
            "pull", f"oci://{proxy.host}/cut/none:v1", "-o", tmp_path / "out", "--plain-http"
        )
    result.refused(6, "could not be received", "cut in the middle of the answer")
    assert list(tmp_path.iterdir()) == []


def test_a_registry_that_says_nothing_is_a_timeout() -> None:
    """Silence ends after the time limit, with its own code."""
    import socket

    with (
        socket.create_server(("127.0.0.1", 0)) as deaf,
        Registry(
            f"127.0.0.1:{deaf.getsockname()[1]}",
            Transport(plain_http=True, timeout=0.2, pause=0.01),
        ) as client,
        pytest.raises(AicrError, match=r"did not answer in 0\.2 s") as caught,
    ):
        client.pull_manifest(oci.Address("x", "a", "v1"))
    assert caught.value.code == TIMEOUT
