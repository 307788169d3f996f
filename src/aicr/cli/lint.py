"""``aicr lint``: judge the built-in catalogue, or a data directory."""

from __future__ import annotations

from aicr.cli.arguments import Parser
from aicr.cli.formats import check_format, render
from aicr.errors import invalid, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any, Final

    from aicr.cli.console import Console
    from aicr.lint.findings import Finding
    from aicr.lint.run import Report

FORMATS: Final = ("text", "json")
#: Status of a run that found something (decision 46).
FOUND: Final = 8
_EXAMPLES = """\
examples:
  aicr lint
  aicr lint ./my-recipes
  aicr lint ./my-recipes --strict --ignore unused-file
  aicr lint ./my-recipes --rule constraint-path,constraint-expression \\
      --format json
  aicr lint ./whole-catalogue --alone

A warning that is meant is allowed in the file, on its line or the one above:
  # aicr-lint: allow unused-file (the next release needs it)

For this command exit status 8 means that errors were found, or with --strict
warnings.
"""


def parser() -> Parser:
    """The parser of this command."""
    found = Parser(
        prog="aicr lint",
        description="Say everything that is wrong with a data directory, and what will surprise.",
        epilog=_EXAMPLES,
    )
    found.add_argument(
        "directory",
        nargs="?",
        default=None,
        metavar="DIR",
        help="a directory for --data; without it, the built-in catalogue is judged",
    )
    found.once("--data", metavar="DIR", help="the same as DIR")
    found.add_argument(
        "--alone",
        action="store_true",
        help="DIR is a whole catalogue, not laid over the built-in one",
    )
    found.add_argument("--strict", action="store_true", help="warnings fail as errors do")
    found.many("--rule", metavar="ID,…", help="run only these rules")
    found.many("--ignore", metavar="ID,…", help="leave these rules out")
    found.once("--format", "-t", metavar="NAME", help="text (default) or json")
    found.add_argument("--list-rules", action="store_true", help="print the rules and end")
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Judge, print the findings, and say how many there are."""
    from aicr.lint.findings import ERROR, WARNING
    from aicr.lint.run import ALL_RULES, lint

    chosen = check_format(arguments.format or None, FORMATS)
    known = list(ALL_RULES)
    wanted = _ids(arguments.rule, "--rule", known) or known
    ignored = _ids(arguments.ignore, "--ignore", known)
    rules = [id for id in wanted if id not in ignored]
    if not rules:
        raise invalid("no rule is left to run", where="--ignore", hint="see aicr lint --list-rules")
    if arguments.list_rules:
        width = max(map(len, known))
        for id in rules:
            rule = ALL_RULES[id]
            console.write(f"{id:<{width}}  {rule.severity:<7}  {rule.why}\n")
        return 0
    directory = _directory(arguments)
    if arguments.alone and not directory:
        raise invalid("--alone needs a directory", where="--alone", hint="name the catalogue's DIR")
    report = lint(directory, alone=arguments.alone, rules=rules)
    errors, warnings = report.count(ERROR), report.count(WARNING)
    if chosen == "json":
        console.write(render(_document(report, errors, warnings), "json"))
    else:
        for finding in report.findings:
            console.write(finding.text())
    console.say(
        f"lint: {_count(errors, 'error')}, {_count(warnings, 'warning')} in "
        f"{_count(report.files, 'file')}"
    )
    return FOUND if errors or (warnings and arguments.strict) else 0


def _directory(arguments: argparse.Namespace) -> str:
    """The one directory that was named, or an empty text."""
    given = [text for text in (arguments.directory, arguments.data) if text is not None]
    if len(given) > 1:
        raise invalid("the directory is named twice", where="--data", hint="drop --data")
    if given and not given[0].strip():
        raise invalid(
            "the name of the directory is empty",
            where="DIR",
            hint="name the directory with registry.yaml, or nothing for the built-in catalogue",
        )
    return given[0] if given else ""


def _ids(given: list[str], flag: str, known: list[str]) -> list[str]:
    """The rules that a flag names.

    Raises:
        AicrError: INVALID_REQUEST with the nearest rule for one that does not exist.
    """
    found = [word.strip() for text in given for word in text.split(",") if word.strip()]
    if given and not found:
        raise invalid(f"flag {flag} names no rule", where=flag, hint="see aicr lint --list-rules")
    for word in found:
        if word not in known:
            near = nearest(word, known)
            raise invalid(
                f'there is no rule "{word}"',
                where=flag,
                hint=f"did you mean {near}?" if near else "see aicr lint --list-rules",
            )
    return sorted(set(found))


def _document(report: Report, errors: int, warnings: int) -> dict[str, Any]:
    findings: list[Finding] = report.findings
    return {
        "findings": [finding.document() for finding in findings],
        "summary": {"errors": errors, "warnings": warnings, "files": report.files},
    }


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
