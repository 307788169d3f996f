"""Laws of the command line for any input: words or files, it ends with a known status and no traceback.

``tests.cli.program`` looks at every run: no traceback, no "this is a bug", a status that the manual names.
Here the command lines and the files are junk, or good ones with something changed.
"""

from __future__ import annotations

import copy
import functools
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.cli.program import CRITERIA, EKS, Result, aicr
from tests.cli.sample_snapshot import SNAPSHOT

from aicr.cli.main import COMMANDS

settings.register_profile("cli", deadline=None, max_examples=30)
CLI = settings.get_profile("cli")

FLAGS = sorted(
    {
        option
        for module, _ in COMMANDS.values()
        for option in ("-h", "--help", *__import__(module, fromlist=["parser"]).parser().names())
    }
)
#: Nothing that leads out of the folder of the test or to another machine.
JUNK = st.text(max_size=12).filter(lambda text: not text.startswith("/") and ".." not in text)
WORDS = st.one_of(
    st.sampled_from(FLAGS),
    st.sampled_from([*COMMANDS, "help", "--", "-", "--version", "=", "", " ", "-1", "9" * 30]),
    st.sampled_from([*CRITERIA.values(), "any", "recipe.yaml", "criteria.yaml", "out", "helm"]),
    st.sampled_from(["nfd:a.b=1", "nfd:=", ":a=1", "nfd:a[0]=1", "nfd:a\\.b=x", "a=b:NoSchedule"]),
    JUNK,
    st.builds("{}={}".format, st.sampled_from(FLAGS), JUNK),
)
COMMAND_LINES = st.one_of(
    st.lists(WORDS, max_size=6),
    st.builds(lambda name, rest: [name, *rest], st.sampled_from(list(COMMANDS)), st.lists(WORDS)),
    st.lists(WORDS, max_size=4).map(lambda rest: ["recipe", *EKS, *rest]),
    st.lists(WORDS, max_size=4).map(
        lambda rest: ["bundle", "-r", "recipe.yaml", "-o", "out", *rest]
    ),
)


@functools.cache
def small_recipe() -> dict[str, Any]:
    """A recipe of few components, with every kind of field in it."""
    document: dict[str, Any] = yaml.safe_load(aicr("recipe", *EKS).out)
    kept = ("cert-manager", "nfd", "gpu-operator")
    document["componentRefs"] = [
        {**ref, "dependencyRefs": [name for name in ref.get("dependencyRefs", []) if name in kept]}
        for ref in document["componentRefs"]
        if ref["name"] in kept
    ]
    document["deploymentOrder"] = [n for n in document["deploymentOrder"] if n in kept]
    return document


CRITERIA_FILE: dict[str, Any] = {
    "kind": "RecipeCriteria",
    "apiVersion": "aicr.run/v1",
    "metadata": {"name": "mine"},
    "spec": {**CRITERIA, "nodes": 3},
}
OVERLAY: dict[str, Any] = {
    "kind": "RecipeMetadata",
    "apiVersion": "aicr.run/v1beta1",
    "metadata": {"name": "mine"},
    "spec": {
        "base": "eks",
        "criteria": {"service": "eks", "os": "ubuntu"},
        "mixins": ["platform-kubeflow"],
        "constraints": [{"name": "K8s.server.version", "value": ">= 1.30", "severity": "error"}],
        "componentRefs": [
            {
                "name": "nfd",
                "version": "0.18.3",
                "overrides": {"worker": {"config": {"a": [1, None]}}},
                "dependencyRefs": ["cert-manager"],
            }
        ],
        "validation": {"deployment": {"timeout": "5m", "checks": ["operator-health"]}},
    },
}
REGISTRY: dict[str, Any] = {
    "kind": "ComponentRegistry",
    "apiVersion": "aicr.run/v1beta1",
    "components": [
        {
            "name": "mine",
            "displayName": "Mine",
            "valueOverrideKeys": ["my"],
            "helm": {
                "defaultRepository": "oci://example.test/charts",
                "defaultChart": "mine",
                "defaultVersion": "1.0.0",
            },
            "nodeScheduling": {"system": {"nodeSelectorPaths": ["nodeSelector"]}},
        }
    ],
}

ODD_VALUES = st.one_of(
    st.sampled_from([None, True, 0, -1, 1.5, 2**70, "", " ", "any", [], {}, [None], {"": None}]),
    st.sampled_from(
        ["../x", "/etc/passwd", "a\x00b", "a\nb", "{{ .x }}", "1e999", "é" * 99, "=", "."]
    ),
    st.text(max_size=8),
    st.lists(st.text(max_size=3), max_size=2),
    st.dictionaries(st.text(max_size=3), st.none(), max_size=2),
)


def places(node: Any, trail: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every path into a document."""
    yield trail
    if isinstance(node, dict):
        for key, item in node.items():
            yield from places(item, (*trail, key))
    elif isinstance(node, list):
        for index, item in enumerate(node):
            yield from places(item, (*trail, index))


@st.composite
def mutants(draw: st.DrawFn, document: dict[str, Any]) -> Any:
    """A good document with one to three things replaced, removed, renamed or doubled."""
    found: Any = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 3))):
        trail = draw(st.sampled_from(list(places(found))))
        if not trail:
            continue
        holder = found
        for key in trail[:-1]:
            holder = holder[key]
        last = trail[-1]
        what = draw(st.sampled_from(["replace", "replace", "remove", "rename", "double"]))
        if what == "remove":
            del holder[last]
        elif what == "rename" and isinstance(holder, dict):
            holder[draw(st.text(max_size=6))] = holder.pop(last)
        elif what == "double" and isinstance(holder, list):
            holder.append(copy.deepcopy(holder[last]))
        else:
            # A copy: what the next change does to it must not stay in the strategy.
            holder[last] = copy.deepcopy(draw(ODD_VALUES))
    return found


@contextmanager
def folder() -> Iterator[Path]:
    """An empty current folder, and a standard input that has ended."""
    before, stdin = Path.cwd(), sys.stdin
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        sys.stdin = io.TextIOWrapper(io.BytesIO())
        try:
            yield Path(name)
        finally:
            sys.stdin = stdin
            os.chdir(before)


def written(document: Any, as_json: bool) -> bytes:
    """A document as a file would hold it."""
    if as_json:
        return json.dumps(document).encode("utf-8", "surrogatepass")
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True).encode()


def run_on(kind: str, content: bytes, suffix: str = "yaml") -> Result:
    """Run the command that reads this kind of file, with that content."""
    with folder() as here:
        name = f"in.{suffix}"
        if kind in ("overlay", "registry"):
            data = here / "data"
            (data / "overlays").mkdir(parents=True)
            (data / "registry.yaml").write_bytes(written({**REGISTRY, "components": []}, False))
            path = "overlays/mine.yaml" if kind == "overlay" else "registry.yaml"
            (data / path).write_bytes(content)
        else:
            (here / name).write_bytes(content)
        if kind == "recipe":
            found = aicr("bundle", "-r", name, "-o", "out")
        elif kind == "values":
            (here / "recipe.yaml").write_bytes(written(small_recipe(), False))
            found = aicr(
                *("bundle", "-r", "recipe.yaml", "-o", "out", "--set-file", f"nfd:worker={name}")
            )
        elif kind in ("overlay", "registry"):
            found = aicr("query", *EKS, "--data", "data", "--selector", "")
        else:
            found = aicr("recipe", f"--{kind}", name, "--intent", "training")
        if found.status != 0:
            assert found.out == ""
            assert found.err.startswith(("error: ", "warning: ", "snapshot "))
            assert not (here / "out").exists()
        hidden = [path.name for path in here.iterdir() if path.name.startswith(".")]
        assert hidden == []
    return found


@settings(CLI, max_examples=150)
@given(COMMAND_LINES)
@example(["recipe", *EKS, "-o", "\x00"])
@example(["recipe", *EKS, "-o", "a" * 300])
@example(["bundle", "-r", "recipe.yaml", "-o", "a" * 300])
@example(["bundle", "-r", "a" * 5000, "-o", "out"])
@example(["bundle", "-r", "recipe.yaml", "-o", "out", "--set", "nfd:a=" + "9" * 5000])
@example(["recipe", "--data", "\ud800"])
@example(["recipe", "--nodes", "--nodes"])
@example(["query", *EKS, "--selector", "\\"])
def test_any_command_line_ends_in_a_known_status_without_a_traceback(argv: list[str]) -> None:
    """Whatever is typed: an exit status of the manual, and words on stderr when it failed."""
    with folder() as here:
        (here / "recipe.yaml").write_bytes(written(small_recipe(), False))
        (here / "criteria.yaml").write_bytes(written(CRITERIA_FILE, False))
        found = aicr(*argv)
        # What judges says in a sentence what it found.
        judged = argv[:1] == ["doctor"] and found.status == 8 and "doctor: " in found.err
        assert found.status == 0 or "error: [" in found.err or judged
        assert found.status == 0 or found.out == "" or judged


KINDS = ["criteria", "snapshot", "recipe", "values", "overlay", "registry"]


@pytest.mark.parametrize("kind", KINDS)
@settings(CLI)
@given(content=st.binary(max_size=200))
@example(content=b"\xef\xbb\xbf")
@example(content=b"a: &a [*a]\n")
@example(content=b"[" * 5000)
@example(content=b"{" * 5000)
@example(content=b'{"a":' * 5000)
@example(content=b"- " * 5000)
@example(content=b"? " * 500)
@example(content=b"a: !!python/object:os.system x\n")
@example(content=b"\xff\xfe")
@example(content=b"%YAML 1.3\n---\n")
def test_any_bytes_in_any_file_are_read_or_refused(kind: str, content: bytes) -> None:
    """A file of junk is refused in words, whichever flag names it."""
    run_on(kind, content)


@pytest.mark.parametrize("kind", KINDS)
@settings(CLI)
@given(content=st.text(st.sampled_from("ab:- \n\t'\"[]{},&*!|>#%@`0.\\u"), max_size=60))
def test_any_text_like_yaml_in_any_file_is_read_or_refused(kind: str, content: str) -> None:
    """Text made of YAML's own characters finds the odd corners of a reader."""
    run_on(kind, content.encode())


@pytest.mark.parametrize("as_json", [False, True], ids=["yaml", "json"])
@pytest.mark.parametrize("kind", ["criteria", "snapshot", "recipe", "overlay", "registry"])
def test_a_changed_good_document_is_read_or_refused(kind: str, as_json: bool) -> None:
    """What an editor, a merge or another program can do to a good file never ends in a traceback."""
    document = {
        "criteria": CRITERIA_FILE,
        "snapshot": SNAPSHOT,
        "recipe": small_recipe(),
        "overlay": OVERLAY,
        "registry": REGISTRY,
    }[kind]
    assert run_on(kind, written(document, as_json)).status == 0

    @settings(CLI, max_examples=50)
    @given(mutants(document))
    def check(mutant: Any) -> None:
        run_on(kind, written(mutant, as_json), "json" if as_json else "yaml")

    check()
