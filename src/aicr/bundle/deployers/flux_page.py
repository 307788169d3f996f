"""What the README of a flux bundle says: how to apply it, fill in values and take it away.

It must not know how objects are written. Source: bundler spec 5.5; field pain 12.
"""

from __future__ import annotations

from aicr.bundle.deployers import gitops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aicr.bundle.deployers.flux_sources import Sources
    from aicr.bundle.layout import Folder
    from aicr.bundle.options import BundleOptions
    from aicr.bundle.plan import Plan


def deploy(options: BundleOptions) -> list[str]:
    """Shell lines that deploy the bundle."""
    if not options.oci_reference:
        return ["kubectl apply -k ."]
    name, tag = gitops.oci_output(options)
    where = f"{options.flux_oci_source_name} --namespace {options.flux_namespace}"
    # What was pushed without TLS is pulled without it.
    insecure = " --insecure" if options.oci_plain_http else ""
    return [
        f"flux create source oci {where} --url {name} --tag {tag}{insecure}",
        f"flux create kustomization {where} --source OCIRepository/{options.flux_oci_source_name} "
        "--path ./ --prune true",
    ]


def sections(
    plan: Plan, folders: list[Folder], options: BundleOptions, sources: Sources
) -> dict[str, list[str]]:
    """The sections of the README that are Flux's own."""
    return {
        "Before you deploy": _before(folders, options, sources),
        "Change values": _values(folders, options),
        "Uninstall": _uninstall(folders, options, sources),
    }


def _before(folders: list[Folder], options: BundleOptions, sources: Sources) -> list[str]:
    lines = [
        "Flux with source-controller and helm-controller (2.6 or later) must run in the cluster. The",
        f"objects go to the namespace `{options.flux_namespace}`. Each HelmRelease waits for those",
        "that its `dependsOn` names and for no other.",
    ]
    if sources.published:
        lines += [
            "",
            "Charts inside the bundle are cut out of its OCI artifact by ArtifactGenerators, which",
            "need Flux 2.7 or later with the component source-watcher.",
            "",
            "`flux create source oci` takes `--secret-ref` for a registry that asks for a log-in (`flux",
            "create secret oci` makes the Secret), and `--cert-ref` for one whose certificate a private",
            "authority signed (`flux create secret tls`).",
        ]
    elif any("Chart.yaml" in folder.files for folder in folders):
        note = gitops.publish_note(sources.repository, "Flux reads charts of the bundle")
        lines += ["", *note]
    lines += [
        "",
        "The bundle needs no variable substitution. Objects that hold a `$` are marked so that",
        "`postBuild` of your own Flux Kustomization leaves them as they are.",
    ]
    return lines


def _values(folders: list[Folder], options: BundleOptions) -> list[str]:
    lines = [
        "Values are in `spec.values` of `helmrelease.yaml`. A changed bundle no longer matches",
        "`checksums.txt`, so keep the changes in the recipe or in the flags of `aicr bundle` where",
        "you can.",
    ]
    asked = [folder for folder in folders if folder.cluster_values]
    if asked:
        lines += [
            "",
            "Values of `--dynamic` paths are to be filled in, in these ConfigMaps of the namespace",
            f"`{options.flux_namespace}`:",
            "",
            *(f"- `{folder.release}-values` in `{folder.dir}/`" for folder in asked),
        ]
    return lines


def _uninstall(folders: list[Folder], options: BundleOptions, sources: Sources) -> list[str]:
    kubectl = f"kubectl --namespace {options.flux_namespace}"
    first = []
    if sources.published:
        first = [
            f"flux suspend kustomization {options.flux_oci_source_name} "
            f"--namespace {options.flux_namespace}"
        ]
    last = ["kubectl delete -k . --ignore-not-found"]
    if sources.published:
        place = f"{options.flux_oci_source_name} --namespace {options.flux_namespace} --silent"
        last += [f"flux delete kustomization {place}", f"flux delete source oci {place}"]
    return [
        "In the reverse order, so that nothing loses what it needs before it is gone itself. If a",
        "Flux Kustomization applies this bundle, suspend it first, or it brings everything back:",
        "",
        "```shell",
        *first,
        *(
            f"{kubectl} delete helmrelease {folder.release} --wait --timeout 15m"
            for folder in reversed(folders)
        ),
        *last,
        "```",
        "",
        "Helm leaves CRDs and namespaces that it made behind. A release whose own chart holds a",
        "Namespace takes that namespace with it, and everything in it.",
    ]
