"""A driver that expects the host's network stack needs somebody to install it (decision 55)."""

from __future__ import annotations

from aicr.bundle.validations.effective import Finding, look, truth

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from aicr.bundle.validations.effective import Context, Verdict

_PATH: Final = "driver.rdma.useHostMofed"
_NETWORK_OPERATOR: Final = "network-operator"


def host_mofed(context: Context) -> Verdict:
    """Host-mode MOFED, ``driver.rdma.useHostMofed``, comes with ``network-operator``.

    The final value counts, under whatever name or kind of flag it was set (decision 55); a value
    that is given at install time may switch it on.

    Remedy: keep ``network-operator`` in the bundle, or set ``driver.rdma.useHostMofed=false``.
    """
    if context.enabled(_NETWORK_OPERATOR):
        return [], []
    on = truth(look(context.values(), _PATH))
    if not on and not context.is_dynamic(_PATH):
        return [], []
    how = "is on" if on else "is given at install time and may be on"
    return [
        Finding(
            f"{context.name}: {_PATH} {how}, but {_NETWORK_OPERATOR} is not in the bundle, so "
            f"nothing here installs MOFED on the nodes",
            f"keep {_NETWORK_OPERATOR} in the bundle, or pass --set {context.name}:{_PATH}=false",
        )
    ], []
