"""One registry for the tests that only need some."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.oci.registry_server import serving


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """``host:port`` of a registry without TLS and without login."""
    with serving(tmp_path_factory.mktemp("registry")) as host:
        yield host


@pytest.fixture(autouse=True)
def no_login(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whoever runs the tests may be logged in somewhere; the tests are not."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path_factory.mktemp("docker")))
