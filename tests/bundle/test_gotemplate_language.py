"""The template language: what Go's text/template prints, ours prints."""

from __future__ import annotations

from typing import Any

import pytest

from aicr.bundle.gotemplate import render

DATA: dict[str, Any] = {
    "count": 1,
    "zero": 0,
    "half": 1.5,
    "big": 1234567.5,
    "name": "gpu",
    "on": True,
    "off": False,
    "empty": None,
    "zones": ["a", "b"],
    "none": [],
    "labels": {"z": "2", "a": "1"},
    "driver": {"version": "580", "env": {}, "gone": None},
    "accent": "é☃",
    "lines": "x\n\ny\n",
    "holes": [None, {"x": 1}],
}

# Every expected text below was printed by Go 1.26's own text/template.
PRINTED: dict[str, list[tuple[str, str]]] = {
    "trimming and comments": [
        ("a {{ .count }} b", "a 1 b"),
        ("a \n{{- .count -}}\t\r\n b", "a1b"),
        ("a {{- /* note */ -}} b", "ab"),
        ("a {{/* two\nlines */}} b", "a  b"),
        ("{{-3}} {{3 -}} x", "-3 3x"),
        ("}} {{ .count }} }}", "}} 1 }}"),
        ('{{ "}}" }}{{ `{{` }}', "}}{{"),
        ("{{ print\n 1\n 2 }}", "1 2"),
        ("no action", "no action"),
        ("", ""),
    ],
    "fields and variables": [
        ("{{ .driver.version }}{{ $.name }}{{ (.driver).version }}", "580gpu580"),
        ("{{ $d := .driver }}{{ $d.version }}", "580"),
        ("{{ if .missing.deeper.still }}x{{ else }}y{{ end }}", "y"),
        ("{{ if (index .labels `none`).deeper }}x{{ else }}y{{ end }}", "y"),
        ("{{ $x := 1 }}{{ if .on }}{{ $x = 2 }}{{ end }}{{ $x }}", "2"),
        ("{{ $x := 1 }}{{ if .on }}{{ $x := 2 }}{{ $x }}{{ end }}{{ $x }}", "21"),
        ("{{ $x := 1 }}{{ if .off }}{{ $x := 2 }}{{ else }}{{ $x }}{{ end }}", "1"),
        ("{{ ($y := 1) }}{{ $y }}", "11"),
    ],
    "if and with": [
        ("{{ if .zero }}1{{ else if .none }}2{{ else if .on }}3{{ else }}4{{ end }}", "3"),
        ("{{ if .driver.env }}x{{ end }}", ""),
        ("{{ if $n := .name }}{{ $n }}{{ end }}", "gpu"),
        ("{{ with .driver }}{{ .version }}{{ $.name }}{{ else }}n{{ end }}", "580gpu"),
        ("{{ with .missing }}x{{ else }}{{ .name }}{{ end }}", "gpu"),
        ("{{ with .missing }}1{{ else with .name }}{{ . }}{{ end }}", "gpu"),
        ("{{ with $n := .name }}{{ $n }}{{ . }}{{ end }}", "gpugpu"),
    ],
    "range": [
        ("{{ range .zones }}[{{ . }}]{{ end }}", "[a][b]"),
        ("{{ range $v := .zones }}{{ $v }}{{ end }}", "ab"),
        ("{{ range $i, $v := .zones }}{{ $i }}{{ $v }}{{ end }}", "0a1b"),
        ("{{ range $k, $v := .labels }}{{ $k }}={{ $v }};{{ end }}", "a=1;z=2;"),
        ("{{ range .none }}x{{ else }}e{{ end }}", "e"),
        ("{{ range .missing }}x{{ else }}e{{ end }}", "e"),
        ("{{ $v := 8 }}{{ range $v = .zones }}{{ end }}{{ $v }}", "b"),
        ("{{ range $i, $v := .zones }}{{ if $i }}{{ break }}{{ end }}{{ $v }}{{ end }}", "a"),
        ("{{ range $i, $v := .zones }}{{ if $i }}{{ continue }}{{ end }}{{ $v }}{{ end }}", "a"),
        (
            "{{ range .zones }}{{ range $.none }}{{ else }}{{ break }}{{ end }}{{ . }}{{ end }}",
            "ab",
        ),
        (
            "{{ range .zones }}{{ range $.none }}{{ else }}{{ continue }}{{ end }}{{ . }}{{ end }}",
            "",
        ),
        ("{{ range .holes }}{{ if . }}{{ .x }}{{ end }}{{ end }}", "1"),
    ],
    "literals": [
        (r'{{ "a\tb\x41\u00e9\101\"\\" }}', 'a\tbAéA"\\'),
        (r"{{ `raw\n` }}{{ 'a' }}{{ '\n' }}{{ '\x41' }}{{ '\'' }}", "raw\\n97106539"),
        (r'{{ "\xc3\xa9" }}', "é"),
        ("{{ 0x1F }} {{ 017 }} {{ 0b11 }} {{ 0o17 }} {{ 1_000 }} {{ +3 }}", "31 15 3 15 1000 3"),
        ("{{ 1e6 }} {{ 1e5 }} {{ 1e-5 }} {{ 0.0001 }} {{ .5 }}", "1e+06 100000 1e-05 0.0001 0.5"),
        ("{{ 1e21 }} {{ 123456.75 }} {{ 5. }} {{ 1_000.5 }}", "1e+21 123456.75 5 1000.5"),
        ("{{ true }}{{ false }}", "truefalse"),
        ("{{ print nil }}", "<nil>"),
    ],
    "comparison and logic": [
        ("{{ eq .count 1 }} {{ eq .count 3 2 1 }} {{ ne .name `gpu` }}", "true true false"),
        ("{{ eq .missing 1 }} {{ eq .missing nil }} {{ eq .labels nil }}", "false true false"),
        (
            "{{ lt 1 2 }}{{ le 2 2 }}{{ gt 1 2 }}{{ ge 2 2 }}{{ lt `a` `b` }}",
            "truetruefalsetruetrue",
        ),
        ("{{ and .count .name }} {{ and .zero .count }} {{ or .zero `d` }}", "gpu 0 d"),
        ("{{ and .zero (index .name 99) }} {{ or .count (index .name 99) }}", "0 1"),
        ("{{ .name | and .count }} {{ .name | and .zero }}", "gpu 0"),
        ("{{ not .count }} {{ not .none }}", "false true"),
        ("{{ and .on (not .off) (eq .name `gpu`) | print `r=` }}", "r=true"),
    ],
    "collections and printing": [
        ("{{ index .labels `a` }} {{ index .zones 1 }} {{ index .driver `env` | len }}", "1 b 0"),
        ("{{ len .accent }} {{ len .zones }} {{ len .labels }}", "5 2 2"),
        (
            "{{ .zones }} {{ .labels }} {{ .half }} {{ .big }}",
            "[a b] map[a:1 z:2] 1.5 1.2345675e+06",
        ),
        ("{{ print 1 2 `a` 3 4 }}|{{ print }}", "1 2a3 4|"),
        ("{{ println 1 `a` 2 }}", "1 a 2\n"),
        ('{{ printf "%s-%d-%v-%q-%t-%%" `a` 1 .zones `q"` true }}', 'a-1-[a b]-"q\\""-true-%'),
        ('{{ printf "%5d|%-5d|%05d|%-3s|%3s" 3 3 -3 `a` `a` }}', "    3|3    |-0003|a  |  a"),
        ("{{ `a` | printf `%s-%s` `b` }}", "b-a"),
    ],
}


@pytest.mark.parametrize(
    ("template", "expected"),
    [pair for pairs in PRINTED.values() for pair in pairs],
)
def test_a_template_prints_what_go_prints(template: str, expected: str) -> None:
    """The language is Go's: same template, same data, same text."""
    assert render(template, DATA, source="m.yaml") == expected


# Rules of bundler spec 2.7, and of sprig where 2.7 names no rule.
CALLED = [
    ("{{ .missing | default `d` }} {{ .empty | default 3 }} {{ `` | default `e` }}", "d 3 e"),
    ("{{ .off | default true }} {{ .zero | default 3 }} {{ .none | default `x` }}", "false 0 []"),
    ("{{ toString .empty }} {{ toString .on }} {{ .half | toString }}", "<nil> true 1.5"),
    ('{{ ne (toString (index .labels "nope")) "false" }}', "true"),
    ("{{ nindent 2 .lines }}|", "\n  x\n\n  y\n|"),
    ("{{ indent 2 .lines }}|", "  x\n  \n  y\n  |"),
    ("{{ trim ` \n x \t` }}|", "x|"),
    ("{{ quote .name }} {{ quote .count .empty `b` }} {{ quote `a\n` }}", '"gpu" "1" "b" "a\\n"'),
    ("{{ hasKey .labels `a` }} {{ hasKey .labels `b` }}", "true false"),
    ("v:\n  {{- toYaml .labels | nindent 2 }}\n", 'v:\n  a: "1"\n  z: "2"\n'),
    ("v: {{ toYaml .none }} {{ toYaml .empty }}", "v: [] null"),
    ("t:\n  {{- toYaml .zones | nindent 2 }}", "t:\n  - a\n  - b"),
]


@pytest.mark.parametrize(("template", "expected"), CALLED)
def test_a_manifest_function_follows_its_rule(template: str, expected: str) -> None:
    """toYaml, nindent, toString and default follow bundler spec 2.7; the others follow sprig."""
    assert render(template, DATA, source="m.yaml") == expected


def test_rendering_twice_gives_the_same_text_and_leaves_the_data_alone() -> None:
    """What is kept from the first run carries nothing over to the second."""
    data = {"zones": ["a"], "labels": {"k": {"deep": [1]}}}
    template = "{{ $n := 0 }}{{ range .zones }}{{ $n = 5 }}{{ end }}{{ $n }}{{ toYaml .labels }}"
    first = render(template, data, source="m.yaml")
    assert render(template, data, source="m.yaml") == first
    assert (
        render("{{ .x }}", {"x": 1}, source="m") + render("{{ .x }}", {"x": 2}, source="m") == "12"
    )
    assert data == {"zones": ["a"], "labels": {"k": {"deep": [1]}}}


def test_many_different_templates_are_rendered_right() -> None:
    """More templates than are kept do not disturb each other."""
    for number in range(600):
        assert render(f"{number}:{{{{ .x }}}}", {"x": number}, source="m") == f"{number}:{number}"
