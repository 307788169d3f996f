"""The rules for refusals: what is refused in other words, with another code, or not at all."""

from __future__ import annotations

from tests.conformance.rules import Exactly, Rule, accepted, refused, reworded, usage

INVALID = "INVALID_REQUEST"

OF_RECIPES: tuple[Rule, ...] = (
    Exactly(
        id="usage-errors",
        source="decision 46",
        text="Usage errors are INVALID_REQUEST and exit 2.",
        part="resolve",
        cases={
            "err-unknown-flag": usage("unknown flag --colour"),
            "err-unknown-short-flag": usage("unknown flag -z"),
            "err-missing-value": usage("flag --service needs a value"),
            "err-nodes-not-int": usage("invalid nodes value: many"),
            "err-nodes-float": usage("invalid nodes value: 1.5"),
            "err-unknown-command": usage("unknown command 'frobnicate'"),
        },
    ),
    Exactly(
        id="query-usage-errors",
        source="decision 46",
        text="Usage errors are INVALID_REQUEST and exit 2.",
        part="query",
        cases={
            "err-no-selector": usage(""),
            "err-output-flag": usage("unknown flag --output"),
        },
    ),
    Exactly(
        id="code-of-the-cause",
        source="decision 46",
        text="What is missing is NOT_FOUND, what the caller can mend is INVALID_REQUEST.",
        part="resolve",
        cases={
            "criteria-missing-file": reworded("criteria file not found: ", "NOT_FOUND"),
            "snapshot-missing-file": reworded("snapshot file not found: ", "NOT_FOUND"),
            "err-output-dir-missing": reworded("no-such-dir does not exist", "INVALID_REQUEST"),
        },
    ),
    Exactly(
        id="own-reader",
        source="decision 4",
        text="Our reader says what is wrong with a document, with file, line and column.",
        part="resolve",
        cases={
            "criteria-malformed": reworded("invalid YAML: did not find expected ',' or ']'"),
            "criteria-empty-file": reworded("expected a RecipeCriteria document, found nothing"),
            "criteria-list-document": reworded("expected a RecipeCriteria document, found a list"),
            "criteria-string-nodes": reworded("invalid nodes count: many (must be >= 0)"),
            "criteria-txt-extension": reworded("its name must end in .yaml, .yml or .json"),
            "snapshot-malformed": reworded("invalid YAML: did not find expected ',' or ']'"),
        },
    ),
    Exactly(
        id="criteria-api-version",
        source="decision 48; recipe spec 1.8",
        text="The expected apiVersion is today's.",
        part="resolve",
        cases={
            "criteria-invalid-version": reworded(
                'invalid apiVersion "wrong.version/v1", expected "aicr.run/v1"'
            )
        },
    ),
    Exactly(
        id="config-maps",
        source="docs/differences.md: ConfigMap",
        text="A cm:// address that names no ConfigMap is wrong input (exit 2), in our words.",
        part="resolve",
        cases={
            "err-configmap-uri": reworded('"cm://onlynamespace" does not name a ConfigMap'),
            "err-snapshot-configmap-uri": reworded('"cm://bad" does not name a ConfigMap'),
        },
    ),
    Exactly(
        id="selector-as-typed",
        source="kit README: available keys of an error are compared",
        text="The message quotes the selector as it was typed, leading dot included.",
        part="query",
        cases={
            "err-double-dot": reworded(
                'selector "..components": key "" not found, available keys: apiVersion, '
                "components, constraints, criteria, deploymentOrder, kind, metadata"
            )
        },
    ),
)

OF_BUNDLES: tuple[Rule, ...] = (
    Exactly(
        id="bundle-usage-errors",
        source="decision 46",
        text="Usage errors are INVALID_REQUEST and exit 2.",
        part="bundle-error",
        cases={
            "no-recipe": usage("flag --recipe is required"),
            "nodes-text": usage("invalid nodes value: x"),
            "unknown-flag": usage("unknown flag --colour"),
        },
    ),
    Exactly(
        id="bundle-code-of-the-cause",
        source="decision 46; bundler spec 10 row 2",
        text="The exit status is that of the cause: 3 for a missing recipe, 2 for a bad one.",
        part="bundle-error",
        cases={
            "recipe-missing": reworded("", exit_status=3),
            "recipe-missing-manifest": reworded("which the catalogue does not have", INVALID),
            "upstream-example-aks": reworded("which the catalogue does not have", INVALID),
            "output-is-file": reworded("a file is in the way at resolve/index.yaml", INVALID),
        },
    ),
    Exactly(
        id="bundle-own-reader",
        source="decision 4; recipe spec 5.4",
        text="Our reader says what is wrong with a recipe file, whatever its name.",
        part="bundle-error",
        cases={
            "recipe-is-dir": reworded("recipe file resolve is a folder"),
            "recipe-malformed": reworded("invalid YAML: did not find expected ',' or ']'"),
            "recipe-empty": reworded("a recipe file must be a map, found nothing"),
            "recipe-txt": reworded('has kind "RecipeCriteria", but "RecipeResult" is required'),
            "recipe-is-criteria": reworded(
                'has kind "RecipeCriteria", but "RecipeResult" is required'
            ),
        },
    ),
    Exactly(
        id="recipe-files-checked",
        source="bundler spec 2.2; recipe spec 2.3",
        text="A manifest that is missing or lies outside is refused, for every deployer.",
        part="bundle-error",
        cases={
            "recipe-missing-manifest-argocd": refused(INVALID, "the catalogue does not have"),
            "recipe-path-traversal": refused(INVALID, "path traversal or non-local path detected"),
        },
    ),
    Exactly(
        id="empty-text",
        source="bundler spec 1.2",
        text="The value of an override may be empty.",
        part="bundle-error",
        cases={"set-empty-value": accepted(lambda document: document == "a full bundle")},
    ),
    Exactly(
        id="tolerate-all-effects",
        source="field case D1",
        text="A toleration without an effect tolerates all, as for kubectl.",
        part="bundle-error",
        cases={"toleration-no-effect": accepted(lambda document: document == "a full bundle")},
    ),
    Exactly(
        id="own-words",
        source="docs/differences.md: Error texts",
        text="A refused flag is named, with what is wrong and the expected form.",
        part="bundle-error",
        cases={
            "recipe-empty-components": reworded("recipe has no componentRefs"),
            "recipe-bad-component-name": reworded('component name "../evil" is not a lower-case'),
            "recipe-bad-component-name-argocd": reworded(
                'component name "../evil" is not a lower-case'
            ),
            "set-no-colon": reworded("the ':' after the component is missing, expected component:"),
            "set-no-equals": reworded("the '=' after the path is missing, expected component:path"),
            "set-empty-path": reworded("the path is missing, expected component:path=value"),
            "set-empty": reworded("the ':' after the component is missing, expected component:"),
            "set-comma-in-value": reworded("lists are not written as {a,b} here"),
            "selector-no-equals": reworded('--system-node-selector "abc": expected key=value'),
            "accelerated-selector-no-equals": reworded(
                '--accelerated-node-selector "abc": expected key=value'
            ),
            "workload-selector-no-equals": reworded('--workload-selector "abc": expected key='),
            "toleration-bad-effect": reworded('unknown effect "Never", expected key[=value][:'),
            "toleration-two-colons": reworded('"a=b:c:NoSchedule": expected key[=value][:Effect]'),
            "toleration-effect-lowercase": reworded('unknown effect "noschedule", expected key['),
            "gate-no-effect": reworded('invalid --workload-gate "a=b": a taint needs an effect'),
            "gate-empty-key": reworded('--workload-gate "=b:NoSchedule": the key is empty'),
            "gate-bad-effect": reworded('--workload-gate "a:Never": unknown effect "Never"'),
            "nodes-negative": reworded("invalid --nodes -1: must be a whole number of nodes"),
            "oci-bad": reworded("oci://: '' is not a registry"),
        },
    ),
    Exactly(
        id="no-binary-attestation",
        source="decision 57; docs/differences.md: a binary attestation",
        text="A bundle is signed by who makes it; nothing is asked of the program, or pins it.",
        part="bundle-error",
        cases={
            "attest-without-binary-attestation": usage("keyless signing needs the extra sign"),
            "identity-pattern": reworded("unknown flag --certificate-identity-regexp"),
        },
    ),
    Exactly(
        id="more-deployers",
        source="bundler spec 5.0.2",
        text="Flux is a deployer now.",
        part="bundle-error",
        cases={"deployer-bad": accepted(lambda document: document == "a full bundle")},
    ),
)

REFUSALS: tuple[Rule, ...] = (*OF_RECIPES, *OF_BUNDLES)
