"""What a run puts into the cluster before its first check, and takes away after its last.

Nothing is taken over: a namespace that exists stays as it is, one that is being deleted is
refused. What was made is removed when a later step fails, the binding to cluster-admin first of
all; that it could not be is said in words that a person will not overlook. Only objects with this
run's id are removed, each by its UID.

Source: validators spec 1.7 steps 6 and 8, 3.1, 3.9; decisions 13, 66.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from aicr.contract import labels
from aicr.errors import CONFLICT, INTERNAL, NOT_FOUND, AicrError
from aicr.kube import kinds
from aicr.kube.port import Cluster
from aicr.validate import objects
from aicr.validate.persistence import gone, insist
from aicr.validate.plan import Place
from aicr.validate.timing import Timing

ORPHANED: Final = (
    "preparation failed and RBAC rollback failed; cluster-admin binding may be orphaned"
)
NOT_REVOKED: Final = "failed to revoke privileged RBAC"


class Setup:
    """The shared objects of one run."""

    def __init__(self, cluster: Cluster, place: Place, timing: Timing) -> None:
        self._cluster, self._place, self._timing = cluster, place, timing

    async def prepare(self, snapshot: str, validation: str) -> None:
        """Make namespace, account, binding and the two ConfigMaps.

        Args:
            snapshot, validation: texts of the documents that the checks are given.

        Raises:
            AicrError: what the server refused; CONFLICT for a namespace that is being deleted;
                INTERNAL ``preparation failed and RBAC rollback failed…``.
        """
        await self._ensure_namespace()
        try:
            await self._apply(objects.service_account(self._place))
            await self._apply(objects.binding(self._place))
            await self._apply(objects.snapshot_map(self._place, snapshot))
            await self._apply(objects.validation_map(self._place, validation))
        except AicrError as error:
            await self._roll_back(error)
            raise AicrError(
                error.code,
                "cannot prepare the cluster for a validation run; what was made is removed",
                where=f"namespace {self._place.namespace}",
                hint=error.hint or "--runner local runs the checks here and needs none of this",
            ) from error

    async def leftovers(self, now: float) -> list[str]:
        """What other runs seem to have left: a line each, with the command that removes it.

        Nothing of it is removed here, because such a run may still be going on (decision 66).
        """
        try:
            found = await self._cluster.list(
                kinds.CLUSTER_ROLE_BINDING, labels={labels.NAME: labels.VALIDATOR_PRODUCT}
            )
        except AicrError as error:
            return [f"leftovers of other runs cannot be looked for: {error}"]
        return objects.leftovers(found, self._place.run_id, now)

    async def _ensure_namespace(self) -> None:
        name = self._place.namespace
        try:
            found = await insist(
                lambda: self._cluster.get(kinds.NAMESPACE, name), self._timing.create
            )
        except AicrError as error:
            if error.code != NOT_FOUND:
                raise
            await self._apply(objects.namespace(name))
            return
        if (found.get("status") or {}).get("phase") == "Terminating":
            raise AicrError(
                CONFLICT,
                f'namespace "{name}" is being deleted, so nothing can run in it',
                where="--namespace",
                hint=f"wait until `kubectl get namespace {name}` finds nothing, or name another one",
            )

    async def _apply(self, document: Mapping[str, Any]) -> None:
        await insist(
            lambda: self._cluster.apply(document, field_manager=labels.FIELD_MANAGER, force=True),
            self._timing.create,
        )

    async def _roll_back(self, error: AicrError) -> None:
        try:
            await self.revoke()
        except AicrError as failed:
            raise AicrError(
                INTERNAL,
                f"{ORPHANED} (rollback: {failed})",
                hint=f"kubectl delete clusterrolebinding {self._place.service_account}",
            ) from error
        for _ in await self.remove_maps():
            # The names are unique to this run, and without binding the texts give nobody access.
            continue

    async def revoke(self) -> None:
        """Remove binding and account.

        Raises:
            AicrError: what kept the binding or the account from being removed; both are tried.
        """
        problems = []
        for kind, namespace in (
            (kinds.CLUSTER_ROLE_BINDING, ""),
            (kinds.SERVICE_ACCOUNT, self._place.namespace),
        ):
            try:
                await self._remove(kind, self._place.service_account, namespace)
            except AicrError as error:
                problems.append(error)
        if problems:
            raise problems[0]

    async def remove_maps(self) -> list[AicrError]:
        """Remove the two ConfigMaps; reports stay. Returns what went wrong."""
        problems = []
        for name in (self._place.snapshot_map, self._place.validation_map):
            try:
                await self._remove(kinds.CONFIG_MAP, name, self._place.namespace)
            except AicrError as error:
                problems.append(error)
        return problems

    async def store_report(self, phase: str, report: Mapping[str, Any]) -> None:
        """Keep a phase's report in the cluster.

        Raises:
            AicrError: what the server refused.
        """
        document = objects.report_map(self._place, phase, report)
        await insist(
            lambda: self._cluster.apply(
                document, field_manager=labels.REPORT_FIELD_MANAGER, force=True
            ),
            self._timing.create,
        )

    async def _remove(self, kind: kinds.Resource, name: str, namespace: str) -> None:
        """Remove the object of that name if it is of this run."""

        async def ask() -> None:
            found = await self._cluster.get(kind, name, namespace=namespace)
            metadata = found.get("metadata") or {}
            if (metadata.get("labels") or {}).get(labels.RUN_ID) != self._place.run_id:
                raise AicrError(
                    CONFLICT,
                    f'{kind.kind} "{name}" is not of this run and stays',
                    hint="somebody has replaced it or changed its labels",
                )
            await self._cluster.delete(
                kind, name, namespace=namespace, uid=str(metadata.get("uid") or "")
            )

        await gone(ask, self._timing.cleanup)
