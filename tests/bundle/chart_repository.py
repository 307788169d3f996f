"""Charts of our own, and an HTTP repository on the loopback interface that serves them."""

from __future__ import annotations

import base64
import http.server
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests import tools

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
spec:
  selector: {matchLabels: {app: x}}
  template:
    metadata: {labels: {app: x}}
    spec:
      {{- with .Values.nodeSelector }}
      nodeSelector: {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: x
          image: {{ .Values.image }}
"""
HOOK = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-migrate
  annotations:
    "helm.sh/hook": pre-upgrade,post-install
    "helm.sh/hook-weight": "-5"
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: x, image: y}]}
"""
CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: foos.example.com}
spec:
  group: example.com
  names: {kind: Foo, plural: foos}
"""


def helm(home: Path, *args: str) -> str:
    """Run the real helm with a home of its own."""
    folders = {f"HELM_{kind}_HOME": str(home / kind) for kind in ("CACHE", "CONFIG", "DATA")}
    done = subprocess.run(
        [tools.helm(), *args],
        env={"PATH": os.environ["PATH"], "HOME": str(home), **folders},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def packaged(folder: Path, name: str, version: str, files: dict[str, str]) -> Path:
    """A chart archive in *folder*, packed by helm from these files."""
    source = folder.parent / f"source-{name}-{version}" / name
    for path, text in {
        "Chart.yaml": f"apiVersion: v2\nname: {name}\nversion: {version}\n",
        "values.yaml": "image: example.com/x:1\nnodeSelector: {}\n",
        **files,
    }.items():
        target = source / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    folder.mkdir(parents=True, exist_ok=True)
    helm(folder.parent, "package", str(source), "--destination", str(folder))
    return folder / f"{name}-{version}.tgz"


class _Handler(http.server.SimpleHTTPRequestHandler):
    password = ""

    def do_GET(self) -> None:
        """Serve a file, to whoever knows the password if there is one."""
        wanted = "Basic " + base64.b64encode(f"user:{self.password}".encode()).decode()
        if self.password and self.headers.get("Authorization") != wanted:
            self.send_error(401, "Unauthorized")
            return
        super().do_GET()

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@contextmanager
def served(folder: Path, *, password: str = "") -> Iterator[str]:
    """The address of a repository that serves the archives in *folder*."""

    class Handler(_Handler):
        """Serves this folder."""

        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments, directory=str(folder))  # type: ignore[arg-type]

    Handler.password = password
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        address = f"http://127.0.0.1:{server.server_address[1]}"
        helm(folder.parent, "repo", "index", str(folder), "--url", address)
        yield address
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
