"""A credential plugin as a script, and trust in the test CA."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tests.kube import certificates

from aicr.kube.exec_plugin import ExecPlugin, ExecSpec
from aicr.kube.tls import Tls

PLUGIN = """
import json, os, sys
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
with open(sys.argv[1], "a") as seen:
    seen.write(json.dumps(info) + "\\n")
count = len(open(sys.argv[1]).readlines())
status = json.loads(sys.argv[2].replace("COUNT", str(count)))
print(json.dumps({"kind": "ExecCredential", "apiVersion": info["apiVersion"], "status": status}))
"""


def plugin(folder: Path, version: str, status: str, now: Any, **options: Any) -> ExecPlugin:
    """A plugin that notes what it was given and answers with *status*."""
    script = folder / "plugin.py"
    script.write_text(PLUGIN)
    spec = ExecSpec(
        sys.executable,
        f"client.authentication.k8s.io/{version}",
        (str(script), str(folder / "seen"), status),
        {"EXTRA": "1"},
        **options,
    )
    return ExecPlugin(spec, environ={"PATH": "/bin"}, now=now, timeout=300, terminal=False)


def tls(**options: Any) -> Tls:
    """Trust in the test CA."""
    return Tls(**{"ca": certificates.ca_pem(), "where": "kubeconfig", **options})
