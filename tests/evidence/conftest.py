"""A registry for the tests that publish, and evidence for those that verify."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.evidence.evidence_bundles import made
from tests.oci.registry_server import serving


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """``host:port`` of a registry without TLS and without login."""
    with serving(tmp_path_factory.mktemp("registry")) as host:
        yield host


@pytest.fixture(autouse=True)
def nobody_logged_in(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whoever runs the tests may be logged in somewhere; the tests are not."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path_factory.mktemp("docker")))
    monkeypatch.delenv("COSIGN_IDENTITY_TOKEN", raising=False)


@pytest.fixture
def evidence(tmp_path: Path) -> Path:
    """A bundle that nobody signed."""
    out = tmp_path / "evidence"
    made(out)
    return out
