"""Which discoverer counts for a namespace, and how one is built from a ``gangDiscovery`` block.

The default is built at start, and the process does not start without it; overrides come and go with
PreflightConfig objects (preflight spec 3.5). All in one event loop, so no lock is needed. It must not
know where blocks come from.
"""

from __future__ import annotations

from aicr.errors import AicrError
from aicr.kube.client import Client
from aicr.preflight.gang import native, podgroup
from aicr.preflight.gang.groups import Anchor, Discoverer
from aicr.preflight.gang.pods import GangPod
from aicr.preflight.gang_discovery import GangDiscovery


class Resolver:
    """Namespace → discoverer."""

    def __init__(self, default: Discoverer) -> None:
        self.default = default
        self._overrides: dict[str, Discoverer] = {}

    def of(self, namespace: str) -> Discoverer:
        """The namespace's own discoverer, or the default."""
        return self._overrides.get(namespace, self.default)

    def set(self, namespace: str, discoverer: Discoverer) -> None:
        """Use *discoverer* for *namespace*."""
        self._overrides[namespace] = discoverer

    def remove(self, namespace: str) -> None:
        """Let *namespace* use the default again."""
        self._overrides.pop(namespace, None)

    def anchor(self, pod: GangPod) -> Anchor | None:
        """Where *pod* is anchored, by the discoverer of its namespace."""
        return self.of(pod.namespace).anchor(pod)


async def build(
    client: Client, settings: GangDiscovery, *, ancestors: bool = False, max_age: float = 0.0
) -> Discoverer:
    """A discoverer that the API server can serve.

    Args:
        client: asks what is served, and later reads groups.
        settings: the block.
        ancestors: for the native mode, see `native.NativeDiscoverer`.
        max_age: how old, in seconds, what is known of the server's kinds may be.

    Raises:
        AicrError: INVALID_REQUEST for a block or expression that is wrong, NOT_FOUND for a kind that
            is not served, SERVICE_UNAVAILABLE when the server cannot say.
    """
    problem = settings.problem()
    if problem is not None:
        raise problem
    catalogue = await client.discovery.catalogue(max_age=max_age)
    if settings.native:
        return native.NativeDiscoverer(client, native.served_by(catalogue), ancestors=ancestors)
    return podgroup.PodGroupDiscoverer(client, settings, podgroup.resolve(settings, catalogue))


async def build_default(client: Client, settings: GangDiscovery, **options: bool) -> Resolver:
    """The resolver with the cluster-wide default.

    Raises:
        AicrError: ``failed to create gang discoverer resolver``, caused by ``failed to create
            default gang discoverer``, caused by what `build` says (preflight spec 1.1).
    """
    try:
        try:
            default = await build(client, settings, **options)
        except AicrError as error:
            text = "failed to create default gang discoverer"
            raise AicrError(error.code, text, hint=error.hint) from error
    except AicrError as error:
        text = "failed to create gang discoverer resolver"
        raise AicrError(error.code, text, hint=error.hint) from error
    return Resolver(default)


def said(error: BaseException) -> str:
    """The words of *error* and its causes, outermost first, without codes: for statuses and logs."""
    words: list[str] = []
    found: BaseException | None = error
    while found is not None:
        words.append(found.message if isinstance(found, AicrError) else str(found))
        found = found.__cause__
    return ": ".join(words)
