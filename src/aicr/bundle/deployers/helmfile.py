"""The helmfile deployer: one file a tier, run one after another; with `--serial` one chain.

```
default   helmfile.yaml ─► level-1.yaml ─► level-2.yaml …     a file for each tier, in sequence
                           └ a-pre ─needs─ a ─needs─ a-post   in a file only a component's own chain
--serial  helmfile.yaml    each release needs the one before it
```
Tiers are files and not `needs`, because helmfile plans a whole file before it installs any of it:
custom resources of a later tier are planned once the CRDs of the earlier ones are there (#914). A
chain across files cannot be written, so `--serial` puts everything into one file (decision 54).

No file here ends in `.gotmpl`, so helmfile takes values as they are, with one exception: it
replaces `ref+scheme://…` in any values file by a looked-up secret. Such values are refused rather
than installed as something else (field case F2).

Source: bundler spec 5.0, 5.2; requirements C-122 to C-125, C-132.
"""

from __future__ import annotations

from aicr.artifacts import checksums
from aicr.bundle import charts, info, layout, readme
from aicr.bundle.deployers import waiting
from aicr.errors import invalid
from aicr.yamlio import write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from aicr.bundle.deployers import Files
    from aicr.bundle.layout import Folder
    from aicr.bundle.plan import Component, Plan

NAME: Final = "helmfile"
BUILD_TYPE: Final = "helmfile-bundle"
ENTRYPOINT: Final = "helmfile.yaml"
STEPS: Final = ("cd <output folder>", "helmfile sync")

_OCI: Final = "oci://"
#: What helmfile takes for a reference to a secret in a values file, and how each begins.
_SECRET: Final = rb"ref\+[^+:\s]*://"
_SECRET_START: Final = b"ref+"
_GENERATED: Final = "# Made by aicr; change the recipe or the flags and make the bundle again.\n"


def generate(plan: Plan, folders: list[Folder]) -> Files:
    """The complete file set of a helmfile bundle: relative path -> (bytes, mode).

    Raises:
        AicrError: INVALID_REQUEST for a value that helmfile would
            replace, and for chart coordinates that an old helmfile would take for a template.
    """
    files: Files = {}
    for folder in folders:
        _guard(folder)
        for path, content in folder.files.items():
            files[f"{folder.dir}/{path}"] = content
    pages = documents(plan, folders)
    for path, document in pages.items():
        files[path] = ((_GENERATED + write.dump(document)).encode(), info.MODE)
    root_files = {ENTRYPOINT: "what helmfile reads first"}
    if len(pages) > 1:
        root_files["level-N.yaml"] = "the releases of tier N; tiers come one after another"
    files[info.README] = (
        readme.readme(
            plan,
            folders,
            deploy=("helmfile sync",),
            uninstall=("helmfile destroy",),
            files={
                **root_files,
            },
            sections=_sections(plan),
        ),
        info.MODE,
    )
    return info.complete(files, plan, folders, deployer=NAME, entrypoint=ENTRYPOINT, manifest="")


def documents(plan: Plan, folders: list[Folder]) -> dict[str, dict[str, Any]]:
    """The helmfiles by name: what each says, ENTRYPOINT first.

    A tier without a release (its components need nothing installed) gets no file.
    """
    aliases = repository_aliases(folders)
    components = {component.name: component for component in plan.components}
    if plan.serial:
        chained = [_release(folder, components[folder.parent], aliases) for folder in folders]
        for before, release in zip(folders, chained[1:], strict=False):
            _needs(release, before)
        return {ENTRYPOINT: _document(folders, chained, aliases)}
    tier = plan.tiers
    tiers: list[list[Folder]] = [[] for _ in plan.levels]
    for folder in folders:
        tiers[tier[folder.parent]].append(folder)
    pages: dict[str, dict[str, Any]] = {}
    for within in filter(None, tiers):
        releases = []
        previous: dict[str, Folder] = {}
        for folder in within:
            release = _release(folder, components[folder.parent], aliases)
            if folder.parent in previous:
                _needs(release, previous[folder.parent])
            previous[folder.parent] = folder
            releases.append(release)
        pages[f"level-{len(pages) + 1}.yaml"] = _document(within, releases, aliases)
    return {ENTRYPOINT: {"helmfiles": [{"path": path} for path in pages]}, **pages}


def repository_aliases(folders: list[Folder]) -> dict[str, str]:
    """Names of the chart repositories, by URL: one name for one URL in all files.

    A name is the URL without its scheme, other characters than letters and digits as `-`. URLs that
    come out equal are told apart by a digest, never by their order.
    """
    urls = sorted({url for url in map(_repository, folders) if url})
    plain: dict[str, list[str]] = {}
    for url in urls:
        plain.setdefault(_alias(url), []).append(url)
    made: dict[str, str] = {}
    for alias, sharing in plain.items():
        for url in sharing:
            suffix = f"-{checksums.sha256_hex(url.encode())[:8]}" if len(sharing) > 1 else ""
            made[url] = alias + suffix
    return made


def _repository(folder: Folder) -> str:
    """URL of the repository that a release's chart is in, "" for a local chart."""
    if folder.kind != layout.UPSTREAM_HELM:
        return ""
    return folder.repo or folder.chart.rpartition("/")[0]


def _alias(url: str) -> str:
    return charts.source_alias(url.partition("://")[2])


def _document(
    folders: list[Folder], releases: list[dict[str, Any]], aliases: dict[str, str]
) -> dict[str, Any]:
    document: dict[str, Any] = {}
    repositories = []
    for url in sorted({_repository(folder) for folder in folders} - {""}, key=aliases.__getitem__):
        entry: dict[str, Any] = {"name": aliases[url], "url": url}
        if url.startswith(_OCI):
            entry["url"] = url.removeprefix(_OCI)
            entry["oci"] = True
        repositories.append(entry)
    if repositories:
        document["repositories"] = repositories
    document["helmDefaults"] = {
        "wait": True,
        "timeout": waiting.TIMEOUT,
        "createNamespace": True,
        # Else an operator goes while the objects that only it can let go of are still there.
        "deleteWait": True,
        "deleteTimeout": waiting.TEARDOWN_SECONDS,
    }
    document["releases"] = releases
    return document


def _release(folder: Folder, component: Component, aliases: dict[str, str]) -> dict[str, Any]:
    here = f"./{folder.dir}"
    release: dict[str, Any] = {"name": folder.release, "namespace": folder.namespace}
    repository = _repository(folder)
    if repository:
        release["chart"] = f"{aliases[repository]}/{folder.chart.rpartition('/')[2]}"
        if folder.version:
            release["version"] = folder.version
    else:
        release["chart"] = here
        if any(path.startswith("charts/") for path in folder.files):
            # A vendored chart is there already; helm would look for it in a repository.
            release["skipDeps"] = True
    release["values"] = [f"{here}/values.yaml"]
    if folder.cluster_values:
        release["values"].append(f"{here}/cluster-values.yaml")
    rule = waiting.rule(folder.parent, folder.phase)
    if rule is not None:
        release["wait"], release["timeout"] = rule
    if not folder.create_namespace:
        release["createNamespace"] = False
    if (folder.phase == "primary" and component.entry.get("hasSelfRefCRDs") is True) or (
        folder.phase == "post" and component.entry.get("manifestsUseChartCRDs") is True
    ):
        # The CRDs of these objects come with the chart itself, so they are not there at planning.
        release["disableValidation"] = True
    if folder.crd_owner:
        release["hooks"] = [
            {
                "events": ["presync"],
                "showlogs": True,
                "command": "bash",
                # helmfile's own --kube-context reaches helm, and a hook by its arguments alone.
                "args": [
                    f"{here}/apply-crds.sh",
                    "--kube-context={{ .Release.KubeContext }}",
                ],
            }
        ]
    return release


def _needs(release: dict[str, Any], before: Folder) -> None:
    release["needs"] = [f"{before.namespace}/{before.release}"]


def _guard(folder: Folder) -> None:
    for field, text in (("chart", folder.chart), ("version", folder.version)):
        if "{{" in text or "{{" in folder.repo:
            raise invalid(
                f"component {folder.parent!r} has template braces in the {field} of its chart, "
                f"which helmfile may evaluate",
                where=folder.parent,
                hint="write the chart's coordinates without {{",
            )
    for path in ("values.yaml", "cluster-values.yaml"):
        content = folder.files.get(path)
        if content is not None and _SECRET_START in content[0]:
            _guard_secrets(folder, path, content[0])


def _guard_secrets(folder: Folder, path: str, content: bytes) -> None:
    import re

    found = re.search(_SECRET, content)
    if found is not None:
        raise invalid(
            f"component {folder.parent!r} has a value with {found.group().decode()}…, which "
            f"helmfile would replace by a secret that it looks up",
            where=f"{folder.dir}/{path}",
            hint="keep the secret in the cluster and name it in the values, or use another "
            "--deployer",
        )


def _sections(plan: Plan) -> dict[str, list[str]]:
    """What README.md says about helmfile alone."""
    how = [
        "`helmfile sync` needs helmfile 1.0 or later, and helm. It can be run again. KUBECONFIG and",
        "`helmfile --kube-context` choose the cluster; `helmfile --kubeconfig` does not reach the step",
        "that brings CRDs up to date, so do not use it.",
    ]
    if plan.serial:
        how += [
            "",
            "All releases form one chain in the order of the folder numbers. Use `sync`, not `apply`:",
            "`apply` plans every release first, before the CRDs of the early ones are there.",
        ]
    else:
        how += [
            "",
            "Each `level-N.yaml` is planned and installed before the next one is read, so `helmfile",
            "apply` (which needs the plugin helm-diff) works as well. Releases of one level that do",
            "not name each other are installed at the same time.",
        ]
    return {
        "Helmfile": how,
        "Change values": [
            "The values of a release are in `values.yaml` of its folder. `cluster-values.yaml` is read",
            "only where the bundle was made with `--dynamic` for that component; it wins then. A",
            "changed bundle no longer matches `checksums.txt`.",
        ],
    }
