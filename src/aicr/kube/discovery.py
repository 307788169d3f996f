"""What kinds a server has: name → `Resource`, from aggregated discovery or the endpoints before it.

Two answers that look alike must stay apart (field case G2): *the server has no such kind*, which only a
complete answer can say (NOT_FOUND), and *the group that would have it cannot be reached*, as when
an aggregated API server is down (SERVICE_UNAVAILABLE). A `Catalogue` is what one server said, and
is pure; `Discovery` keeps it, asks again when it is old, and shortly after something was missing,
because a CRD may just have been made.

It must not know transports: a function that fetches a path is passed in.

Source: Kubernetes API concepts (aggregated discovery v2), apidiscovery.k8s.io/v2.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from aicr.errors import NOT_FOUND, SERVICE_UNAVAILABLE, AicrError, invalid, nearest, not_found
from aicr.kube import decoding, request
from aicr.kube.kinds import Resource
from aicr.kube.timeouts import Timeouts

#: What we ask for, best first; a server without aggregated discovery answers with the last.
ACCEPT: Final = (
    ",".join(
        f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
        for version in ("v2", "v2beta1")
    )
    + ",application/json"
)

#: Sends a request, gives the body; raises AicrError.
Fetch = Callable[[request.Request], Awaitable[bytes]]


@dataclass(slots=True)
class Catalogue:
    """What one server serves. Group versions and, in each group, versions are in its order of
    preference.
    """

    #: "apps/v1" → its resources.
    served: dict[str, list[Resource]] = field(default_factory=dict)
    #: "metrics.k8s.io/v1beta1" → why nothing is known of it now.
    unreachable: dict[str, str] = field(default_factory=dict)

    def group_versions(self, group: str) -> list[str]:
        """Group versions of *group*, reachable or not, preferred first."""
        found = [*self.served, *(gv for gv in self.unreachable if gv not in self.served)]
        return [group_version for group_version in found if group_of(group_version) == group]

    def kind(self, api_version: str, kind: str) -> Resource:
        """The resource of a kind as documents name it.

        NOT_FOUND (context ``absent``: ``group``, ``version`` or ``kind``), or SERVICE_UNAVAILABLE
        if its group cannot be reached.
        """
        for resource in self.served.get(api_version, ()):
            if resource.kind == kind:
                return resource
        if api_version in self.unreachable:
            raise self._unreachable(f'kind "{kind}"', [api_version])
        group = group_of(api_version)
        if api_version in self.served:
            kinds = sorted({resource.kind for resource in self.served[api_version]})
            raise _absent(
                "kind", f'the server has no kind "{kind}" in {api_version}', nearest(kind, kinds)
            )
        versions = self.group_versions(group)
        if versions:
            raise not_found(
                f"the server does not serve {api_version}",
                hint=f"it serves {', '.join(versions)}",
                context={"absent": "version"},
            )
        groups = sorted({group_of(group_version) for group_version in self.served})
        raise _absent(
            "group", f'the server has no API group "{group}", so no {kind}', nearest(group, groups)
        )

    def named(self, name: str) -> Resource:
        """The resource that *name* means, as kubectl reads it.

        ``pods``, ``pod``, ``po``, ``Pod``, ``deployments.apps``, ``deployments.v1.apps``,
        ``v1/Pod``, ``apps/v1/Deployment``. The core group and then the server's order decide
        between groups. NOT_FOUND if no group has it; if some group cannot be reached we cannot
        tell, and it is SERVICE_UNAVAILABLE.
        """
        if "/" in name:
            api_version, _, kind = name.rpartition("/")
            return self.kind(api_version, kind)
        word, _, rest = name.partition(".")
        matches = [found for found in self._all() if _answers_to(found, word)]
        if rest:
            matches = [
                found
                for found in matches
                if rest in (found.group, f"{found.version}.{found.group}".rstrip("."))
            ]
        if matches:
            return matches[0]
        doubtful = [
            group_version
            for group_version in self.unreachable
            if not rest or rest.endswith(group_of(group_version))
        ]
        if doubtful:
            raise self._unreachable(f'resource "{name}"', doubtful)
        known = {found.qualified if rest else found.plural for found in self._all()}
        known |= {found.singular or found.kind.lower() for found in self._all() if not rest}
        raise _absent("kind", f'the server has no resource "{name}"', nearest(name, sorted(known)))

    def _all(self) -> Iterable[Resource]:
        for resources in self.served.values():
            yield from resources

    def _unreachable(self, what: str, group_versions: list[str]) -> AicrError:
        reasons = "; ".join(f"{name}: {self.unreachable[name]}" for name in group_versions)
        return AicrError(
            SERVICE_UNAVAILABLE,
            f"cannot tell whether the server has {what}: an API group cannot be reached ({reasons})",
            hint="kubectl get apiservices shows which are not available",
            context={"unreachable": group_versions},
        )


def group_of(api_version: str) -> str:
    """The group of an apiVersion; "" for the core group."""
    return api_version.rpartition("/")[0]


def _answers_to(resource: Resource, word: str) -> bool:
    lower = word.lower()
    names = (resource.plural, resource.singular or resource.kind.lower(), resource.kind.lower())
    return lower in names or lower in resource.short_names


def _absent(what: str, message: str, close: str) -> AicrError:
    hint = f'did you mean "{close}"?' if close else "its CRD or API server may not be installed"
    return not_found(message, hint=hint, context={"absent": what})


def read_aggregated(document: Mapping[str, Any], catalogue: Catalogue) -> None:
    """Add an APIGroupDiscoveryList to *catalogue*. A version that is not fresh counts as unreachable.

    The server repeats for a stale version what it knew before; trusting that would turn an outage into
    objects that are "not there".
    """
    for group in document.get("items") or []:
        name = (group.get("metadata") or {}).get("name", "")
        for version in group.get("versions") or []:
            number = version["version"]
            group_version = f"{name}/{number}" if name else number
            if version.get("freshness") == "Stale":
                catalogue.unreachable[group_version] = "its discovery is stale"
                continue
            catalogue.served[group_version] = [
                _aggregated_resource(name, number, found)
                for found in version.get("resources") or []
                if (found.get("responseKind") or {}).get("kind")
            ]


def _aggregated_resource(group: str, version: str, found: Mapping[str, Any]) -> Resource:
    return Resource(
        group,
        version,
        found["resource"],
        found["responseKind"]["kind"],
        found.get("scope") == "Namespaced",
        found.get("singularResource") or "",
        tuple(found.get("shortNames") or ()),
        tuple(found.get("verbs") or ()),
        tuple(part["subresource"] for part in found.get("subresources") or []),
        tuple(found.get("categories") or ()),
    )


def legacy_group_versions(document: Mapping[str, Any]) -> list[str]:
    """Group versions of an APIVersions or APIGroupList document, preferred ones of a group first."""
    if document.get("kind") == "APIVersions":
        return list(document.get("versions") or [])
    found = []
    for group in document.get("groups") or []:
        versions = [entry["groupVersion"] for entry in group.get("versions") or []]
        preferred = (group.get("preferredVersion") or {}).get("groupVersion")
        found += sorted(versions, key=lambda version: version != preferred)
    return found


def read_legacy(group_version: str, document: Mapping[str, Any]) -> list[Resource]:
    """The resources of an APIResourceList; subresources (``pods/log``) go to their resource."""
    group, _, version = group_version.rpartition("/")
    entries = document.get("resources") or []
    below: dict[str, list[str]] = {}
    for entry in entries:
        parent, slash, subresource = entry["name"].partition("/")
        if slash:
            below.setdefault(parent, []).append(subresource)
    return [
        Resource(
            group,
            version,
            entry["name"],
            entry["kind"],
            bool(entry.get("namespaced")),
            entry.get("singularName") or "",
            tuple(entry.get("shortNames") or ()),
            tuple(entry.get("verbs") or ()),
            tuple(below.get(entry["name"], ())),
            tuple(entry.get("categories") or ()),
        )
        for entry in entries
        if "/" not in entry["name"]
    ]


async def discover(fetch: Fetch) -> Catalogue:
    """Ask a server for all its kinds; a group that does not answer is noted, not an error."""
    catalogue = Catalogue()
    for root in ("/api", "/apis"):
        asked = request.raw(root, accept=ACCEPT)
        document = decoding.document(asked, await fetch(asked))
        if document.get("kind") == "APIGroupDiscoveryList":
            read_aggregated(document, catalogue)
            continue
        for group_version in legacy_group_versions(document):
            await _read_group_version(fetch, group_version, catalogue)
    return catalogue


async def _read_group_version(fetch: Fetch, group_version: str, catalogue: Catalogue) -> None:
    asked = request.raw(
        f"/apis/{group_version}" if "/" in group_version else f"/api/{group_version}"
    )
    try:
        document = decoding.document(asked, await fetch(asked))
    except AicrError as error:
        if error.code == NOT_FOUND:
            return  # removed since the list of groups was made
        catalogue.unreachable[group_version] = error.message
        return
    catalogue.served[group_version] = read_legacy(group_version, document)


class Discovery:
    """Keeps what `discover` found; see the module for when it asks again.

    Args:
        fetch: sends a request and gives the body.
        clock: seconds, monotonic.
        timeouts: `discovery` and `discovery_miss` are used.
    """

    def __init__(self, fetch: Fetch, *, clock: Callable[[], float], timeouts: Timeouts) -> None:
        self._fetch = fetch
        self._clock = clock
        self._timeouts = timeouts
        self._catalogue: Catalogue | None = None
        self._asked_at = 0.0
        self._lock = asyncio.Lock()

    async def kind(self, api_version: str, kind: str) -> Resource:
        """As `Catalogue.kind`."""
        if not api_version or not kind:
            raise invalid("the document has no apiVersion or kind")
        return await self._look_up(lambda catalogue: catalogue.kind(api_version, kind))

    async def named(self, name: str) -> Resource:
        """As `Catalogue.named`."""
        if not name:
            raise invalid("name of the resource is missing")
        return await self._look_up(lambda catalogue: catalogue.named(name))

    async def catalogue(self, *, max_age: float | None = None) -> Catalogue:
        """What the server serves, at most *max_age* seconds old."""
        limit = self._timeouts.discovery if max_age is None else max_age
        async with self._lock:
            if self._catalogue is None or self._clock() - self._asked_at > limit:
                self._catalogue = await discover(self._fetch)
                self._asked_at = self._clock()
            return self._catalogue

    def forget(self) -> None:
        """Ask again next time: a path that discovery gave turned out not to be served."""
        self._catalogue = None

    async def _look_up(self, find: Callable[[Catalogue], Resource]) -> Resource:
        try:
            return find(await self.catalogue())
        except AicrError as error:
            if error.code not in (NOT_FOUND, SERVICE_UNAVAILABLE):
                raise
        return find(await self.catalogue(max_age=self._timeouts.discovery_miss))
