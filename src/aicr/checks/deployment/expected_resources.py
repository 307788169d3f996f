"""expected-resources: what the recipe's components deploy is there, healthy, and ready for GPU work.

```
namespaces ─► expectedResources ─► GPU readiness (all at once) ─► health checks ─► verdict
                                    nodewright, DRA, RDMA          less those that values
                                                                   or an old cluster withhold
```
Each stage collects issues and lets the next one run, so that one report has them all; only the budget
ends it early, and then everything that was not looked at is listed. The check keeps a minute of its budget
to say so.

Source: validators spec 6.1, 8, 11; decisions 62 and 67; requirements V-378, V-385, V-405 to V-435.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from aicr.assertions.runner import UNKNOWN
from aicr.assertions.runner import run as run_checks
from aicr.catalog.dependencies import is_enabled
from aicr.checks.deployment import dra_plugin, nodewright, value_gates
from aicr.checks.deployment.expected_resources_report import (
    CHAINSAW,
    NAMESPACE,
    READINESS,
    RESOURCES,
    Issue,
    Report,
)
from aicr.checks.deployment.rdma_fabric import Fabric, resource_of
from aicr.checks.deployment.rdma_fabric import applies as has_fabric
from aicr.checks.deployment.stable import until_stable
from aicr.checks.deployment.value_gates import CUSTOMIZATIONS, OPERATOR
from aicr.checks.sdk import DEPLOYMENT, Check, Context, failed
from aicr.checks.sdk import resources as verification
from aicr.errors import NOT_FOUND, AicrError, invalid
from aicr.kube import kinds

Ref = dict[str, Any]
#: Subject → the coroutine that returns once it is ready.
_Probes = dict[str, Callable[[], Awaitable[None]]]

_NODEWRIGHT: Final = "Nodewright customizations"
_DRA: Final = "DRA kubelet plugin"
_RDMA: Final = "RDMA fabric"
_LEGACY: Final = (
    "the cluster's operator predates the NodeWright kind; each Skyhook was verified by name"
)

if TYPE_CHECKING:
    from aicr.catalog.tree import Tree


async def run(context: Context) -> None:
    """Run the check with the files that are built into this program."""
    await run_with(context, value_gates.embedded_tree())


async def run_with(context: Context, tree: Tree) -> None:
    """Run the check with the files of *tree* for values and manifests.

    Raises:
        AicrError: INVALID_REQUEST without the recipe; TIMEOUT when the budget ends first; else the verdict.
    """
    if context.validation is None:
        raise invalid(
            "expected-resources needs the recipe's validation input",
            hint="run it through aicr validate --recipe FILE",
        )
    refs = [ref for ref in context.validation.get("componentRefs") or () if is_enabled(ref)]
    if not refs:
        raise invalid(
            "the validation input has no enabled component, so nothing would be checked",
            hint="the recipe must have componentRefs",
        )
    await _Run(context, refs, tree).all()


class _Run:
    """One run of the check."""

    def __init__(self, context: Context, refs: Sequence[Ref], tree: Tree) -> None:
        self.context = context
        self.refs = refs
        self.tree = tree
        self.report = Report(context.out)
        budget = context.remaining()
        # The envelope: what is kept back for the last lines, and never more than a fifth of a short budget.
        margin = min(context.timeouts.job_envelope_margin, budget / 5)
        self.deadline = context.clock.now() + budget - margin
        #: Component → text of its health check, less what is withheld.
        self.asserts: dict[str, str] = {}
        self.rendered: dict[str, list[Ref]] = {}

    def left(self) -> float:
        """Seconds until the run must come to its end."""
        return max(0.0, self.deadline - self.context.clock.now())

    async def all(self) -> None:
        """All stages, then the verdict."""
        namespaces = sorted({ref["namespace"] for ref in self.refs if ref.get("namespace")})
        resources = [
            (entry["kind"], entry.get("namespace") or ref.get("namespace") or "", entry["name"])
            for ref in self.refs
            for entry in ref.get("expectedResources") or ()
        ]
        self._queue()
        probes = self._probes()
        left = [
            *((RESOURCES, _subject(*each)) for each in resources),
            *((READINESS, name) for name in probes),
            *((CHAINSAW, name) for name in self.asserts),
        ]
        for name in namespaces:
            await self._within("namespaces", left, self._namespace(name))
        for each in resources:
            await self._within("expectedResources", left, self._resource(*each))
            left.remove((RESOURCES, _subject(*each)))
        if self.left() <= 0 and probes:
            raise self.report.exhausted("GPU readiness", left)
        await self._ready(probes)
        left = [(CHAINSAW, name) for name in self.asserts]
        await self._withhold_on_old_clusters()
        await self._healthy(left)
        self.report.finish()

    async def _within(self, stage: str, left: list[tuple[str, str]], step: Awaitable[None]) -> None:
        """One step of a stage; past the budget everything that is left is listed and the run ends."""
        try:
            await asyncio.wait_for(step, self.left())
        except TimeoutError:
            raise self.report.exhausted(stage, left) from None

    async def _namespace(self, name: str) -> None:
        try:
            found = await self.context.cluster.get(kinds.NAMESPACE, name)
        except AicrError as error:
            self.report.add(Issue.of(NAMESPACE, name, _as_verdict(error)))
            return
        phase = (found.get("status") or {}).get("phase")
        if phase == "Active":
            self.context.out(f"  Namespace {name}: Active")
        else:
            self.report.add(Issue(NAMESPACE, name, f"is {phase or 'without a phase'}, not Active"))

    async def _resource(self, kind: str, namespace: str, name: str) -> None:
        subject = _subject(kind, namespace, name)
        try:
            await verification.verify(self.context, kind, namespace, name)
        except AicrError as error:
            self.report.add(Issue.of(RESOURCES, subject, _as_verdict(error)))
        else:
            self.context.out(f"  [{RESOURCES}] {subject}: healthy")

    def _queue(self) -> None:
        """Queue the health checks, less those whose objects the recipe's values switch off."""
        for ref in self.refs:
            name, text = ref["name"], ref.get("healthCheckAsserts")
            reason = ""
            if value_gates.is_gated(name) and (text or name == CUSTOMIZATIONS):
                documents = self._render(ref)
                reason = "" if documents is None else value_gates.withheld(name, documents)
            if text and reason:
                self.context.out(f"  [{CHAINSAW}] {name}: skipped — {reason}")
            elif text:
                self.asserts[name] = text

    def _render(self, ref: Ref) -> list[Ref] | None:
        """The objects of a ref's manifests; None, and an issue, when they cannot be rendered."""
        name = ref["name"]
        if name not in self.rendered:
            try:
                self.rendered[name] = value_gates.rendered(ref, self.tree)
            except AicrError as error:
                self.report.add(Issue.of(READINESS, name, error))
                return None
        return self.rendered[name]

    def _probes(self) -> _Probes:
        """The readiness probes that the recipe's components ask for."""
        context, found = self.context, _Probes()
        customizations = context.component(CUSTOMIZATIONS)
        if customizations is not None:
            names = self._nodewright_names(customizations)
            if names:
                operator = context.component(OPERATOR) or customizations
                place = str(operator.get("namespace") or "")
                found[_NODEWRIGHT] = lambda: self._stable(
                    _NODEWRIGHT, lambda: nodewright.sample(context, names, place)
                )
        driver = context.component(dra_plugin.COMPONENT)
        if driver is not None:
            namespace = str(driver.get("namespace") or "")
            found[_DRA] = lambda: self._stable(_DRA, lambda: dra_plugin.sample(context, namespace))
        network = context.component("network-operator")
        if has_fabric(network) and network is not None:
            documents = self._render(network)
            if documents is not None:
                found[_RDMA] = lambda: self._fabric(documents)
        return found

    def _nodewright_names(self, ref: Ref) -> list[str]:
        if not ref.get("manifestFiles"):
            error = failed(
                f"{CUSTOMIZATIONS} is enabled and lists no manifests, so it changes no node",
                code=NOT_FOUND,
                hint="generate the recipe again, or disable the component",
            )
            self.report.add(Issue.of(READINESS, _NODEWRIGHT, error))
            return []
        documents = self._render(ref)
        return [] if documents is None else value_gates.nodewright_names(documents)

    async def _stable(self, what: str, sample: Callable[[], Awaitable[None]]) -> None:
        limit = min(self.context.timeouts.gpu_readiness, self.left())
        await until_stable(self.context, what, sample, limit)

    async def _fabric(self, documents: Sequence[Mapping[str, Any]]) -> None:
        fabric = Fabric(resource_of(documents))
        certified = False
        try:
            await self._stable(_RDMA, lambda: fabric.sample(self.context))
            certified = True
        finally:
            # Also when the look was cancelled, which certifies nothing.
            fabric.report(self.context, certified=certified)

    async def _ready(self, probes: _Probes) -> None:
        """All probes at once; each has its own verdict."""

        async def one(probe: Callable[[], Awaitable[None]]) -> AicrError | None:
            try:
                await probe()
            except AicrError as error:
                return error
            return None

        errors = await asyncio.gather(*(one(probe) for probe in probes.values()))
        for name, error in zip(probes, errors, strict=True):
            if error is None:
                self.context.out(f"  [{READINESS}] {name}: ready")
            else:
                self.report.add(Issue.of(READINESS, name, error))

    async def _withhold_on_old_clusters(self) -> None:
        """Withhold the Nodewright check where the cluster rightly has no such kind (V-420).

        An error of the look withholds nothing: the check runs and says what is the matter (V-422).
        """
        if CUSTOMIZATIONS not in self.asserts:
            return
        try:
            found = await asyncio.wait_for(nodewright.served(self.context), self.left())
        except (AicrError, TimeoutError):
            return
        if nodewright.is_legacy(nodewright.pin_of(self.context), found):
            del self.asserts[CUSTOMIZATIONS]
            self.context.out(f"  [{CHAINSAW}] {CUSTOMIZATIONS}: skipped — {_LEGACY}")

    async def _healthy(self, left: list[tuple[str, str]]) -> None:
        """The queued health checks, four at a time, within what is left of the budget."""
        if not self.asserts:
            return
        left = [each for each in left if each[1] in self.asserts]
        stage = "health checks"
        if self.left() <= 0:
            raise self.report.exhausted(stage, left)
        timing = self.context.timeouts.assertions
        results: dict[str, dict[str, Any]] = {}
        entries = [
            {"name": name, "yaml": text, "source": f"{name}: healthCheckAsserts"}
            for name, text in self.asserts.items()
        ]
        whole = True
        try:
            await asyncio.wait_for(
                run_checks(
                    self.context.cluster,
                    entries,
                    timing=replace(timing, budget=min(timing.budget, self.left())),
                    clock=self.context.clock,
                    done=lambda result: results.update({result["component"]: result}),
                ),
                self.left(),
            )
        except TimeoutError:
            whole = False
        for name in self.asserts:
            if name in results:
                self._judge(results[name])
        if not whole:
            unseen = [each for each in left if each[1] not in results]
            raise self.report.exhausted(stage, unseen)

    def _judge(self, result: Mapping[str, Any]) -> None:
        name = result["component"]
        if result["passed"]:
            self.context.out(f"  [{CHAINSAW}] {name}: health check passed")
            return
        make = AicrError if result["verdict"] == UNKNOWN else _verdict
        error = make(
            result["code"],
            f"{name}: {result['message']}",
            where=result["where"],
            hint=result["hint"],
        )
        self.report.add(Issue(CHAINSAW, name, result["message"], error))


def _verdict(code: str, message: str, *, where: str, hint: str) -> AicrError:
    return failed(message, code=code, where=where, hint=hint)


def _as_verdict(error: AicrError) -> AicrError:
    """An absence that the server has told us is a verdict; all else stays what it is."""
    if error.code != NOT_FOUND:
        return error
    return failed(error.message, code=NOT_FOUND, where=error.where, hint=error.hint)


def _subject(kind: str, namespace: str, name: str) -> str:
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


CHECK = Check(
    name="expected-resources",
    phase=DEPLOYMENT,
    summary="Namespaces, resources and health checks of the recipe's components are in order",
    run=run,
    timeout="10m",
    details="""\
Looks at the enabled components of the recipe, in this order; every issue is collected.

1. Their namespaces exist and are `Active`.
2. Their `expectedResources` are ready: Deployment, DaemonSet, StatefulSet by replicas, Service, ConfigMap
   and Secret by existing.
3. GPU readiness, all at once; each must be well for 60 s without a break within 8 m:
   - *Nodewright customizations*: every object that the manifests render to is `complete`, and no GPU node
     carries the start-up taint.
   - *DRA kubelet plugin* (with `nvidia-dra-driver-gpu`): its DaemonSet is ready on every node.
   - *RDMA fabric* (with `network-operator` and a `nic-cluster-policy` manifest): all schedulable RDMA nodes
     hand out the same positive amount of the policy's resource. Cordoned ones are listed and counted.
4. Health checks (`healthCheckAsserts`), four at a time. One is skipped when the recipe's values switch its
   objects off, or, for `nodewright-customizations`, on a cluster whose operator rightly predates the
   NodeWright kind.

- Passes when nothing is amiss.
- Fails with the first issue's code; `TIMEOUT` when the budget ends first, with a list of what was not
  looked at.
- Never skips.
""",
    reads=(
        "namespaces",
        "the kinds of expectedResources and of the health checks",
        "nodes",
        "deployments and daemonsets of the components",
        "nodewrights.nodewright.nvidia.com, skyhooks.skyhook.nvidia.com",
    ),
)
