"""Kubeconfig documents for a test control plane: one cluster, one user, one context.

Written as JSON, which every reader of YAML takes, so nothing has to be imported to write one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.controlplane.certificates import Pair


def document(
    server: str,
    authority: Path | None,
    *,
    token: str | None = None,
    token_file: Path | None = None,
    pair: Pair | None = None,
    command: dict[str, Any] | None = None,
    namespace: str = "default",
) -> dict[str, Any]:
    """A kubeconfig that reaches *server* as one user.

    Give one way to log in: a token, a file that is read again when the token changes, a client
    certificate, or the `exec` stanza of a credential plugin.
    """
    user: dict[str, Any] = {}
    if token is not None:
        user["token"] = token
    if token_file is not None:
        user["tokenFile"] = str(token_file)
    if pair is not None:
        user["client-certificate"], user["client-key"] = str(pair.certificate), str(pair.key)
    if command is not None:
        user["exec"] = command
    cluster = {"server": server}
    if authority is not None:
        cluster["certificate-authority"] = str(authority)
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "test", "user": user}],
        "contexts": [
            {"name": "test", "context": {"cluster": "test", "user": "test", "namespace": namespace}}
        ],
        "current-context": "test",
    }


def write(path: Path, config: dict[str, Any]) -> Path:
    """Write *config* to *path*, readable by its owner alone, and return *path*."""
    path.touch(mode=0o600)
    path.write_text(json.dumps(config, indent=2), encoding="utf-8")
    return path
