"""Answers of an API server that say nothing about the cluster, with the code that each is published as."""

from __future__ import annotations

import pytest
from aiohttp import web
from tests.kube.fakeapi import refuse

from aicr.errors import SERVICE_UNAVAILABLE, TIMEOUT, UNAUTHORIZED

#: For ``parametrize(("answer", "code"), COULD_NOT_LOOK)``.
COULD_NOT_LOOK = [
    pytest.param(refuse(403, "Forbidden", "no"), UNAUTHORIZED, id="forbidden"),
    pytest.param(refuse(401, "Unauthorized", "no"), UNAUTHORIZED, id="unauthorized"),
    pytest.param(refuse(503, "ServiceUnavailable", "no"), SERVICE_UNAVAILABLE, id="unavailable"),
    pytest.param(refuse(504, "Timeout", "slow"), TIMEOUT, id="timeout"),
    pytest.param(
        web.Response(text="not json", content_type="application/json"),
        SERVICE_UNAVAILABLE,
        id="malformed",
    ),
    pytest.param(
        web.Response(text="<html>log in</html>", content_type="text/html"),
        SERVICE_UNAVAILABLE,
        id="proxy",
    ),
]
