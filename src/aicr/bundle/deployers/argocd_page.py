"""What the README of both Argo CD formats says, and the health rule that both need.

Argo CD goes from one wave to the next when what it synced is healthy, but out of the box an
Application has no health. The rule that gives it one is shipped with the bundle.

Source: bundler spec 5.3, 5.4; requirement C-105; field pains 6 and 12.
"""

from __future__ import annotations

from aicr.bundle.deployers import argocd_apps, gitops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Final

    from aicr.bundle.deployers.argocd_settings import Settings
    from aicr.bundle.layout import Folder
    from aicr.bundle.options import BundleOptions

HEALTH_FILE: Final = "argocd-cm-patch.yaml"
HEALTH_STEP: Final = (
    f"kubectl --namespace argocd patch configmap argocd-cm --type merge --patch-file {HEALTH_FILE}"
)
#: A child whose last sync is over takes its own health; before that, and with hooks still running
#: (a readiness gate is one), it is in progress.
_HEALTH: Final = """\
local result = {status = "Progressing", message = "waiting for the first sync"}
if obj.status ~= nil and obj.status.operationState ~= nil then
  local operation = obj.status.operationState
  if operation.phase == "Succeeded" then
    if obj.status.health ~= nil and obj.status.health.status ~= nil then
      result.status = obj.status.health.status
      result.message = obj.status.health.message or ""
    end
  elseif operation.phase == "Failed" or operation.phase == "Error" then
    result.status = "Degraded"
    result.message = operation.message or "the last sync failed"
  else
    result.message = operation.message or "syncing"
  end
end
return result
"""


#: Argo CD renders charts and never asks Helm to install them, so hooks become its own.
HOOKS: Final = (
    "Argo CD runs these objects of the charts itself: `pre-install` and `pre-upgrade` before and",
    "`post-install` and `post-upgrade` after **every** sync, not once; `post-delete` when the",
    "Application is deleted, `pre-delete` too where this Argo CD knows PreDelete. Hooks of `test` and",
    "of rollbacks are not run at all. A Job that is such a hook must stand being run again.",
)


def health_patch() -> dict[str, Any]:
    """The change to argocd-cm that gives Applications a health."""
    return {"data": {"resource.customizations.health.argoproj.io_Application": _HEALTH}}


def sections(
    settings: Settings,
    folders: Iterable[Folder],
    *,
    before: list[str],
    values: list[str],
    last: Iterable[str] = (),
) -> dict[str, list[str]]:
    """The sections of the README that are Argo CD's own.

    Args:
        settings: names of the Applications.
        folders: the releases, in deployment order.
        before: what has to be known before the first command.
        values: how values are changed.
        last: shell lines of the teardown after all Applications are gone.
    """
    how = [
        *before,
        "",
        f"`{HEALTH_FILE}` gives Applications a health, so that Argo CD waits for each wave before",
        "it begins the next. Without it Argo CD does not wait. It replaces an earlier rule",
        "for Applications, if argocd-cm has one.",
    ]
    if settings.name_prefix:
        how += [
            "",
            "Helm releases keep their names without the prefix. Argo CD has to track resources by",
            "annotation then, as it does by default from version 3 on.",
        ]
    return {
        "Before you deploy": how,
        "Change values": values,
        "Uninstall": teardown(settings, folders, last),
    }


def teardown(settings: Settings, folders: Iterable[Folder], last: Iterable[str]) -> list[str]:
    """Text and commands that remove everything, the last release first.

    The parent goes first and alone, because it would bring its children back. Each child gets the
    finalizer with which Argo CD deletes what the child deployed, and is waited for.
    """
    kubectl = f"kubectl --namespace {argocd_apps.NAMESPACE}"
    remove = [
        f"{kubectl} patch application {settings.parent} --type merge "
        """--patch '{"metadata":{"finalizers":null}}'""",
        f"{kubectl} delete application {settings.parent}",
    ]
    for folder in reversed(list(folders)):
        remove.append(f"remove {settings.child(folder.release)}")
    return [
        "In the reverse order, so that nothing loses what it needs before it is gone itself:",
        "",
        "```shell",
        "remove() {",
        f'  {kubectl} patch application "$1" --type merge \\',
        f"""    --patch '{{"metadata":{{"finalizers":["{argocd_apps.FINALIZER}"]}}}}' &&""",
        f'    {kubectl} delete application "$1" --wait --timeout 15m',
        "}",
        *remove,
        *last,
        "```",
        "",
        "CRDs go with the release that brought them, and with them all objects of their kinds.",
        "Namespaces that Argo CD made stay.",
    ]


def registry_note(options: BundleOptions, url: str) -> list[str]:
    """What Argo CD has to be told of a registry that it would not trust; nothing for any other."""
    flag = "--insecure-oci-force-http" if options.oci_plain_http else ""
    if options.oci_insecure_tls:
        flag = "--insecure-skip-server-verification"
    if not flag:
        return []
    return [
        "",
        "The bundle was pushed without TLS, or without a check of the registry's certificate. Argo CD has",
        "to be told so, once:",
        "",
        "```shell",
        f"argocd repo add {url} --type oci {flag}",
        "```",
    ]


def placeholder_note(repository: gitops.Repository) -> list[str]:
    """What to know about where Argo CD reads the bundle from."""
    return gitops.publish_note(repository, "Argo CD reads the bundle")
