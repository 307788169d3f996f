"""Rules about what overlays add up to; the trials find the problems, the rules name them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from aicr.lint import trial
from aicr.lint.findings import ERROR, WARNING, Problem, rule

if TYPE_CHECKING:
    from aicr.lint.ground import Ground


def _tried(id: str, why: str) -> None:
    def find(ground: Ground) -> Iterator[Problem]:
        trial.trials(ground)
        return ground.of(id)

    rule(id, ERROR, why)(find)


_tried(trial.MIXIN, "A mixin may add to a recipe but never contradict what is there.")
_tried(trial.PROFILE, "A profile must fit the recipe that declares it, under each of its values.")
_tried(trial.DEPENDENCY, "A dependency on a component that the recipe lacks stops the resolution.")
_tried(trial.CIRCLE, "Components that wait for each other can never be deployed.")
_tried(trial.INCOHERENT, "A component without chart, version or manifest cannot be deployed.")
_tried(
    trial.UNDEPLOYABLE,
    "A name, namespace, chart address or manifest name that no folder can have stops every bundle.",
)
_tried(trial.TEMPLATE, "A manifest that is no Go template of the supported kind stops the bundle.")
_tried(trial.RENDER, "A manifest that does not render to Kubernetes objects stops the bundle.")
_tried(trial.UNRESOLVABLE, "The criteria of an overlay must lead to a recipe.")


@rule(
    "toggle-not-boolean",
    WARNING,
    "Only a literal false switches a component off; a text or number leaves it on.",
)
def toggle_not_boolean(ground: Ground) -> Iterator[Problem]:
    """``enabled`` and ``install`` that are no booleans (recipe spec 4.6)."""
    for source in ground.sources():
        for name in source.refs:
            overrides = (source.ref(name) or {}).get("overrides") or {}
            for key in ("enabled", "install"):
                value = overrides.get(key)
                if value is not None and not isinstance(value, bool):
                    yield Problem(
                        source.ref_where(name, "overrides", key),
                        f'component "{name}": overrides.{key} is {value!r}, not true or false; the '
                        f"component stays enabled",
                        "write true or false without quotes",
                    )


@rule(
    "kustomize-override",
    WARNING,
    "A Kustomize component has no values, so overrides on it have no effect.",
)
def kustomize_override(ground: Ground) -> Iterator[Problem]:
    """Overrides of components whose registry entry is a kustomization (recipe spec 3.6)."""
    for source in ground.sources():
        for name in source.refs:
            entry = ground.entries.get(name)
            kustomize = (entry.entry.get("kustomize") or {}) if entry is not None else {}
            overrides = (source.ref(name) or {}).get("overrides") or {}
            effective = [key for key in overrides if key not in ("enabled", "install")]
            if kustomize.get("defaultSource") and effective:
                yield Problem(
                    source.ref_where(name, "overrides"),
                    f'component "{name}" is a kustomization: its overrides do nothing',
                    "patch the kustomization itself, or remove the overrides",
                )
