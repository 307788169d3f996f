"""What the README of a fleet bundle says: opting clusters in, CRDs, teardown.

It must not know how objects are written. Source: bundler spec 5.7; field pains 5, 12, 28, 46.
"""

from __future__ import annotations

from aicr.bundle.deployers import gitops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aicr.bundle.layout import Folder
    from aicr.bundle.options import BundleOptions

_LOCAL: str = "fleet-local"


def deploy(options: BundleOptions, app: str, entrypoint: str) -> list[str]:
    """Shell lines that deploy the bundle, run against the cluster that Fleet runs in."""
    lines = [f"kubectl apply -f {entrypoint}"]
    if options.fleet_workspace != _LOCAL:
        lines.append(
            f"kubectl label clusters.fleet.cattle.io <cluster> "
            f"--namespace {options.fleet_workspace} aicr.run/bundle={app}"
        )
    return lines


def sections(
    folders: list[Folder],
    options: BundleOptions,
    repository: gitops.Repository | None,
    *,
    names: list[str],
    entrypoint: str,
) -> dict[str, list[str]]:
    """The sections of the README that are Fleet's own.

    Args:
        folders: the releases, in deployment order.
        options: the flags of the run.
        repository: where Fleet reads the bundle from; None when it does not.
        names: the Bundle of each folder.
        entrypoint: the root file that is applied.
    """
    made = {"Before you deploy": _before(options, repository)}
    owners = [folder for folder in folders if folder.crd_owner]
    if owners:
        made["CRDs"] = [
            "Fleet installs CRDs with a chart's first release and never changes them again. Before an",
            "upgrade, run on the target cluster:",
            "",
            "```shell",
            *(f"bash {folder.dir}/apply-crds.sh" for folder in owners),
            "```",
        ]
    made["Change values"] = _values(repository is not None)
    made["Uninstall"] = _uninstall(options, names, repository is not None, entrypoint)
    return made


def _before(options: BundleOptions, repository: gitops.Repository | None) -> list[str]:
    lines: list[str] = []
    if repository is not None:
        lines += gitops.publish_note(repository, "Fleet reads the bundle")
        lines.append("")
    if options.fleet_workspace == _LOCAL:
        lines += ["The target is the cluster that Fleet itself runs in."]
    else:
        lines += [
            "Nothing is deployed anywhere before a cluster has the label: that is how clusters opt",
            "in.",
        ]
    lines += [
        "",
        "Each Bundle waits until the one before it is ready. A Bundle that Fleet shows as Modified,",
        "because something in the cluster changes its objects, is not ready and holds up the rest.",
        "Certificates that controllers write into webhooks are left out of the comparison (`diff`).",
    ]
    if repository is not None:
        lines += [
            "Fleet stores the chart in the Bundle; one of more than a megabyte may need Fleet's OCI",
            "storage, or `--fleet-mode helmop`.",
        ]
    return lines


def _values(from_git: bool) -> list[str]:
    if from_git:
        return [
            "Values that belong to your cluster alone go into `cluster-values.yaml` of a folder; they",
            "win over `values.yaml`. A changed bundle no longer matches `checksums.txt`, so keep the",
            "changes in the recipe or in the flags of `aicr bundle` where you can.",
        ]
    return [
        "Values are in `spec.helm.values` of each HelmOp, those of `--dynamic` paths included: fill",
        "them in there. The numbered folders show the same values and are not read.",
    ]


def _uninstall(
    options: BundleOptions, names: list[str], from_git: bool, entrypoint: str
) -> list[str]:
    kubectl = f"kubectl --namespace {options.fleet_workspace}"
    kind = "bundles.fleet.cattle.io" if from_git else "helmops.fleet.cattle.io"
    first = []
    if from_git:
        # Without it the GitRepo would make its Bundles anew; with `paused` it leaves them alone.
        first = [
            f'{kubectl} patch -f {entrypoint} --type merge --patch \'{{"spec":{{"paused":true}}}}\''
        ]
    return [
        "In the reverse order, so that nothing loses what it needs before it is gone itself:",
        "",
        "```shell",
        *first,
        *(f"{kubectl} delete {kind} {name} --wait --timeout 15m" for name in reversed(names)),
        f"kubectl delete -f {entrypoint} --ignore-not-found",
        "```",
        "",
        "A Bundle is gone when its releases are uninstalled in all clusters. Helm leaves CRDs and",
        "namespaces behind.",
    ]
