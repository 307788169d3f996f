"""Which words Kubernetes takes for the name of an object or a part of one.

No regular expressions: these questions are asked at every start of a deployer.
Source: field case F4 (a name with a newline at its end is no name); RFC 1123 as Kubernetes reads it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Longest DNS label and longest DNS subdomain, in characters.
LABEL_LENGTH: Final = 63
SUBDOMAIN_LENGTH: Final = 253

_OF_A_LABEL: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")


def has_label_form(text: str) -> bool:
    """Whether *text* is written like a DNS label, whatever its length."""
    return bool(text) and _OF_A_LABEL.issuperset(text) and "-" not in (text[0], text[-1])


def has_subdomain_form(text: str) -> bool:
    """Whether *text* is written like DNS labels with points between them, whatever their length."""
    return all(map(has_label_form, text.split(".")))
