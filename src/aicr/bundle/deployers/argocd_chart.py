"""The files of the argocd-helm chart that are no templates: Chart.yaml, values and their schema.

```
oci://registry/team/stack:1.2.3_build ─► name stack, version 1.2.3+build, repoURL oci://registry/team
no reference                          ─► name aicr-bundle, version of the recipe
```
It must not know templates or Applications. Source: bundler spec 1.5, 5.4; field case F7.
"""

from __future__ import annotations

from aicr.bundle.deployers import gitops
from aicr.errors import invalid
from aicr.values.versions import is_semver
from aicr.yamlio import write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

    from aicr.bundle.deployers.argocd_settings import Settings
    from aicr.bundle.layout import Folder
    from aicr.bundle.options import BundleOptions
    from aicr.bundle.plan import Plan

CHART: Final = "aicr-bundle"
DEFAULT_VERSION: Final = "0.1.0"
#: Root keys of the chart's values that are no components.
ROOT_KEYS: Final = ("appName", "deployer", "global", "repoURL", "targetRevision")

#: values.schema.json as text: the json module costs a start more than all else that this chart needs.
_SCHEMA: Final = r"""{
  "$schema": "http://json-schema.org/draft-07/schema#",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "appName": {
      "type": "string",
      "pattern": "^(@NAME@)?$",
      "maxLength": 63
    },
    "repoURL": {
      "type": "string"
    },
    "targetRevision": {
      "type": "string"
    },
    "global": {
      "type": [
        "object",
        "null"
      ]
    },
    "deployer": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "namePrefix": {
          "type": "string",
          "pattern": "^([a-z0-9][a-z0-9-]*)?$"
        },
        "destinationServer": {
          "type": "string",
          "pattern": "^https://[^\\s\"'`@/:?#][^\\s\"'`@]*$"
        },
        "project": {
          "type": "string",
          "pattern": "^@NAME@$",
          "maxLength": @MAX@
        },
        "includeRootApp": {
          "type": "boolean"
        }
      }
    }@COMPONENTS@
  }
}
"""

_COMPONENT_SCHEMA: Final = """,
    "@KEY@": {
      "type": [
        "object",
        "null"
      ]
    }"""


class Target:
    """Where the chart goes, and what it is called there.

    Attributes:
        chart: chart name.
        version: chart version, strict SemVer.
        repository: `oci://registry/path` that the chart is published below, or "".
        flags: what helm has to be told to get there, with a blank before it.
    """

    __slots__ = ("chart", "flags", "repository", "version")

    def __init__(self, chart: str, version: str, repository: str, flags: str = "") -> None:
        self.chart = chart
        self.version = version
        self.repository = repository
        self.flags = flags


def chart_target(recipe: Mapping[str, Any], options: BundleOptions) -> Target:
    """Name and version of the chart, and where it is published.

    Published, they are the last part and the tag of the reference; a tag's `_` is the `+` of the
    version (field case F7). Else the version is the recipe's.

    Raises:
        AicrError: INVALID_REQUEST for a tag that is no strict SemVer (bundler spec 1.5).
    """
    if options.oci_reference:
        reference, tag = gitops.oci_output(options)
        version = tag.replace("_", "+")
        if not is_semver(version):
            raise invalid(
                f"the tag {tag!r} stands for the chart version {version!r}, which is no strict "
                f"semantic version",
                where="--output",
                hint="tag it like 1.2.3 or 1.2.3-rc.1, with _ in place of +",
            )
        parent, _, chart = reference.rpartition("/")
        flags = " --plain-http" if options.oci_plain_http else ""
        if options.oci_insecure_tls:
            flags = " --insecure-skip-tls-verify"
        return Target(chart, version, parent, flags)
    given = str((recipe.get("metadata") or {}).get("version") or "").removeprefix("v")
    # 1 and 1.2 are the same as 1.0.0 and 1.2.0; what is longer has to be whole.
    whole = next((text for text in (given, f"{given}.0", f"{given}.0.0") if is_semver(text)), "")
    return Target(CHART, whole or DEFAULT_VERSION, "")


def override_keys(plan: Plan) -> dict[str, str]:
    """The key of the chart's values for each component: its first override key, else its name.

    Raises:
        AicrError: INVALID_REQUEST when two components would share a key, or one would take a key
            of the chart itself.
    """
    keys: dict[str, str] = {}
    taken = dict.fromkeys(ROOT_KEYS, "the chart itself")
    for component in plan.components:
        aliases = component.entry.get("valueOverrideKeys") or ()
        key = aliases[0] if aliases else component.name
        if key in taken:
            raise invalid(
                f"component {component.name!r} would have its values under the key {key!r}, which "
                f"{taken[key]} uses",
                where=component.name,
                hint="give it another first valueOverrideKeys entry in the registry",
            )
        taken[key] = f"component {component.name!r}"
        keys[component.name] = key
    return keys


def chart_yaml(target: Target) -> dict[str, Any]:
    """Chart.yaml of the chart."""
    return {
        "apiVersion": "v2",
        "name": target.chart,
        "description": "Argo CD Applications of an AI cluster runtime bundle",
        "type": "application",
        "version": target.version,
    }


def values_yaml(
    folders: list[Folder],
    keys: Mapping[str, str],
    settings: Settings,
    target: Target,
    options: BundleOptions,
) -> str:
    """values.yaml: what is asked for at installation, with its defaults."""
    values: dict[str, Any] = {}
    if options.app_name:
        values["appName"] = options.app_name
    values["repoURL"] = target.repository
    values["targetRevision"] = target.version if target.repository else ""
    values["deployer"] = {
        "namePrefix": settings.name_prefix,
        "destinationServer": settings.destination_server,
        "project": settings.project,
        "includeRootApp": True,
    }
    for folder in folders:
        if folder.phase == "primary" and folder.cluster_values:
            values[keys[folder.parent]] = folder.cluster_values
    return (
        f"{gitops.GENERATED}"
        "# Below the key of a component, any value of its chart can be given; README.md has the keys.\n"
        + write.dump(values)
    )


def schema(keys: Mapping[str, str]) -> str:
    """values.schema.json: misspelt keys and unusable names are refused at installation."""
    components = "".join(
        _COMPONENT_SCHEMA.replace("@KEY@", _json_text(key)) for key in sorted(keys.values())
    )
    return (
        _SCHEMA.replace("@NAME@", _json_text(gitops.SUBDOMAIN))
        .replace("@MAX@", str(gitops.MAX_SUBDOMAIN))
        .replace("@COMPONENTS@", components)
    )


def _json_text(text: str) -> str:
    """*text* as it stands between the quotes of a JSON string."""
    if not text.isprintable():
        import json

        return json.dumps(text)[1:-1]
    return text.replace("\\", "\\\\").replace('"', '\\"')
