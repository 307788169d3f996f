"""What the sources that the registry pins install, for a bill of the whole catalogue.

```
entry's pin ─► chart of a folder, or `helm pull`   ─► chart around it, with the base values ─► helm template
            └► `kubectl kustomize`, when pulling                                            ─► manifests
```
A source that is neither at hand nor to be pulled gives nothing, and the bill says so (decision 58).
One that should be pulled and cannot be is an error: a bill that silently lacks what was asked for
would be committed as a change of the images.

It must not know pages, and of bundles only how a chart is had. Source: bundler spec 8.1; components
seed, "BOM Regeneration".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from aicr.bundle import charts, kustomize, vendor
from aicr.bundle.chart_render import Renderer
from aicr.bundle.helm_program import Helm
from aicr.errors import AicrError, invalid

if TYPE_CHECKING:
    from aicr.bundle.kustomize import Find, Run

KUSTOMIZE: Final = "Kustomize"


class PinnedCharts:
    """Renders the sources of components at their pins.

    Args:
        renderer: renders a chart that wraps another one.
        at_hand: chart archives by file name, as ``vendor.archives_in`` reads them.
        helm: pulls the charts that are not at hand; None pulls nothing, and builds no kustomization.
        run: starts kustomize. find: finds an installed program.
    """

    def __init__(
        self,
        renderer: Renderer,
        at_hand: Mapping[str, bytes],
        helm: Helm | None = None,
        *,
        run: Run | None = None,
        find: Find | None = None,
    ) -> None:
        self._renderer = renderer
        self._at_hand = at_hand
        self._helm = helm
        self._run = run
        self._find = find

    def render(self, ref: Mapping[str, Any], namespace: str, values: dict[str, Any]) -> str | None:
        """The manifests of a component's source, or None when it is neither at hand nor pulled.

        Args:
            ref: name, type, source and pin of the component.
            namespace: where it is installed.
            values: what its chart gets.

        Raises:
            AicrError: the source could not be had, or does not render; the component is named.
        """
        name = ref["name"]
        if ref.get("type") == KUSTOMIZE:
            if self._helm is None:
                return None
            return kustomize.build(ref, run=self._run, find=self._find)
        had = vendor.obtain(ref, self._at_hand, self._helm)
        if had is None:
            return None
        _, chart = had
        files = {
            "Chart.yaml": charts.wrapper_yaml(name, chart.chart, chart.version),
            "values.yaml": charts.values_yaml({chart.chart: values}),
            f"charts/{chart.tarball}": chart.content,
        }
        try:
            return self._renderer.render(name, namespace or name, files)
        except AicrError as error:
            raise AicrError(
                error.code,
                f"the chart of component {name!r} does not render with its base values",
                where=name,
                hint="look at components/<name>/values.yaml and at the pin in the registry",
            ) from error


@contextmanager
def puller() -> Iterator[Helm]:
    """The installed helm in a scratch folder that goes away with the ``with`` block.

    Raises:
        AicrError: INVALID_REQUEST when helm is not installed.
    """
    import os
    import shutil
    import tempfile

    if shutil.which("helm") is None:
        raise invalid("charts are pulled with helm, which is not installed", hint="install helm")
    with tempfile.TemporaryDirectory(prefix="aicr-charts-") as scratch:
        yield Helm(kustomize.run_process, shutil.which, os.environ, scratch)
