"""The object that both engines judge, and the CRD that lets a real API server hold it as it is."""

from __future__ import annotations

from typing import Any, Final

GROUP: Final = "chainsaw.test.aicr.run"
API_VERSION: Final = f"{GROUP}/v1"
KIND: Final = "Sample"
NAME: Final = "sample"

CRD: Final[dict[str, Any]] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"samples.{GROUP}"},
    "spec": {
        "group": GROUP,
        "names": {"kind": KIND, "plural": "samples", "singular": "sample"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "x-kubernetes-preserve-unknown-fields": True,
                            }
                        },
                    }
                },
            }
        ],
    },
}

#: Something of every type, and of every form that a function takes.
SPEC: Final[dict[str, Any]] = {
    "int": 3,
    "zero": 0,
    "neg": -2,
    "large": 9007199254740993,
    "float": 1.5,
    "text": "hello world",
    "word": "Web",
    "empty": "",
    "digits": "8",
    "yes": True,
    "no": False,
    "ints": [1, 2, 3],
    "floats": [2.5, 0.5, 1.5],
    "texts": ["b", "a", "c"],
    "mixed": [1, "a", True, [2], {"k": 1}],
    "nested": [[1, 2], [3], 4],
    "none": [],
    "map": {"a": 1, "b": 2},
    "labels": {"app": "web", "tier": "front"},
    "hollow": {},
    "deep": {"a": {"b": {"c": "x"}}},
    "pods": [
        {"name": "a", "n": 1, "size": 1.5, "ready": True, "zone": "x"},
        {"name": "b", "n": 2, "size": 0.5, "ready": False, "zone": "y"},
        {"name": "c", "n": 3, "size": 2.5, "ready": True, "zone": "x"},
    ],
    "conditions": [
        {"type": "Available", "status": "True"},
        {"type": "Ready", "status": "False", "reason": "Waiting"},
    ],
    "odd key": 1,
    "dotted.key/x": "y",
    "(x)": 5,
    "memory": "100Mi",
    "cpu": "250m",
    "span": "1h30m",
    "when": "2024-01-02T03:04:05Z",
    "later": "2024-02-02T03:04:05Z",
    "version": "1.25.3",
    "path": "/a/../b//c",
    "json": '{"a": [1, 2.5, "x"], "b": null}',
    "yaml": "a: [1, x]\nb: true\n",
    "coded": "aGVsbG8=",
    "true": "TRUE",
}


def sample(name: str = NAME, **more: Any) -> dict[str, Any]:
    """The object; *more* goes into its metadata."""
    metadata = {"name": name, "labels": {"app": "web", "tier": "front"}, **more}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": SPEC}
