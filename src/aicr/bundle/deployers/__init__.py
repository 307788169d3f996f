"""The deployers: which formats a bundle can have, and where each is written.

A deployer is one module in this package with a function `generate` (see ``Deployer``). It is loaded
only when asked for. To add one: write the module, and add its line to ``MODULES``; or, from a
package of one's own, declare it as an entry point of the group ``aicr.deployers``, or call
``register``.

This module must not know what any deployer does.
"""

from __future__ import annotations

from aicr.bundle.options import parse_deployer
from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final, Protocol

    from aicr.bundle.layout import Folder
    from aicr.bundle.options import BundleOptions
    from aicr.bundle.plan import Plan

    #: Relative path -> (bytes, mode).
    Files = dict[str, tuple[bytes, int]]

    class Deployer(Protocol):
        """What a deployer module offers."""

        #: Words for the result line, for example `helm-bundle` (bundler spec 5.0.1).
        BUILD_TYPE: str
        #: The commands that deploy the bundle, in order, for the result text.
        STEPS: tuple[str, ...]

        def generate(self, plan: Plan, folders: list[Folder]) -> Files:
            """The complete file set of a bundle.

            Args:
                plan: the components to install, in deployment order, with their dependencies and
                    tiers; the recipe of the bundle, for recipe.yaml; the flags of the run.
                folders: the folders of the plan, one a release, as ``layout.folders`` makes them.

            Raises:
                AicrError: INVALID_REQUEST for what the tool could not deploy.
            """
            ...


#: Name on the command line -> module.
MODULES: Final[dict[str, str]] = {
    "argocd": "aicr.bundle.deployers.argocd",
    "argocd-helm": "aicr.bundle.deployers.argocd_helm",
    "fleet": "aicr.bundle.deployers.fleet",
    "flux": "aicr.bundle.deployers.flux",
    "helm": "aicr.bundle.deployers.helm",
    "helmfile": "aicr.bundle.deployers.helmfile",
    "terraform": "aicr.bundle.deployers.terraform",
}


#: Where other packages declare deployers of their own: name = module.
ENTRY_POINTS: Final = "aicr.deployers"


def notes(deployer: Deployer, plan: Plan) -> list[str]:
    """What a deployer wants known before its bundle is deployed; most have nothing to say.

    A module says it with an optional function `notes(plan) -> list[str]`.
    """
    own: Any = getattr(deployer, "notes", None)
    return list(own(plan)) if own is not None else []


def steps(deployer: Deployer, options: BundleOptions) -> tuple[str, ...]:
    """The commands that deploy a bundle made with these flags.

    `STEPS`, unless the module has a function `steps(options) -> tuple[str, ...]`.
    """
    own: Any = getattr(deployer, "steps", None)
    return tuple(own(options)) if own is not None else deployer.STEPS


def register(name: str, module: str) -> None:
    """Add a deployer that lives in another package.

    Args:
        name: what ``--deployer`` takes; lower-case letters, digits and ``-``.
        module: full name of a module that offers what ``Deployer`` lists.

    Raises:
        AicrError: INVALID_REQUEST for a name that is taken or cannot be typed.
    """
    if not name or name != name.strip().lower() or not name.replace("-", "").isalnum():
        raise invalid(
            f"{name!r} cannot be the name of a deployer",
            hint="use lower-case letters, digits and '-'",
        )
    if MODULES.get(name, module) != module:
        raise invalid(f'there is a deployer "{name}" already: {MODULES[name]}')
    MODULES[name] = module


def names() -> list[str]:
    """Names of the deployers, sorted."""
    return sorted(MODULES)


def canonical_name(text: str) -> str:
    """The deployer that *text* names: blanks and letter case do not count, nothing means helm.

    Raises:
        AicrError: INVALID_REQUEST listing the valid names (bundler spec 1.1, tests 3 and 4).
    """
    if (text.strip().lower() or "helm") not in MODULES:
        _find_declared()
    return parse_deployer(text, names())


def _find_declared() -> None:
    """Register what installed packages declare; looked up for an unknown name only, as it is slow."""
    from importlib.metadata import entry_points

    for point in entry_points(group=ENTRY_POINTS):
        if point.name not in MODULES:
            register(point.name, point.value)


def load(name: str) -> Deployer:
    """The module of a deployer, imported now.

    Raises:
        AicrError: INVALID_REQUEST for an unknown name (see ``canonical_name``).
    """
    module: Any = __import__(MODULES[canonical_name(name)], fromlist=["generate"])
    deployer: Deployer = module
    return deployer
