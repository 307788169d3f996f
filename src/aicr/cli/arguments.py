"""What a command declares of its flags, and the reader of plain command lines.

A plain line has known flags with their values and nothing else, which is what scripts and most people
type. It is read here in one pass. Everything else is for the argparse form of the same flags
(`aicr.cli.usage`): the reader gives up at the first word that could be read in two ways, and
`tests/laws/test_arguments_laws.py` holds the two to one answer.

It must not know argparse at start-up: importing it costs as much as starting the interpreter.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace as Namespace
    from collections.abc import Callable, Sequence
    from typing import Any, Final, Protocol

    class Writer(Protocol):
        """What help can be written to."""

        def write(self, text: str, /) -> object:
            """Take *text*."""

    #: Destination, what it does with a value, conversion, and the constant of a switch.
    Flag = tuple[str, str, Callable[[str], Any] | None, Any]
else:

    class Namespace:
        """What a command line says, one attribute a flag; by shape an ``argparse.Namespace``."""

        def __contains__(self, name):
            return name in self.__dict__

        def __repr__(self):
            words = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
            return f"Namespace({words})"


#: Actions beside those of argparse: a flag with one value that may be given once, and a flag without
#: a value that is its ``const`` when given and None when not.
Once: Final = "once"
Switch: Final = "switch"

_STORE: Final = "store"
_TRUE: Final = "store_true"
_APPEND: Final = "append"
#: What may follow a switch after ``=``; "false" takes back what the config file says.
BOOLEANS: Final = {"true": True, "false": False}
#: Options of a flag that the reader of plain lines knows the meaning of.
_KNOWN: Final = frozenset(("action", "const", "default", "dest", "help", "metavar", "type"))


class Group:
    """Flags that the help shows together; the title "" stands for the command's own."""

    __slots__ = ("_parser", "arguments", "title")

    def __init__(self, parser: Parser, title: str) -> None:
        self.title = title
        #: Names and options of each flag, as argparse takes them.
        self.arguments: list[tuple[tuple[str, ...], dict[str, Any]]] = []
        self._parser = parser

    def add_argument(self, *names: str, **options: Any) -> None:
        """Declare a flag or a positional word, with the options of argparse's ``add_argument``."""
        self.arguments.append((names, options))
        self._parser.learn(names, options)


class Parser:
    """The flags of one command.

    Attributes:
        stream: where ``--help`` goes; the process's stdout until somebody says otherwise.
        groups: what was declared, in the order of the help.
    """

    def __init__(
        self, *, prog: str, description: str, epilog: str = "", usage: str | None = None
    ) -> None:
        self.prog = prog
        self.usage = usage
        self.description = description
        self.epilog = epilog
        self.stream: Writer | None = None
        self._own = Group(self, "")
        self.groups: list[Group] = [self._own]
        self._flags: dict[str, Flag] = {}
        self._defaults: dict[str, Any] = {}
        self._plain = True

    def add_argument(self, *names: str, **options: Any) -> None:
        """Declare a flag or a positional word, with the options of argparse's ``add_argument``."""
        self._own.add_argument(*names, **options)

    def add_argument_group(self, title: str) -> Group:
        """Begin a group of flags."""
        group = Group(self, title)
        self.groups.append(group)
        return group

    def once(self, *flags: str, **options: Any) -> None:
        """Add a single-value flag that may be given once."""
        self.add_argument(*flags, action=Once, **options)

    def many(self, *flags: str, **options: Any) -> None:
        """Add a repeatable flag; values are never split on commas."""
        self.add_argument(*flags, action=_APPEND, default=[], **options)

    def learn(self, names: tuple[str, ...], options: dict[str, Any]) -> None:
        """Note what the reader of plain lines must know of one declaration."""
        action = options.get("action", _STORE)
        convert = options.get("type")
        default = options.get("default")
        if not names[0].startswith("-"):
            nargs = options.get("nargs")
            self._plain = self._plain and nargs in ("?", "*") and convert is None
            self._defaults[names[0]] = [] if nargs == "*" and default is None else default
            return
        known = action in (Once, Switch, _APPEND, _TRUE, _STORE) and _KNOWN.issuperset(options)
        # argparse converts a default that is text.
        if not known or (convert is not None and isinstance(default, str)):
            self._plain = False
        dest = options.get("dest") or _destination(names)
        self._defaults.setdefault(dest, options.get("default", False if action == _TRUE else None))
        flag = (dest, action, convert, options.get("const"))
        for name in names:
            self._flags[name] = flag

    def names(self) -> list[str]:
        """Every flag that was declared, in order."""
        return list(self._flags)

    def parse(self, argv: Sequence[str]) -> Namespace:
        """Read all of *argv*.

        Raises:
            AicrError: INVALID_REQUEST for a command line that the command does not understand.
        """
        found = self.read_plain(argv) if self._plain else None
        return self.full().parse(argv) if found is None else found

    def full(self) -> Any:
        """The argparse form of this parser (`aicr.cli.usage.FullParser`)."""
        from aicr.cli.usage import full_parser

        return full_parser(self)

    def read_plain(self, argv: Sequence[str]) -> Namespace | None:
        """What a plain command line says, or None when argparse has to judge it.

        Plain is: known flags, in full and with one or two dashes, each value in its own word or
        after ``=``, which a switch may have too (``=true``, ``=false``); no value in its own word
        begins with a dash, no positional word is given, no
        flag is given twice that may be given once, and every conversion succeeds.
        """
        found = Namespace()
        say = found.__dict__
        say.update(self._defaults)
        given: set[str] = set()
        words = iter(argv)
        for word in words:
            name, equals, value = word.partition("=")
            flag = self._flags.get(name)
            if flag is None:
                # A long flag with one dash, as the original's flag library allowed.
                flag = self._flags.get("-" + name) if name[:1] == "-" else None
                if flag is None:
                    return None
            dest, action, convert, const = flag
            if action in (_TRUE, Switch):
                said = True if action == _TRUE else const
                if equals:
                    said = BOOLEANS.get(value) if said is True else None
                if said is None or (dest in given and say[dest] != said):
                    return None
                say[dest] = said
            else:
                if not equals:
                    following = next(words, None)
                    if following is None or (following[:1] == "-" and following != "-"):
                        return None
                    value = following
                if convert is not None:
                    try:
                        value = convert(value)
                    except Exception:
                        # argparse asks again, and says what is wrong with it.
                        return None
                if action == Once and dest in given:
                    return None
                say[dest] = [*(say[dest] or ()), value] if action == _APPEND else value
            if action not in (_STORE, _APPEND):
                given.add(dest)
        if given:
            say["_given"] = given
        return found


def _destination(names: tuple[str, ...]) -> str:
    """The attribute of a flag: its first long name, as argparse has it."""
    long = next((name for name in names if name.startswith("--")), names[0])
    return long.lstrip("-").replace("-", "_")


def whole_number(text: str) -> int:
    """An integer as a person types one.

    Raises:
        argparse.ArgumentTypeError: for anything else.
    """
    digits = text.removeprefix("-")
    problem = ""
    if not (digits.isascii() and digits.isdigit()):
        problem = f"invalid nodes value: {text} (a whole number is needed)"
    elif len(digits) > 9:
        problem = "invalid nodes value: more than 9 digits"
    if problem:
        from argparse import ArgumentTypeError

        raise ArgumentTypeError(problem)
    return int(text)
