"""Trial compositions: every selectable overlay resolved as its own criteria would resolve it.

The resolver stops at its first problem. A trial takes the resolver's own steps one by one (select,
merge, mixins, profile, defaults, dependencies, coherence, values, manifests), notes what each refuses,
and goes on with what is left. A problem that many overlays share is noted once, at the overlay or mixin
that states it, with the number of recipes it is in.

In the end the real resolver is asked as well: a tree that passes every rule resolves. It must not know
how findings are printed. Source: recipe spec 4.3 to 4.11 and 7, bundler spec 2.7.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from aicr.bundle.gotemplate.functions import NAMES
from aicr.bundle.gotemplate.parser import parse as parse_template
from aicr.bundle.manifests import documents, render_manifest
from aicr.bundle.options import BundleOptions, parse_scheduling
from aicr.bundle.placement import Target, write_placement
from aicr.catalog.dependencies import check_dependencies, is_enabled
from aicr.catalog.registry import KUSTOMIZE
from aicr.errors import AicrError, nearest, some_of
from aicr.lint.decoder import problem_of
from aicr.lint.findings import Problem, split_place
from aicr.lint.folder_trial import refusal
from aicr.recipe import profile as profiles
from aicr.recipe.coherence import ref_problems, with_defaults
from aicr.recipe.configuration import TCPXO_RUNTIME, apply_configuration, ships_tcpxo_runtime
from aicr.recipe.criteria import Criteria
from aicr.recipe.hydrate import resolve_values
from aicr.recipe.match import chain, maximal_leaves, stated_words
from aicr.recipe.merge import Composition, compose
from aicr.recipe.mixins import apply_mixins
from aicr.recipe.resolve import resolve

if TYPE_CHECKING:
    from collections.abc import Callable

    from aicr.catalog.catalog import Catalog
    from aicr.catalog.types import ComponentRef
    from aicr.lint.ground import Ground
    from aicr.lint.reading import Source

MIXIN = "mixin-conflict"
PROFILE = "profile-conflict"
DEPENDENCY = "dependency-unknown"
CIRCLE = "dependency-circle"
INCOHERENT = "component-incoherent"
UNDEPLOYABLE = "component-undeployable"
TEMPLATE = "template-syntax"
RENDER = "manifest-render"
UNRESOLVABLE = "recipe-unresolvable"

#: A choice that stands for the one a person with eight GPU networks makes.
_INTERFACES = [{"interfaceName": f"eth{n}", "network": f"gpu-nic-{n}"} for n in range(1, 9)]
_SHOWN = 3
#: Fields of a ref that decide what its manifests look like; equal ones are rendered once.
_RENDERED_BY = (
    "name",
    "namespace",
    "chart",
    "version",
    "valuesFile",
    "overrides",
    "manifestFiles",
    "preManifestFiles",
)


class Trials:
    """All trials of a ground; making one runs them.

    Attributes:
        found: (rule, where, message) -> hint and the overlays whose recipe has the problem.
    """

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.found: dict[tuple[str, str, str], tuple[str, list[str]]] = {}
        self._overlay = ""
        self._rendered: set[str] = set()
        self._laid_out: dict[str, AicrError | None] = {}
        self._scheduling = parse_scheduling(BundleOptions())
        self._parsed: dict[str, bool] = {}
        for path in ground.tree.paths():
            if "/manifests/" in path and path.endswith(".yaml"):
                self._parse(path)
        if ground.catalog is None:
            return
        for name in ["base", *sorted(ground.catalog.overlays)]:
            source = ground.overlays[name]
            if name == "base" or source.spec.get("criteria") is not None:
                self._overlay = name
                self._try(ground.catalog, source)
        for (rule, where, message), (hint, overlays) in self.found.items():
            ground.note(rule, where, message + _in_recipes(overlays), hint)

    def _note(self, rule: str, where: str, message: str, hint: str = "") -> None:
        _, overlays = self.found.setdefault((rule, where, message), (hint, []))
        if self._overlay and self._overlay not in overlays:
            overlays.append(self._overlay)

    def _guard(self, rule: str, where: str, action: Callable[[], object]) -> bool:
        """Run a step of the resolver; what it refuses is noted at *where*."""
        try:
            action()
        except AicrError as error:
            _, message, hint = problem_of(error, where)
            self._note(rule, where, message, hint)
            return False
        return True

    def _try(self, catalog: Catalog, source: Source) -> None:
        before = len(self.found)
        query = stated_words(source.document) if source.name != "base" else {}
        try:
            chains = [chain(catalog, leaf) for leaf in maximal_leaves(catalog, query)]
        except AicrError:
            # Another overlay that this query selects has a broken chain; it has its own finding.
            return
        specs = {name: catalog.overlays[name]["spec"] for members in chains for name in members}
        composition = compose(catalog.base["spec"], chains, specs)
        if any(not self._usable(name) for name in composition.mixins):
            return
        self._mixins(composition, catalog)
        for variant in self._profiles(composition):
            self._finish(variant, catalog, query)
        if len(self.found) == before and not self._known_bad():
            self._ask_the_resolver(catalog, source, query, composition)

    def _known_bad(self) -> bool:
        return any(self._overlay in overlays for _, overlays in self.found.values())

    def _usable(self, mixin: str) -> bool:
        found = self.ground.mixins.get(mixin)
        return found is not None and found.sound

    def _mixins(self, composition: Composition, catalog: Catalog) -> None:
        """Apply the mixins one at a time, so that each can have its own problem."""
        names = composition.mixins
        for name in names:
            composition.mixins = [name]
            try:
                apply_mixins(composition, catalog)
            except AicrError as error:
                _, message, hint = problem_of(error, "")
                where = _mixin_place(self.ground.mixins[name], message)
                self._note(MIXIN, where, message, hint)
        composition.mixins = names

    def _profiles(self, composition: Composition) -> list[Composition]:
        """The composition under each value of its profile; as it is when it has none."""
        declared = composition.profiles
        if not declared:
            return [composition]
        owner = self.ground.overlays[declared[-1][0]]
        where = owner.where("spec", "profile")
        if not self._guard(PROFILE, where, lambda: profiles.choose(composition, ("", ""))):
            return [composition]
        variants = []
        for value in declared[0][1]["values"]:
            variant = composition.fork()
            place = owner.where("spec", "profile", "values", value)
            profile = declared[0][1]
            if self._guard(PROFILE, place, _applied(variant, profile, value)):
                variants.append(variant)
        return variants or [composition]

    def _finish(self, composition: Composition, catalog: Catalog, query: dict[str, str]) -> None:
        configuration: dict[str, Any] = {}
        if ships_tcpxo_runtime(composition.refs):
            configuration["gke"] = {"tcpxoInterfaces": _INTERFACES}
        where = self.ground.overlays[self._overlay].where("metadata", "name")
        criteria = _criteria(query)
        action = lambda: apply_configuration(composition.refs, configuration, criteria)  # noqa: E731
        self._guard(UNRESOLVABLE, where, action)
        refs: list[ComponentRef] = []
        for name in sorted(composition.refs):
            refs.append(with_defaults(composition.refs[name], catalog.registry.get(name)))
        self._dependencies(composition, refs)
        for ref in refs:
            if not is_enabled(ref):
                continue
            problems = ref_problems(ref)
            for problem in problems:
                self._note(INCOHERENT, self._owner(composition, ref["name"]), problem)
            if not problems and ref.get("type") != KUSTOMIZE:
                self._lay_out(composition, catalog, ref)
                self._render(composition, catalog, ref)

    def _dependencies(self, composition: Composition, refs: list[ComponentRef]) -> None:
        names = sorted(ref["name"] for ref in refs)
        sound: list[ComponentRef] = []
        for ref in refs:
            known = []
            for dependency in ref.get("dependencyRefs") or ():
                if dependency in names:
                    known.append(dependency)
                    continue
                near = nearest(dependency, names)
                self._note(
                    DEPENDENCY,
                    self._dependency(composition, ref["name"], dependency),
                    f'component "{ref["name"]}" references unknown dependency "{dependency}"',
                    f'did you mean "{near}"?'
                    if near
                    else f'add "{dependency}" to componentRefs, or drop the reference',
                )
            sound.append({"name": ref["name"], "dependencyRefs": known})
        try:
            check_dependencies(sound)
        except AicrError as error:
            reason = error.chain()[-1]
            circle = reason.message.partition("[")[2].rstrip("]").split()
            places = [
                self._dependency(composition, name, dependency)
                for name, dependency in pairwise(circle)
            ]
            # What a data directory adds to a sound tree is what closes the circle.
            top = self.ground.readings[-1].files.place("")
            place = next((place for place in places if place.startswith(top)), places[0])
            self._note(CIRCLE, place, reason.message, reason.hint)

    def _lay_out(self, composition: Composition, catalog: Catalog, ref: ComponentRef) -> None:
        """The folder of a component, as every bundle would have it."""
        key = repr([ref.get(field) for field in ("source", *_RENDERED_BY) if field != "overrides"])
        if key not in self._laid_out:
            self._laid_out[key] = refusal(ref, catalog.registry.get(ref["name"]))
        if error := self._laid_out[key]:
            where = self._owner(composition, ref["name"])
            self._note(UNDEPLOYABLE, where, error.message, error.hint)

    def _render(self, composition: Composition, catalog: Catalog, ref: ComponentRef) -> None:
        """Values of a component and its manifests, as a bundle without flags would have them."""
        name = ref["name"]
        files = [*(ref.get("manifestFiles") or ()), *(ref.get("preManifestFiles") or ())]
        if not files or (ref.get("valuesFile") and not catalog.tree.exists(ref["valuesFile"])):
            return
        key = repr([ref.get(field) for field in _RENDERED_BY])
        if key in self._rendered:
            return
        self._rendered.add(key)
        try:
            values = resolve_values(ref, catalog.tree)
        except AicrError as error:
            problem = problem_of(error, self._owner(composition, name))
            if not self._reported(problem):
                self._note(UNRESOLVABLE, *problem)
            return
        values.pop("enabled", None)
        target = Target(name, catalog.registry.get(name) or {}, ref.get("overrides") or {}, values)
        if not self._guard(
            RENDER,
            self._owner(composition, name),
            lambda: write_placement(target, self._scheduling),
        ):
            return
        for path in files:
            if not catalog.tree.exists(path) or not self._parse(path):
                continue
            place = self.ground.tree.place(path)
            try:
                text = render_manifest(
                    catalog.tree.read_text(path),
                    source=place,
                    component=name,
                    values=target.values,
                    namespace=ref.get("namespace") or name,
                    chart_name=ref.get("chart") or name,
                    chart_version=ref.get("version") or "",
                )
                documents(text, place)
            except AicrError as error:
                where, message, hint = problem_of(error, place)
                self._note(RENDER, where, f'component "{name}": {message}', hint)

    def _reported(self, problem: Problem) -> bool:
        """Whether the file of a problem was found wanting while it was read."""
        file = split_place(problem.where)[0]
        return any(split_place(noted.where)[0] == file for _, noted in self.ground.noted)

    def _parse(self, path: str) -> bool:
        """Whether a manifest is a template that can be read; noted once when it is not."""
        if path not in self._parsed:
            place = self.ground.tree.place(path)
            before, self._overlay = self._overlay, ""

            def read() -> None:
                parse_template(self.ground.tree.read_text(path), place, NAMES)

            try:
                read()
                self._parsed[path] = True
            except AicrError as error:
                self._note(TEMPLATE, *problem_of(error, place))
                self._parsed[path] = False
            self._overlay = before
        return self._parsed[path]

    def _ask_the_resolver(
        self,
        catalog: Catalog,
        source: Source,
        query: dict[str, str],
        composition: Composition,
    ) -> None:
        if not query or not self._checks_exist(catalog, composition):
            return
        configuration: dict[str, Any] = {}
        if any(TCPXO_RUNTIME in file for file in _manifests(composition)):
            configuration["gke"] = {"tcpxoInterfaces": _INTERFACES}
        where = source.where("metadata", "name")
        action = lambda: resolve(catalog, _criteria(query), configuration=configuration)  # noqa: E731
        self._guard(UNRESOLVABLE, where, action)

    def _checks_exist(self, catalog: Catalog, composition: Composition) -> bool:
        """Whether no health check is missing, which has its own finding."""
        entries: list[Any] = [catalog.registry.get(name) or {} for name in composition.refs]
        files = [(entry.get("healthCheck") or {}).get("assertFile") for entry in entries]
        return all(catalog.tree.exists(file) for file in files if file)

    def _owner(self, composition: Composition, name: str) -> str:
        """Where a component was last stated in a composition."""
        for source in self._stating(composition, name):
            return source.ref_where(name)
        return self.ground.overlays[self._overlay].where("metadata", "name")

    def _dependency(self, composition: Composition, name: str, dependency: str) -> str:
        """Where a dependency was last stated in a composition."""
        for source in self._stating(composition, name):
            found = (source.ref(name) or {}).get("dependencyRefs") or []
            if dependency in found:
                return source.ref_where(name, "dependencyRefs", found.index(dependency))
        return self._owner(composition, name)

    def _stating(self, composition: Composition, name: str) -> list[Source]:
        """Overlays and mixins of a composition that have a ref of that name, last first."""
        members = [self.ground.overlays[overlay] for overlay in composition.applied]
        members += [self.ground.mixins[mixin] for mixin in composition.mixins]
        return [source for source in reversed(members) if name in source.refs]


def trials(ground: Ground) -> Trials:
    """The trials of a ground, run once."""
    if "trials" not in ground.facts:
        ground.facts["trials"] = Trials(ground)
    found: Trials = ground.facts["trials"]
    return found


def _mixin_place(mixin: Source, message: str) -> str:
    """Where in a mixin stands what a conflict is about: names in its message lead there."""
    for path, constraint in mixin.constraints:
        if f'constraint "{constraint["name"]}"' in message:
            return mixin.where(*path, "name")
    for name in mixin.refs:
        if f'component "{name}"' not in message:
            continue
        field = re.search(r'field "([^"]+)"', message)
        override = re.search(r'path "([^"]+)"', message)
        if field:
            return mixin.ref_where(name, field[1])
        return mixin.ref_where(name, *(("overrides", *override[1].split(".")) if override else ()))
    return mixin.where("metadata", "name")


def _applied(variant: Composition, profile: Any, value: str) -> Callable[[], object]:
    return lambda: profiles.apply_profile(variant, profile, value)


def _criteria(query: dict[str, str]) -> Criteria:
    return Criteria().replaced(**query)


def _manifests(composition: Composition) -> list[str]:
    return [file for ref in composition.refs.values() for file in ref.get("manifestFiles") or ()]


def _in_recipes(overlays: list[str]) -> str:
    """Which recipes have a problem, in words."""
    if not overlays:
        return ""
    return f" (in the recipe of {some_of(overlays, _SHOWN)})"
