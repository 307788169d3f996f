"""``aicr mirror rewrite``: the overrides that bring a recipe's images into a mirror."""

from __future__ import annotations

from aicr.cli import bill_source
from aicr.cli.arguments import Parser
from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Final

    from aicr.cli.console import Console

#: Status of a run that found something (decision 46).
FOUND: Final = 8
_EXAMPLES = """\
examples:
  aicr mirror rewrite -r recipe.yaml --mirror mirror.local/gpu > overrides.txt
  aicr bundle -r recipe.yaml -o bundle $(cat overrides.txt)

Prints one --set=COMPONENT:PATH=VALUE a line. Tags and digests stay, and what
lies in the mirror already is left alone. Images that only a chart's own
defaults name are not in the values, and text inside of arguments is never
changed; both are listed, and make the status 8.
"""


def parser() -> Parser:
    """The parser of this command."""
    found = Parser(
        prog="aicr mirror rewrite",
        description="Print the overrides that bring a recipe's images into a mirror.",
        epilog=_EXAMPLES,
    )
    found.once("--recipe", "-r", metavar="FILE", help="recipe file or address, - for stdin")
    found.many("--set", metavar="COMPONENT:PATH=TEXT", help="override one value beforehand")
    found.once("--data", metavar="DIR", help="directory laid over the built-in catalogue")
    found.once("--mirror", metavar="HOST/PATH", help="where the images will be")
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Print the overrides, and what they leave."""
    from aicr.bundle import airgap
    from aicr.errors import CONFLICT, AicrError

    for flag in ("recipe", "mirror"):
        if getattr(arguments, flag) is None:
            raise invalid(
                f"flag --{flag} is required",
                hint="aicr mirror rewrite -r recipe.yaml --mirror mirror.local/gpu",
            )
    mirror = airgap.check_mirror(arguments.mirror)
    bundle = bill_source.made_bundle(arguments, console)
    images, left, lines = {}, [], []
    for component in bundle.plan.components:
        made = airgap.rewrite(component.values, mirror, source=component.name)
        images.update(made.images)
        left += [f"{component.name}: {place}" for place in made.left]
        lines += [
            f"--set={component.name}:{path}={new}\n" for path, (_, new) in made.changes.items()
        ]
        if component.ref.get("source"):
            left.append(f"{component.name}: images that only its chart names")
        for name, text in (*component.pre_manifests, *component.manifests):
            left += [f"{component.name}: {name}: {image}" for image in _in_manifest(text, mirror)]
    both = airgap.clashes(images)
    if both:
        raise AicrError(
            CONFLICT,
            f"the mirror would hold two images under one name: {both[0]}",
            where="--mirror",
            hint="mirror them under different paths, and override one of them by hand",
        )
    for line in lines:
        console.write(line)
    for place in left:
        console.warn(f"not rewritten: {place}")
    return FOUND if left else 0


def _in_manifest(text: str, mirror: str) -> list[str]:
    """Images of a manifest that are not in the mirror: no override reaches them."""
    from aicr.bundle import image_scan
    from aicr.yamlio import read

    found = []
    for document in read.load_all(text, source="manifest"):
        for item in image_scan.scan(document, source="manifest").found:
            if not item.reference.is_in(mirror):
                found.append(str(item.reference))
    return sorted(set(found))
