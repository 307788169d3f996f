r"""deploy.sh of the helm deployer: a head of facts about this bundle, then a constant program.

The head is assignments and one `case`, all of it quoted, so that nothing of a recipe becomes shell.
The program is constant text in two halves, ``helm_preflight`` and ``helm_install``; it runs on bash
3.2 and later, and shellcheck finds nothing in it.

```
arguments, environment -> preflight -> for each NNN-*/: install.sh, retries -> follow-ups, exit
```
Exit status: 0 done, 1 a release or the preflight failed, 2 done but run again later (a driver
upgrade is under way), 64 wrong arguments, 130 interrupted.

This module may name components: special cases belong to deployers (requirements C-140, C-141).
Source: bundler spec 5.0.5, 5.1.
"""

from __future__ import annotations

from aicr.bundle.charts import shell_quote
from aicr.bundle.deployers.helm_install import INSTALL, MAIN
from aicr.bundle.deployers.helm_preflight import OPTIONS, PREFLIGHT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


class Facts:
    """What deploy.sh must know of one bundle.

    Attributes:
        folders: (folder, release, namespace, parent component, phase), in deployment order.
        crd_groups: (API group, component, its namespace).
        driver_managed: whether a GPU operator of the bundle installs the driver.
        node_taints: `key[=value]:Effect` that nodewright clears from nodes, none without
        nodewright. node_taint_namespace: where its operator runs.
        notes: follow-ups for the reader.
    """

    __slots__ = (
        "crd_groups",
        "driver_managed",
        "folders",
        "node_taint_namespace",
        "node_taints",
        "notes",
    )

    def __init__(
        self,
        *,
        folders: list[tuple[str, str, str, str, str]],
        crd_groups: list[tuple[str, str, str]],
        driver_managed: bool,
        node_taints: list[str],
        node_taint_namespace: str,
        notes: list[str],
    ) -> None:
        self.folders = folders
        self.crd_groups = crd_groups
        self.driver_managed = driver_managed
        self.node_taints = node_taints
        self.node_taint_namespace = node_taint_namespace
        self.notes = notes


def deploy_sh(facts: Facts) -> bytes:
    """The bytes of deploy.sh for one bundle."""
    return (_INTRO + _head(facts) + OPTIONS + PREFLIGHT + INSTALL + MAIN).encode()


def _head(facts: Facts) -> str:
    lines = ["FOLDERS=("]
    lines += [f"  {shell_quote(folder[0])}" for folder in facts.folders]
    lines += [")", "NAMESPACES=("]
    lines += [f"  {shell_quote(name)}" for name in sorted({f[2] for f in facts.folders})]
    lines += [")", "# API group, component, namespace", "CRD_GROUPS=("]
    lines += [f"  {shell_quote(' '.join(row))}" for row in facts.crd_groups]
    lines += [
        ")",
        f"DRIVER_MANAGED={'true' if facts.driver_managed else 'false'}",
        "NODE_TAINTS=(",
        *(f"  {shell_quote(taint)}" for taint in map(_full_taint, facts.node_taints) if taint),
        ")",
        f"NODE_TAINT_NAMESPACE={shell_quote(facts.node_taint_namespace)}",
        # A note may well show a command with a $ in it.
        "# shellcheck disable=SC2016",
        "NOTES=(",
        *(f"  {shell_quote(' '.join(note.split()))}" for note in facts.notes),
        ")",
        "",
        "# Sets what is known of one folder; fails for a folder that is not part of this bundle.",
        "folder_facts() {",
        '  case "$1" in',
    ]
    for folder, release, namespace, parent, phase in facts.folders:
        lines.append(
            f"    {shell_quote(folder)})"
            f" RELEASE={shell_quote(release)} NAMESPACE={shell_quote(namespace)}"
            f" PARENT={shell_quote(parent)} PHASE={shell_quote(phase)} ;;"
        )
    lines += ["    *) return 1 ;;", "  esac", "}", ""]
    return "\n".join(lines)


def _full_taint(taint: str) -> str:
    """`key=value:Effect`, with the `=` also when there is no value, as the nodes are listed."""
    key, colon, effect = taint.rpartition(":")
    return f"{key if '=' in key else key + '='}{colon}{effect}" if colon else ""


_INTRO: Final = r"""#!/usr/bin/env bash
# Installs or upgrades every release of this bundle, one after another in the order of the folder
# numbers. Safe to run again. Run with --help for what it takes.
set -euo pipefail
"""
