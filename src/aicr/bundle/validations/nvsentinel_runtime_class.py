"""The collector's runtime class is one that exists (bundler spec 6.4.11)."""

from __future__ import annotations

from aicr.bundle.validations.effective import ABSENT, Finding, look
from aicr.errors import AicrError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from aicr.bundle.validations.effective import Context, Verdict

SWITCH: Final = "global.metadataCollector.enabled"
CLASS: Final = "metadata-collector.runtimeClassName"
OPERATOR_CLASS: Final = "operator.runtimeClass"
_DEFAULT: Final = "nvidia"


def runtime_class(context: Context) -> Verdict:
    """``metadata-collector.runtimeClassName`` is the RuntimeClass that the GPU operator creates.

    The API server refuses pods that name another one. An empty name asks for none and always fits.

    Remedy: set ``metadata-collector.runtimeClassName`` to the operator's ``operator.runtimeClass``.
    """
    operator = context.gpu_operator()
    if not operator:
        return [], []
    values = context.values()
    if look(values, SWITCH) is False:
        if not context.is_dynamic(SWITCH):
            return [], []
        return [
            Finding(
                f"{context.name}: {SWITCH} is given at install time and may bring back the "
                f"collector, whose runtime class nobody has compared then",
                f"drop --dynamic for it; set it now: --set {context.name}:{SWITCH}=…",
            )
        ], []
    try:
        created = look(context.values(operator), OPERATOR_CLASS)
    except AicrError as error:
        return [], [error]
    wanted = look(values, CLASS)
    if wanted == "" and not context.is_dynamic(CLASS):
        return [], []
    found = [
        Finding(
            f"{name}: {path} is given at install time, so nobody can say now whether the "
            f"collector's runtime class will exist",
            f"drop --dynamic for it; set it now: --set {name}:{path}=…",
        )
        for name, path in ((context.name, CLASS), (operator, OPERATOR_CLASS))
        if context.is_dynamic(path, name)
    ]
    if found:
        return found, []
    if wanted is ABSENT:
        wanted = _DEFAULT
    if created is ABSENT or created == "":
        created = _DEFAULT
    if not isinstance(wanted, str) or not isinstance(created, str) or wanted == created:
        return [], []
    return [
        Finding(
            f'{context.name}: {CLASS} is "{wanted}", but {operator} creates the RuntimeClass '
            f'"{created}" ({OPERATOR_CLASS}), so the collector\'s pods are refused',
            f"pass --set {context.name}:{CLASS}={created}",
        )
    ], []
