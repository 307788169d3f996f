"""What has to be in a mirror: images and charts of a bundle, in the forms that mirroring tools read.

```
Bom --listing--> {images, charts, warnings} --> plain, or documents for hauler or zarf
```
It must not know how lists are printed or copied. Source: bundler spec 9.5.
"""

from __future__ import annotations

from typing import Any, Final

from aicr.bundle.bom import HELM, YES, Bom

FORMATS: Final = ("yaml", "json", "hauler", "zarf")
_HAULER: Final = "content.hauler.cattle.io/v1"


def listing(bom: Bom) -> dict[str, Any]:
    """The plain form: every image and chart once, sorted, and what the list cannot know."""
    return {
        "images": [str(image) for image in bom.images],
        "charts": charts(bom),
        "warnings": warnings(bom),
    }


def charts(bom: Bom) -> list[dict[str, str]]:
    """The upstream charts, by name."""
    found = {}
    for entry in bom.entries:
        if entry.kind == HELM:
            chart = {"name": entry.chart, "repository": entry.repository, "version": entry.version}
            found[entry.chart, entry.repository, entry.version] = chart
    return [found[key] for key in sorted(found)]


def warnings(bom: Bom) -> list[str]:
    """Where the list may be short."""
    return [
        f"{entry.name}: rendered: {entry.rendered}; images that only its chart names are missing"
        for entry in bom.entries
        if entry.rendered != YES
    ] + [f"{entry.name}: {place}" for entry in bom.entries for place in entry.partial]


def hauler(bom: Bom) -> list[dict[str, Any]]:
    """Two documents for hauler: images and charts."""
    return [
        {
            "apiVersion": _HAULER,
            "kind": "Images",
            "metadata": {"name": "aicr-images"},
            "spec": {"images": [{"name": str(image)} for image in bom.images]},
        },
        {
            "apiVersion": _HAULER,
            "kind": "Charts",
            "metadata": {"name": "aicr-charts"},
            "spec": {
                "charts": [
                    {
                        "name": chart["name"],
                        "repoURL": chart["repository"],
                        **({"version": chart["version"]} if chart["version"] else {}),
                    }
                    for chart in charts(bom)
                ]
            },
        },
    ]


def zarf(bom: Bom) -> dict[str, Any]:
    """A zarf package that carries the images."""
    return {
        "kind": "ZarfPackageConfig",
        "metadata": {"name": "aicr", "version": bom.version},
        "components": [
            {
                "name": "aicr-images",
                "required": True,
                "images": [str(image) for image in bom.images],
            }
        ],
    }
