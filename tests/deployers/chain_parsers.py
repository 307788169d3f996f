"""Reads back from the files of a bundle what a deployment tool will do: the order, and the values.

```
files of a bundle --PARSERS[deployer]--> Parsed(releases, waits, values)
```
A parser reads only what its tool reads, so a wrong order in the files cannot hide behind a right plan.
To add a deployer: write a function from files to ``Parsed`` and decorate it with ``parser``.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import hcl2
import yaml

Files = Mapping[str, tuple[bytes, int]]


@dataclass
class Parsed:
    """What a tool will do with a bundle.

    Attributes:
        releases: Helm releases, in the order of the files.
        waits: for each release, those that are done before it starts, as the files say directly.
        values: for each release, the values that helm gets, all values files merged.
    """

    releases: list[str] = field(default_factory=list)
    waits: dict[str, set[str]] = field(default_factory=dict)
    values: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, release: str, waits: set[str], values: dict[str, Any] | None = None) -> None:
        """Note a release."""
        assert release not in self.waits, f"{release} is installed twice"
        self.releases.append(release)
        self.waits[release] = waits
        self.values[release] = values or {}

    def before(self, release: str) -> set[str]:
        """Every release that is done before *release* starts, through any number of edges."""
        found: set[str] = set()
        todo = list(self.waits[release])
        while todo:
            name = todo.pop()
            assert name in self.waits, f"{release} waits for {name}, which is not installed"
            if name not in found:
                found.add(name)
                todo += self.waits[name]
        assert release not in found, f"{release} waits for itself"
        return found

    def tiers(self) -> list[list[str]]:
        """Releases that can be installed at the same time, tier after tier."""
        depth: dict[str, int] = {}
        while len(depth) < len(self.releases):
            ready = [
                name
                for name in self.releases
                if name not in depth and all(other in depth for other in self.waits[name])
            ]
            assert ready, "the releases wait for each other"
            for name in ready:
                depth[name] = 1 + max((depth[other] for other in self.waits[name]), default=-1)
        return [
            sorted(name for name in depth if depth[name] == tier)
            for tier in range(max(depth.values(), default=-1) + 1)
        ]

    def is_chain(self) -> bool:
        """Whether the releases come strictly one after another, in the order of the files."""
        return all(
            set(self.releases[:index]) == self.before(name)
            for index, name in enumerate(self.releases)
        )


PARSERS: dict[str, Callable[[Files], Parsed]] = {}


def parser(name: str) -> Callable[[Callable[[Files], Parsed]], Callable[[Files], Parsed]]:
    """Register the parser of a deployer."""

    def register(function: Callable[[Files], Parsed]) -> Callable[[Files], Parsed]:
        PARSERS[name] = function
        return function

    return register


def document(files: Files, path: str) -> Any:
    """The one YAML document of a file."""
    return yaml.safe_load(files[path][0])


def merged(layers: list[Any]) -> dict[str, Any]:
    """Values files as helm merges them: maps by key, the later one wins."""
    made: dict[str, Any] = {}
    for layer in layers:
        for key, value in (layer or {}).items():
            if isinstance(value, dict) and isinstance(made.get(key), dict):
                made[key] = merged([made[key], value])
            else:
                made[key] = value
    return made


# ---------------------------------------------------------------- helmfile


@parser("helmfile")
def helmfile(files: Files) -> Parsed:
    """Sub-helmfiles one after another; within one, `needs`."""
    top = document(files, "helmfile.yaml")
    parsed = Parsed()
    if "releases" in top:
        assert "helmfiles" not in top
        _helmfile_releases(files, top, parsed, set())
    for entry in top.get("helmfiles", []):
        earlier = set(parsed.releases)
        _helmfile_releases(files, document(files, entry["path"]), parsed, earlier)
    return parsed


def _helmfile_releases(files: Files, page: Any, parsed: Parsed, earlier: set[str]) -> None:
    known = {f"{item['namespace']}/{item['name']}": item["name"] for item in page["releases"]}
    for item in page["releases"]:
        needs = {known[need] for need in item.get("needs", [])}
        paths = [posixpath.normpath(path) for path in item["values"]]
        assert not any(path.endswith(".gotmpl") for path in paths)
        parsed.add(item["name"], earlier | needs, merged([document(files, path) for path in paths]))


# ---------------------------------------------------------------- terraform

_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}


def hcl_text(quoted: str, names: Mapping[str, str] | None = None) -> str:
    r"""The text that a quoted HCL template means: the oracle for what the writer escapes.

    `$${` is `${`, `%%{` is `%{`, a backslash starts an escape, `${name}` is looked up in *names*.
    """
    assert quoted[0] == quoted[-1] == '"', quoted
    body, made, index = quoted[1:-1], [], 0
    while index < len(body):
        rest = body[index:]
        if rest.startswith(("$${", "%%{")):
            made.append(rest[1:3])
            index += 3
        elif rest.startswith("${"):
            end = rest.index("}")
            made.append((names or {})[rest[2:end]])
            index += end + 1
        elif rest.startswith("%{"):
            raise AssertionError(f"a template directive in {quoted}")
        elif rest[0] == "\\":
            code = rest[1]
            if code in "uU":
                length = 4 if code == "u" else 8
                made.append(chr(int(rest[2 : 2 + length], 16)))
                index += 2 + length
            else:
                made.append(_ESCAPES[code])
                index += 2
        else:
            assert rest[0] not in '"\n', quoted
            made.append(rest[0])
            index += 1
    return "".join(made)


def terraform_calls(files: Files) -> dict[str, dict[str, Any]]:
    """The module calls of main.tf by label, in their order; strings still quoted."""
    calls: dict[str, dict[str, Any]] = {}
    for block in hcl2.loads(files["main.tf"][0].decode()).get("module", []):
        for label, body in block.items():
            name = hcl_text(label)
            assert name not in calls
            calls[name] = body
    return calls


@parser("terraform")
def terraform(files: Files) -> Parsed:
    """Module calls with `depends_on`; slots chain inside the module."""
    calls = terraform_calls(files)
    last: dict[str, str] = {}
    chains: dict[str, list[tuple[str, Any]]] = {}
    for label, call in calls.items():
        slots = [(call[slot]["name"], call[slot]) for slot in ("pre",) if slot in call]
        slots.append((call["name"], call))
        slots += [
            (call[slot]["name"], call[slot]) for slot in ("post", "readiness") if slot in call
        ]
        chains[label] = [(hcl_text(name), slot) for name, slot in slots]
        last[label] = chains[label][-1][0]
    parsed = Parsed()
    for label, call in calls.items():
        edges = [re.fullmatch(r"\$\{module\.(\w+)\}", edge) for edge in call.get("depends_on", [])]
        before = {last[edge[1]] for edge in edges if edge}
        assert len(before) == len(edges), call["depends_on"]
        for name, slot in chains[label]:
            paths = [hcl_text(path, {"path.module": "."}) for path in slot["values_files"]]
            layers = [document(files, posixpath.normpath(path)) for path in paths]
            parsed.add(name, before, merged(layers))
            before = {name}
    return parsed
