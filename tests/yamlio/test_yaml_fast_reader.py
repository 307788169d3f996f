"""The fast reader: what it takes, what it leaves to the full reader, and how much it imports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import aicr
from aicr.yamlio import canonical, read, read_fast, read_fast_all, write

MANIFEST = """\
# comment
apiVersion: batch/v1  # trailing
kind: Job
metadata:
  name: gate
  annotations:
    "helm.sh/hook": pre-install,pre-upgrade
    'helm.sh/hook-weight': "-5"
  labels: {}
spec:
  args: ["--a", '-b', c, 1]
  template: {metadata: {name: x}, spec: [a, {b: c}]}   # one line
  containers:
  - name: a
    command:
    - sh
    - -c
    - |
      set -e

      # not a comment
      echo "a: b"
    env: []
  - name: b
    image: registry.example:5000/x@sha256:abc
    resources:
      limits:
        cpu: 1.5
        memory: 5Gi
        nvidia.com/gpu: 8
    terminationGracePeriodSeconds: -1
    maxUnavailable: 50%
    empty:
  volumes:
    -
      name: v
    - - x
      - - "y"
---
# nothing here
---
- 1.0e+21
- 1.2.3
- "\\u00e9\\n\\\\"
- 'it''s'
- ~
- |2-
   x
  y
- |+
  z

- last
"""


def test_a_manifest_with_every_accepted_feature_is_read_without_the_full_reader() -> None:
    """Comments, quoted keys, both list styles, blocks, one-line flow, several documents."""
    assert canonical.parse_all(MANIFEST) == read.load_all(MANIFEST, source="t")
    assert canonical.parse_all(MANIFEST)[1] == [
        1e21,
        "1.2.3",
        "é\n\\",
        "it's",
        None,
        " x\ny",
        "z\n\n",
        "last",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "a: &x 1\n",
        "a: *x\n",
        "a: !t 1\n",
        "a: >\n  x\n",
        "a: yes\n",
        "a: 014\n",
        "a: 1_000\n",
        "a: 0x10\n",
        "a: 1e3\n",
        "a: .5\n",
        "a: .inf\n",
        "a: 12:30\n",
        "a: 18446744073709551616\n",
        "a: -9223372036854775809\n",
        "a: b\n  c\n",
        "a: 'b\n  c'\n",
        "a:\n  b\n",
        "a: [1,\n  2]\n",
        "a: {b}\n",
        "a: [b: c]\n",
        "a: 1\na: 2\n",
        "a: {b: 1, b: 2}\n",
        "1: a\n",
        "true: a\n",
        "y: a\n",
        "<<: {a: b}\n",
        "? a\n",
        ": a\n",
        ":\n",
        "a : b\n",
        "a:\tb\n",
        "a: b\r\n",
        "\ufeffa: b\n",
        "a: \x01\n",
        "a: b: c\n",
        "a: b:\n",
        "a: 'b' c\n",
        "a: 'b'#c\n",
        "- a\nb: c\n",
        "a: b\n- c\n",
        "  a: b\nc: d\n",
        "a:\n   b: c\n  d: e\n",
        "a: |\n",
        "a: |\n    x\n  y\n",
        "a: |\n   \n  x\n",
        "a: |0\n  x\n",
        "a: |-2\n  x\n",
        "a: |\n  x",
        "a: '\\q\n",
        'a: "\\q"\n',
        'a: "\\ud800"\n',
        'a: "\\xZZ"\n',
        "a\n",
        "{a: 1}\nb: 2\n",
        "--- a\n",
        "a: 1\n...\n",
        "%YAML 1.1\n---\na: 1\n",
        "a: {{ x }}\n",
        "k" * 2000 + ": a\n",
        "[" * 50 + "]" * 50 + "\n",
        "- " * 150 + "a\n",
    ],
)
def test_everything_uncertain_is_left_to_the_full_reader(text: str) -> None:
    """It never guesses and never reports an error of its own."""
    with pytest.raises(canonical.Fallback):
        canonical.parse(text)
    with pytest.raises(canonical.Fallback):
        canonical.parse_all(text)


def test_two_documents_are_left_to_the_full_reader_where_one_is_expected() -> None:
    """The full reader has the words for it."""
    with pytest.raises(canonical.Fallback):
        canonical.parse("a: 1\n---\nb: 2\n")
    assert canonical.parse("---\na: 1\n---\n") == {"a": 1}


def test_read_fast_gives_the_full_reading_where_the_fast_one_stops() -> None:
    """Callers see one reader."""
    text = "a: &x yes\nb: *x\n"
    assert read_fast(text, source="t") == {"a": True, "b": True}
    assert read_fast(text, source="t", mode="v3") == {"a": "yes", "b": "yes"}
    assert read_fast_all(text + "---\n" + text, source="t") == [{"a": True, "b": True}] * 2


def test_a_large_recipe_comes_back_as_it_was_written() -> None:
    """Writer and fast reader are made for each other."""
    document = {
        "componentRefs": [
            {
                "name": f"component-{i}",
                "version": f"24.{i}",
                "overrides": {"a": {"b": [1, 2.5, True, None, "x: y"]}, "script": f"a\n  b {i}\n"},
                "dependencyRefs": [] if i % 2 else ["cert-manager"],
            }
            for i in range(80)
        ]
    }
    for indent in (2, 4):
        assert canonical.parse(write.dump(document, indent=indent)) == document


def test_writing_and_fast_reading_import_nothing_outside_the_package() -> None:
    """The hot path pays for no library (stack study 2.4)."""
    code = (
        "import sys; before = set(sys.modules)\n"
        "from aicr.yamlio import read_fast, write\n"
        "from aicr.values import merge, paths, quantities, durations\n"
        "assert read_fast(write.dump({'a': [1]}), source='t') == {'a': [1]}\n"
        "print(sorted(m for m in set(sys.modules) - before if m.partition('.')[0] != 'aicr'))\n"
    )
    source = str(Path(aicr.__file__).parent.parent)
    result = subprocess.run(
        [sys.executable, "-S", "-E", "-c", f"import sys; sys.path.insert(0, {source!r})\n{code}"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ},
    )
    assert result.stdout.strip() == "['__future__']"
