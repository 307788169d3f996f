"""The flag that writes golden bundles anew (see ``golden``)."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--update-golden`."""
    parser.addoption(
        "--update-golden",
        action="store_true",
        default=False,
        help="write the bundles in tests/golden/deployers anew instead of comparing them",
    )
