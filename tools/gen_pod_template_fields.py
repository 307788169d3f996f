"""Write ``src/aicr/validate/provenance_bound_fields.py``: the field names of a Pod template.

The names are every JSON property that can be reached from core/v1 PodTemplateSpec in the OpenAPI
document of the newest Kubernetes release that the package ``kubernetes-validate`` ships. Members that
newer API types have and that document may lack are listed here, so that the set never shrinks with the
source.

Usage: ``python -m tools.gen_pod_template_fields [--check]``
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Final

import kubernetes_validate  # type: ignore[import-untyped]

TARGET: Final = (
    Path(__file__).resolve().parent.parent / "src/aicr/validate/provenance_bound_fields.py"
)
ROOT: Final = "io.k8s.api.core.v1.PodTemplateSpec"
#: Members named in validators spec 4.4.5 that API types before 0.37 do not have.
NEWER: Final = (
    *("restartPolicyRules", "exitCodes", "fileKeyRef", "podCertificate", "credentialBundlePath"),
    *("certificateChainPath", "userAnnotations", "hostnameOverride", "schedulingGroup"),
    *("podGroupName", "evictionResponders", "bindMountOptions", "stopSignal", "mode"),
)


def reachable(definitions: dict[str, Any], root: str) -> set[str]:
    """Names of all properties that can be reached from *root*."""
    names: set[str] = set()
    seen: set[str] = set()
    todo: list[Any] = [definitions[root]]
    while todo:
        node = todo.pop()
        reference = str(node.get("$ref") or "").rpartition("/")[2]
        if reference and reference not in seen:
            seen.add(reference)
            todo.append(definitions[reference])
        properties = node.get("properties") or {}
        names.update(properties)
        inner = [*properties.values(), node.get("items"), node.get("additionalProperties")]
        for key in ("allOf", "anyOf", "oneOf"):
            inner += node.get(key) or []
        todo += [each for each in inner if isinstance(each, dict)]
    return names


def source() -> str:
    """The module as it should be."""
    release = kubernetes_validate.latest_version()
    folder = Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema"
    text = (folder / f"v{release}-local" / "_definitions.json").read_text(encoding="utf-8")
    names = sorted(reachable(json.loads(text)["$defs"], ROOT) | set(NEWER))
    listed = "".join(f'        "{name}",\n' for name in names)
    return (
        f'"""Field names of core/v1 PodTemplateSpec of Kubernetes {release}.\n\n'
        "Written by `python -m tools.gen_pod_template_fields`; do not edit.\n"
        "Source: validators spec 4.4.5.\n"
        '"""\n\n'
        "from __future__ import annotations\n\n"
        "from typing import Final\n\n"
        "FIELDS: Final = frozenset(\n    {\n"
        f"{listed}"
        "    }\n)\n"
    )


def main() -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description="Write the field names of a Pod template.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if stale")
    check: bool = parser.parse_args().check
    text = source()
    if TARGET.exists() and TARGET.read_text(encoding="utf-8") == text:
        print(f"{TARGET.name} is current")
        return 0
    if not check:
        TARGET.write_text(text, encoding="utf-8", newline="\n")
    print(f"{TARGET.name} {'is stale' if check else 'written'}")
    return 1 if check else 0


if __name__ == "__main__":
    sys.exit(main())
