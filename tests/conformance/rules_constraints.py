"""The rules for constraint expressions."""

from __future__ import annotations

from typing import Any

from tests.conformance.rules import ABSENT, Exactly, Rule, Says, reworded

EKS = "v1.33.5-eks-3025e55"


def cannot_evaluate(code: str, words: str) -> dict[str, Any]:
    """The paths of an expression that the original evaluates and that we refuse."""
    return {"outcome": "skipped", "actual": ABSENT, "refused": Says(code, words)}


def evaluates(outcome: str, actual: str) -> dict[str, Any]:
    """The paths of an expression that the original cannot evaluate and that we do."""
    return {"outcome": outcome, "actual": actual, "refused": ABSENT}


CONSTRAINTS: tuple[Rule, ...] = (
    Exactly(
        id="gke-builds-ordered",
        source="decision 10; recipe spec 8.6",
        text="GKE build numbers are ordered: a release without one is older than any.",
        part="expression",
        cases={"ver-23": {"outcome": "fail"}},
    ),
    Exactly(
        id="pre-releases-below",
        source="decision 10",
        text="A release candidate is below its release.",
        part="expression",
        cases={
            "ver-48": {"outcome": "fail"},
            "ver-49": {"outcome": "fail"},
            "ver-50": {"outcome": "pass"},
        },
    ),
    Exactly(
        id="unknown-operators",
        source="decision 65; docs/differences.md: malformed expression",
        text="Text that looks like an operator and is none is refused, never compared as text.",
        part="expression",
        cases={
            "ver-26": cannot_evaluate("INVALID_REQUEST", '"=>" is not an operator in "=> 1.32"'),
            "ver-27": cannot_evaluate("INVALID_REQUEST", '"=" is not an operator in "= 1.33.5"'),
            "ver-28": cannot_evaluate("INVALID_REQUEST", '"~>" is not an operator in "~> 1.33"'),
            "ver-29": cannot_evaluate("INVALID_REQUEST", '"^" is not an operator in "^1.33"'),
        },
    ),
    Exactly(
        id="compound-ranges",
        source="decision 11",
        text="Comparisons joined by blanks are one range; a comma joins nothing.",
        part="expression",
        cases={
            "ver-30": reworded('unexpected "," after ">= 1.30" in ">= 1.30, < 1.35"'),
            "ver-31": evaluates("pass", EKS),
        },
    ),
    Exactly(
        id="unit-names-with-dots",
        source="recipe spec 8.2",
        text="In SystemD paths the key is what follows the last dot.",
        part="expression",
        cases={"str-20": evaluates("pass", "active")},
    ),
    Exactly(
        id="quote-it",
        source="decision 4, decision 43",
        text="A constraint value that YAML reads as no text is refused: its spelling is lost.",
        part="expression",
        cases={
            "str-11": cannot_evaluate("INVALID_REQUEST", "must be text, and was read as 24.04"),
            "str-12": cannot_evaluate("INVALID_REQUEST", "must be text, and was read as 24.04"),
            "typ-17": cannot_evaluate("INVALID_REQUEST", "must be text, and was read as true"),
        },
    ),
    Exactly(
        id="null-is-no-reading",
        source="decision 9",
        text="A null was not measured.",
        part="expression",
        cases={
            "typ-21": cannot_evaluate("NOT_FOUND", "key not found in subtype"),
            "typ-22": cannot_evaluate("NOT_FOUND", "key not found in subtype"),
            "typ-23": reworded("key not found in subtype", "NOT_FOUND"),
        },
    ),
    Exactly(
        id="dates-stay-text",
        source="decision 4",
        text="A date is the text that was written.",
        part="expression",
        cases={"typ-26": {"outcome": "fail", "actual": "2026-01-02"}},
    ),
    Exactly(
        id="path-grammar",
        source="recipe spec 8.2",
        text="Empty parts of a path are refused when it is read; one part alone names the long form.",
        part="expression",
        cases={
            "typ-32": cannot_evaluate("INVALID_REQUEST", "subtype or key is empty"),
            "path-04": reworded("expected format {Type}.{Subtype}[selector].{Key}"),
            "path-08": reworded("subtype or key is empty", "INVALID_REQUEST"),
        },
    ),
    Exactly(
        id="strict-snapshots",
        source="recipe spec 8.1",
        text="A measurement of an unknown type is an error of the snapshot.",
        part="expression",
        cases={
            "snap-unknown-type": {
                "outcome": "error",
                **reworded('invalid measurement type "Quantum"', "INVALID_REQUEST"),
            }
        },
    ),
    Exactly(
        id="own-snapshot-reader",
        source="decision 4",
        text="Our reader says what is wrong with a snapshot, with file and place.",
        part="expression",
        cases={
            "snap-bad-data": reworded("data must be a map, found a list"),
            "snap-malformed": reworded("invalid YAML: did not find expected ',' or ']'"),
        },
    ),
)
