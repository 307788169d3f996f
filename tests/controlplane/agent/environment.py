"""A container's environment, and the expansion of `$(VAR)` in its command.

Pure: objects that values come from are looked up through a function that is passed in.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Final

from tests.controlplane.client import Document

#: Kind ("ConfigMap" or "Secret") and name → the object, or None when there is none.
Lookup = Callable[[str, str], Document | None]

_REFERENCE: Final = re.compile(r"\$\$|\$\(([^()\s]+)\)")
_QUANTITY: Final = re.compile(r"([+-]?[0-9.]+)([a-zA-Z]*)")
_UNITS: Final = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{unit: Fraction(1000) ** (n + 1) for n, unit in enumerate("kMGTPE")},
    **{f"{unit}i": Fraction(1024) ** (n + 1) for n, unit in enumerate("KMGTPE")},
}


class ConfigError(Exception):
    """A container's configuration names something that is not there or not supported."""


def expand(text: str, environment: Mapping[str, str]) -> str:
    """Replace `$(NAME)` by its value where there is one; `$$` stands for `$`."""

    def value(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return environment.get(match[1], match[0])

    return _REFERENCE.sub(value, text)


def container_environment(
    pod: Document, container: Document, start: Mapping[str, str], node: Document, lookup: Lookup
) -> dict[str, str]:
    """The variables of a container on top of *start*, in the order that Kubernetes sets them.

    Raises:
        ConfigError: a reference leads nowhere and is not optional.
    """
    result = dict(start)
    for source in container.get("envFrom", []):
        prefix = source.get("prefix", "")
        for field, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            if reference := source.get(field):
                data = object_data(kind, reference, lookup)
                texts = {key: value.decode(errors="replace") for key, value in data.items()}
                result.update({prefix + key: text for key, text in texts.items()})
    for variable in container.get("env", []):
        name = variable["name"]
        source = variable.get("valueFrom")
        if source is None:
            result[name] = expand(variable.get("value", ""), result)
            continue
        text = _from_source(pod, container, source, node, lookup)
        if text is not None:
            result[name] = text
    return result


def _from_source(
    pod: Document, container: Document, source: Document, node: Document, lookup: Lookup
) -> str | None:
    for field, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
        if reference := source.get(field):
            found = object_data(kind, reference, lookup).get(reference["key"])
            if found is None and not reference.get("optional"):
                raise ConfigError(
                    f"couldn't find key {reference['key']} in {kind} {reference['name']}"
                )
            return None if found is None else found.decode(errors="replace")
    if reference := source.get("fieldRef"):
        return pod_field(pod, reference["fieldPath"])
    if reference := source.get("resourceFieldRef"):
        return resource_field(pod, container, reference, node)
    raise ConfigError(f"the test node agent does not support valueFrom with {', '.join(source)}")


def object_data(kind: str, reference: Document, lookup: Lookup) -> dict[str, bytes]:
    """Keys and bytes of a ConfigMap or Secret; none when it is optional and absent."""
    found = lookup(kind, reference["name"])
    if found is None:
        if reference.get("optional"):
            return {}
        raise ConfigError(f'{kind.lower()} "{reference["name"]}" not found')
    if kind == "Secret":
        return {key: base64.b64decode(text) for key, text in (found.get("data") or {}).items()}
    data = {key: text.encode() for key, text in (found.get("data") or {}).items()}
    binary = {key: base64.b64decode(text) for key, text in (found.get("binaryData") or {}).items()}
    return {**data, **binary}


def pod_field(pod: Document, path: str) -> str:
    """The value of a downward field, such as `metadata.name` or `metadata.labels['app']`."""
    meta, status = pod["metadata"], pod.get("status", {})
    if found := re.fullmatch(r"metadata\.(labels|annotations)(?:\['(.*)'\])?", path):
        entries: Mapping[str, str] = meta.get(found[1]) or {}
        if found[2] is not None:
            return entries.get(found[2], "")
        return "\n".join(f'{key}="{text}"' for key, text in sorted(entries.items()))
    plain = {
        "metadata.name": meta["name"],
        "metadata.namespace": meta["namespace"],
        "metadata.uid": meta["uid"],
        "spec.nodeName": pod["spec"].get("nodeName", ""),
        "spec.serviceAccountName": pod["spec"].get("serviceAccountName", ""),
        "status.hostIP": status.get("hostIP", ""),
        "status.hostIPs": status.get("hostIP", ""),
        "status.podIP": status.get("podIP", ""),
        "status.podIPs": ",".join(one["ip"] for one in status.get("podIPs", [])),
    }
    if path not in plain:
        raise ConfigError(f"the test node agent knows no field {path}")
    return str(plain[path])


def resource_field(pod: Document, container: Document, reference: Document, node: Document) -> str:
    """A limit or request in units of the divisor, rounded up; the node's size where unlimited."""
    if name := reference.get("containerName"):
        everyone = [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]
        container = next(one for one in everyone if one["name"] == name)
    which, _, resource = reference["resource"].partition(".")
    amounts = container.get("resources", {}).get(which) or {}
    text = amounts.get(resource)
    if text is None:
        text = node["status"]["allocatable"].get(resource, "0") if which == "limits" else "0"
    divisor = quantity(reference.get("divisor", "1")) or Fraction(1)
    return str(math.ceil(quantity(text) / divisor))


def quantity(text: str) -> Fraction:
    """The exact value of a Kubernetes quantity.

    Raises:
        ConfigError: it is none.
    """
    found = _QUANTITY.fullmatch(text)
    if found is None or found[2] not in _UNITS:
        raise ConfigError(f"{text!r} is no quantity")
    return Fraction(found[1]) * _UNITS[found[2]]
