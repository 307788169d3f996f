"""Component manifests: rendered when the bundle is made, then readied for a Helm chart of our own.

A manifest of the catalogue is a Go template. It is rendered here with the values of its component,
its Helm hooks are cut down to those that a GitOps deployer needs too, and since it then lies in the
``templates/`` of a generated chart, what Helm would take for a template is escaped.

Design: text goes in and text comes out. Where a hook is removed, only its lines are taken out, so
comments and layout stay; the edited text is read back and must mean what was wanted, and if the
lines were not what they seemed, the document is written anew.

It must not know folders, deployers or component names.
Source of the rules: bundler spec 0.9, 2.2 and 2.7.
"""

from __future__ import annotations

from aicr import yamlio
from aicr.bundle.gotemplate import render
from aicr.errors import AicrError, invalid
from aicr.yamlio.write import dump

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

HOOK: Final = "helm.sh/hook"
#: Annotations that mean nothing once the hook is gone.
_HOOK_DETAILS: Final = ("helm.sh/hook-weight", "helm.sh/hook-delete-policy")
#: Phases that belong to an ordinary sync; what is left (pre-delete, post-delete) is a real hook.
SYNC_PHASES: Final = frozenset(
    (
        "pre-install", "post-install", "pre-upgrade", "post-upgrade", "pre-rollback",
        "post-rollback", "crd-install", "test", "test-success", "test-failure",
    )
)  # fmt: skip

#: The name under which the synthesized quota is listed among pre-manifests (0.9).
GKE_QUOTA_MANIFEST: Final = "aicr/synthesized/gke-critical-pods-quota.yaml"
_PODS_OF_A_NODE: Final = 32

_NO_OBJECT: Final = frozenset(("", "null", "Null", "NULL", "~", "{}"))
# Texts, not compiled patterns: only manifests with hooks need them, and every start would pay.
_KEY_LINE: Final = (
    r"(?P<indent> +)(?P<quote>[\"']?)(?P<key>[^\"'\s:#][^\"':#]*)(?P=quote)"
    r"[ \t]*:(?P<rest>[ \t].*)?\Z"
)
_HOOK_VALUE: Final = r"(?P<before>[ \t]+[\"']?)[\w, \t-]*?(?P<after>[\"']?[ \t]*(?:[ \t]#.*)?)\Z"
_MARKER: Final = r"(?m)^---(?=[ \t\r\n]|\Z)"
_UNUSUAL: Final = r"(?m)^(?:%|\.\.\.(?:[ \t\r\n]|\Z))"
#: Helm deletes this text from whatever it renders.
_EATEN_BY_HELM: Final = "<no value>"


def render_manifest(
    text: str,
    *,
    source: str,
    component: str,
    values: dict[str, Any],
    namespace: str,
    chart_name: str,
    chart_version: str,
) -> str:
    """A manifest of the catalogue as plain YAML text (bundler spec 2.7).

    Args:
        text: the manifest; without an action it is returned as it is.
        source: its path, for errors.
        component: the key below ``.Values`` under which the values are found.
        values: the final values of the component.
        namespace: ``.Release.Namespace``.
        chart_name: ``.Chart.Name``.
        chart_version: ``.Chart.Version``; a leading v is dropped, and a build's ``+`` becomes ``_``,
            as charts do it for their labels, where a plus may not stand.

    Raises: AicrError INVALID_REQUEST when the template cannot be parsed, INTERNAL when it cannot be
        executed; both with ``where`` as ``source:line``.
    """
    if "{{" not in text:
        return text
    data = {
        "Values": {component: values},
        "Release": {"Namespace": namespace, "Service": "Helm"},
        "Chart": {"Name": chart_name, "Version": chart_version.removeprefix("v").replace("+", "_")},
    }
    return render(text, data, source=source)


def documents(text: str, source: str) -> list[dict[str, Any]]:
    """The objects of a rendered manifest, without empty documents.

    Raises: AicrError INVALID_REQUEST when the text is not YAML, or a document is not a mapping.
    """
    found = yamlio.read_fast_all(text, source=source)
    for place, document in enumerate(found, 1):
        if not isinstance(document, dict):
            raise invalid(
                f"document {place} of the rendered manifest is not a Kubernetes object",
                where=source,
                hint="a manifest holds mappings with apiVersion, kind and metadata",
            )
    return found


def is_empty(text: str) -> bool:
    """Whether a rendered manifest holds no object: only blanks, comments, markers and nulls (2.2).

    Looks at lines and does not read the YAML, so it is cheap for a large manifest.
    """
    for line in text.split("\n"):
        content = line.strip()
        if content.startswith(("---", "...")):
            content = content[3:].lstrip()
        if content not in _NO_OBJECT and not content.startswith("#"):
            return False
    return True


def declares_namespace(documents: list[dict[str, Any]]) -> list[str]:
    """The names of the Namespaces among objects, and among the items of lists, in order (2.2)."""
    names: list[str] = []
    for document in documents:
        kind = document.get("kind")
        if kind == "Namespace":
            metadata = document.get("metadata")
            name = metadata.get("name") if isinstance(metadata, dict) else None
            names.append(name if isinstance(name, str) else "")
        elif isinstance(kind, str) and kind.endswith("List"):
            items = document.get("items")
            if isinstance(items, list):
                names += declares_namespace([item for item in items if isinstance(item, dict)])
    return names


def gke_critical_pods_quota(namespace: str, nodes: int) -> str:
    """The ResourceQuota that lets system-critical pods run in a namespace on GKE (0.9).

    Args:
        namespace: of the component that is flagged ``gkeCriticalPriority``.
        nodes: GPU nodes of the criteria; 0 when not known. 32 pods a node, and never below 32.

    Raises: AicrError INVALID_REQUEST for a negative number of nodes.
    """
    if nodes < 0:
        raise invalid(f"the number of nodes is {nodes}", hint="use 0 when it is not known")
    pods = max(_PODS_OF_A_NODE, nodes * _PODS_OF_A_NODE)
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "aicr-gke-critical-pods", "namespace": namespace},
        "spec": {
            "hard": {"pods": str(pods)},
            "scopeSelector": {
                "matchExpressions": [
                    {
                        "operator": "In",
                        "scopeName": "PriorityClass",
                        "values": ["system-node-critical", "system-cluster-critical"],
                    }
                ]
            },
        },
    }
    return dump(quota)


def escape_for_helm(text: str) -> str:
    """Text that Helm renders to exactly the given text when it lies in a chart's ``templates/``.

    Only ``{{`` has a meaning outside an action, so only that is replaced, from the left, by an
    action that prints it; ``}}`` and a brace that is left over are ordinary text.

    Raises: AicrError INVALID_REQUEST for text that Helm deletes from its output in any case.
    """
    if _EATEN_BY_HELM in text:
        raise invalid(
            f"the rendered manifest contains {_EATEN_BY_HELM!r}, which helm removes from templates",
            hint="write it in a double-quoted scalar as <no\\x20value>",
        )
    return text.replace("{{", '{{ "{{" }}')


def strip_hooks(text: str, *, source: str) -> str:
    """A rendered manifest without the Helm hooks that are part of an ordinary sync (2.7).

    Of ``helm.sh/hook`` only the phases that are no sync phases stay. If none stays, its weight and
    delete policy go with it. Text without a hook is returned as it is; otherwise empty documents
    are dropped and everything that is not about hooks keeps its bytes where that is possible.

    Raises: AicrError INVALID_REQUEST when the text has hooks and is not YAML.
    """
    if HOOK not in text:
        return text
    import re

    if re.search(_UNUSUAL, text):
        wanted = [_without_sync_phases(each, source) for each in documents(text, source)]
        return "---\n".join([dump(document) for document in wanted])
    starts = [match.start() for match in re.finditer(_MARKER, text)]
    if not starts or starts[0] > 0:
        starts.insert(0, 0)
    parts: list[str] = []
    line = 0
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        part = text[start:end]
        parts.append(_strip_part(part, line, source))
        line += part.count("\n")
    return "".join(parts)


def _strip_part(part: str, line: int, source: str) -> str:
    """One document's text, from its marker on, without sync hooks; "" for an empty document."""
    found = documents("\n" * line + part, source)
    if not found:
        # Comments before the first marker are no document of their own.
        return "" if part.startswith("---") else part
    document = found[0]
    wanted = _without_sync_phases(document, source)
    if wanted is document:
        return part
    edited = _edit(part, _annotations(wanted).get(HOOK))
    if edited is not None:
        try:
            if documents(edited, source) == [wanted]:
                return edited
        except AicrError:
            # The lines were not what they seemed; the document is written anew below.
            pass
    return ("---\n" if part.startswith("---") else "") + dump(wanted)


def _annotations(document: dict[str, Any]) -> dict[str, Any]:
    """The annotations of an object; empty when there are none."""
    metadata = document.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return annotations if isinstance(annotations, dict) else {}


def _without_sync_phases(document: dict[str, Any], source: str) -> dict[str, Any]:
    """The object as it should be; the same object when nothing is to be changed."""
    annotations = _annotations(document)
    if HOOK not in annotations:
        return document
    phases = annotations[HOOK]
    if phases is not None and not isinstance(phases, str):
        raise invalid(
            f"the annotation {HOOK} is {phases!r}, and not text",
            where=source,
            hint="write phases separated by commas, as in post-delete",
        )
    written = [phase.strip() for phase in (phases or "").split(",") if phase.strip()]
    kept = [phase for phase in written if phase.lower() not in SYNC_PHASES]
    if kept and len(kept) == len(written):
        return document
    if kept:
        changed = {**annotations, HOOK: ",".join(kept)}
    else:
        gone = (HOOK, *_HOOK_DETAILS)
        changed = {key: value for key, value in annotations.items() if key not in gone}
    metadata = dict(document["metadata"])
    if changed:
        metadata["annotations"] = changed
    else:
        del metadata["annotations"]
    return {**document, "metadata": metadata}


def _edit(part: str, kept: str | None) -> str | None:
    """The text with the hook's value replaced, or with the lines of the hook taken out.

    Returns None when the annotations are not written as a plain block, one line for each.
    """
    import re

    lines = part.split("\n")
    top = _find(lines, 0, "", "metadata")
    if top is None:
        return None
    child = _next_indent(lines, top + 1)
    header = _find(lines, top + 1, child, "annotations") if child else None
    inner = _next_indent(lines, header + 1) if header is not None else ""
    if header is None or len(inner) <= len(child):
        return None
    out = lines[: header + 1]
    entries = 0
    at = header + 1
    while at < len(lines):
        line = lines[at]
        bare = line.strip()
        if bare and not bare.startswith("#"):
            match = re.match(_KEY_LINE, line.rstrip("\r"))
            if match is None or match["indent"] != inner:
                break
            key = match["key"].rstrip()
            if key == HOOK and kept is not None:
                value = re.match(_HOOK_VALUE, match["rest"] or "")
                if value is None:
                    return None
                cut = match.start("rest")
                end = "\r" if line.endswith("\r") else ""
                line = f"{line[:cut]}{value['before']}{kept}{value['after']}{end}"
            elif kept is None and (key == HOOK or key in _HOOK_DETAILS):
                at += 1
                continue
            entries += 1
        out.append(line)
        at += 1
    if not entries:
        # The comments of a block that is gone would speak of nothing.
        remark = f"{inner}#"
        out[header:] = [line for line in out[header + 1 :] if not line.startswith(remark)]
    return "\n".join(out + lines[at:])


def _find(lines: list[str], start: int, indent: str, key: str) -> int | None:
    """The line that opens the block *key* at an indentation, before a line that is further left."""
    for at in range(start, len(lines)):
        bare = lines[at].strip()
        if not bare or bare.startswith(("#", "---")):
            continue
        here = lines[at][: len(lines[at]) - len(lines[at].lstrip(" "))]
        if len(here) < len(indent):
            return None
        if here == indent and bare.partition("#")[0].rstrip() == f"{key}:":
            return at
    return None


def _next_indent(lines: list[str], start: int) -> str:
    """The indentation of the next line that is neither blank nor a comment."""
    for line in lines[start:]:
        bare = line.strip()
        if bare and not bare.startswith("#"):
            return line[: len(line) - len(line.lstrip(" "))]
    return ""
