"""JMESPath, community edition, with the functions of kyverno and chainsaw.

`compiled` reads an expression once, `Expression.evaluate` gives its value many times. The package
knows plain documents only; assertion trees are in `aicr.assertions.tree`.
"""

from __future__ import annotations

from aicr.assertions.jmespath.evaluate import Expression, compiled, search

__all__ = ["Expression", "compiled", "search"]
