"""Registry value paths in a values tree: read one, and fill one leniently.

Overrides by people are strict about what lies on their path; the registry's paths are facts about a
chart, so filling one replaces whatever is not a map on the way (bundler spec 3.1).
"""

from __future__ import annotations

from aicr.values import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def held(values: dict[str, Any], path: str) -> Any:
    """The value at a path, or None when there is none or it is empty (``""``, ``[]``, ``{}``)."""
    value = paths.get(values, paths.split(path), None)
    return None if value is None or value == "" or value == [] or value == {} else value


def fill(values: dict[str, Any], path: str, value: Any) -> tuple[dict[str, Any], str]:
    """Set the value at a path, creating maps on the way.

    Returns:
        New values, and the path of the first thing on the way that was not a map and got replaced,
        or "".
    """
    segments = paths.split(path)
    for length in range(1, len(segments)):
        above = paths.get(values, segments[:length], None)
        if above is None:
            break
        if not isinstance(above, dict):
            cleared = paths.put(values, segments[:length], {})
            return paths.put(cleared, segments, value), paths.join(segments[:length])
    filled: dict[str, Any] = paths.put(values, segments, value)
    return filled, ""
