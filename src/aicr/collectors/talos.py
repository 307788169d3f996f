"""``OS`` and ``SystemD`` of a Talos machine, which has no files or units that a pod could look at.

What Talos publishes about itself is on its Node object: the operating system in ``status.nodeInfo``, and a
label ``extensions.talos.dev/<name>: <version>`` for each system extension. There is no systemd.

Source: recipe spec 8.4 (OS.extensions).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from aicr.collectors.readings import OS, Collected
from aicr.errors import not_found

EXTENSION: Final = "extensions.talos.dev/"
_IMAGE: Final = re.compile(r"Talos(?: Linux)? \((?P<version>v?[^)]+)\)")


def is_talos(node: Mapping[str, Any]) -> bool:
    """Whether a Node object says that the machine runs Talos."""
    return _IMAGE.fullmatch(_info(node).get("osImage", "")) is not None


def collect(node: Mapping[str, Any]) -> Collected:
    """The ``OS`` measurement of the machine behind a Node object."""
    found = Collected(OS)
    image = _info(node).get("osImage", "")
    match = _IMAGE.fullmatch(image)
    if match is None:
        name = (node.get("metadata") or {}).get("name", "")
        found.lacks("release", not_found(f'node {name} does not run Talos: "{image}"', where=name))
        return found
    version = match["version"].removeprefix("v")
    found.add(
        "release", {"ID": "talos", "NAME": "Talos", "VERSION_ID": version, "PRETTY_NAME": image}
    )
    found.add("extensions", extensions(node))
    return found


def extensions(node: Mapping[str, Any]) -> dict[str, str]:
    """Name → version of the system extensions of a node."""
    metadata = node.get("metadata") or {}
    entries = {**(metadata.get("annotations") or {}), **(metadata.get("labels") or {})}
    return {
        key.removeprefix(EXTENSION): str(value)
        for key, value in entries.items()
        if key.startswith(EXTENSION)
    }


def _info(node: Mapping[str, Any]) -> Mapping[str, Any]:
    info: Mapping[str, Any] = (node.get("status") or {}).get("nodeInfo") or {}
    return info
