from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from aicr.bundle import addresses, charts, kustomize
from aicr.errors import AicrError


@pytest.mark.parametrize(
    ("address", "held"),
    [
        ("https://user:hunter2@charts.example.com/x", True),
        ("https://ghp_hunter2@github.com/o/r.git", True),
        ("HTTPS://hunter2@github.com/o/r.git", True),
        ("oci://hunter2@r.example:5000/x", True),
        ("git::https://hunter2@github.com/o/r", True),
        ("ssh://git:hunter2@github.com/o/r", True),
        ("ssh://git@github.com/o/r", False),
        ("git@github.com:o/r.git", False),
        ("https://charts.example.com/a@b", False),
        ("oci://r.example:5000/x@sha256:00", False),
        ("../local@v1", False),
        ("", False),
    ],
)
def test_a_password_or_token_in_an_address_is_seen(address: str, held: bool) -> None:
    """Over the web the user alone can be a token; over ssh it is a name (issue 5)."""
    assert addresses.holds_secret(address) is held


@pytest.mark.parametrize(
    ("call", "ref"),
    [
        (charts.chart_source, {"source": "https://hunter2@c.example.com"}),
        (charts.chart_source, {"source": "oci://u:hunter2@r.example/charts"}),
        (charts.upstream_env, {"source": "https://u:hunter2@c.example.com"}),
        (kustomize.target, {"source": "https://hunter2@g.example/r", "path": "p"}),
        (kustomize.target, {"source": "ssh://u:hunter2@g.example/r", "path": "p"}),
    ],
)
def test_a_source_that_holds_one_is_refused(
    call: Callable[[Any], Any], ref: dict[str, str]
) -> None:
    """It would be in upstream.env, recipe.yaml and every object of the bundle, and so in Git."""
    with pytest.raises(AicrError) as caught:
        call({"name": "x", **ref})
    assert caught.value.code == "INVALID_REQUEST"
    assert "password or token" in str(caught.value)
    assert "hunter2" not in str(caught.value)
