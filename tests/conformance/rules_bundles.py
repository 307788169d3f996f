"""The rules for bundles: whole ones, variants, and refusals."""

from __future__ import annotations

from tests.conformance.bundle_conditions import (
    derived_order,
    only_sync_hooks,
    operators_version,
    originals_order_by_tiers,
    pinned_in_a_registry,
    recipes_own,
)
from tests.conformance.rules import (
    ABSENT,
    Everywhere,
    Exactly,
    Rule,
    refused,
)

INVALID = "INVALID_REQUEST"
WRITTEN = ("bundle-base", "bundle-variant")
MAP_THERE = "the value there is a map, which a scalar cannot replace"
LIST_THERE = "the value there is a list, which a scalar cannot replace"
DECLARES = "recipe declares: aws-ebs-csi-driver, aws-efa, cert-manager, gpu-operator, "
EBS = "document.components.aws-ebs-csi-driver.values.node.tolerations"
GPU = "document.components.gpu-operator.values"
CERT = "document.components.cert-manager.values"

COMMON: tuple[Rule, ...] = (
    Everywhere(
        id="dra-pods-roll",
        source="bundler spec 4.4",
        text="Pods of the DRA driver carry the version of the GPU operator, so as to roll with it.",
        parts=WRITTEN,
        paths=(
            "document.components.nvidia-dra-driver-gpu.values.{controller,kubeletPlugin}"
            ".podAnnotations",
        ),
        kinds=("extra",),
        holds=operators_version,
    ),
    Everywhere(
        id="registry-versions-literal",
        source="bundler spec 5.0.6",
        text="In a registry a version is a tag, which keeps its v in Applications too.",
        parts=WRITTEN,
        paths=(
            "document.components.{kai-scheduler,nvsentinel}.version",
            "document.components.{kgateway,kgateway-crds}.version",
        ),
        kinds=("value",),
        holds=pinned_in_a_registry,
    ),
    Everywhere(
        id="waves-are-tiers",
        source="bundler spec 5.0.2, 5.3; kit README: wave numbers",
        text="The original's order by tiers: what waits for the same syncs at the same time.",
        parts=WRITTEN,
        paths=("document.order[*]",),
        kinds=("value",),
        holds=originals_order_by_tiers,
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
        holds=recipes_own,
    ),
    Everywhere(
        id="no-sync-hooks",
        source="bundler spec 2.7",
        text="Hooks of phases that are part of a sync are taken out of manifests.",
        parts=WRITTEN,
        paths=("document.components.*.manifests.*[*].metadata.annotations",),
        kinds=("missing",),
        holds=only_sync_hooks,
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
        holds=derived_order,
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
            "set-two-aliases": {"document.components.aws-efa.values.image.pullPolicy": "Always"},
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
        source="bundler spec 1.1",
        text="One flag is one override; a comma is part of its text.",
        part="bundle-variant",
        cases={
            "set-comma-split": {f"{CERT}.a": "1,certmanager:b=2", f"{CERT}.b": ABSENT},
            "system-node-selector-comma": refused(INVALID, '"1,b=2" is not a label value'),
        },
    ),
    Exactly(
        id="kinds-at-placement-paths",
        source="docs/differences.md: text where a list of tolerations",
        text="What the API server cannot take for tolerations is refused before it is in a bundle.",
        part="bundle-variant",
        cases={
            "set-replace-list": refused(INVALID, 'holds a string at "daemonsets.tolerations"'),
            "set-tolerations-overwritten": refused(INVALID, 'holds a string at "'),
        },
    ),
    Exactly(
        id="set-unknown-component",
        source="decision 6",
        text="An override that cannot take effect is refused.",
        part="bundle-variant",
        cases={
            "set-unknown-component": refused(INVALID, f'unknown component "nosuch"; {DECLARES}'),
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
        id="namespace-of-its-name",
        source="docs/differences.md: without a namespace",
        text="A component without a namespace gets one of its name, not the caller's current one.",
        part="bundle-variant",
        cases={
            "data-merge-rules-child": {
                "document.components.beta2dep.namespace": "beta2dep",
                "document.components.beta.namespace": "beta",
                "document.components.gamma.namespace": "gamma",
            },
        },
    ),
    Exactly(
        id="kustomize-built-here",
        source="bundler spec 2.2",
        text="A Kustomize source is built when the bundle is made, and is a folder like any other.",
        part="bundle-variant",
        cases={
            "data-merge-rules-child": {
                "document.components.gamma.build": (
                    "https://github.com/example/gamma//deploy/overlays/prod?ref=v0.3.0"
                ),
            },
            "argocd-recipe-kustomize": {"document.components.kus.values": {}},
        },
    ),
    Exactly(
        id="recipe-is-not-written-to",
        source="decision 49",
        text="Tolerations that are injected into values never reach the bundle's recipe.",
        part="bundle-variant",
        cases={
            "recipe-inline-overrides": {
                "document.recipe.componentRefs[3].overrides.daemonsets.tolerations[0].key": "only"
            }
        },
    ),
)

BUNDLES: tuple[Rule, ...] = (*COMMON, *SETTING, *PLACING, *RECIPES)
