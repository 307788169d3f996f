"""Writes docs/container-images.md from what the catalogue's charts render, or says how it is out of date.

```
registry pins ─► charts at hand, and pulled with --pull ─► helm template ─► bill ─► page | differences
```
Whoever adds or removes a component, moves a pin (registry, overlay or mixin) or changes values so that
other images render runs it and commits the page. The gate in the test suite compares components and
versions only and needs no network; ``--check`` compares every line, so it also finds images that moved
below a pin that did not. ``tools.bom_refresh`` does that every week.

Without ``--pull`` and without ``--chart-dir`` only values and manifests are read, and the page says of
each chart that it was not looked into (decision 58). Source: requirements C-135 to C-138.

Usage, in the top folder of the checkout:
    python -m tools.bom_docs --pull               render every pinned chart and write the page
    python -m tools.bom_docs --chart-dir DIR      render the charts that lie in DIR (helm pull's archives)
    python -m tools.bom_docs --check [...]        write nothing; exit 1 and show each line that differs
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from aicr.bundle import bom, bom_page, vendor
from aicr.bundle.chart_render import Helm
from aicr.bundle.pinned_charts import PinnedCharts, puller
from aicr.catalog.catalog import Catalog
from aicr.errors import AicrError
from aicr.version import __version__

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = "docs/container-images.md"
TITLE: Final = "Container images of the catalogue"


def fresh_bill(catalog: Catalog, *, pull: bool, chart_dir: str = "") -> bom.Bom:
    """The bill of *catalog* as it is now.

    Args:
        catalog: the registry and its files.
        pull: fetch the charts that are not at hand, and build kustomizations.
        chart_dir: folder of chart archives, or "".

    Raises:
        AicrError: a chart could not be had or does not render; nothing has been written then.
    """
    at_hand = vendor.archives_in(chart_dir) if chart_dir else {}
    if pull:
        with puller() as helm:
            charts = PinnedCharts(Helm(), at_hand, helm)
            return bom.of_catalog(catalog, version=__version__, charts=charts)
    charts = PinnedCharts(Helm(), at_hand)
    return bom.of_catalog(catalog, version=__version__, charts=charts)


def written(bill: bom.Bom, before: str | None) -> str:
    """The text of the page; of *before* only what stands between its marks changes."""
    return bom_page.page(bill, title=TITLE, before=before)


def catalogue(folder: str) -> Catalog:
    """The catalogue of a folder, or the built-in one for ""."""
    return Catalog.from_dir(folder) if folder else Catalog.builtin()


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add where charts, catalogue and page are."""
    parser.add_argument("--chart-dir", default="", metavar="DIR", help="chart archives at hand")
    parser.add_argument(
        "--catalogue", default="", metavar="DIR", help="a data tree instead of the built-in one"
    )
    parser.add_argument("--page", default=PAGE, metavar="FILE", help=f"default: {PAGE}")


def main(argv: Sequence[str] | None = None, *, root: Path = ROOT) -> int:
    """Command-line entry: 0 done or current, 1 out of date or an error."""
    parser = argparse.ArgumentParser(description="Write the page of container images.")
    add_flags(parser)
    parser.add_argument("--pull", action="store_true", help="pull the charts that are not at hand")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if stale")
    given = parser.parse_args(argv)
    page = root / given.page
    before = page.read_text(encoding="utf-8") if page.is_file() else None
    try:
        bill = fresh_bill(catalogue(given.catalogue), pull=given.pull, chart_dir=given.chart_dir)
        if given.check:
            found = bom_page.stale(before or "", bill, full=True)
            print("\n".join([*found, f"bom: {given.page} is {'stale' if found else 'current'}"]))
            return int(bool(found))
        page.write_text(written(bill, before), encoding="utf-8", newline="\n")
    except AicrError as error:
        print(f"bom: {error}", file=sys.stderr)
        return 1
    print(
        f"bom: {given.page} written: {len(bill.entries)} components, {len(bill.images)} images, "
        f"{len(bill.unrendered)} charts not looked into"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
