"""Which NCCL benchmark fits a recipe: the variants, the compiled matrix, and the profile that overrides it.

```
criteria, stated constraints ──► pair(...) ──► template_path(variant, pair, fabric)
```

The matrix is what the product has templates for; a recipe of another service can name one of its pairs
with `nccl-benchmark-profile`. Everything here is pure and looks at the recipe alone: never at what
happens to be installed. Source: validators spec 7.2 "Applicability matrix", "nccl-benchmark-profile";
requirements V-276 to V-283.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from aicr.checks.sdk import Skip
from aicr.errors import AicrError, invalid, nearest

PROFILE: Final = "nccl-benchmark-profile"
ANY: Final = "any"
EFA: Final = "efa"
ROCE: Final = "roce"
#: Of the RoCE template, which is the same for every accelerator.
ROCE_FOLDER: Final = "roce"
UNSUPPORTED: Final = "skipped - requires Service + Accelerator to be implemented"
_TESTDATA: Final = "validators/performance/testdata"
_SEGMENT: Final = re.compile(r"[a-z0-9][a-z0-9-]*")


@dataclass(frozen=True, slots=True)
class Variant:
    """A way to run the benchmark.

    Attributes:
        check: name of the check, and of the one constraint that it reads.
        key: as profiles, namespaces and template names spell it; "" for the default one.
        supported: service → accelerators with a template, for the fabric `efa`.
    """

    check: str
    key: str
    supported: Mapping[str, frozenset[str]]

    @property
    def word(self) -> str:
        """The variant in messages and in the namespace's name."""
        return self.key or "default"


@dataclass(frozen=True, slots=True)
class Pair:
    """Accelerator and service whose template is used."""

    accelerator: str
    service: str

    def __str__(self) -> str:
        return f"{self.accelerator}/{self.service}"


DEFAULT: Final = Variant(
    "nccl-all-reduce-bw",
    "",
    {
        "eks": frozenset({"h100", "h200"}),
        "gke": frozenset({"h100"}),
        "aks": frozenset({"h100"}),
        ANY: frozenset({"b200", "gb200"}),
    },
)
NET: Final = Variant(
    "nccl-all-reduce-bw-net",
    "net",
    {"eks": frozenset({"gb200", "gb300"}), "oke": frozenset({"gb200"})},
)
NVLS: Final = Variant(
    "nccl-all-reduce-bw-nvls",
    "nvls",
    {
        "eks": frozenset({"gb200", "gb300"}),
        "oke": frozenset({"gb200"}),
        "gke": frozenset({"gb200"}),
        "rke2": frozenset({"vr200"}),
        "generic": frozenset({"gb300"}),
    },
)
VARIANTS: Final = (DEFAULT, NET, NVLS)
#: Services whose network variant has a RoCE template.
ROCE_SERVICES: Final = frozenset({"eks"})


def pairs(variant: Variant) -> list[Pair]:
    """The pairs that *variant* has templates for, sorted."""
    return sorted(
        (
            Pair(accelerator, service)
            for service, each in variant.supported.items()
            for accelerator in each
        ),
        key=str,
    )


def profiles() -> list[str]:
    """Every pair that a profile may name: those that some variant has."""
    return sorted({str(pair) for variant in VARIANTS for pair in pairs(variant)})


def parse_profile(text: str) -> Pair:
    """The pair that a profile names.

    Raises:
        AicrError: INVALID_REQUEST for another form, and for a pair that no variant has: a profile is
            somebody's wish, and a wish that cannot be read is no reason to skip.
    """
    parts = text.split("/")
    if len(parts) != 2 or not all(_SEGMENT.fullmatch(part) for part in parts):
        raise _wrong(
            f'{PROFILE} "{text}" is not of the form accelerator/service', "for example gb200/eks"
        )
    if text not in profiles():
        near = nearest(text, profiles())
        raise _wrong(
            f'{PROFILE} "{text}" names no benchmark of this version',
            f"did you mean {near}?" if near else f"known: {', '.join(profiles())}",
        )
    return Pair(*parts)


def pair(
    variant: Variant, criteria: Mapping[str, Any], profile: Pair | None, fabric: str = EFA
) -> Pair:
    """The pair whose template *variant* runs for a recipe.

    Args:
        variant: what runs.
        criteria: of the recipe; an absent word means `any`.
        profile: what the recipe names instead, already checked.
        fabric: `EFA` or `ROCE`; looked at for the network variant only.

    Raises:
        Skip: when there is no template.
    """
    found = profile or Pair(word(criteria, "accelerator"), word(criteria, "service"))
    if variant is NET and fabric == ROCE:
        supported = found.service in ROCE_SERVICES
    else:
        supported = found.accelerator in variant.supported.get(found.service, frozenset())
    if supported:
        return found
    if profile is not None:
        raise Skip(
            f"skipped - benchmark profile {profile} does not implement the {variant.word} NCCL variant"
        )
    raise Skip(UNSUPPORTED)


def word(criteria: Mapping[str, Any], name: str) -> str:
    """One word of a recipe's criteria; `any` when it says nothing."""
    return str(criteria.get(name) or ANY)


def template_path(variant: Variant, found: Pair, fabric: str = EFA) -> str:
    """Where the template of a pair lies in the catalogue."""
    name = f"runtime-{variant.key}.yaml" if variant.key else "runtime.yaml"
    folder = ROCE_FOLDER if variant is NET and fabric == ROCE else found.accelerator
    return f"{_TESTDATA}/{folder}/{found.service}/{name}"


def template_paths() -> Iterator[tuple[Variant, Pair, str, str]]:
    """Variant, pair, fabric and path of every template that is advertised."""
    for variant in VARIANTS:
        for each in pairs(variant):
            yield variant, each, EFA, template_path(variant, each)
    for service in sorted(ROCE_SERVICES):
        each = Pair(ANY, service)
        yield NET, each, ROCE, template_path(NET, each, ROCE)


def _wrong(message: str, hint: str) -> AicrError:
    return invalid(message, where="validation.performance.constraints", hint=hint)
