"""The table of all functions that expressions may call, later sources winning over earlier ones.

Left out on purpose: ``random`` (an assertion must answer the same twice), ``x509_decode``, and the
``x_`` functions of chainsaw, which need a cluster inside an expression.
Source: validators spec 8.8.5.
"""

from __future__ import annotations

from typing import Final

from aicr.assertions.jmespath import arithmetic, functions_core, functions_text, functions_time
from aicr.assertions.jmespath.signatures import Function

TABLE: Final[dict[str, Function]] = {
    entry.name: entry
    for module in (functions_core, functions_text, arithmetic, functions_time)
    for entry in module.FUNCTIONS
}
