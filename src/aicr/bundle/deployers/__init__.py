"""The deployers: which formats a bundle can have, and where each is written.

A deployer is one module in this package with a function `generate` (see ``Deployer``). It is loaded
only when asked for. To add one: write the module, add its line to ``MODULES``.

This module must not know what any deployer does.
"""

from __future__ import annotations

from aicr.bundle.options import parse_deployer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final, Protocol

    from aicr.bundle.layout import Folder
    from aicr.bundle.options import BundleOptions
    from aicr.bundle.plan import Plan

    class Deployer(Protocol):
        """What a deployer module offers."""

        #: Words for the result line, for example `helm-bundle` (bundler spec 5.0.1).
        BUILD_TYPE: str
        #: The commands that deploy the bundle, in order, for the result text.
        STEPS: tuple[str, ...]

        def generate(
            self,
            recipe: dict[str, Any],
            plan: Plan,
            *,
            options: BundleOptions | None = None,
            folders: list[Folder] | None = None,
        ) -> dict[str, tuple[bytes, int]]:
            """The complete file set of a bundle: relative path -> (bytes, mode)."""
            ...


#: Name on the command line -> module.
MODULES: Final[dict[str, str]] = {
    "helm": "aicr.bundle.deployers.helm",
}


def names() -> list[str]:
    """Names of the deployers, sorted."""
    return sorted(MODULES)


def canonical_name(text: str) -> str:
    """The deployer that *text* names: blanks and letter case do not count, nothing means helm.

    Raises:
        AicrError: INVALID_REQUEST listing the valid names (bundler spec 1.1, tests 3 and 4).
    """
    return parse_deployer(text, names())


def load(name: str) -> Deployer:
    """The module of a deployer, imported now.

    Raises:
        AicrError: INVALID_REQUEST for an unknown name (see ``canonical_name``).
    """
    module: Any = __import__(MODULES[canonical_name(name)], fromlist=["generate"])
    deployer: Deployer = module
    return deployer
