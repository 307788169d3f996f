"""The shape of a recipe's ``validation`` block, for recipes that people have edited.

Reading a recipe checks what bundling needs; what validation reads is checked here, so that every
later part can rely on it. Pure. Source: validators spec 0.5; recipe spec 4.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from aicr.contract.documents import type_name
from aicr.errors import invalid, nearest
from aicr.validate.phases import ORDER

READINESS: Final = "readiness"
_BLOCKS: Final = (READINESS, *ORDER)


def check_validation(recipe: Mapping[str, Any], source: str) -> None:
    """Refuse a ``validation`` block that cannot be read for what it says.

    Raises:
        AicrError: INVALID_REQUEST with the path of what is wrong.
    """
    for name, block in (recipe.get("validation") or {}).items():
        path = f"validation.{name}"
        if name not in _BLOCKS:
            near = nearest(str(name), list(_BLOCKS))
            raise invalid(
                f'unknown phase "{name}" under validation',
                where=source,
                hint=f'did you mean "{near}"?' if near else f"known: {', '.join(_BLOCKS)}",
            )
        _expect(block, dict, "a map", path, source)
        _expect((block or {}).get("checks"), list, "a list", f"{path}.checks", source)
        for index, check in enumerate((block or {}).get("checks") or ()):
            if not isinstance(check, str) or not check:
                raise invalid(
                    f"{path}.checks[{index}] must be the name of a check, found {type_name(check)}",
                    where=source,
                )
        if name == READINESS and (block or {}).get("checks"):
            raise invalid(
                "validation.readiness declares checks, and readiness runs none",
                where=source,
                hint=f"declare them under one of {', '.join(ORDER)}",
            )
        place = f"{path}.constraints"
        _expect((block or {}).get("constraints"), list, "a list", place, source)
        for index, constraint in enumerate((block or {}).get("constraints") or ()):
            _expect(constraint, dict, "a map", f"{place}[{index}]", source)
            if not isinstance((constraint or {}).get("name"), str):
                raise invalid(f"{place}[{index}] needs a name", where=source)


def _expect(value: Any, kind: type, words: str, path: str, source: str) -> None:
    if value is not None and not isinstance(value, kind):
        raise invalid(f"{path} must be {words}, found {type_name(value)}", where=source)
