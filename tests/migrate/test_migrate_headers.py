"""Rewriting headers: which are rewritten to what, and that nothing else in a text changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aicr.contract.documents import ACCEPTED, LEGACY, RETIRED, check_header
from aicr.contract.migrate import REMOVED, RENAMED, about, looks_like_ours, migrate
from aicr.errors import INVALID_REQUEST, AicrError

PAGE = Path(__file__).resolve().parents[2] / "docs" / "migrate.md"
OLD = "aicr.nvidia.com/v1alpha1"


def migrated(text: str) -> str:
    """The new text of one that can be migrated whole."""
    found = migrate(text, "f.yaml")
    assert [problem.message for problem in found.problems] == []
    return found.text


@pytest.mark.parametrize("kind", ACCEPTED)
@pytest.mark.parametrize("old", [*LEGACY, "", None])
def test_every_kind_gets_its_own_apiversion_of_today(kind: str, old: str | None) -> None:
    """What the reader accepts with a notice is rewritten to what it accepts without one (1, 48)."""
    header = "" if old is None else f"apiVersion: {old}\n"
    text = migrated(f"kind: {kind}\n{header}metadata: {{}}\n")
    assert text == f"kind: {kind}\napiVersion: {ACCEPTED[kind][0]}\nmetadata: {{}}\n"
    again = migrate(text, "f.yaml")
    assert (again.changes, again.documents) == ([], 1)
    document = {"kind": kind, "apiVersion": ACCEPTED[kind][0]}
    assert check_header(document, kind, source="f.yaml") == ""


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("RecipeMetadata", "spec: {profile: {name: a}}"),
        ("RecipeResult", "metadata: {selectedProfile: {name: a}}"),
        ("RecipeResult", "configuration: {runtimeInventory: enabled}"),
    ],
)
def test_content_of_the_profile_track_gets_the_apiversion_of_that_track(
    kind: str, content: str
) -> None:
    """A profile or a typed configuration makes it v1beta2 (spec 0.1)."""
    text = migrated(f"kind: {kind}\napiVersion: {OLD}\n{content}\n")
    assert text == f"kind: {kind}\napiVersion: aicr.run/v1beta2\n{content}\n"


#: What people and tools write, and what becomes of it: only the header differs.
FORMS = {
    "comments and order": (
        "# top\napiVersion: aicr.nvidia.com/v1alpha1 # old\nkind: Snapshot   # kind\n\n"
        "measurements: [ ]  # odd  spacing\n# end",
        "# top\napiVersion: aicr.run/v1 # old\nkind: Snapshot   # kind\n\n"
        "measurements: [ ]  # odd  spacing\n# end",
    ),
    "quotes": (
        "kind: 'Snapshot'\napiVersion: \"aicr.nvidia.com/v1alpha1\"\n",
        "kind: 'Snapshot'\napiVersion: \"aicr.run/v1\"\n",
    ),
    "single quotes": (
        "kind: Snapshot\n'apiVersion': 'aicr.nvidia.com/v1alpha1'\n",
        "kind: Snapshot\n'apiVersion': 'aicr.run/v1'\n",
    ),
    "absent, at the end": ("kind: Snapshot", "kind: Snapshot\napiVersion: aicr.run/v1"),
    "absent, with a comment": (
        "kind: Snapshot # it is\nmeasurements: []\n",
        "kind: Snapshot # it is\napiVersion: aicr.run/v1\nmeasurements: []\n",
    ),
    "absent, quoted": (
        '"kind": "Snapshot"\nmeasurements: []\n',
        '"kind": "Snapshot"\n"apiVersion": "aicr.run/v1"\nmeasurements: []\n',
    ),
    "null": ("kind: Snapshot\napiVersion:\n", "kind: Snapshot\napiVersion: aicr.run/v1\n"),
    "tilde": (
        "kind: Snapshot\napiVersion: ~  # no\n",
        "kind: Snapshot\napiVersion: aicr.run/v1  # no\n",
    ),
    "empty text": ('apiVersion: ""\nkind: Snapshot\n', "apiVersion: aicr.run/v1\nkind: Snapshot\n"),
    "Windows": (
        "kind: Snapshot\r\nmeasurements: []\r\n",
        "kind: Snapshot\r\napiVersion: aicr.run/v1\r\nmeasurements: []\r\n",
    ),
    "byte order mark": (
        "\ufeffkind: Snapshot\napiVersion: aicr.nvidia.com/v1alpha1\n",
        "\ufeffkind: Snapshot\napiVersion: aicr.run/v1\n",
    ),
    "flow": (
        "{kind: Snapshot, measurements: []}",
        "{kind: Snapshot, apiVersion: aicr.run/v1, measurements: []}",
    ),
    "flow, kind last": (
        "{measurements: [], kind: Snapshot}\n",
        "{measurements: [], kind: Snapshot, apiVersion: aicr.run/v1}\n",
    ),
    "flow, a line each": (
        "{\n  kind: Snapshot,\n  measurements: []\n}\n",
        "{\n  kind: Snapshot,\n  apiVersion: aicr.run/v1,\n  measurements: []\n}\n",
    ),
    "JSON": (
        '{\n\t"kind": "Snapshot",\n\t"measurements": []\n}\n',
        '{\n\t"kind": "Snapshot",\n\t"apiVersion": "aicr.run/v1",\n\t"measurements": []\n}\n',
    ),
    "JSON on one line": (
        '{"apiVersion": "aicr.nvidia.com/v1alpha1", "kind": "Snapshot"}',
        '{"apiVersion": "aicr.run/v1", "kind": "Snapshot"}',
    ),
    "JSON, null": (
        '{"apiVersion": null, "kind": "Snapshot"}',
        '{"apiVersion": "aicr.run/v1", "kind": "Snapshot"}',
    ),
    "indented": (
        "  kind: Snapshot\n  measurements: []\n",
        "  kind: Snapshot\n  apiVersion: aicr.run/v1\n  measurements: []\n",
    ),
    "several documents": (
        "# first\n---\nkind: Snapshot\n---\napiVersion: v1\nkind: ConfigMap\n--- # third\n"
        "kind: RecipeCriteria\napiVersion: aicr.nvidia.com/v1alpha1\n...\n",
        "# first\n---\nkind: Snapshot\napiVersion: aicr.run/v1\n---\napiVersion: v1\n"
        "kind: ConfigMap\n--- # third\nkind: RecipeCriteria\napiVersion: aicr.run/v1\n...\n",
    ),
    "a marker in the text": (
        "kind: Snapshot\nnote: |\n  a\n  ---\n  kind: Recipe\n",
        "kind: Snapshot\napiVersion: aicr.run/v1\nnote: |\n  a\n  ---\n  kind: Recipe\n",
    ),
    "an old word elsewhere": (
        "kind: Snapshot\napiVersion: aicr.nvidia.com/v1alpha1\nnote: aicr.nvidia.com/v1alpha1\n"
        "inner: {apiVersion: aicr.nvidia.com/v1alpha1}\n",
        "kind: Snapshot\napiVersion: aicr.run/v1\nnote: aicr.nvidia.com/v1alpha1\n"
        "inner: {apiVersion: aicr.nvidia.com/v1alpha1}\n",
    ),
    "kind Recipe": (
        "kind: Recipe # old\napiVersion: aicr.nvidia.com/v1alpha1\n",
        "kind: RecipeResult # old\napiVersion: aicr.run/v1\n",
    ),
    "kind Recipe without a version": (
        "kind: Recipe\ncomponentRefs: []\n",
        "kind: RecipeResult\napiVersion: aicr.run/v1\ncomponentRefs: []\n",
    ),
    "kind Recipe of today": (
        "kind: Recipe\napiVersion: aicr.run/v1\n",
        "kind: RecipeResult\napiVersion: aicr.run/v1\n",
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_only_the_header_changes(name: str) -> None:
    """Comments, order, quotes, line ends, marks and every other document stay as they are."""
    before, after = FORMS[name]
    found = migrate(before, "f.yaml")
    assert found.problems == []
    assert found.text == after
    assert migrate(after, "f.yaml").changes == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing\n",
        "- a\n",
        "kind: ConfigMap\napiVersion: v1\n",
        "kind: Snapshot\napiVersion: snapshot.storage.k8s.io/v1\n",
        "kind: Recipe\napiVersion: other.example.com/v1\n",
        "kind: Recipe\ningredients: [flour]\n",
        "replicas: 3\n",
        "kind: 5\n",
        "apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\n",
    ],
)
def test_documents_of_other_products_are_left_alone(text: str) -> None:
    """They have no header of ours, whatever their kind is called."""
    found = migrate(text, "f.yaml")
    assert (found.text, found.documents) == (text, 0)
    assert (found.changes, found.problems, found.old_names) == ([], [], [])


@pytest.mark.parametrize(
    ("text", "words", "place", "hint"),
    [
        (
            "kind: AICRConfig\napiVersion: aicr.run/v1alpha2\n",
            "was retired in v1.0.0 and is not rewritten here",
            "2:13",
            "write apiVersion: aicr.run/v1beta1, then let the command",
        ),
        (
            "apiVersion: aicr.run/v1alpha3\nkind: RecipeMetadata\nspec: {profile: {}}\n",
            "was retired",
            "1:13",
            "aicr.run/v1beta2",
        ),
        (
            "kind: Snapshot\napiVersion: aicr.run/v2\n",
            'apiVersion "aicr.run/v2", which this version does not know',
            "2:13",
            "write apiVersion: aicr.run/v1 if",
        ),
        (
            "kind: ValidatorCatalog\napiVersion: validator.nvidia.com/v1\n",
            "does not know",
            "2:13",
            "validator.nvidia.com/v1alpha1",
        ),
        (
            "kind: RecipeMetdata\napiVersion: aicr.nvidia.com/v1alpha1\n",
            'kind "RecipeMetdata" is no document of aicr',
            "1:7",
            'did you mean "RecipeMetadata"?',
        ),
        (
            "apiVersion: aicr.nvidia.com/v1alpha1\nspec: {}\n",
            'kind "" is no document of aicr',
            "1:13",
            "kinds: Snapshot",
        ),
        (
            "kind: RecipeMetadata\napiVersion: aicr.run/v1beta1\nspec: {profile: {name: a}}\n",
            "declares a profile",
            "2:13",
            "write apiVersion: aicr.run/v1beta2",
        ),
        (
            "kind: RecipeMetadata\napiVersion: aicr.run/v1beta2\nspec: {}\n",
            "declares no profile",
            "2:13",
            "write apiVersion: aicr.run/v1beta1",
        ),
        (
            "kind: &k Snapshot\nother: *k\n",
            "kind is written in a way that is not edited here",
            "1:7",
            "write kind",
        ),
        (
            "kind: Snapshot\napiVersion: >-\n  aicr.nvidia.com/v1alpha1\n",
            "apiVersion is written in a way that is not edited here",
            "2:13",
            "write apiVersion: aicr.run/v1 by hand",
        ),
    ],
)
def test_what_needs_a_person_is_said_and_not_touched(
    text: str, words: str, place: str, hint: str
) -> None:
    """Retired, unknown and oddly written headers are problems with place and next step."""
    found = migrate(text, "f.yaml")
    (problem,) = found.problems
    assert problem.code == INVALID_REQUEST
    assert words in problem.message
    assert problem.where == f"f.yaml:{place}"
    assert hint in problem.hint
    assert (found.text, found.changes, found.documents) == (text, [], 1)


@pytest.mark.parametrize("version", RETIRED)
def test_a_retired_version_in_one_document_does_not_stop_the_next(version: str) -> None:
    """Each document is judged alone, with its place in the file."""
    text = f"kind: Snapshot\napiVersion: {version}\n---\nkind: Snapshot\napiVersion: {OLD}\n"
    found = migrate(text, "f.yaml")
    assert [problem.where for problem in found.problems] == ["f.yaml:2:13"]
    assert found.changes == [f'f.yaml:5:13: Snapshot: apiVersion "{OLD}" -> aicr.run/v1']
    assert found.text == text.replace(OLD, "aicr.run/v1")


@pytest.mark.parametrize(
    ("text", "place"),
    [("kind: [\n", "f.yaml:2:1"), ("a: 1\n---\nkind: a\nkind: b\n", "f.yaml:4:1"), ("{", "f.yaml")],
)
def test_text_that_does_not_parse_is_an_error_with_its_place(text: str, place: str) -> None:
    """Lines count from the top of the file, also in a later document."""
    with pytest.raises(AicrError) as caught:
        migrate(text, "f.yaml")
    assert caught.value.where.startswith(place)


def test_components_with_another_name_today_are_notes() -> None:
    """Every place where a document names one, and no text is changed for it (spec 10.2)."""
    text = (
        "kind: RecipeResult\napiVersion: aicr.run/v1\ncomponentRefs:\n  - name: gpu-operator\n"
        "    dependencyRefs: [nfd, skyhook-operator]\n  - name: kgateway\n  - name: dynamo-crds\n"
    )
    found = migrate(text, "f.yaml")
    assert found.old_names == [
        ("skyhook-operator", "f.yaml:5:27"),
        ("kgateway", "f.yaml:6:11"),
        ("dynamo-crds", "f.yaml:7:11"),
    ]
    assert (found.text, found.problems) == (text, [])


@pytest.mark.parametrize(
    "text",
    [
        "kind: ComponentRegistry\ncomponents: [{name: skyhook-operator}]\n",
        "kind: RecipeMetadata\nspec: {componentRefs: [{name: skyhook-operator}]}\n",
        "kind: RecipeMixin\nspec: {componentRefs: [{name: skyhook-operator}]}\n",
        "kind: AICRConfig\nspec: {bundle: {deployment: {set: ['skyhook-operator:a.b=c']}}}\n",
        "kind: AICRConfig\nspec: {bundle: {deployment: {dynamic: ['skyhook-operator:a.b']}}}\n",
    ],
)
def test_old_names_are_found_in_every_kind_that_names_components(text: str) -> None:
    """Registries, overlays, mixins and configs as well as recipes."""
    assert [name for name, _ in migrate(text, "f.yaml").old_names] == ["skyhook-operator"]


@pytest.mark.parametrize("body", ["componentRefs: x", "componentRefs: [1, {}]", "spec: []"])
def test_odd_content_is_no_business_of_a_header(body: str) -> None:
    """The content is not judged here; the header is rewritten."""
    text = f"kind: RecipeResult\n{body}\n"
    assert migrated(text).startswith("kind: RecipeResult\napiVersion: aicr.run/v1\n")


def test_the_manual_names_what_became_of_each() -> None:
    """Renamed and removed components, and the apiVersion of each kind."""
    page = PAGE.read_text(encoding="utf-8")
    for old, new in RENAMED.items():
        assert f"`{old}`" in page
        assert f"`{new}`" in page
        assert f'is called "{new}" today' in about(old)
    for old in REMOVED:
        assert f"`{old}`" in page
        assert "no successor" in about(old)
    for kind in ACCEPTED:
        assert kind in page


@pytest.mark.parametrize(
    ("text", "ours"),
    [
        (f"apiVersion: {OLD}\n{{{{ if .x }}}}\n", True),
        ('{"kind": "Snapshot",\n  "apiVersion": "aicr.run/v1"', True),
        ("apiVersion: v1\n{{ if .x }}\n", False),
        ("note: aicr.run/v1\n", False),
    ],
)
def test_broken_text_that_says_it_is_ours_is_recognised(text: str, ours: bool) -> None:
    """So that a broken document of ours is never taken for somebody's template."""
    assert looks_like_ours(text) is ours


def test_a_document_written_as_json_is_equal_but_for_its_header() -> None:
    """The rest of a large document is the same value and the same text."""
    body = {"kind": "Snapshot", "measurements": [{"type": "K8s", "subtypes": []}] * 50}
    text = json.dumps(body, indent=2)
    found = json.loads(migrated(text))
    assert found == {**body, "apiVersion": "aicr.run/v1"}
