"""Charts put into the bundle, and charts at hand that are only looked at.

```
ref ─► chart at hand (--chart-dir), or `helm pull` ─► check ─► VendoredChart ─► layout: charts/<c>-<v>.tgz
                                                         └───► ChartFacts ─► notes, CRD order, hooks
```
How helm is run is in ``helm_program``.

It must not know folders or deployers. Source: bundler spec 2.2, 2.3, 2.9; decisions 58, 60.
"""

from __future__ import annotations

import os

from aicr.bundle import chart_archive
from aicr.bundle.charts import chart_source
from aicr.bundle.helm_program import Helm, without_userinfo
from aicr.bundle.kustomize import run_process
from aicr.bundle.layout import is_kustomize
from aicr.errors import (
    AicrError,
    invalid,
    not_found,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Final

    from aicr.bundle.chart_archive import Archive
    from aicr.bundle.kustomize import Find, Run
    from aicr.bundle.plan import Plan

PROVENANCE: Final = "provenance.yaml"
API_VERSION: Final = "aicr.run/v1alpha2"
KIND: Final = "BundleProvenance"
#: Where a chart came from when nobody pulled it.
AT_HAND: Final = "chart-dir"


class VendoredChart:
    """A chart as it goes into the bundle.

    Attributes:
        chart: its name, below which its values lie. version: its version.
        tarball: file name, `<chart>-<version>.tgz`. content: its bytes.
        repository: where it was pulled from, without credentials.
        sha256: of the content.
        puller: version of the helm that pulled it, or `chart-dir`.
        namespaces: Namespaces that it declares, as far as that is known.
    """

    __slots__ = (
        "chart",
        "content",
        "namespaces",
        "puller",
        "repository",
        "sha256",
        "tarball",
        "version",
    )

    def __init__(
        self,
        archive: Archive,
        content: bytes,
        *,
        repository: str,
        puller: str,
        namespaces: list[str] | None = None,
    ) -> None:
        from aicr.artifacts.checksums import sha256_hex

        self.chart = archive.name
        self.version = archive.version
        self.tarball = f"{archive.name}-{archive.version}.tgz"
        self.content = content
        self.repository = repository
        self.sha256 = sha256_hex(content)
        self.puller = puller
        self.namespaces = namespaces or []


def attach(
    plan: Plan,
    *,
    run: Run | None = None,
    find: Find | None = None,
    environment: Mapping[str, str] | None = None,
    read_folder: Callable[[str], dict[str, bytes]] | None = None,
) -> list[str]:
    """Give the components their charts, in place, and say what the charts tell about the bundle.

    With ``--vendor-charts`` every chart is pulled, unless it lies in ``--chart-dir``, and goes into
    the bundle. Charts of ``--chart-dir`` are looked at in any case.

    Args:
        plan: the components; ``vendored`` and ``facts`` of each are set.
        run: starts processes; the default starts real ones.
        find: finds an installed program; the default looks along PATH.
        environment: where credentials are; the default is that of this process.
        read_folder: gives the archives of a folder by file name; the default reads the disk.

    Returns:
        Notes (decision 60).

    Raises:
        AicrError: what keeps a chart from being had.
    """
    import shutil
    import tempfile

    from aicr.bundle import chart_facts

    options = plan.options
    at_hand = (read_folder or archives_in)(options.chart_dir) if options.chart_dir else {}
    wanted = [
        item for item in plan.components if item.ref.get("source") and not is_kustomize(item.ref)
    ]
    scratch = tempfile.mkdtemp(prefix="aicr-charts-")
    try:
        helm: Helm | None = None
        try:
            helm = Helm(
                run or run_process, find or shutil.which, environment or os.environ, scratch
            )
        except AicrError:
            if options.vendor_charts and any(
                _at_hand(item.ref, at_hand) is None for item in wanted
            ):
                raise
        notes = []
        for component in wanted:
            had = obtain(component.ref, at_hand, helm if options.vendor_charts else None)
            if had is None:
                continue
            archive, chart = had
            if options.vendor_charts:
                component.vendored = chart
            if helm is None:
                notes.append(
                    f"{component.name}: its chart was not rendered, because helm is not installed; "
                    f"hooks, CRDs and placement paths of charts are not checked"
                )
                continue
            component.facts, said = chart_facts.look(component, archive, chart.content, helm)
            chart.namespaces = component.facts.namespaces
            notes += said
        return notes
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def provenance(charts: Iterable[tuple[str, VendoredChart]]) -> dict[str, Any]:
    """The BundleProvenance document of (component, chart) pairs (bundler spec 2.9)."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "vendoredCharts": [
            {
                "name": name,
                "chart": chart.chart,
                "version": chart.version,
                "repository": chart.repository,
                "sha256": chart.sha256,
                "tarballName": chart.tarball,
                "pullerVersion": chart.puller,
            }
            for name, chart in charts
        ],
    }


def obtain(
    ref: Mapping[str, Any], at_hand: Mapping[str, bytes], helm: Helm | None
) -> tuple[Archive, VendoredChart] | None:
    """The chart of a ref, from what is at hand or pulled; None when neither.

    Args:
        ref: name, source, chart and version of a component.
        at_hand: archives by file name.
        helm: pulls what is not at hand; None pulls nothing.

    Raises:
        AicrError: what keeps a chart from being pulled; INVALID_REQUEST for an archive that holds
            another chart or version.
    """
    name = ref["name"]
    reference, repository, version = chart_source(ref)
    puller, content = AT_HAND, _at_hand(ref, at_hand)
    if content is None:
        if helm is None:
            return None
        content = helm.pull(name, reference, repository, version)
        puller = helm.version
    archive = chart_archive.read(content, component=name)
    chart = reference.rpartition("/")[2]
    if archive.name != chart or (version and _plain(archive.version) != _plain(version)):
        raise invalid(
            f"component {name!r} pins chart {chart} {version}, but the archive holds "
            f"{archive.name} {archive.version}",
            where=name,
            hint="correct chart and version of the component, or replace the archive",
        )
    shown = without_userinfo(repository or reference.rpartition("/")[0])
    return archive, VendoredChart(archive, content, repository=shown, puller=puller)


def _at_hand(ref: Mapping[str, Any], at_hand: Mapping[str, bytes]) -> bytes | None:
    reference, _, version = chart_source(ref)
    chart = reference.rpartition("/")[2]
    for spelled in (version, version.removeprefix("v"), f"v{version}"):
        for form in (spelled, spelled.replace("+", "_")):
            if f"{chart}-{form}.tgz" in at_hand:
                return at_hand[f"{chart}-{form}.tgz"]
    return None


def archives_in(folder: str) -> dict[str, bytes]:
    """The chart archives of a folder by file name.

    Raises:
        AicrError: NOT_FOUND when the folder cannot be read.
    """
    try:
        names = sorted(os.listdir(folder))
        found = {}
        for name in names:
            if name.endswith(".tgz"):
                with open(os.path.join(folder, name), "rb") as file:
                    found[name] = file.read(chart_archive.MAX_BYTES + 1)
    except OSError as error:
        raise not_found(
            f"cannot read the charts of {folder}: {error.strerror}",
            where="--chart-dir",
            hint="name a folder of <chart>-<version>.tgz files, as helm pull writes them",
        ) from error
    return found


def _plain(version: str) -> str:
    return version.removeprefix("v").replace("_", "+")
