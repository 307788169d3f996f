"""A run's documents with planted secrets in every place, and bundles made of them."""

from __future__ import annotations

import base64
import gzip
import io
import json
import tarfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.integrity.signed_bundles import KEYS, write_key

from aicr.contract import ctrf
from aicr.validate.evidence import attesting

#: What must never be published: node names, addresses, host names, secrets, tokens.
PLANTED = (
    "gpu-node-17",
    "10.20.30.40",
    "fd00:abcd::17",
    "node-17.acme.internal",
    "hunter2-password",
    "ghp_plantedtoken0123456789",
    "eyJhbGciOiJub25lIn0.planted.jwt",
    "acme-trading-bot",
)
WHEN = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)

RECIPE: dict[str, Any] = {
    "kind": "RecipeResult",
    "apiVersion": "aicr.run/v1",
    "metadata": {"version": "0.1.0", "appliedOverlays": ["base", "eks"]},
    "criteria": {
        "service": "eks",
        "accelerator": "h100",
        "intent": "training",
        "os": "ubuntu",
        "platform": "any",
    },
    "componentRefs": [
        {
            "name": "gpu-operator",
            "namespace": "gpu-operator",
            "type": "Helm",
            "chart": "gpu-operator",
            "source": "https://helm.ngc.nvidia.com/nvidia",
            "version": "v25.3.0",
        },
        {"name": "off", "type": "Helm", "overrides": {"enabled": False}},
    ],
    "validation": {"deployment": {"checks": ["operator-health"]}},
}
SNAPSHOT: dict[str, Any] = {
    "kind": "Snapshot",
    "apiVersion": "aicr.run/v1",
    "metadata": {
        "timestamp": "2026-03-04T05:00:00Z",
        "version": "0.1.0",
        "source-node": "gpu-node-17",
    },
    "measurements": [
        {
            "type": "K8s",
            "subtypes": [
                {
                    "subtype": "server",
                    "data": {"version": "v1.34.1-eks-1", "host": "10.20.30.40"},
                    "context": {"node": "node-17.acme.internal"},
                },
                {
                    "subtype": "node",
                    "data": {"provider": "eks", "source-node": "gpu-node-17"},
                },
                {
                    "subtype": "image",
                    "data": {
                        "acme-trading-bot": "v3",
                        "kubectl": "1.36.2",
                        "busybox": "1-gpu-node-17",
                        "10.20.30.40": "latest",
                    },
                },
            ],
        },
        {
            "type": "GPU",
            "subtypes": [
                {"subtype": "hardware", "data": {"gpu-present": True, "model": "NVIDIA H100"}}
            ],
        },
        {
            "type": "SystemD",
            "subtypes": [
                {
                    "subtype": "containerd.service",
                    "data": {"Environment": "TOKEN=ghp_plantedtoken0123456789"},
                }
            ],
        },
        {
            "type": "OS",
            "subtypes": [
                {"subtype": "release", "data": {"ID": "ubuntu", "VERSION_ID": "24.04"}},
                {"subtype": "grub", "data": {"password": "hunter2-password"}},
            ],
        },
        {
            "type": "NodeTopology",
            "subtypes": [
                {"subtype": "summary", "data": {"node-count": 2}},
                {
                    "subtype": "label",
                    "data": {
                        "topology.kubernetes.io/region": "node-17.acme.internal|gpu-node-17",
                        "kubernetes.io/hostname.gpu-node-17": "gpu-node-17|gpu-node-17",
                    },
                },
            ],
        },
    ],
}


def test_entry(name: str, status: str, phase: str, **more: Any) -> dict[str, Any]:
    """A report entry whose prose holds everything that was planted."""
    return ctrf.entry(
        name,
        status,
        phase=phase,
        duration_ms=1200,
        message=" ".join(PLANTED),
        stdout=[f"saw {planted}" for planted in PLANTED]
        + [base64.b64encode(PLANTED[0].encode()).decode()],
        **more,
    )


test_entry.__test__ = False  # type: ignore[attr-defined]


def report(*entries: dict[str, Any]) -> dict[str, Any]:
    """A CTRF report of entries."""
    return ctrf.report(
        entries, start_ms=1, stop_ms=2, timestamp="2026-03-04T05:06:07Z", version="0.1.0"
    )


def reports() -> dict[str, dict[str, Any]]:
    """Reports of two phases, with extra and provenance that are partly publishable."""
    return {
        "deployment": report(
            test_entry(
                "operator-health",
                "passed",
                "deployment",
                extra={"nodesTotal": "2", "skipReason": "acme-trading-bot", "node": PLANTED[0]},
            ),
            test_entry(
                "expected-resources",
                "skipped",
                "deployment",
                extra={"skipReason": "named-in-skip-checks"},
            ),
        ),
        "performance": report(
            test_entry(
                "nccl-all-reduce-bw",
                "passed",
                "performance",
                provenance={
                    "shippedDigest": "a" * 64,
                    "derivedDigest": "b" * 64,
                    "overriddenPaths": ["spec.nodeSelector.acme-trading-bot", "spec.containers"],
                },
            )
        ),
    }


def request(out: Path, /, **more: Any) -> dict[str, Any]:
    """The request of a finished run."""
    return {
        "out": str(out),
        "recipe": RECIPE,
        "snapshot": SNAPSHOT,
        "reports": reports(),
        "catalog": None,
        "catalogVersion": "1.0.0",
        "images": ["aicr.local/aicr-checks-deployment:v0.1.0"],
        **more,
    }


def made(out: Path, /, **more: Any) -> list[str]:
    """Write a bundle; the lines for people."""
    return attesting.attest(request(out, **more), clock=lambda: WHEN)


def predicate_of(out: Path) -> dict[str, Any]:
    """The predicate of a bundle on disk."""
    text = (out / "summary-bundle" / "statement.intoto.json").read_text()
    found: dict[str, Any] = json.loads(text)["predicate"]
    return found


def keys(folder: Path) -> tuple[str, str]:
    """A key pair: private and public file."""
    return write_key(folder, KEYS["P-256"]())


def tree(out: Path) -> dict[str, bytes]:
    """All files below a folder."""
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file()
    }


def unfolded(data: bytes) -> Iterator[bytes]:
    """Bytes, and everything packed in them: archives, compression, base64 in JSON texts."""
    yield data
    if data[:2] == b"\x1f\x8b":
        yield from unfolded(gzip.decompress(data))
        return
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
            for member in tar:
                stream = tar.extractfile(member)
                yield member.name.encode()
                yield from unfolded(stream.read() if stream is not None else b"")
    except tarfile.TarError:
        pass
    try:
        document = json.loads(data)
    except ValueError:
        return
    for text in texts(document):
        try:
            inner = base64.b64decode(text, validate=True)
        except ValueError:
            continue
        if inner and inner != data:
            yield from unfolded(inner)


def texts(node: Any) -> Iterator[str]:
    """Every text in a JSON document, keys included."""
    if isinstance(node, str):
        yield node
    elif isinstance(node, Mapping):
        for key, value in node.items():
            yield from texts(key)
            yield from texts(value)
    elif isinstance(node, list):
        for value in node:
            yield from texts(value)


def planted_in(files: Mapping[str, bytes]) -> set[str]:
    """Which planted words are anywhere in files or their names."""
    found = set()
    for name, data in files.items():
        for piece in (name.encode(), *unfolded(data)):
            found |= {word for word in PLANTED if word.encode() in piece}
    return found
