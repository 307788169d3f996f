"""The template language: what is refused, with which code, at which line."""

from __future__ import annotations

from typing import Any

import pytest

from aicr.bundle.gotemplate import render
from aicr.errors import INTERNAL, INVALID_REQUEST, AicrError

DATA: dict[str, Any] = {
    "name": "gpu",
    "count": 1,
    "half": 1.5,
    "on": True,
    "empty": None,
    "zones": ["a"],
    "labels": {"a": "1"},
    "driver": {"gone": None},
    "holes": [None],
}

UNPARSABLE = [
    ("{{ .name", "unclosed action"),
    ("{{ .na-me }}", "bad character '-'"),
    ("{{ @ }}", "unexpected '@'"),
    ("{{/* note }}", "unclosed comment"),
    ("{{/* note */ }}", "comment ends before closing delimiter"),
    ('{{ "open }}', "unterminated quoted string"),
    ("{{ `open }}", "unterminated raw quoted string"),
    ("{{ 'o }}", "unterminated character constant"),
    ("{{ 'ab' }}", "malformed character constant"),
    (r'{{ "a\qb" }}', r"unknown escape \q"),
    (r'{{ "\xg1" }}', "malformed escape"),
    (r'{{ "\ud800" }}', "invalid code point"),
    (r'{{ "\400" }}', "octal escape above 255"),
    (r'{{ "\xff" }}', "not UTF-8"),
    ("{{ 08 }}", "bad number syntax"),
    ("{{ 1x }}", "bad number syntax"),
    ("{{ 1i }}", "bad number syntax"),
    ("{{ 1e999 }}", "overflows"),
    ("{{ 99999999999999999999 }}", "overflows int"),
    ("{{}}", "missing value for command"),
    ("{{ .name | }}", "missing value for command"),
    ("{{ | .name }}", "missing value"),
    ("{{ () }}", "missing value"),
    ("{{ (.name }}", "unclosed left paren"),
    ("{{ .name) }}", "unexpected ')'"),
    ("{{ print(1) }}", "unexpected '('"),
    ('{{ print "a""b" }}', "unexpected"),
    ("{{ .a, .b }}", "unexpected ','"),
    ("{{ .a = 1 }}", "unexpected '='"),
    ("{{ $x }}", "undefined variable '$x'"),
    ("{{ if .on }}{{ $x := 1 }}{{ end }}{{ $x }}", "undefined variable '$x'"),
    ("{{ $a, $b := .zones }}", "too many declarations"),
    ("{{ range $a, $b, $c := .zones }}{{ end }}", "too many declarations"),
    ("{{ range $a, .zones }}{{ end }}", "range can only initialize variables"),
    ("{{ range $a, $b .zones }}{{ end }}", "two variables"),
    ("{{ 1 | 2 }}", "non executable command in pipeline stage 2"),
    ('{{ "a".x }}', "unexpected . after a term"),
    ("{{ nil.x }}", "unexpected . after a term"),
    ("{{ if .on }}x", "{{if}} is not closed"),
    ("{{ range .zones }}x{{ else }}y", "{{range}} is not closed"),
    ("{{ end }}", "unexpected {{end}}"),
    ("{{ else }}", "unexpected {{else}}"),
    ("{{ if .on }}{{ else }}{{ else }}{{ end }}", "expected {{end}}"),
    ("{{ if .on }}{{ end x }}", "unexpected 'x' in end"),
    ("{{ range .zones }}{{ else if .on }}{{ end }}", "unexpected"),
    ("{{ if }}x{{ end }}", "missing value for if"),
    ("{{ if if }}x{{ end }}", "unexpected <if>"),
    ("{{ break }}", "{{break}} outside {{range}}"),
    ("{{ range .zones }}{{ continue 1 }}{{ end }}", "unexpected '1' in continue"),
    ('{{ define "x" }}{{ end }}', "{{define}} is not supported"),
    ('{{ template "x" }}', "{{template}} is not supported"),
    ('{{ block "x" . }}{{ end }}', "{{block}} is not supported"),
    ("{{ lookup .name }}", 'function "lookup" not defined'),
    ("{{ .name | toYAML }}", 'function "toYAML" not defined'),
    ("{{ " + "(" * 100 + "1" + ")" * 100 + " }}", "nested deeper"),
    ("{{ if .on }}" * 100 + "{{ end }}" * 100, "nested deeper"),
]


@pytest.mark.parametrize(("template", "reason"), UNPARSABLE)
def test_a_mistake_of_form_is_an_invalid_request_at_its_line(template: str, reason: str) -> None:
    """A template that cannot be parsed is INVALID_REQUEST with file and line (bundler spec 2.7)."""
    with pytest.raises(AicrError) as caught:
        render("first\nsecond\n" + template, DATA, source="m.yaml")
    assert caught.value.code == INVALID_REQUEST
    assert caught.value.where == "m.yaml:3"
    assert reason in caught.value.message


UNEXECUTABLE = [
    ("{{ .missing }}", "<no value>"),
    ("{{ .empty }}", "<no value>"),
    ('{{ index .labels "b" }}', "<no value>"),
    ("{{ .driver.gone.deeper }}", "nil pointer evaluating interface {}.deeper"),
    ("{{ .name.x }}", "can't evaluate field x in type string"),
    ("{{ .zones.x }}", "can't evaluate field x in type []interface {}"),
    ("{{ range .holes }}{{ .x }}{{ end }}", "nil pointer evaluating interface {}.x"),
    ("{{ $x := $x }}", "undefined variable: $x"),
    ("{{ $x = 1 }}", "undefined variable: $x"),
    ("{{ .name 1 }}", "can't give argument to non-function"),
    ("{{ 1 | .name }}", "can't give argument to non-function"),
    ("{{ nil }}", "nil is not a command"),
    ("{{ range .name }}{{ end }}", "range can't iterate over gpu"),
    ("{{ range .count }}{{ end }}", "range can't iterate over 1"),
    ("{{ toYaml }}", "wrong number of args for toYaml: want 1 got 0"),
    ("{{ and }}", "wrong number of args for and"),
    ("{{ ne 1 2 3 }}", "wrong number of args for ne: want 2 got 3"),
    ("{{ index .empty 1 }}", "index of untyped nil"),
    ("{{ index .driver `gone` 1 }}", "index of nil pointer"),
    ("{{ index .zones 1 }}", "index out of range: 1"),
    ("{{ index .zones -1 }}", "index out of range: -1"),
    ("{{ index .zones `a` }}", "cannot index slice/array with type string"),
    ("{{ index .zones true }}", "cannot index slice/array with type bool"),
    ("{{ index .labels 1 }}", "value has type int; should be string"),
    ("{{ index .count 1 }}", "can't index item of type int"),
    ("{{ len .empty }}", "len of nil pointer"),
    ("{{ len .count }}", "len of type int"),
    ("{{ eq .count `1` }}", "incompatible types for comparison: int and string"),
    ("{{ eq .count 1.0 }}", "incompatible types for comparison: int and float64"),
    ("{{ eq .on 1 }}", "incompatible types for comparison: bool and int"),
    ("{{ eq .labels .labels }}", "non-comparable type"),
    ("{{ eq .name }}", "missing argument for comparison"),
    ("{{ lt .on false }}", "invalid type for comparison"),
    ("{{ lt .empty 1 }}", "invalid type for comparison"),
    ("{{ lt 1 1.5 }}", "incompatible types for comparison: int and float64"),
    ("{{ nindent `2` .name }}", "expected int; got string"),
    ("{{ nindent true .name }}", "expected int; got bool"),
    ("{{ nindent 2 .zones }}", "expected string; got []interface {}"),
    ("{{ nindent -1 .name }}", "cannot indent by -1"),
    ("{{ indent 1000000 .name }}", "cannot indent by 1000000"),
    ("{{ trim .count }}", "expected string; got int"),
    ("{{ hasKey .zones `a` }}", "expected map[string]interface {}"),
    ("{{ printf `%d` .name }}", "%d does not take a value of type string"),
    ("{{ printf `%s` .count }}", "%s does not take a value of type int"),
    ("{{ printf `%d` .on }}", "%d does not take a value of type bool"),
    ("{{ printf `%d` }}", "no value for %d"),
    ("{{ printf `%d` 1 2 }}", "1 values more than verbs"),
    ("{{ printf `%x` 1 }}", "%x is not supported"),
    ("{{ printf `%` }}", "is not supported"),
    ("{{ printf `%999999999d` 1 }}", "a width of 999999999"),
    ("{{ printf 1 }}", "expected string; got int"),
]


@pytest.mark.parametrize(("template", "reason"), UNEXECUTABLE)
def test_a_mistake_of_data_is_an_internal_error_with_line_and_expression(
    template: str, reason: str
) -> None:
    """A template that cannot be executed is INTERNAL with file, line and expression (2.7)."""
    with pytest.raises(AicrError) as caught:
        render("first\n" + template, DATA, source="m.yaml")
    assert caught.value.code == INTERNAL
    assert caught.value.where == "m.yaml:2"
    assert reason in caught.value.message
    assert "{{" in caught.value.message
    assert caught.value.hint


def test_the_line_of_a_failure_is_that_of_its_action_and_not_of_the_last_one() -> None:
    """Actions on many lines each keep their own place, also inside a loop."""
    template = "{{ range .zones }}\n{{ . }}\n\n{{ $.missing }}\n{{ end }}\n"
    with pytest.raises(AicrError) as caught:
        render(template, DATA, source="m.yaml")
    assert caught.value.where == "m.yaml:4"
    assert "{{ $.missing }}" in caught.value.message


def test_an_unknown_function_close_to_a_known_one_is_named_in_the_hint() -> None:
    """A typo is helped with the nearest function."""
    with pytest.raises(AicrError) as caught:
        render("{{ toYAML .name }}", DATA, source="m.yaml")
    assert caught.value.hint == 'did you mean "toYaml"?'


def test_a_branch_that_is_not_taken_is_not_executed() -> None:
    """Only what runs can fail when it runs."""
    assert render("{{ if .missing }}{{ .name.x }}{{ end }}ok", DATA, source="m") == "ok"
