"""Override flags: how a text is split, routed to a component, and set against the other flags."""

from __future__ import annotations

import pytest

from aicr.bundle.overrides import Override, check_conflicts, parse_overrides, route
from aicr.catalog.registry import Registry
from aicr.errors import INVALID_REQUEST, NOT_FOUND, AicrError, not_found

REGISTRY = Registry(
    [
        {"name": "gpu-operator", "displayName": "G", "valueOverrideKeys": ["gpuoperator", "gpu"]},
        {"name": "nfd", "displayName": "N", "valueOverrideKeys": ["discovery"]},
        {"name": "kueue", "displayName": "K"},
    ]
)
DECLARED = ["gpu-operator", "nfd", "gpu"]


def parse(
    *scalars: str, files: tuple[str, ...] = (), jsons: tuple[str, ...] = (), content: str = "a: 1\n"
) -> list[Override]:
    """Read flags; every file holds *content*."""
    found, _ = parse_overrides(
        scalars=scalars, files=files, jsons=jsons, read_file=lambda _path: content
    )
    return found


def routed(*scalars: str, jsons: tuple[str, ...] = ()) -> list[Override]:
    """Read and route flags against the small registry above."""
    found = parse(*scalars, jsons=jsons)
    route(found, REGISTRY, DECLARED)
    return found


@pytest.mark.covers("C-069")
@pytest.mark.parametrize(
    ("text", "key", "segments", "value"),
    [
        ("c:a=1", "c", ["a"], "1"),
        ("c:a.b=", "c", ["a", "b"], ""),
        ("c:a=b=c:d", "c", ["a"], "b=c:d"),
        (r"c:n.kubernetes\.io/hostname=n1", "c", ["n", "kubernetes.io/hostname"], "n1"),
        ("c:t[0].key=x", "c", ["t", 0, "key"], "x"),
    ],
)
def test_a_flag_is_split_at_the_first_colon_and_the_first_equals_sign(
    text: str, key: str, segments: list[str | int], value: str
) -> None:
    """What follows the first equals sign is the value, whatever it holds."""
    (override,) = parse(text)
    assert (override.key, override.segments, override.text) == (key, segments, value)


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("a=1", "the ':' after the component"),
        (":a=1", "the component"),
        ("c:a", "the '=' after the path"),
        ("c:=1", "the path"),
        ("", "the ':' after the component"),
    ],
)
def test_a_flag_with_a_part_missing_names_the_part(text: str, missing: str) -> None:
    """The message says what is missing and shows the whole form."""
    with pytest.raises(AicrError, match=missing) as caught:
        parse(text)
    assert caught.value.code == INVALID_REQUEST
    assert "component:path=value" in caught.value.message


@pytest.mark.covers("B5")
@pytest.mark.parametrize(
    "path", ["a..b", ".a", "a.", "list[-1]", "list[99999999]", "list[x]", "list[", "a]", "a\\b"]
)
def test_a_malformed_path_is_refused(path: str) -> None:
    """Empty segments and indices that are no list positions never become map keys."""
    with pytest.raises(AicrError) as caught:
        parse(f"c:{path}=1")
    assert caught.value.code == INVALID_REQUEST
    assert f'invalid path "{path}"' in str(caught.value)


def test_text_that_is_not_utf8_is_refused() -> None:
    """Bytes that the shell passed on undecoded could never be written to a file."""
    with pytest.raises(AicrError, match="not UTF-8"):
        parse("c:a=\udcff")


@pytest.mark.covers("B4")
@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("c:nodeSelector.kubernetes.io/hostname=n1", r"nodeSelector.kubernetes\.io/hostname"),
        ("c:a.podLabels.example.com/x=1", r"a.podLabels.example\.com/x"),
        ("c:svc.annotations.a.b.c/d=1", r"svc.annotations.a\.b\.c/d"),
        ("c:jobs[0].labels.example.com/x=1", r"jobs[0].labels.example\.com/x"),
        ("c:resources.limits.nvidia.com/gpu=8", r"resources.limits.nvidia\.com/gpu"),
        ("c:resources.requests.nvidia.com/gpu=8", r"resources.requests.nvidia\.com/gpu"),
    ],
)
def test_dots_of_a_label_key_must_be_escaped(text: str, escaped: str) -> None:
    """Maps nested inside a map of labels would be silently useless; the hint shows the escape."""
    with pytest.raises(AicrError) as caught:
        parse(text)
    assert caught.value.code == INVALID_REQUEST
    assert f"c:{escaped}=" in caught.value.hint


@pytest.mark.covers("B4")
@pytest.mark.parametrize(
    "text",
    [
        r"c:nodeSelector.kubernetes\.io/hostname=n1",
        "c:nodeSelector.plain=n1",
        "c:nodeSelector.prefix/name=n1",
        "c:files.etc.d/name=1",
        "c:labels.nested.key=1",
        "c:annotations.lists[0].a/b=1",
    ],
)
def test_other_paths_with_dots_and_slashes_pass(text: str) -> None:
    """Only a slash behind an unescaped dot inside a flat map is a mistake for sure."""
    parse(text)


@pytest.mark.covers("C-060", "C-061", "C-062")
@pytest.mark.parametrize(
    ("key", "component"),
    [
        ("gpu-operator", "gpu-operator"),
        ("gpuoperator", "gpu-operator"),
        ("discovery", "nfd"),
        ("gpu", "gpu"),
    ],
)
def test_a_name_is_tried_before_an_alias(key: str, component: str) -> None:
    """A component of the recipe is found by name first, then by its override keys."""
    (override,) = routed(f"{key}:a=1")
    assert override.component == component


@pytest.mark.covers("B8", "R11-52")
def test_an_unknown_component_gets_the_nearest_name_and_what_the_recipe_declares() -> None:
    """A typo never vanishes silently."""
    with pytest.raises(AicrError) as caught:
        routed("gpu-operater:driver.version=580.95.05")
    assert caught.value.code == INVALID_REQUEST
    assert caught.value.message == (
        "--set gpu-operater:driver.version cannot take effect: unknown component "
        '"gpu-operater"; recipe declares: gpu, gpu-operator, nfd'
    )
    assert caught.value.hint == 'did you mean "gpu-operator"?'


@pytest.mark.covers("B8")
def test_a_registered_component_outside_the_recipe_is_unknown_too() -> None:
    """The hint tells that the registry has it but the recipe does not."""
    with pytest.raises(AicrError, match="unknown component") as caught:
        routed("kueue:a=1")
    assert "recipe does not include it" in caught.value.hint


def test_the_first_failure_goes_by_kind_and_key_not_by_flag_order() -> None:
    """Scalars come before typed overrides, each in key order, so the report is stable."""
    with pytest.raises(AicrError, match="--set yy:a"):
        routed("zz:a=1", "yy:a=1", jsons=("aa:a=1",))


@pytest.mark.parametrize("flags", [("deployer:namePrefix=x",), ("deployer:enabled=true",)])
def test_the_reserved_key_needs_an_argo_deployer(flags: tuple[str, ...]) -> None:
    """`deployer:` is no component, and helm has no such options."""
    with pytest.raises(AicrError, match="argocd and argocd-helm"):
        routed(*flags)


def test_the_reserved_key_has_no_typed_form() -> None:
    """JSON for `deployer:` is refused whatever the deployer."""
    with pytest.raises(AicrError, match="takes --set only"):
        routed(jsons=('deployer:namePrefix="x"',))


@pytest.mark.covers("B10-14", "B10-16", "C-073")
@pytest.mark.parametrize(
    ("scalars", "jsons"),
    [
        (("gpuoperator:driver.version=1", "gpu-operator:driver.version=2"), ()),
        (("nfd:a=1", "nfd:a=1"), ()),
        (("nfd:a=1", "nfd:a.b=2"), ()),
        (("nfd:a.b.c=1", "nfd:a=2"), ()),
        (("nfd:a[0]=1", "nfd:a[0].b=2"), ()),
        (("nfd:a.b=1",), ('nfd:a={"c":1}',)),
        (("nfd:enabled=false", "discovery:enabled=true"), ()),
        ((), ("nfd:a=1", "nfd:a=2")),
    ],
)
def test_two_flags_on_one_place_conflict(scalars: tuple[str, ...], jsons: tuple[str, ...]) -> None:
    """Equal paths, also through an alias or with equal values, and nested paths are refused."""
    found = routed(*scalars, jsons=jsons)
    with pytest.raises(AicrError, match="conflict") as caught:
        check_conflicts(found)
    assert caught.value.code == INVALID_REQUEST
    assert found[0].label in caught.value.message
    assert found[1].label in caught.value.message


def test_flags_on_neighbouring_paths_do_not_conflict() -> None:
    """A common prefix of text is not a common path."""
    check_conflicts(
        routed(
            "nfd:a.b=1", "nfd:a.c=1", "nfd:ab=1", "nfd:l[0].x=1", "nfd:l[1]=1", "gpuoperator:a=1"
        )
    )


@pytest.mark.covers("B10-21")
@pytest.mark.parametrize("value", ["false", "true", "null"])
def test_a_component_is_not_switched_with_a_typed_override(value: str) -> None:
    """`enabled` selects the component and takes the scalar form only."""
    with pytest.raises(AicrError, match="scalar override only") as caught:
        parse(jsons=(f"nfd:enabled={value}",))
    assert caught.value.code == INVALID_REQUEST
    with pytest.raises(AicrError, match="scalar override only") as caught:
        parse(files=("nfd:enabled=f",), content=value)
    assert caught.value.code == INVALID_REQUEST


def test_nothing_lies_below_the_switch() -> None:
    """`enabled.x` would be stripped with the switch, so it is refused."""
    with pytest.raises(AicrError, match="holds no other keys"):
        parse("nfd:enabled.x=1")


@pytest.mark.covers("C3")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a":1,"a":2}', '"a"'),
        ('{"x":{"a":1,"a":2}}', '"a"'),
        ("NaN", "NaN is not JSON"),
        ("[Infinity]", "Infinity is not JSON"),
        ("1e400", "a number is too large"),
        ("18446744073709551616", "does not fit 64 bits"),
        ('"\\ud800"', "half a surrogate pair"),
        ('{"\\ud800":1}', "half a surrogate pair"),
        ("{a: 1}", "invalid JSON"),
        ("", "invalid JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("1" * 5000, "a number is too long"),
        ("1 2", "invalid JSON"),
    ],
    ids=lambda text: text[:12],
)
def test_json_that_cannot_be_kept_faithfully_is_refused(text: str, problem: str) -> None:
    """Duplicate keys, special numbers, huge numbers and half characters are errors."""
    with pytest.raises(AicrError, match=problem) as caught:
        parse(jsons=(f"nfd:a={text}",))
    assert caught.value.code == INVALID_REQUEST
    assert "--set-json nfd:a" in caught.value.message


def test_only_the_first_document_of_a_file_is_used_and_the_rest_is_mentioned() -> None:
    """A second document is ignored, but not in silence."""
    found, notes = parse_overrides(
        scalars=(), files=("nfd:a=f.yaml",), jsons=(), read_file=lambda _: "a: 1\n---\nb: 2\n"
    )
    assert found[0].value == {"a": 1}
    assert notes == [
        "--set-file nfd:a uses the first YAML document of f.yaml and ignores the others"
    ]


@pytest.mark.parametrize("content", ["", "# nothing\n", "a: 1\na: 2\n", "a: [1\n", "a: .nan\n"])
def test_a_file_without_a_faithful_value_is_refused(content: str) -> None:
    """Empty files, duplicate keys, broken YAML and special numbers name the flag."""
    with pytest.raises(AicrError, match="--set-file nfd:a") as caught:
        parse(files=("nfd:a=f.yaml",), content=content)
    assert caught.value.code == INVALID_REQUEST


def test_errors_of_the_file_reader_pass_through() -> None:
    """A missing file stays NOT_FOUND."""

    def missing(path: str) -> str:
        raise not_found(f"no {path}")

    with pytest.raises(AicrError) as caught:
        parse_overrides(scalars=(), files=("nfd:a=f.yaml",), jsons=(), read_file=missing)
    assert caught.value.code == NOT_FOUND


def test_files_need_a_reader_and_a_name() -> None:
    """A caller without file access, and an empty file name, get an error of their own."""
    with pytest.raises(AicrError, match="cannot be read here"):
        parse_overrides(scalars=(), files=("nfd:a=f",), jsons=(), read_file=None)
    with pytest.raises(AicrError, match="file name is empty"):
        parse(files=("nfd:a=",))
