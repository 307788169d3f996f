"""An injected container: a check's template and what it takes from the pod and its gang.

The order of env and mounts is fixed, and the earlier entry wins: the operator's, the webhook's, the
gang's, the workload's. Source: preflight spec 2.5; decision 24 (one ``/dev/shm``), known bugs S8, S24.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aicr.preflight import names
from aicr.preflight.admission.gang_port import Membership
from aicr.preflight.admission.pod import Pod, entries, not_a_pod
from aicr.preflight.admission.prepared import Amounts, Prepared, Template, clean
from aicr.preflight.admission.sizing import Sizes

Document = dict[str, Any]


@dataclass(slots=True)
class Inheritance:
    """What checks can take from the workload's own containers, in the order in which they take it."""

    env: list[Document]
    mounts: list[Document]
    shm: Document | None
    """The first mount at ``/dev/shm``."""


@dataclass(slots=True)
class Builder:
    """What is the same for all checks of one pod."""

    prepared: Prepared
    pod: Pod
    inherited: Inheritance
    membership: Membership | None
    claims: list[Document]
    """References to the pod's resource claims."""
    amounts: Amounts
    """Extended resources of each check."""
    sizes: Sizes
    warnings: list[str]
    absent: set[str]
    """Volumes of the configuration that this pod does not have."""
    mounted: set[str]
    """Takes the names of all volumes that the checks mount."""

    def container(self, template: Template) -> Document:
        """The container for one check."""
        made = dict(template.head)
        made["env"] = self._env(template)
        made["resources"] = self._resources(template)
        mounts = self._mounts(template)
        if mounts:
            made["volumeMounts"] = mounts
            self.mounted.update(mount["name"] for mount in mounts)
        return made

    def _env(self, template: Template) -> list[Document]:
        taken = template.env_names
        made = list(template.env)
        if self.membership is not None:
            gang = [
                {"name": names.GANG_ID, "value": self.membership.gang_id},
                *self.prepared.gang_env,
            ]
            made += [entry for entry in gang if entry["name"] not in taken]
            taken = taken | {entry["name"] for entry in gang}
        if template.check.inherit_env:
            made += [entry for entry in self.inherited.env if entry["name"] not in taken]
        return made

    def _resources(self, template: Template) -> Document:
        made = template.resources[self.sizes, self.amounts]
        if not (self.claims or template.claims):
            return made
        claims = template.claims + [
            claim for claim in self.claims if claim["name"] not in template.claim_names
        ]
        return {**made, "claims": claims}

    def _mounts(self, template: Template) -> list[Document]:
        made = list(template.mounts)
        if self.membership is None and not self.inherited.mounts:
            return made
        taken = set(template.mount_paths)
        if template.check.inherit_mounts:
            # The gang's own directory is how its members find each other: nothing may hide it.
            kept = clean(self.prepared.config.gangs.mount_path) if self.membership else None
            for mount in self.inherited.mounts:
                path = clean(mount["mountPath"])
                if mount["name"] in template.mount_names or path in taken or path == kept:
                    continue
                taken.add(path)
                made.append(mount)
        if self.membership is not None:
            config_dir, *others = self.prepared.gang_mounts
            shm = self.inherited.shm or {"name": names.SHM_VOLUME, "mountPath": names.SHM_PATH}
            for mount in (config_dir, shm, *others):
                path = clean(mount["mountPath"])
                if mount["name"] in self.absent:
                    self._warn(
                        f"the pod has no volume {mount['name']}, so checks do not mount it at {path}"
                    )
                elif path not in taken:
                    taken.add(path)
                    made.append(mount)
                elif path != names.SHM_PATH:
                    self._warn(
                        f"check {template.check.name}: {path} is mounted already, so volume "
                        f"{mount['name']} is not mounted there"
                    )
        return made

    def _warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)


def inheritance(pod: Pod, prepared: Prepared) -> Inheritance:
    """What the patterns pick out of the workload's containers.

    Of env the first entry of a name counts, of mounts the first of a volume; init containers and
    ``envFrom`` are no sources.

    Raises:
        AicrError: INVALID_REQUEST with `pod.NOT_A_POD` for entries of the wrong type.
    """
    env: dict[str, Document] = {}
    mounts: dict[str, Document] = {}
    shm: Document | None = None
    takes_env, takes_mount = prepared.inherits_env, prepared.inherits_mount
    for index, container in enumerate(pod.containers):
        path = f"spec.containers[{index}]"
        listed = container.get("env")
        if listed:
            try:
                matching = [entry for entry in listed if takes_env[entry["name"]]]
            except (KeyError, TypeError):
                # Not a list of named maps, which `entries` says in words.
                entries(container, "env", path)
                raise
            for entry in matching:
                env.setdefault(entry["name"], entry)
        for mount in entries(container, "volumeMounts", path):
            target = mount.get("mountPath")
            if type(target) is not str:
                raise not_a_pod(f"{path}.volumeMounts mountPath", "text", target)
            name = mount["name"]
            if name not in mounts and takes_mount[name]:
                mounts[name] = mount
            if shm is None and clean(target) == names.SHM_PATH:
                shm = mount
    return Inheritance(list(env.values()), list(mounts.values()), shm)


def claim_references(pod: Pod, *, whole: bool) -> list[Document]:
    """References to the pod's claims for a check: what its containers use of each.

    A claim of which containers use single requests is referred to by those; one that is used as a
    whole, or by no container, as a whole. With *whole* every claim is taken as a whole.
    """
    if not pod.claims:
        return []
    used: dict[str, list[str]] = {}
    if not whole:
        for kind, containers in (("c", pod.containers), ("i", pod.init_containers)):
            for index, container in enumerate(containers):
                path = (
                    f"spec.{'containers' if kind == 'c' else 'initContainers'}[{index}].resources"
                )
                for reference in container_claims(container, path):
                    used.setdefault(reference["name"], []).append(reference.get("request") or "")
    found: list[Document] = []
    for claim in pod.claims:
        requests = used.get(claim["name"], [""])
        if "" in requests:
            found.append({"name": claim["name"]})
        else:
            found += [
                {"name": claim["name"], "request": request} for request in dict.fromkeys(requests)
            ]
    return found


def container_claims(container: Mapping[str, Any], path: str) -> Sequence[Document]:
    """``resources.claims`` of a container whose resources stand at *path*."""
    resources = container.get("resources")
    if type(resources) is not dict:
        return ()
    return entries(resources, "claims", path)
