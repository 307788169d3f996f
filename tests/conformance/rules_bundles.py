"""The rules for bundles: whole ones, variants, and refusals."""

from __future__ import annotations


from tests.conformance.compare import Difference, at, steps
from tests.conformance.rules import (
    ABSENT,
    Case,
    Everywhere,
    Exactly,
    Rule,
    accepted,
    refused,
    reworded,
)

from aicr.recipe.hydrate import resolve_values

INVALID = "INVALID_REQUEST"
WRITTEN = ("bundle-base", "bundle-variant")
USAGE = {"code": INVALID, "exit_status": 2}
MAP_THERE = "the value there is a map, which a scalar cannot replace"
LIST_THERE = "the value there is a list, which a scalar cannot replace"
DECLARES = "recipe declares: aws-ebs-csi-driver, aws-efa, cert-manager, gpu-operator, "
EBS = "document.components.aws-ebs-csi-driver.values.node.tolerations"
GPU = "document.components.gpu-operator.values"
CERT = "document.components.cert-manager.values"
HOOKS = {"helm.sh/hook", "helm.sh/hook-weight", "helm.sh/hook-delete-policy"}


def _recipes_own(case: Case, difference: Difference) -> bool:
    """The list is the one that the recipe's values hold, untouched."""
    name = str(steps(difference.path)[2])
    document = case.actual["document"]
    refs = case.facts["recipe"]["componentRefs"]
    ref = next(ref for ref in refs if ref["name"] == name)
    values = resolve_values(ref, case.facts["catalog"].tree)
    path = ".".join(str(step) for step in steps(difference.path)[4:-2])
    kept = at(values, path)
    return bool(kept) and kept == at(document["components"][name]["values"], path)


def _only_sync_hooks(_: Case, difference: Difference) -> bool:
    hooks = str(difference.expected.get("helm.sh/hook"))
    return difference.expected.keys() <= HOOKS and hooks == "post-install,post-upgrade"


def _derived_order(case: Case, difference: Difference) -> bool:
    """Our order is what the dependencies of the bundle's recipe give, alphabetical where free."""
    document = case.actual["document"]
    order = document["order"] if steps(difference.path)[1] == "order" else None
    recipe = document.get("recipe") or case.facts["recipe"]
    waits = {ref["name"]: set(ref.get("dependencyRefs") or ()) for ref in recipe["componentRefs"]}
    derived: list[str] = []
    while waits:
        ready = min(name for name, on in waits.items() if not on & waits.keys())
        derived.append(ready)
        del waits[ready]
    return derived == (order or recipe["deploymentOrder"])


COMMON: tuple[Rule, ...] = (
    Everywhere(
        id="argocd-later",
        source="issue of the Argo CD deployers; until then see test_argocd_is_refused_by_name…",
        text="Applications come with a later issue; order, charts and values are compared.",
        parts=WRITTEN,
        paths=("document.applications.*",),
        kinds=("missing",),
    ),
    Everywhere(
        id="tolerations-of-the-recipe",
        source="decision 49",
        text="Without a flag, tolerate-all is never written over a list that the recipe has.",
        parts=WRITTEN,
        paths=(
            "document.components.aws-efa.values.tolerations[0].{operator,key,value}",
            "document.components.gpu-operator.values.daemonsets.tolerations[0].key",
        ),
        kinds=("missing", "extra"),
        holds=_recipes_own,
    ),
    Everywhere(
        id="no-sync-hooks",
        source="bundler spec 2.7",
        text="Hooks of phases that are part of a sync are taken out of manifests.",
        parts=WRITTEN,
        paths=("document.components.*.manifests.*[*].metadata.annotations",),
        kinds=("missing",),
        holds=_only_sync_hooks,
    ),
    Everywhere(
        id="enabled-is-no-value",
        source="bundler spec 0.4",
        text="The switch of a component is taken out of its values.",
        parts=WRITTEN,
        paths=("document.components.{kgateway-crds,dynamo-crds}.values.enabled",),
        kinds=("missing",),
        holds=lambda _, difference: difference.expected is True,
    ),
    Everywhere(
        id="order-is-derived",
        source="bundler spec 2.1",
        text="The deployment order follows from the dependencies; a written one does not count.",
        parts=("bundle-variant",),
        paths=("document.order[*]", "document.recipe.deploymentOrder[*]"),
        kinds=("value", "extra"),
        holds=_derived_order,
        only=(
            "recipe-unknown-component",
            "recipe-kustomize",
            "argocd-recipe-kustomize",
            "recipe-no-deployment-order",
            "recipe-order-missing-name",
            "upstream-example-kind",
        ),
    ),
)

SETTING: tuple[Rule, ...] = (
    Exactly(
        id="set-conflicts",
        source="decision 7",
        text="Two flags that touch one path are a conflict, also through an alias or a parent.",
        part="bundle-variant",
        cases={
            "set-name-beats-alias": refused(INVALID, 'conflict: both set "gpu-operator:driver.'),
            "set-last-wins": refused(INVALID, 'conflict: both set "gpu-operator:driver.version"'),
            "set-conflict-parent-child": refused(INVALID, "conflict: one path contains the other"),
            "scheduling-beats-set": refused(INVALID, 'both set "operator.nodeSelector" of'),
        },
    ),
    Exactly(
        id="set-aliases-united",
        source="bundler spec 1.3",
        text="Overrides under a name and under all its aliases count together.",
        part="bundle-variant",
        cases={
            "set-alias-group-dropped": {f"{GPU}.toolkit.enabled": False},
            "set-two-aliases": {
                "document.components.aws-efa.values.image.pullPolicy": "Always"
            },
        },
    ),
    Exactly(
        id="set-types",
        source="decision 6",
        text="Only text that survives the round trip becomes typed; versions stay text.",
        part="bundle-variant",
        cases={
            "set-alias-group-dropped": {f"{GPU}.driver.version": "1.2"},
            "set-two-fields": {f"{GPU}.driver.version": "1.2"},
            "set-types": {
                f"{CERT}.t.{key}": text
                for key, text in {
                    "bigexp": "1e21",
                    "exp": "1e3",
                    "hexfloat": "0x1p-2",
                    "inf": "inf",
                    "infinity": "Infinity",
                    "nan": "nan",
                    "overint": "9223372036854775808",
                    "plus": "+5",
                    "under": "1_000",
                    "version": "24.10",
                    "wholefloat": "2.0",
                    "zeropad": "007",
                }.items()
            },
        },
    ),
    Exactly(
        id="set-null",
        source="decision 6",
        text="null is a null.",
        part="bundle-variant",
        cases={"set-null-words": {f"{CERT}.t.null": None}},
    ),
    Exactly(
        id="set-scalar-over-tree",
        source="decision 6",
        text="A scalar over a list or a map is refused, and so is a path through one of the two.",
        part="bundle-variant",
        cases={
            "set-null-on-existing": refused(INVALID, MAP_THERE),
            "set-json-value": refused(INVALID, MAP_THERE),
            "set-replace-map": refused(INVALID, MAP_THERE),
            "set-replace-plain-list": refused(INVALID, LIST_THERE),
            "set-list-single-brace": refused(INVALID, "lists are not written as {a,b} here"),
            "set-through-scalar": refused(
                INVALID, 'path segment "enabled" exists but is not a map (type: boolean)'
            ),
            "set-through-list": refused(
                INVALID, 'path segment "env" exists but is not a map (type: list)'
            ),
        },
    ),
    Exactly(
        id="set-path-syntax",
        source="decision 6",
        text="A dot escapes with a backslash, an index works within bounds, empty steps do not.",
        part="bundle-variant",
        cases={
            "set-list-index": refused(INVALID, 'index 0 of "tolerations" is out of bounds'),
            "set-escaped-dots": {
                f"{CERT}.nodeSelector.kubernetes\\": ABSENT,
                f'{CERT}.nodeSelector."kubernetes.io/os"': "linux",
            },
            "set-empty-segment": refused(INVALID, 'invalid path "a..b": empty segment'),
        },
    ),
    Exactly(
        id="set-no-comma-split",
        source="kit README, not comparable: --set splits on commas",
        text="One flag is one override; a comma is part of its text.",
        part="bundle-variant",
        cases={
            "set-comma-split": {f"{CERT}.a": "1,certmanager:b=2", f"{CERT}.b": ABSENT},
            "system-node-selector-comma": refused(INVALID, '"1,b=2" is not a label value'),
        },
    ),
    Exactly(
        id="set-over-defaults",
        source="decision 49",
        text="The tolerate-all default is never written over what the user set.",
        part="bundle-variant",
        cases={
            "set-replace-list": {f"{GPU}.daemonsets.tolerations": "none"},
            "set-tolerations-overwritten": {
                f"{GPU}.daemonsets.tolerations": "none",
                f"{GPU}.operator.tolerations": "none",
            },
        },
    ),
    Exactly(
        id="set-unknown-component",
        source="decision 6",
        text="An override that cannot take effect is refused.",
        part="bundle-variant",
        cases={
            "set-unknown-component": refused(
                INVALID, f'unknown component "nosuch"; {DECLARES}'
            ),
            "set-component-not-in-recipe": refused(
                INVALID, f'unknown component "dynamoplatform"; {DECLARES}'
            ),
            "set-case-sensitive-component": refused(
                INVALID, f'unknown component "GPUOperator"; {DECLARES}'
            ),
            "set-empty-component": refused(INVALID, 'invalid --set ":a=1": the component is'),
            "set-enabled-false-and-value": refused(
                INVALID, "because an enabled=false value override removed it"
            ),
        },
    ),
    Exactly(
        id="set-enabled",
        source="bundler spec 0.4",
        text="enabled takes a boolean, and cannot switch on what the recipe switched off.",
        part="bundle-variant",
        cases={
            "set-enabled-bad": refused(INVALID, 'invalid --set enabled value "maybe"'),
            "set-enabled-no": refused(INVALID, 'invalid --set enabled value "no"'),
            "recipe-disabled-reenabled": refused(INVALID, "cannot be re-enabled with --set"),
        },
    ),
)

PLACING: tuple[Rule, ...] = (
    Exactly(
        id="shared-tolerations",
        source="bundler spec 3.2",
        text="A path of both node classes gets keyed system entries, then accelerated ones.",
        part="bundle-variant",
        cases={
            "system-node-toleration": {
                f"{EBS}[0].key": "dedicated",
                f"{EBS}[0].operator": "Equal",
                f"{EBS}[0].value": "system-workload",
                f"{EBS}[0].effect": "NoSchedule",
                f"{EBS}[1]": {"operator": "Exists"},
            },
            "system-node-toleration-exists": {
                f"{EBS}[0].key": "dedicated",
                f"{EBS}[0].effect": "NoExecute",
                f"{EBS}[1]": {"operator": "Exists"},
            },
            "system-node-toleration-two": {
                f"{EBS}[0].key": "a",
                f"{EBS}[0].operator": "Equal",
                f"{EBS}[0].value": "1",
                f"{EBS}[0].effect": "NoSchedule",
                f"{EBS}[1]": {"effect": "PreferNoSchedule", "key": "b", "operator": "Exists"},
                f"{EBS}[2]": {"operator": "Exists"},
            },
            "combined": {
                f"{EBS}[0].key": "dedicated",
                f"{EBS}[0].value": "system",
                f"{EBS}[1]": {
                    "effect": "NoSchedule",
                    "key": "nvidia.com/gpu",
                    "operator": "Equal",
                    "value": "present",
                },
            },
        },
    ),
)

RECIPES: tuple[Rule, ...] = (
    Exactly(
        id="edges-to-what-is-left-out",
        source="bundler spec 0.4",
        text="Dependencies on a component that this bundle leaves out are dropped.",
        part="bundle-variant",
        cases={
            "set-disable-dependency": {
                "document.recipe.componentRefs[2].dependencyRefs[0]": "kube-prometheus-stack",
                "document.recipe.componentRefs[2].dependencyRefs[1]": "skyhook-customizations",
                "document.recipe.componentRefs[2].dependencyRefs[2]": ABSENT,
                "document.recipe.componentRefs[7].dependencyRefs[0]": "gpu-operator",
                "document.recipe.componentRefs[7].dependencyRefs[1]": ABSENT,
            },
            "set-disable-manifest-only": {
                "document.recipe.componentRefs[3].dependencyRefs[2]": "skyhook-operator"
            },
        },
    ),
    Exactly(
        id="recipe-checked-again",
        source="recipe spec 4.10, 5.4; kit README: strict",
        text="A recipe file is held to the checks of resolution: header, names, duplicates.",
        part="bundle-variant",
        cases={
            "recipe-wrong-kind": refused(INVALID, 'invalid apiVersion "example.com/v9"'),
            "recipe-wrong-kind-argocd": refused(INVALID, 'invalid apiVersion "example.com/v9"'),
            "recipe-duplicate-component": refused(
                INVALID, 'recipe has duplicate component ref name "aws-efa" (refs 1 and 12)'
            ),
        },
    ),
    Exactly(
        id="values-file-must-exist",
        source="recipe spec 7",
        text="A values file that the recipe names and that is absent is an error.",
        part="bundle-variant",
        cases={
            "recipe-missing-values-file": refused("NOT_FOUND", "cert-manager/not-there.yaml"),
            "data-custom-component-without-data": refused(
                "NOT_FOUND", "components/custom-operator/values.yaml"
            ),
        },
    ),
    Exactly(
        id="null-deletes-override",
        source="decision 2; recipe spec 7",
        text="A null of an inline override deletes the value below it.",
        part="bundle-variant",
        cases={
            "recipe-inline-overrides": {f"{CERT}.crds.enabled": ABSENT},
            "data-merge-rules-child": {"document.components.alpha.values.gone": ABSENT},
        },
    ),
    Exactly(
        id="namespace-of-its-own",
        source="bundler spec 2.2; kit README: Kustomize is built at bundle time",
        text="A component without a namespace gets one of its name; Kustomize is built here.",
        part="bundle-variant",
        cases={
            "data-merge-rules-child": {
                "document.components.beta2dep.namespace": "beta2dep",
                "document.components.beta.namespace": "beta",
                "document.components.gamma.namespace": "gamma",
                "document.components.gamma.build": (
                    "https://github.com/example/gamma//deploy/overlays/prod?ref=v0.3.0"
                ),
            },
            "argocd-recipe-kustomize": {"document.components.kus.values": {}},
        },
    ),
    Exactly(
        id="repo-is-for-argocd",
        source="issue of the Argo CD deployers",
        text="--repo comes with them.",
        part="bundle-variant",
        cases={"helm-repo-ignored": refused(INVALID, "unknown flag --repo")},
    ),
)

REFUSALS: tuple[Rule, ...] = (
    Exactly(
        id="bundle-usage-errors",
        source="decision 46",
        text="Usage errors are INVALID_REQUEST and exit 2.",
        part="bundle-error",
        cases={
            "no-recipe": reworded("flag --recipe is required", **USAGE),
            "nodes-text": reworded("invalid nodes value: x", **USAGE),
            "unknown-flag": reworded("unknown flag --colour", **USAGE),
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
        },
    ),
    Exactly(
        id="later-issues",
        source="issues of deployers, OCI output and attestation",
        text="Deployers, registries and attestation that are not there yet are refused by name.",
        part="bundle-error",
        cases={
            "deployer-bad": reworded('invalid deployer "flux": must be one of helm'),
            "dup-repo": reworded("unknown flag --repo"),
            "oci-bad": reworded("oci://: bundles are written to folders"),
            "attest-without-binary-attestation": reworded("unknown flag --attest", **USAGE),
            "identity-pattern": reworded("unknown flag --certificate-identity-regexp"),
        },
    ),
)

BUNDLES: tuple[Rule, ...] = (*COMMON, *SETTING, *PLACING, *RECIPES, *REFUSALS)
