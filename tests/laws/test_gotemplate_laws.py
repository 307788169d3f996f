"""Laws of templates and manifests: what holds for every text and every value."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from aicr.bundle.gotemplate import render
from aicr.bundle.gotemplate.formatting import display_float, quoted
from aicr.bundle.manifests import SYNC_PHASES, documents, escape_for_helm, strip_hooks
from aicr.errors import AicrError
from aicr.yamlio.read import load

#: Text in which braces, quotes and trim markers meet often.
BRACES = st.lists(
    st.sampled_from(["{", "}", "{{", "}}", "-", " ", '"', "`", "\n", "x", "/*", "é", "$l", "\\"])
).map("".join)
PLAIN = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=20)
SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | PLAIN
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(PLAIN.filter(bool), inner, max_size=3)
    ),
    max_leaves=8,
)
PHASES = st.lists(st.sampled_from([*sorted(SYNC_PHASES), "pre-delete", "post-delete"]), min_size=1)


def helm_prints(template: str) -> str:
    """What Helm makes of text whose only actions print an opening brace pair."""
    action = '{{ "{{" }}'
    out = ""
    while template:
        if template.startswith(action):
            out, template = out + "{{", template[len(action) :]
        else:
            assert not template.startswith("{{"), "an action that was not escaped"
            out, template = out + template[0], template[1:]
    return out


@given(BRACES | st.text())
def test_escaped_text_comes_out_of_helm_as_it_went_in(text: str) -> None:
    """Escaping is undone by templating, byte for byte, in a model and in our own renderer."""
    assert helm_prints(escape_for_helm(text)) == text
    assert render(escape_for_helm(text), {}, source="m") == text


@given(BRACES)
def test_any_text_renders_or_is_refused_in_an_orderly_way(text: str) -> None:
    """No text makes the renderer fail in another way than its own error."""
    try:
        outcome = render(text, {}, source="m")
    except AicrError as error:
        outcome = error.where
    assert outcome == text or "{{" in text


@given(st.text())
def test_a_quoted_text_read_as_a_literal_is_the_text(text: str) -> None:
    """Quoting and reading a string literal are inverse."""
    assert render("{{ " + quoted(text) + " }}", {}, source="m") == text


@given(st.floats(allow_nan=False))
def test_a_printed_float_reads_back_as_itself(value: float) -> None:
    """The shortest form loses nothing."""
    assert float(display_float(value)) == value


@given(VALUES, st.integers(1, 8))
def test_a_value_written_by_to_yaml_and_nindent_reads_back_as_itself(
    value: Any, columns: int
) -> None:
    """Indentation keeps the meaning of YAML, since empty lines stay empty."""
    text = render(f"v:{{{{ toYaml .v | nindent {columns} }}}}\n", {"v": value}, source="m")
    assert load(text, source="m") == {"v": value}


@given(st.text(" \t\r\nab", max_size=8), st.text(" \t\r\nab", max_size=8))
def test_trim_markers_take_white_space_and_nothing_else(left: str, right: str) -> None:
    """A marker trims all white space on its side and none on the other."""
    space = " \t\r\n"
    assert render(left + '{{- "x" }}' + right, {}, source="m") == left.rstrip(space) + "x" + right
    assert render(left + '{{ "x" -}}' + right, {}, source="m") == left + "x" + right.lstrip(space)


@given(st.lists(SCALARS, max_size=4), st.dictionaries(PLAIN, SCALARS, max_size=4))
def test_truth_and_length_agree_with_the_values(items: list[Any], mapping: dict[str, Any]) -> None:
    """Empty collections are false, others are true, and a loop visits every item once."""
    data = {"l": items, "m": mapping}
    assert render("{{ if .l }}y{{ else }}n{{ end }}", data, source="m") == ("y" if items else "n")
    assert render("{{ range .l }}.{{ end }}", data, source="m") == "." * len(items)
    loop = "{{ range $k, $v := .m }}{{ printf `%q,` $k }}{{ end }}"
    assert render(loop, data, source="m") == "".join(quoted(key) + "," for key in sorted(mapping))


@given(PHASES, st.booleans(), st.sampled_from(["", '"', "'"]), st.booleans())
def test_stripping_leaves_lifecycle_phases_and_is_done_once(
    phases: list[str], more: bool, quote: str, flow: bool
) -> None:
    """What stays is exactly the phases that are no sync phases; a second pass changes nothing."""
    value = f"{quote}{','.join(phases)}{quote}"
    other = "    other: x\n" if more else ""
    block = f"annotations:\n    helm.sh/hook: {value}\n    helm.sh/hook-weight: '1'\n{other}"
    if flow:
        tail = ", other: x" if more else ""
        quoted_value = value if quote else f"'{value}'"
        block = f"annotations: {{helm.sh/hook: {quoted_value}, helm.sh/hook-weight: '1'{tail}}}\n"
    text = f"kind: X\nmetadata:\n  name: a\n  {block}spec: {{}}\n"
    stripped = strip_hooks(text, source="m")
    kept = [phase for phase in phases if phase not in SYNC_PHASES]
    annotations = {"other": "x"} if more else {}
    if kept:
        annotations |= {"helm.sh/hook": ",".join(kept), "helm.sh/hook-weight": "1"}
    metadata = {"name": "a", "annotations": annotations} if annotations else {"name": "a"}
    assert documents(stripped, "m") == [{"kind": "X", "metadata": metadata, "spec": {}}]
    assert strip_hooks(stripped, source="m") == stripped
