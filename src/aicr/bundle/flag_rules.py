"""Which flags of ``aicr bundle`` go together (bundler spec 1.1, 1.8; decisions 53, 54).

A flag that belongs to one output format is refused with every other, because nothing would come of
it. A format that this program does not bring (see ``deployers.register``) may use any of them.

It must not know recipes or components.
"""

from __future__ import annotations

from aicr.bundle import options as flags
from aicr.contract.object_names import LABEL_LENGTH, SUBDOMAIN_LENGTH, has_label_form
from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from aicr.bundle.options import BundleOptions

#: Option -> its flag, the value that means "not given", and the formats that use it.
SPECIAL: Final[dict[str, tuple[str, Any, tuple[str, ...]]]] = {
    "app_name": ("--app-name", "", ("argocd", "argocd-helm", "fleet")),
    "flux_namespace": ("--flux-namespace", flags.FLUX_NAMESPACE, ("flux",)),
    "flux_oci_source_name": (
        "--flux-oci-source-name",
        flags.FLUX_OCI_SOURCE_NAME,
        ("flux",),
    ),
    "fleet_mode": ("--fleet-mode", flags.FLEET_MODE, ("fleet",)),
    "fleet_workspace": ("--fleet-workspace", flags.FLEET_WORKSPACE, ("fleet",)),
    "terraform_child_module": ("--terraform-child-module", False, ("terraform",)),
    "terraform_cluster_rollover": ("--terraform-cluster-rollover", False, ("terraform",)),
}
#: Options that name an object, and those of them that may hold dots.
_NAMES: Final = ("app_name", "flux_namespace", "flux_oci_source_name", "fleet_workspace")
_SUBDOMAINS: Final = ("app_name", "flux_oci_source_name")
FLEET_MODES: Final = ("gitrepo", "helmop")
#: Formats that a GitOps tool reads from a repository.
_FROM_REPOSITORY: Final = ("argocd", "fleet", "flux")


def check(options: BundleOptions, deployer: str) -> list[str]:
    """Refuse flags that do not go together.

    Args:
        options: the flags.
        deployer: canonical name of the output format.

    Returns:
        Notes on flags that change nothing.

    Raises:
        AicrError: INVALID_REQUEST naming the flag.
    """
    if options.dynamic and deployer == "argocd":
        raise invalid(
            "--dynamic cannot be used with --deployer argocd: its Applications carry all values, "
            "so nothing is left to the installation",
            where="--dynamic",
            hint="use --deployer argocd-helm, whose values are given when it is installed",
        )
    for name, (flag, unset, deployers) in SPECIAL.items():
        if getattr(options, name) != unset:
            check_deployer(flag, deployers, deployer)
    if options.fleet_mode not in FLEET_MODES:
        raise invalid(
            f'invalid --fleet-mode "{options.fleet_mode}": must be one of {", ".join(FLEET_MODES)}',
            where="--fleet-mode",
            hint="leave it out for gitrepo",
        )
    for name in _NAMES:
        flag, unset, _ = SPECIAL[name]
        if getattr(options, name) != unset:
            _check_name(getattr(options, name), flag, subdomain=name in _SUBDOMAINS)
    for flag, text, hint in (
        ("--repo", options.repo, "for example https://github.com/acme/gpu.git"),
        ("--target-revision", options.target_revision, "name a branch, a tag or a commit"),
    ):
        if text.startswith("-") or any(char.isspace() or not char.isprintable() for char in text):
            raise invalid(
                f"invalid {flag} {text!r}: it has a leading dash, blanks or control characters",
                where=flag,
                hint=hint,
            )
    return _useless(options, deployer)


def check_deployer(flag: str, deployers: tuple[str, ...], deployer: str) -> None:
    """Refuse a flag that was given for a format that has no use for it.

    Raises:
        AicrError: INVALID_REQUEST listing the formats that use it.
    """
    if deployer in flags.KNOWN_DEPLOYERS and deployer not in deployers:
        raise invalid(
            f"{flag} cannot be used with --deployer {deployer}: only {', '.join(deployers)} "
            f"{'uses' if len(deployers) == 1 else 'use'} it",
            where=flag,
            hint="drop the flag",
        )


def _useless(options: BundleOptions, deployer: str) -> list[str]:
    if not options.repo or deployer not in flags.KNOWN_DEPLOYERS or deployer in _FROM_REPOSITORY:
        return []
    if deployer == "argocd-helm":
        why = "the repository is a value that is given when the chart is installed"
    else:
        why = f"a {deployer} bundle is not read from a repository"
    return [f"--repo changes nothing with --deployer {deployer}: {why}"]


def _check_name(text: str, flag: str, *, subdomain: bool = False) -> None:
    labels = text.split(".") if subdomain else [text]
    fits = all(has_label_form(label) and len(label) <= LABEL_LENGTH for label in labels)
    if not fits or len(text) > SUBDOMAIN_LENGTH:
        raise invalid(
            f'invalid {flag} "{text}": not a valid object name',
            where=flag,
            hint="use lower-case letters, digits and '-', with a letter or digit at both ends",
        )
