"""The criteria vocabulary: fields, their built-in values, aliases, and GPU product names.

These are the values the product knows without any catalogue; overlays may teach more, which is the
criteria registry's business, not this module's. It must not know queries, overlays or snapshots,
and it is on the hot path. Source: recipe spec 1.1, 1.2 and 1.10.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: The wildcard value of every field.
ANY: Final = "any"

SERVICES: Final = (
    "aks",
    "bcm",
    "eks",
    "generic",
    "gke",
    "k0s",
    "kind",
    "lke",
    "metal3",
    "ocp",
    "oke",
    "rke2",
)
ACCELERATORS: Final = (
    "a100",
    "b200",
    "gb200",
    "gb300",
    "h100",
    "h200",
    "l40",
    "l40s",
    "rtx-pro-6000",
    "vr200",
)
INTENTS: Final = ("inference", "training")
OSES: Final = ("amazonlinux", "cos", "ol", "rhel", "talos", "ubuntu")
PLATFORMS: Final = ("dynamo", "kubeflow", "nim", "runai", "slurm")

#: The five matched fields, in the order every output lists them.
FIELDS: Final = ("service", "accelerator", "intent", "os", "platform")

#: Built-in values by field, sorted.
VALUES: Final[dict[str, tuple[str, ...]]] = {
    "service": SERVICES,
    "accelerator": ACCELERATORS,
    "intent": INTENTS,
    "os": OSES,
    "platform": PLATFORMS,
}

#: Other spellings by field.
ALIASES: Final[dict[str, dict[str, str]]] = {
    "service": {
        "openshift": "ocp",
        "self": "generic",
        "self-managed": "generic",
        "vanilla": "generic",
    },
    "accelerator": {},
    "intent": {},
    "os": {"al2": "amazonlinux", "al2023": "amazonlinux"},
    "platform": {},
}

#: ``ID`` of /etc/os-release to criteria value; an ID that is not here leaves the field unset.
OS_RELEASE_IDS: Final[dict[str, str]] = {
    "al2": "amazonlinux",
    "al2023": "amazonlinux",
    "amazon": "amazonlinux",
    "amazonlinux": "amazonlinux",
    "amzn": "amazonlinux",
    "cos": "cos",
    "ol": "ol",
    "redhat": "rhel",
    "redhatenterpriselinux": "rhel",
    "rhel": "rhel",
    "talos": "talos",
    "ubuntu": "ubuntu",
}

#: Services that a measurement cannot show: they are a statement of the user.
NEVER_DETECTED: Final = ("generic",)

# Longest first, so that l40s is not read as l40, nor gb200 as b200.
_BY_LENGTH: Final = tuple(sorted(ACCELERATORS, key=lambda value: (-len(value), value)))


def known(field: str, text: str) -> str:
    """The built-in value that *text* spells (any case, blanks around it, aliases), or "".

    *field* is one of FIELDS. The wildcard is not a value. Source: recipe spec 1.3, steps 1 and 3.
    """
    word = text.strip().lower()
    word = ALIASES[field].get(word, word)
    return word if word in VALUES[field] else ""


def accelerator_of(product: str) -> str:
    """The accelerator value of a GPU product name, or "" for one that is not in the vocabulary.

    Reads what node labels, nvidia-smi and PCI data say: ``NVIDIA-H100-80GB-HBM3``, ``NVIDIA
    GB200``, ``GH100 [H100 SXM5 80GB]``, ``NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition``. A value
    counts only as a word of its own: ``GH200`` is no h200, ``A1000`` no a100, ``L40G`` no l40.
    Letters may follow a number of three digits (``H100NVL``), because there they name a form
    factor. Source: recipe spec 1.10, SKU parser.
    """
    name = "".join(
        character if "a" <= character <= "z" or "0" <= character <= "9" else "-"
        for character in product.lower()
    )
    name = "-".join(word for word in name.split("-") if word)
    for value in _BY_LENGTH:
        start = name.find(value)
        while start >= 0:
            if _is_word(name, start, start + len(value)):
                return value
            start = name.find(value, start + 1)
    return ""


def _is_word(name: str, start: int, end: int) -> bool:
    if start > 0 and name[start - 1] != "-":
        return False
    after = name[end : end + 1]
    if after in ("", "-"):
        return True
    return not after.isdigit() and name[end - 3 : end].isdigit()
