"""The one error for a missing extra (decision 39).

Everything in this package but the transport and the kubeconfig loader imports with the base install,
so that check modules and tests of logic need no extras. It must not know what the extras are used for.
"""

from __future__ import annotations

from aicr.errors import AicrError, invalid


def missing(package: str, extra: str, cause: ImportError) -> AicrError:
    """The error to raise ``from cause`` when *package*, part of *extra*, cannot be imported.

    INVALID_REQUEST (exit 2) with the pip line. A package that is there but broken reads differently,
    because installing it again is then not the whole answer.
    """
    absent = isinstance(cause, ModuleNotFoundError) and (cause.name or "").split(".")[0] == package
    state = "is not installed" if absent else "cannot be imported"
    return invalid(
        f"access to a cluster needs the package {package}, which {state}",
        hint=f'pip install "aicr[{extra}]"',
        context={"extra": extra, "package": package},
    )
