"""Helm hooks in manifests: sync phases go, lifecycle phases stay."""

from __future__ import annotations

import pytest

from aicr.bundle.manifests import documents, strip_hooks
from aicr.errors import INVALID_REQUEST, AicrError

SYNC = [
    "pre-install",
    "post-install",
    "pre-upgrade",
    "post-upgrade",
    "pre-rollback",
    "post-rollback",
    "crd-install",
    "test",
    "test-success",
    "test-failure",
]


def hooked(phases: str) -> str:
    """A manifest whose job has a hook with these phases, as YAML source."""
    return (
        "# Head\n---\napiVersion: v1\nkind: Job\nmetadata:\n  name: j  # the job\n  annotations:\n"
        f'    "helm.sh/hook": {phases}\n    "helm.sh/hook-weight": "10"\n'
        "    helm.sh/hook-delete-policy: before-hook-creation\n    keep: me\n  labels: {a: b}\n"
        "data:\n  text: |\n    helm.sh/hook: post-install\n"
    )


STRIPPED = (
    "# Head\n---\napiVersion: v1\nkind: Job\nmetadata:\n  name: j  # the job\n  annotations:\n"
    "    keep: me\n  labels: {a: b}\n"
    "data:\n  text: |\n    helm.sh/hook: post-install\n"
)


@pytest.mark.covers("B10-81")
@pytest.mark.parametrize("phase", SYNC)
def test_a_hook_of_sync_phases_goes_with_its_weight_and_policy(phase: str) -> None:
    """Nothing of the hook survives, and everything else keeps its bytes."""
    assert strip_hooks(hooked(phase), source="m") == STRIPPED
    assert strip_hooks(hooked(f'" {phase.upper()} ,post-install"'), source="m") == STRIPPED


@pytest.mark.covers("B10-80")
@pytest.mark.parametrize(
    ("phases", "kept"),
    [
        ("post-install,post-delete", "post-delete"),
        ('"pre-delete, post-upgrade"', '"pre-delete"'),
        ("'post-delete,test,pre-delete' # why", "'post-delete,pre-delete' # why"),
    ],
)
def test_lifecycle_phases_stay_with_weight_and_policy(phases: str, kept: str) -> None:
    """post-install,post-delete becomes post-delete and its weight is kept."""
    assert strip_hooks(hooked(phases), source="m") == hooked(kept)


@pytest.mark.parametrize("phases", ["post-delete", "pre-delete, post-delete", "custom"])
def test_a_hook_without_sync_phases_is_left_as_it_is(phases: str) -> None:
    """Not a byte changes when nothing is to be removed."""
    assert strip_hooks(hooked(phases), source="m") == hooked(phases)


def test_text_without_a_hook_is_returned_untouched() -> None:
    """Even text that is no YAML passes through when it has no hook."""
    for text in ("", "---\n---\n", "a: [\n", "kind: X\n---\nnull\n"):
        assert strip_hooks(text, source="m") is text


def test_the_word_in_other_places_is_no_hook() -> None:
    """Pod templates and data may speak of hooks; only an object's own annotations are hooks."""
    text = (
        "kind: ConfigMap\nmetadata: {name: a}\ndata:\n  annotations:\n"
        "    helm.sh/hook: post-install\nspec:\n  template:\n    metadata:\n      annotations:\n"
        "        helm.sh/hook: post-install\n"
    )
    assert strip_hooks(text, source="m") == text


def test_an_annotations_block_that_gets_empty_goes_with_its_comments() -> None:
    """No empty block and no remark about a hook that is gone stays behind."""
    text = (
        "kind: X\nmetadata:\n  # kept\n  annotations:\n    # about the hook\n"
        "    helm.sh/hook: test\n  name: a\n"
    )
    assert strip_hooks(text, source="m") == "kind: X\nmetadata:\n  # kept\n  name: a\n"


def test_each_document_is_judged_for_itself_and_empty_ones_are_dropped() -> None:
    """One hook does not touch its neighbours; null documents go."""
    text = (
        "kind: A  # a\n---\n# nothing\n---\nkind: B\nmetadata:\n  annotations:\n"
        "    helm.sh/hook: test\n  name: b\n---\nnull\n---\nkind:   C\n"
    )
    assert strip_hooks(text, source="m") == (
        "kind: A  # a\n---\nkind: B\nmetadata:\n  name: b\n---\nkind:   C\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        "kind: X\nmetadata: {name: a, annotations: {helm.sh/hook: test, k: v}}\n",
        "kind: X\nmetadata:\n  name: a\n  annotations: {helm.sh/hook: test, k: v}\n",
        "kind: X\nmetadata:\n  name: a\n  annotations:\n"
        "    helm.sh/hook: >-\n      test\n    k: v\n",
        "kind: X\n'metadata':\n  name: a\n  annotations:\n    helm.sh/hook: test\n    k: v\n",
        "%YAML 1.1\n---\nkind: X\nmetadata:\n  name: a\n  annotations:\n"
        "    helm.sh/hook: test\n    k: v\n...\n",
        "kind: X\r\nmetadata:\r\n  name: a\r\n  annotations:\r\n"
        "    helm.sh/hook: test\r\n    k: v\r\n",
        "kind: X\nmetadata:\n    name: a\n    annotations:\n\n            helm.sh/hook:\n"
        "            k: v\n",
    ],
)
def test_every_way_to_write_a_hook_is_understood(text: str) -> None:
    """Flow maps, folded scalars, quoted keys, directives and carriage returns mean the same."""
    assert documents(strip_hooks(text, source="m"), "m") == [
        {"kind": "X", "metadata": {"name": "a", "annotations": {"k": "v"}}}
    ]


def test_a_flow_map_keeps_the_phases_that_stay() -> None:
    """A document that is written anew has the same content."""
    text = (
        "--- \nkind: X\nmetadata: {annotations: {helm.sh/hook: 'test,pre-delete', "
        "helm.sh/hook-weight: '1'}}\n---\nkind: B2\n"
    )
    assert documents(strip_hooks(text, source="m"), "m") == [
        {
            "kind": "X",
            "metadata": {"annotations": {"helm.sh/hook": "pre-delete", "helm.sh/hook-weight": "1"}},
        },
        {"kind": "B2"},
    ]


def test_text_with_a_hook_that_is_not_yaml_is_an_invalid_request_at_its_line() -> None:
    """The place is counted from the start of the file, not of the document."""
    text = "kind: A\n---\nkind: B\nmetadata:\n  annotations:\n    helm.sh/hook: [test\n"
    with pytest.raises(AicrError) as caught:
        strip_hooks(text, source="m.yaml")
    assert caught.value.code == INVALID_REQUEST
    assert int(caught.value.where.split(":")[1]) >= 6


@pytest.mark.parametrize("value", ["5", "true", "[test]", "{a: b}"])
def test_a_hook_that_is_not_text_is_an_invalid_request(value: str) -> None:
    """Annotations are text; anything else would be refused by the cluster."""
    with pytest.raises(AicrError) as caught:
        strip_hooks(f"metadata:\n  annotations:\n    helm.sh/hook: {value}\n", source="m.yaml")
    assert caught.value.code == INVALID_REQUEST
    assert "helm.sh/hook" in caught.value.message
