"""README.md of a bundle: what is in it, how to deploy it, how to take it away again.

The page is the same for every deployer but for the two lists of commands that the deployer passes
in. It must not know how a deployer works. Source: bundler spec 2.9, 5.1.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Final

    from aicr.bundle.layout import Folder
    from aicr.bundle.plan import Plan

#: What each file is for that every bundle has at its root.
_COMMON: Final[dict[str, str]] = {
    "recipe.yaml": "the recipe that this bundle was made from",
    "bundle-info.yaml": "how it was made, and its releases, for programs",
    "checksums.txt": "SHA-256 of each file",
}
_CHANGE: Final = "Change values"
_UNINSTALL: Final = "Uninstall"
_CHANGE_VALUES: Final = (
    "Values that belong to your cluster alone go into `cluster-values.yaml` of a folder; they",
    "win over `values.yaml`. A changed bundle no longer matches `checksums.txt`, so keep the",
    "changes in the recipe or in the flags of `aicr bundle` where you can.",
)


def readme(
    plan: Plan,
    folders: list[Folder],
    *,
    deploy: Iterable[str],
    uninstall: Iterable[str],
    files: Mapping[str, str],
    sections: Mapping[str, Iterable[str]] | None = None,
    hooks: Iterable[str] = (),
) -> bytes:
    """README.md as UTF-8 text.

    Args:
        plan: the components and the notes of the run.
        folders: the releases, in deployment order.
        deploy: shell lines that deploy the bundle.
        uninstall: shell lines that remove it.
        files: what each root file of the deployer is for, by file name.
        sections: the deployer's own sections after "Deploy": heading -> lines. "Change values" and
            "Uninstall" take the place of the page's own text.
        hooks: what becomes of the charts' hooks, where not Helm itself runs them.
    """
    recipe: Mapping[str, Any] = plan.recipe
    own = {heading: list(text) for heading, text in (sections or {}).items()}
    change_values = own.pop(_CHANGE, _CHANGE_VALUES)
    take_away = own.pop(_UNINSTALL, None) or _uninstall(uninstall)
    lines = ["# AI cluster runtime bundle", ""]
    criteria = _criteria(recipe)
    if criteria:
        lines += [f"Made for {criteria}.", ""]
    lines += [
        f"{_count(len(plan.components), 'component')} in {_count(len(folders), 'Helm release')}, "
        "installed in the order of the folder numbers.",
        "",
        "## Components",
        "",
        "| folder | release | namespace | component | chart | version |",
        "|---|---|---|---|---|---|",
    ]
    refs = {component.name: component.ref for component in plan.components}
    for folder in folders:
        chart, version = _chart(folder, refs[folder.parent])
        cells = (folder.dir, folder.release, folder.namespace, folder.parent, chart, version)
        lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    lines += ["", "## Deploy", "", "```shell", *deploy, "```", ""]
    for heading, text in own.items():
        lines += [f"## {heading}", "", *text, ""]
    lines += [f"## {_CHANGE}", "", *change_values, ""]
    lines += [f"## {_UNINSTALL}", "", *take_away, ""]
    if any(component.facts is not None for component in plan.components):
        from aicr.bundle.chart_facts import RUN_BY_HELM, report

        found = report(plan.components, tuple(hooks) or RUN_BY_HELM)
        lines += ["## Hooks of the charts", "", *found, ""] if found else []
    if plan.notes:
        lines += ["## Notes", "", *(f"- {_line(note)}" for note in plan.notes), ""]
    lines += ["## Files", "", "| file | what it is |", "|---|---|"]
    lines += [f"| `{name}` | {_cell(text)} |" for name, text in {**files, **_COMMON}.items()]
    return ("\n".join(lines) + "\n").encode()


def _uninstall(commands: Iterable[str]) -> list[str]:
    return [
        "In the reverse order, so that nothing loses what it needs before it is gone itself:",
        "",
        "```shell",
        *commands,
        "```",
        "",
        "Helm leaves CRDs and namespaces that it made behind. A release whose own chart holds a",
        "Namespace takes that namespace with it, and everything in it.",
    ]


def _chart(folder: Folder, ref: Mapping[str, Any]) -> tuple[str, str]:
    if "Chart.yaml" not in folder.files:
        return f"{ref.get('chart') or ref['name']} from {ref['source']}", ref.get("version") or ""
    if folder.vendored is not None:
        return f"{folder.vendored.chart} in this bundle", folder.vendored.version
    if folder.phase == "primary" and ref.get("path"):
        return f"kustomization {ref['path']}", ref.get("tag") or ""
    return "in this bundle", ""


def _criteria(recipe: Mapping[str, Any]) -> str:
    """The criteria that say something, as `service eks, accelerator h100`."""
    criteria: Mapping[str, Any] = recipe.get("criteria") or {}
    return ", ".join(
        f"{key} {_line(str(value))}"
        for key, value in criteria.items()
        if value not in ("", "any", None, 0)
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _line(text: str) -> str:
    return " ".join(text.split())


def _cell(text: str) -> str:
    return _line(text).replace("|", "\\|")
