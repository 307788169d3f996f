"""A small bundle with one component of each kind, and a chart that helm can render."""

from __future__ import annotations

import io
import tarfile
from typing import Any

from aicr.bundle import info
from aicr.bundle.layout import LOCAL_HELM, UPSTREAM_HELM, Folder
from aicr.bundle.options import BundleOptions
from aicr.bundle.plan import Plan
from aicr.yamlio.write import dump

Files = dict[str, tuple[bytes, int]]

DIGEST = f"sha256:{'a' * 64}"

#: Images in every form, and a script that downloads.
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: tools
  namespace: tools
spec:
  template:
    spec:
      initContainers:
        - name: fetch
          image: busybox
          command: ["sh", "-c"]
          args: ["apt-get update && apt-get install -y jq"]
      containers:
        - name: main
          image: ghcr.io/acme/tools:1.4.0
          args: ["--image=quay.io/x/y:1"]
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: script
data:
  run.sh: |
    curl http://localhost:8080/healthz
    docker run registry.example:5000/a/b:2
"""

#: A chart whose image has its tag from appVersion.
CHART_TEMPLATE = """\
apiVersion: v1
kind: Pod
metadata:
  name: {{ .Release.Name }}
spec:
  containers:
    - name: main
      image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
    - name: side
      image: registry.k8s.io/pause:3.10
"""


def chart_archive() -> bytes:
    """The chart ``inner`` as a tgz."""
    files = {
        "inner/Chart.yaml": "apiVersion: v2\nname: inner\nversion: 0.3.0\nappVersion: v7.1\n",
        "inner/values.yaml": "image: {repository: quay.io/acme/inner, tag: ''}\n",
        "inner/templates/pod.yaml": CHART_TEMPLATE,
    }
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for path, text in files.items():
            member = tarfile.TarInfo(path)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    return out.getvalue()


def _folder(number: int, name: str, kind: str) -> Folder:
    return Folder(
        dir=f"{number:03d}-{name}",
        release=name,
        parent=name,
        phase="primary",
        kind=kind,
        namespace=name,
        create_namespace=True,
        files={},
    )


def sample(*, vendored: bool = True, values: dict[str, Any] | None = None) -> Files:
    """The bundle: ``driver`` from a chart elsewhere, ``tools`` of manifests, ``inner`` vendored."""
    if values is None:
        values = {
            "driver": {
                "repository": "nvcr.io/nvidia",
                "image": "driver",
                "version": "580.95.05-ubuntu24.04",
            },
            "exporter": {
                "image": {"registry": "ghcr.io", "repository": "a/b", "tag": "", "digest": DIGEST}
            },
            "node": {"image": {"tag": "v9"}},
        }
    refs: list[dict[str, Any]] = [
        {
            "name": "driver",
            "type": "Helm",
            "source": "https://charts.example/nvidia",
            "chart": "gpu-operator",
            "version": "v26.7.0",
        },
        {"name": "tools", "type": "Helm"},
    ]
    folders = [_folder(1, "driver", UPSTREAM_HELM), _folder(2, "tools", LOCAL_HELM)]
    made: Files = {
        "deploy.sh": (b"#!/bin/sh\n", 0o755),
        "001-driver/values.yaml": (dump(values).encode(), 0o644),
        "002-tools/Chart.yaml": (b"apiVersion: v2\nname: tools\nversion: 0.1.0\n", 0o644),
        "002-tools/templates/all.yaml": (DEPLOYMENT.encode(), 0o644),
    }
    if vendored:
        refs.append(
            {
                "name": "inner",
                "type": "Helm",
                "source": "https://charts.example/acme",
                "chart": "inner",
                "version": "0.3.0",
            }
        )
        folders.append(_folder(3, "inner", LOCAL_HELM))
        wrapper = {
            "apiVersion": "v2",
            "name": "inner",
            "version": "0.1.0",
            "dependencies": [{"name": "inner", "version": "0.3.0", "repository": ""}],
        }
        made |= {
            "003-inner/Chart.yaml": (dump(wrapper).encode(), 0o644),
            "003-inner/values.yaml": (
                b"inner:\n  image:\n    repository: quay.io/acme/inner\n    tag: ''\n",
                0o644,
            ),
            "003-inner/cluster-values.yaml": (b"{}\n", 0o644),
            "003-inner/charts/inner-0.3.0.tgz": (chart_archive(), 0o644),
        }
    recipe: Any = {"kind": "RecipeResult", "componentRefs": refs}
    options = BundleOptions(version="1.2.3")
    return info.complete(
        made,
        Plan(components=[], notes=[], recipe=recipe, deployer="helm", options=options),
        folders,
        deployer="helm",
        entrypoint="deploy.sh",
        manifest="",
    )


def contents(files: Files) -> dict[str, bytes]:
    """The bytes of the files."""
    return {path: data for path, (data, _) in files.items()}
