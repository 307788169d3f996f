"""Reading an AICRConfig: text in, a checked document out, every problem with file, line and column.

The shape comes from the types in ``config_types``: a walk over them refuses unknown fields, wrong
types and unquoted text that readers disagree on (decision 43). Beyond the shape stand the rules between
fields (recipe spec 6.5, bundler spec 1.6). An absent field is absent and not a default, so a boolean has
three states. This module must not know flags or commands. It is loaded only when a config file is given.
"""

from __future__ import annotations

import os
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints, is_typeddict

from aicr.contract import config_types
from aicr.contract.documents import check_header, type_name
from aicr.errors import AicrError, invalid, nearest
from aicr.values import durations
from aicr.yamlio import jsontext, read

Path = tuple[str | int, ...]

KIND: Final = "AICRConfig"
SECTIONS: Final = tuple(get_type_hints(config_types.Spec))

#: Fields that hold a duration.
DURATIONS: Final = (
    ("spec", "snapshot", "execution", "timeout"),
    ("spec", "validate", "execution", "timeout"),
)

#: Credentials by the names under which people look for them here; they are never part of a file.
_SECRETS: Final = ("identityToken", "token", "password")

_NO_SECRETS: Final = (
    "credentials are not read from files; for signing set the environment variable "
    "COSIGN_IDENTITY_TOKEN"
)

#: What to write where a value of another type stands.
_FORMS: Final = {
    list: 'write entries that start with "- " below it, or leave it out',
    dict: "write keys with values below it, or leave it out",
    bool: "write true or false, without quotes",
}


class Config:
    """A checked AICRConfig.

    Attributes:
        source: what the document is called in messages.
        document: the document, with the keys of ``config_types.AICRConfig``.
        notice: the deprecation line for an old header, or "".
    """

    def __init__(
        self, source: str, document: dict[str, Any], positions: read.Positions, notice: str
    ) -> None:
        self.source = source
        self.document = document
        self.notice = notice
        self._positions = positions

    def get(self, *keys: str) -> Any:
        """The value at a path below ``spec``; None when it, or something above it, is absent."""
        found: Any = self.document.get("spec")
        for key in keys:
            if not isinstance(found, dict):
                return None
            found = found.get(key)
        return found

    def where(self, *keys: str | int) -> str:
        """``file:line:column`` of a path below ``spec``."""
        return self._positions.where(("spec", *keys))


def load(text: str, source: str) -> Config:
    """The config in *text*, YAML or JSON.

    Raises:
        AicrError: INVALID_REQUEST with file, line and column for text that does not parse, another
            kind or apiVersion, an unknown field, a value of another type, no section at all, criteria
            together with ``input.snapshot``, and a recipe path that two sections name differently.
    """
    if jsontext.is_json(text):
        value = jsontext.load_json(text, source=source)
        positions = jsontext.positions(text, source=source)
    else:
        value, positions = read.load_with_positions(text, source=source)
    notice = check_header(value, KIND, source=source)
    _Walk(positions).check(value, config_types.AICRConfig, ())
    config = Config(source, value, positions, notice)
    _check_sections(config)
    _check_recipe(config)
    return config


class _Walk:
    """Compares a document with the types, in the order of the document."""

    def __init__(self, positions: read.Positions) -> None:
        self.positions = positions

    def check(self, value: Any, kind: Any, path: Path) -> None:
        """Refuse *value* unless it is of *kind*; a key with nothing behind it is absent."""
        if value is None:
            return
        if is_typeddict(kind):
            self.block(value, get_type_hints(kind), path)
        elif get_origin(kind) is list:
            self.expect(value, list, "a list", path)
            for index, item in enumerate(value):
                if item is None:
                    place = self.positions.where((*path, index))
                    raise invalid(
                        f"{dotted((*path, index))} is empty",
                        where=place,
                        hint="write a value behind the dash, or remove the line",
                    )
                self.check(item, get_args(kind)[0], (*path, index))
        elif get_origin(kind) is dict:
            self.expect(value, dict, "a map", path)
            for key, item in value.items():
                self.text(item, (*path, key))
        elif get_origin(kind) is Literal:
            self.word(self.text(value, path), get_args(kind), path)
        elif kind is bool:
            self.expect(value, bool, "true or false", path)
        elif kind is int:
            self.number(value, path)
        else:
            self.duration(self.text(value, path), path)

    def block(self, value: Any, fields: dict[str, Any], path: Path) -> None:
        self.expect(value, dict, "a map", path)
        for key, item in value.items():
            if key not in fields:
                near = nearest(key, list(fields))
                hint = f'did you mean "{near}"?' if near else f"known: {', '.join(fields)}"
                raise invalid(
                    f'unknown field "{dotted((*path, key))}"',
                    where=self.positions.key((*path, key)),
                    hint=_NO_SECRETS if key in _SECRETS else hint,
                )
            self.check(item, fields[key], (*path, key))

    def expect(self, value: Any, kind: type, words: str, path: Path) -> None:
        if not isinstance(value, kind):
            raise invalid(
                f"{dotted(path) or KIND} must be {words}, found {type_name(value)}",
                where=self.positions.where(path),
                hint=_FORMS[kind],
            )

    def number(self, value: Any, path: Path) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            found = value if isinstance(value, (int, float)) else type_name(value)
            shown = str(value).lower() if isinstance(value, bool) else found
            raise invalid(
                f"{dotted(path)} must be a whole number, 0 or more, found {shown}",
                where=self.positions.where(path),
                hint="write it in digits, without quotes",
            )

    def text(self, value: Any, path: Path) -> str:
        return read.require_string(value, self.positions, path, dotted(path))

    def word(self, value: str, words: tuple[str, ...], path: Path) -> None:
        if value not in words:
            near = nearest(value, list(words))
            raise invalid(
                f'{dotted(path)}: "{value}" is not one of {", ".join(words)}',
                where=self.positions.where(path),
                hint=f'did you mean "{near}"?' if near else "write one of these",
            )

    def duration(self, value: str, path: Path) -> None:
        if path not in DURATIONS or not value:
            return
        try:
            durations.parse(value)
        except AicrError as error:
            place = self.positions.where(path)
            raise invalid(
                f'{dotted(path)}: invalid duration "{value}"', where=place, hint=error.hint
            ) from error


def dotted(path: Path) -> str:
    """A path as people write it: ``spec.bundle.deployment.set[0]``."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.removeprefix(".")


def _check_sections(config: Config) -> None:
    if all(config.get(section) is None for section in SECTIONS):
        names = ", ".join(f"spec.{section}" for section in SECTIONS)
        raise invalid(
            f"the config file says nothing: at least one of {names} is needed",
            where=config.where(),
            hint="for example spec.recipe.criteria.service: eks",
        )


def _check_recipe(config: Config) -> None:
    if config.get("recipe", "criteria") and config.get("recipe", "input", "snapshot"):
        raise invalid(
            "spec.recipe.criteria and spec.recipe.input.snapshot exclude each other",
            where=config.where("recipe", "input", "snapshot"),
            hint="keep one; criteria that a snapshot cannot show can be given as flags",
        )
    written = config.get("recipe", "output", "path")
    bundled = config.get("bundle", "input", "recipe")
    if written and bundled and os.path.normpath(written) != os.path.normpath(bundled):
        raise invalid(
            f'spec.recipe.output.path is "{written}" and spec.bundle.input.recipe is "{bundled}": '
            f"the bundle would be made from another recipe than the one written",
            where=config.where("bundle", "input", "recipe"),
            hint="write the same path in both, or leave one out",
        )
