"""``aicr migrate``: bring files that v0.11.1 wrote up to date.

The command judges, like ``lint``: without ``--write`` it changes nothing, shows what it would change and
exits 8 if that is anything (decision 46). All files are read and judged before the first is written.
"""

from __future__ import annotations

import os

from aicr.cli.arguments import Parser
from aicr.cli.sources import read_input, replace_file
from aicr.errors import AicrError, invalid, not_found, some_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from typing import Final

    from aicr.cli.console import Console
    from aicr.contract.migrate import Migration

#: Status of a run that found something to do, or left something undone.
FOUND: Final = 8
_ENDINGS: Final = (".yaml", ".yml", ".json")
#: Most places of one component that are printed.
_PLACES: Final = 3
_BOM: Final = b"\xef\xbb\xbf"
_EXAMPLES = """\
examples:
  aicr migrate recipe.yaml
  aicr migrate my-recipes snapshot.yaml --write
  aicr migrate my-recipes --check

Rewritten is the header alone: apiVersion aicr.nvidia.com/v1alpha1, an absent
or empty one, and kind Recipe. What a retired apiVersion needs is said, and
left to you, as are components with a new name. In a folder every .yaml, .yml
and .json file is looked at; files of other products are left alone.

For this command exit status 8 means that something would change, or is left
for you to change.
"""

_COLOURS: Final = {"+": "\033[32m", "-": "\033[31m", "@": "\033[36m"}
_OFF: Final = "\033[0m"


def parser() -> Parser:
    """The parser of this command."""
    found = Parser(
        prog="aicr migrate",
        description="Rewrite the headers of documents that v0.11.1 wrote; show a diff, or write.",
        epilog=_EXAMPLES,
    )
    found.add_argument("paths", nargs="*", metavar="FILE|DIR", help="files and folders to look at")
    found.add_argument("--check", action="store_true", help="name the files only, without a diff")
    found.add_argument("--write", action="store_true", help="change the files, each as a whole")
    return found


class _File:
    """One file and what is to become of it."""

    __slots__ = ("bundle", "migration", "path", "text")

    def __init__(self, path: str, text: str, migration: Migration, bundle: str) -> None:
        self.path = path
        self.text = text
        self.migration = migration
        self.bundle = bundle


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Read all, judge all, then show or write."""
    if not arguments.paths:
        raise invalid("name the files or folders to migrate", hint="for example: aicr migrate .")
    if arguments.check and arguments.write:
        raise invalid("--check and --write exclude each other", where="--check", hint="drop one")
    files = [file for path in arguments.paths for file in _read(path)]
    files = list({os.path.realpath(file.path): file for file in files}.values())
    todo = [file for file in files if file.migration.changes and not file.bundle]
    left = 0
    for file in files:
        for problem in file.migration.problems:
            console.error(problem)
            left += 1
        if file.migration.changes and file.bundle:
            console.warn(
                f"{file.path} is listed in {file.bundle}: it is left alone, because the bundle would "
                f"no longer verify; make the bundle again from a migrated recipe"
            )
            left += 1
    _tell_old_names(files, console)
    for file in todo:
        _show(file, arguments, console)
    documents = sum(file.migration.documents for file in files)
    console.say(_summary(len(todo), documents, left, arguments.write))
    return FOUND if left or (todo and not arguments.write) else 0


def _tell_old_names(files: list[_File], console: Console) -> None:
    """One line for each component with another name today, with the places where it stands."""
    from aicr.contract.migrate import about

    places: dict[str, list[str]] = {}
    for file in files:
        for name, where in file.migration.old_names:
            places.setdefault(name, []).append(where)
    for name, found in sorted(places.items()):
        console.say(f"note: {about(name)}: {some_of(found, _PLACES)}")


def _show(file: _File, arguments: argparse.Namespace, console: Console) -> None:
    """Write a file, name it, or print what would change."""
    if arguments.write:
        replace_file(file.path, file.migration.text)
    if arguments.write or arguments.check:
        for change in file.migration.changes:
            console.write(f"{change}\n")
        return
    from aicr.cli.explain_text import wants_colour

    console.write(diff(file.path, file.text, file.migration.text, wants_colour(console.out)))


def diff(path: str, before: str, after: str, colour: bool = False) -> str:
    """A unified diff that ``patch`` takes."""
    import difflib

    lines = []
    olds, news = before.splitlines(keepends=True), after.splitlines(keepends=True)
    for line in difflib.unified_diff(olds, news, path, path):
        whole = line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        style = _COLOURS.get(whole[0], "") if colour else ""
        lines.append(f"{style}{whole[:-1]}{_OFF}\n" if style else whole)
    return "".join(lines)


def _read(path: str) -> list[_File]:
    """The files of a path that was named.

    Raises:
        AicrError: NOT_FOUND or INVALID_REQUEST for a path that is not there or cannot be read, a file
            that does not parse, and a file that was named and holds no document of ours.
    """
    from aicr.contract.migrate import looks_like_ours, migrate

    if path == "-":
        raise invalid("standard input cannot be rewritten", where="-", hint="name a file")
    if not os.path.isdir(path):
        text = _text(path)
        migration = migrate(text, path)
        if not migration.documents:
            raise invalid(
                f"{path} holds no document of aicr",
                where=path,
                hint="documents of aicr have a kind, for example RecipeMetadata or Snapshot",
            )
        return [_File(path, text, migration, _bundle_of(path))]
    files = []
    for name in _walk(path):
        text = _text(name)
        try:
            migration = migrate(text, name)
        except AicrError:
            # Templates and the like are none of our business, unless they say that they are ours.
            if looks_like_ours(text):
                raise
            continue
        if migration.documents:
            files.append(_File(name, text, migration, _bundle_of(name)))
    return files


def _text(path: str) -> str:
    """The text of a file with its byte order mark, which must survive."""
    text = read_input(path, what="file")
    with open(path, "rb") as file:
        return ("\ufeff" if file.read(3) == _BOM else "") + text


def _walk(folder: str) -> Iterator[str]:
    """The YAML and JSON files below a folder, sorted; hidden folders and links to folders are left out.

    Raises:
        AicrError: NOT_FOUND, INVALID_REQUEST for a folder that cannot be read.
    """
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except FileNotFoundError:
        raise not_found(f"no such folder: {folder}", hint="check the path") from None
    except OSError as error:
        raise invalid(f"cannot read folder {folder}: {error.strerror}") from None
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            if not entry.name.startswith("."):
                yield from _walk(entry.path)
        elif entry.name.endswith(_ENDINGS) and entry.is_file():
            yield entry.path


def _bundle_of(path: str) -> str:
    """The checksum list that a file is listed in, or ""."""
    place = os.path.realpath(path)
    folder = os.path.dirname(place)
    while True:
        listing = os.path.join(folder, "checksums.txt")
        try:
            with open(listing, encoding="utf-8", errors="replace") as file:
                names = {line.rstrip("\n").partition("  ")[2] for line in file}
        except OSError:
            names = set()
        if os.path.relpath(place, folder) in {name.removeprefix("./") for name in names}:
            return listing
        above = os.path.dirname(folder)
        if above == folder:
            return ""
        folder = above


def _summary(todo: int, documents: int, left: int, written: bool) -> str:
    looked = f"{documents} document{'' if documents == 1 else 's'} of aicr looked at"
    files = f"{todo} file{'' if todo == 1 else 's'}"
    said = f"{files} {'rewritten' if written else 'to rewrite'}" if todo else "nothing to rewrite"
    return f"migrate: {looked}, {said}" + (f", {left} left to you" if left else "")
