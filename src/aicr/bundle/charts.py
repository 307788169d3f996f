"""The files of one Helm chart or chart reference: Chart.yaml, values, templates, upstream.env.

Everything here is a pure function from plain values to bytes. It knows Helm's file formats and what
Helm treats specially in a chart's `templates/`; it must not know which component, phase or deployer
it writes for. Source: bundler spec 2.2, 2.3.
"""

from __future__ import annotations

from aicr.bundle import manifests as rendered
from aicr.bundle.addresses import holds_secret
from aicr.errors import invalid
from aicr.yamlio import write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Final

#: A local chart is identified by its folder, never by its version, so the version never moves.
CHART_VERSION: Final = "0.1.0"
MODE: Final = 0o644
SECRET_MODE: Final = 0o600

_SCHEMES: Final = ("https://", "http://", "oci://")


def values_yaml(values: Mapping[str, Any]) -> bytes:
    """A values file: sorted keys, two spaces; `{}` when there is nothing (bundler spec 2.3)."""
    return write.dump(dict(values), sort_keys=True).encode()


def chart_yaml(release: str) -> bytes:
    """Chart.yaml of a local chart that is named after its release."""
    return write.dump({"apiVersion": "v2", "name": release, "version": CHART_VERSION}).encode()


def wrapper_yaml(release: str, chart: str, version: str) -> bytes:
    """Chart.yaml of a local chart around a chart that lies in its `charts/` (bundler spec 2.3)."""
    dependency = {"name": chart, "version": version, "repository": ""}
    return write.dump(
        {
            "apiVersion": "v2",
            "name": release,
            "version": CHART_VERSION,
            "dependencies": [dependency],
        }
    ).encode()


def shell_quote(text: str) -> str:
    """*text* as one single-quoted shell word, whatever it holds."""
    return "'" + text.replace("'", "'\\''") + "'"


def source_alias(address: str) -> str:
    """An address as one word: each run of other characters than ASCII letters and digits is a ``-``.

    >>> source_alias("helm.example.com/charts_1/")
    'helm-example-com-charts-1'
    """
    kept = (char if char.isascii() and char.isalnum() else " " for char in address)
    return "-".join("".join(kept).split())


def chart_source(ref: Mapping[str, Any]) -> tuple[str, str, str]:
    """(chart, repository, version) as helm takes them, for a ref with a chart source.

    Over HTTP(S) the chart is a name and the repository its URL. For OCI the chart is the full
    reference, the repository is empty and the version stays as pinned (bundler spec 2.3). A ref
    without a chart means the chart of its own name; an OCI source that already ends in that name
    is taken as the whole reference (field case F7).

    Raises:
        AicrError: INVALID_REQUEST for another kind of URL, one that holds a password or token, or
            text that a command line or a shell would read as something else.
    """
    name = ref["name"]
    source = ref.get("source") or ""
    version = ref.get("version") or ""
    chart = ref.get("chart") or ""
    for field, text in (("source", source), ("chart", chart), ("version", version)):
        # Of all white space only the blank counts as printable.
        if text.startswith("-") or " " in text or not text.isprintable():
            raise invalid(
                f"component {name!r} has the {field} {text!r}, which is no {field} of a chart",
                where=name,
                hint="remove leading dashes, blanks and control characters",
            )
    if not source.startswith(_SCHEMES):
        raise invalid(
            f"component {name!r} has the chart source {source!r}, "
            f"which is neither an http(s) nor an oci URL",
            where=name,
            hint="write the repository as https://…, or oci://… without the chart",
        )
    if holds_secret(source):
        raise invalid(
            f"component {name!r} has a password or token in its chart source, which would be stored "
            f"in the bundle",
            where=name,
            hint="take it out, and log in where the chart is pulled: helm registry login, or a "
            "Secret that the tool is told of",
        )
    source = source.rstrip("/")
    if not source.startswith("oci://"):
        return (chart or name).rpartition("/")[2], source, version
    if not chart and source.rpartition("/")[2] == name:
        return source, "", version
    return f"{source}/{chart or name}", "", version


def upstream_env(ref: Mapping[str, Any]) -> bytes:
    """upstream.env: which chart install.sh installs, as shell assignments (bundler spec 2.3)."""
    chart, repository, version = chart_source(ref)
    pairs = (("CHART", chart), ("REPO", repository), ("VERSION", version))
    return "".join(f"{key}={shell_quote(text)}\n" for key, text in pairs).encode()


def owns_crds(ref: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    """Whether the audit "this chart's CRDs may be applied by us" holds for this very chart.

    The registry's `ownsCRDs` speaks of the pinned chart, so any other source, chart or version
    takes the permission away (bundler spec 2.6).
    """
    if entry.get("ownsCRDs") is not True:
        return False
    pins = entry.get("helm") or {}
    chart = ref.get("chart") or ref["name"]
    return bool(
        ref.get("source")
        and ref.get("source") == pins.get("defaultRepository")
        and chart.rpartition("/")[2] == (pins.get("defaultChart") or "").rpartition("/")[2]
        and (ref.get("version") or "").removeprefix("v")
        == (pins.get("defaultVersion") or "").removeprefix("v")
    )


def owns_subchart_crds(entry: Mapping[str, Any]) -> bool:
    """Whether the audit behind `ownsCRDs` covers the CRDs of the charts inside the chart too."""
    return entry.get("ownsCRDsExcludeSubcharts") is not True


def template_files(
    manifests: Iterable[tuple[str, str]], *, component: str
) -> dict[str, tuple[bytes, int]]:
    """The `templates/` of a local chart from rendered manifests, by basename.

    Helm runs its own templating over them, so the text is escaped to come out as it went in.
    Manifests without an object are left out (bundler spec 2.2).

    Raises:
        AicrError: INVALID_REQUEST for two manifests of one basename (also when only letter case
            differs, because some file systems fold it) and for names that Helm would not render.
    """
    files: dict[str, tuple[bytes, int]] = {}
    taken: dict[str, str] = {}
    for basename, text in manifests:
        _guard_template_name(basename, component)
        folded = basename.casefold()
        if folded in taken:
            both = basename if taken[folded] == basename else f"{taken[folded]} and {basename}"
            raise invalid(
                f"component {component!r} has two manifests of one basename in one folder: {both}",
                where=component,
                hint="rename one of the manifest files",
            )
        taken[folded] = basename
        if rendered.is_empty(text):
            continue
        files[f"templates/{basename}"] = (rendered.escape_for_helm(text).encode(), MODE)
    return files


def declared_namespaces(manifests: Iterable[tuple[str, str]], *, component: str) -> list[str]:
    """Names of the Namespace objects that the manifests declare, in order.

    Raises:
        AicrError: INVALID_REQUEST for a manifest that is not YAML.
    """
    found: list[str] = []
    for basename, text in manifests:
        # Reading YAML costs more than writing the whole bundle; most manifests need none.
        if "Namespace" in text:
            documents = rendered.documents(text, f"{component}: {basename}")
            found += rendered.declares_namespace(documents)
    return found


def _guard_template_name(basename: str, component: str) -> None:
    if not basename or "/" in basename or "\\" in basename or basename in (".", ".."):
        raise invalid(f"component {component!r} has an unsafe manifest name {basename!r}")
    if basename[0] in "._" or basename == "NOTES.txt" or basename.endswith(".tpl"):
        raise invalid(
            f"component {component!r} has the manifest {basename!r}, a name that helm "
            f"does not render",
            where=component,
            hint="give it a plain name such as resources.yaml",
        )
