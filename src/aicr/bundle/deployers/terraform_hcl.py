r"""A small writer of Terraform's language, laid out as `terraform fmt` lays it out.

```
Block("module", ["nfd"], [Attribute("wait", "true"), None, …]) --render--> text
```
An expression is text of the language already: `string` makes a quoted one that means exactly the
given characters, `listed` a list of expressions; an object is a list of `Attribute`. In a body,
`None` is an empty line. Attributes that follow each other on one line each have their `=` lined up;
a comment, an empty line, a block or an object starts a new group, as in `terraform fmt`.

It must not know bundles. Source: bundler spec 5.6.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Final, TypeAlias

    #: What a body is made of; None is an empty line.
    Item: TypeAlias = "Attribute | Block | Comment | None"

_STEP: Final = "  "
_SHORT: Final[dict[str, str]] = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


class Attribute:
    """`name = expression`, or `name = { … }` for a list of attributes."""

    __slots__ = ("name", "value")

    def __init__(self, name: str, value: str | Sequence[Attribute]) -> None:
        self.name = name
        self.value = value


class Block:
    """`kind "label" { … }`."""

    __slots__ = ("body", "kind", "labels")

    def __init__(self, kind: str, labels: Sequence[str], body: Sequence[Item]) -> None:
        self.kind = kind
        self.labels = labels
        self.body = body


class Comment:
    """One line for the reader."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = " ".join(text.split())


def string(text: str) -> str:
    r"""A quoted expression that means exactly *text*, whatever it holds.

    >>> print(string('a"b ${x} %{if}'))
    "a\"b $${x} %%{if}"
    """
    return f'"{escaped(text)}"'


def escaped(text: str) -> str:
    """*text* as it stands between quotes: `"`, backslash, control characters, `${` and `%{`.

    Only the `$` right before the brace is doubled: `$${` means `${`, and `$$${` means `$${`.
    """
    made = text.replace("\\", "\\\\").replace('"', '\\"')
    if not made.isprintable():
        made = "".join(char if char.isprintable() else _control(char) for char in made)
    return made.replace("${", "$${").replace("%{", "%%{")


def _control(char: str) -> str:
    if char in _SHORT:
        return _SHORT[char]
    code = ord(char)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def listed(expressions: Iterable[str]) -> str:
    """A list of expressions on one line."""
    return f"[{', '.join(expressions)}]"


def render(items: Iterable[Item], *, depth: int = 0) -> str:
    """The text of a body; ends in a newline unless it is empty."""
    indent = _STEP * depth
    lines: list[str] = []
    group: list[tuple[str, str]] = []

    def close_group() -> None:
        width = max((len(name) for name, _ in group), default=0)
        lines.extend(f"{indent}{name:<{width}} = {value}" for name, value in group)
        group.clear()

    for item in items:
        if isinstance(item, Attribute) and isinstance(item.value, str):
            group.append((item.name, item.value))
            continue
        close_group()
        if item is None:
            lines.append("")
        elif isinstance(item, Comment):
            lines.append(f"{indent}# {item.text}")
        elif isinstance(item, Attribute):
            inner = render(item.value, depth=depth + 1)  # type: ignore[arg-type]
            lines.append(f"{indent}{item.name} = {{\n{inner}{indent}}}")
        else:
            head = " ".join([item.kind, *(string(label) for label in item.labels)])
            inner = render(item.body, depth=depth + 1)
            lines.append(
                f"{indent}{head} {{\n{inner}{indent}}}" if inner else f"{indent}{head} {{}}"
            )
    close_group()
    return "".join(f"{line}\n" for line in lines)
