"""Each bundle-time validation on real recipes: where it fires, where it is silent, switched off.

Every function of the registry's ``validations`` blocks is shown on leaves of the built-in
catalogue in three situations: a configuration that it exists for, the same leaf in order, and the
component switched off with ``--set``. The test beside the validations runs the same situations and
compares what happens with what they expect.

Parts of a recipe that only a snapshot brings (driver, MariaDB, storage, Percona) are written into
the resolved recipe; mixins that no overlay of the catalogue uses come in through ``--data``.

Usage: ``python -m tools.validation_table``. Exit 1 when an outcome is not the expected one.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aicr
from aicr.bundle.plan import plan
from aicr.bundle.validations.table import FUNCTIONS

FIRES: Final = "fires"
SILENT: Final = "silent"
DISABLED: Final = "off by --set"
NOTE: Final = "note"
ADVICE: Final = "advice"

_GKE_NETWORKS: Final = [
    {"interfaceName": f"eth{number}", "network": f"gpu-nic-{number}"} for number in range(1, 9)
]
EKS: Final = {"service": "eks", "accelerator": "h100", "intent": "training", "os": "ubuntu"}
AKS: Final = {"service": "aks", "accelerator": "h100", "intent": "training"}
GKE: Final = {"service": "gke", "accelerator": "h100", "intent": "training", "os": "cos"}
GB300: Final = {"service": "generic", "accelerator": "gb300", "intent": "training", "os": "ubuntu"}

TAINT: Final = {"accelerated_node_tolerations": ("nvidia.com/gpu=present:NoSchedule",)}
SELECTORS: Final = {
    "system_node_selector": ("pool=system",),
    "accelerated_node_selector": ("pool=gpu",),
}


@dataclass(frozen=True)
class Situation:
    """One run of `aicr bundle`.

    Attributes:
        function: the validation it is about.
        kind: ``fires``, ``silent`` or ``off by --set``.
        criteria: of the recipe.
        flags: fields of BundleOptions.
        outcome: ``note``, ``advice``, an error code, or ``silent``; for the last, *said* must be
            nowhere.
        said: words of the validation.
        mixins: laid over the leaf's overlay through --data.
        configuration: choices made when the recipe is generated.
        metadata: what a snapshot would have recorded.
        overrides: component -> overrides written into the recipe by hand.
    """

    function: str
    kind: str
    criteria: dict[str, str]
    outcome: str
    said: str
    flags: dict[str, Any] = field(default_factory=dict)
    mixins: tuple[str, ...] = ()
    configuration: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    overrides: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def leaf(self) -> str:
        """Criteria and mixins in short."""
        return "+".join(["-".join(self.criteria.values()), *self.mixins])

    @property
    def given(self) -> str:
        """Flags and recorded facts in short."""
        parts = [f"{key}={value}" for key, value in self.metadata.items()]
        parts += [f"recipe {name}: {list(over)}" for name, over in self.overrides.items()]
        for name, value in self.flags.items():
            if name == "set":
                parts += [f"--set {text}" for text in value]
            else:
                parts.append(f"--{name.removesuffix('s').replace('_', '-')}")
        return ", ".join(parts) or "-"


@dataclass(frozen=True)
class Result:
    """What came of a situation."""

    situation: Situation
    outcome: str
    said: str

    @property
    def expected(self) -> bool:
        """Whether that was expected."""
        said = self.outcome == SILENT or self.situation.said in self.said
        return said and self.outcome == self.situation.outcome


def _three(
    function: str,
    component: str,
    criteria: dict[str, str],
    outcome: str,
    said: str,
    *,
    fires: dict[str, Any],
    silent: dict[str, Any] | None = None,
    off: tuple[str, str] | None = None,
    **shared: Any,
) -> list[Situation]:
    """The three situations of a function; *fires* and *silent* are fields of Situation."""

    def situation(kind: str, expected: str, words: str, more: dict[str, Any]) -> Situation:
        fields = {**shared, **more}
        fields["flags"] = {**shared.get("flags", {}), **more.get("flags", {})}
        return Situation(
            function, kind, fields.pop("criteria", criteria), expected, words, **fields
        )

    flags = dict(fires.get("flags", {}))
    flags["set"] = (*flags.get("set", ()), f"{component}:enabled=false")
    names = (component, component.replace("-", ""))
    others = [text for text in flags["set"][:-1] if text.partition(":")[0] not in names]
    flags["set"] = (*others, flags["set"][-1])
    expected, words = off or (SILENT, said)
    return [
        situation(FIRES, outcome, said, fires),
        situation(SILENT, SILENT, said, silent or {}),
        situation(DISABLED, expected, words, {**fires, "flags": flags}),
    ]


def _set(*texts: str) -> dict[str, Any]:
    return {"flags": {"set": texts}}


_NODEWRIGHT: Final = "nodewright-customizations"
_INVALID: Final = "INVALID_REQUEST"
_PREFLIGHT: Final[dict[str, Any]] = {"mixins": ("nvsentinel-preflight",)}

SITUATIONS: Final = [
    *_three(
        *("CheckWorkloadSelectorMissing", _NODEWRIGHT, EKS, NOTE),
        "--workload-selector is not set",
        fires={},
        silent={"flags": {"workload_selector": ("job=train",)}},
    ),
    *_three(
        *("CheckAcceleratedSelectorMissing", _NODEWRIGHT, EKS, ADVICE),
        "--accelerated-node-selector is not set",
        fires={},
        silent={"flags": SELECTORS},
    ),
    *_three(
        *("CheckHostMofedWithoutNetworkOperator", "gpu-operator", AKS, NOTE),
        "network-operator is not in the bundle",
        fires=_set("gpuoperator:driver.rdma.useHostMofed=true", "network-operator:enabled=false"),
        silent=_set("network-operator:enabled=false"),
        off=(_INVALID, "owned by the profile gpuStack=azure-managed"),
        flags=TAINT,
    ),
    *_three(
        *("CheckWildcardAcceleratedToleration", _NODEWRIGHT, AKS, _INVALID),
        "--accelerated-node-toleration is not set",
        fires={},
        silent={"flags": TAINT},
    ),
    *_three(
        *("CheckGB300HostKernelGranule", _NODEWRIGHT, GB300, ADVICE),
        "64k pages",
        fires={},
        silent=_set("nodewrightcustomizations:tuningEnabled=false"),
    ),
    *_three(
        *("CheckNPDNotDuplicatingProviderNPD", "node-problem-detector", GKE, _INVALID),
        "GKE runs a node problem detector of its own",
        fires={},
        silent={"criteria": EKS},
        mixins=("npd",),
    ),
    *_three(
        *("CheckDriverOwnershipCoherence", "gpu-operator", EKS, _INVALID),
        "saw no NVIDIA driver",
        fires={
            **_set(
                *("gpu-operator:driver.enabled=false", "nvidia-dra-driver-gpu:nvidiaDriverRoot=/"),
                "nvsentinel:labeler.assumeDriverInstalled=true",
            ),
            "metadata": {"gpuDriverState": "absent"},
        },
        silent={"metadata": {"gpuDriverState": "absent"}},
    ),
    *_three(
        *("CheckMariaDBOperatorOwnershipCoherence", "mariadb-operator"),
        {**EKS, "platform": "slurm"},
        "CONFLICT",
        "objects of another MariaDB operator",
        fires={"metadata": {"mariaDBOperatorState": "crs-detected"}},
        silent={"metadata": {"mariaDBOperatorState": "absent"}},
        off=(_INVALID, "owned by configuration.slurm.accounting.mode"),
        configuration={"slurm": {"accounting": {"mode": "aicr-provided"}}},
        flags=SELECTORS,
    ),
    *_three(
        *("CheckGKETCPXOInterfacesCoherence", "kubeflow-trainer"),
        {**GKE, "platform": "kubeflow"},
        _INVALID,
        "but the recipe records",
        fires={"overrides": {"kubeflow-trainer": {"tcpxoInterfaces": _GKE_NETWORKS[:1]}}},
        configuration={"gke": {"tcpxoInterfaces": _GKE_NETWORKS}},
    ),
    *_three(
        *("CheckNVSentinelDriverLabelDetectable", "nvsentinel", EKS, _INVALID),
        "want 0 pods",
        fires=_set("gpu-operator:driver.enabled=false", "nvidia-dra-driver-gpu:nvidiaDriverRoot=/"),
        silent=_set(
            *("gpu-operator:driver.enabled=false", "nvidia-dra-driver-gpu:nvidiaDriverRoot=/"),
            "nvsentinel:labeler.assumeDriverInstalled=true",
        ),
    ),
    *_three(
        *("CheckNVSentinelRuntimeClassCoherence", "nvsentinel", EKS, _INVALID),
        "creates the RuntimeClass",
        fires=_set("gpu-operator:operator.runtimeClass=nvidia-container-runtime"),
        silent=_set(
            "gpu-operator:operator.runtimeClass=nvidia-container-runtime",
            "nvsentinel:metadata-collector.runtimeClassName=nvidia-container-runtime",
        ),
    ),
    *_three(
        *("CheckNVSentinelTracingEndpointRequired", "nvsentinel", EKS, _INVALID),
        "tracing is on, but",
        fires={},
        silent=_set("nvsentinel:global.tracing.endpoint=otel:4317"),
        mixins=("nvsentinel-observability",),
    ),
    *_three(
        *("CheckNVSentinelNicHealthMonitorRequiresMetadataCollector", "nvsentinel", EKS, _INVALID),
        "would watch no adapter",
        fires=_set("nvsentinel:global.metadataCollector.enabled=false"),
        silent=_set(
            "nvsentinel:global.metadataCollector.enabled=false",
            "nvsentinel:nic-health-monitor.nicInclusionRegexOverride=^mlx5_",
        ),
        mixins=("nvsentinel-nic-health-monitor",),
    ),
    *_three(
        *("CheckNVSentinelPreflightDCGMReachable", "nvsentinel", EKS, _INVALID),
        "so nothing serves it",
        fires=_set("gpu-operator:dcgm.enabled=false"),
        **_PREFLIGHT,
    ),
    *_three(
        *("CheckNVSentinelPreflightGangSchedulerRequired", "nvsentinel", EKS, _INVALID),
        "kai-scheduler, which serves it, is disabled",
        fires=_set("kai-scheduler:enabled=false"),
        silent=_set(
            "kai-scheduler:enabled=false",
            "nvsentinel:preflight.gangCoordination.enabled=false",
        ),
        **_PREFLIGHT,
    ),
    *_three(
        *("CheckNVSentinelDatastorePrerequisites", "nvsentinel-mongodb", EKS, "CONFLICT"),
        "no default StorageClass",
        fires={"metadata": {"defaultStorageClassState": "absent"}},
        silent={
            "metadata": {"defaultStorageClassState": "present", "perconaOperatorState": "absent"}
        },
        mixins=("nvsentinel-observe",),
        flags=SELECTORS,
    ),
]


def run(situation: Situation) -> Result:
    """Resolve, bundle up to the plan, and find the words of the validation."""
    catalog = aicr.Catalog.builtin()
    with tempfile.TemporaryDirectory() as scratch:
        if situation.mixins:
            catalog = catalog.overlay(_overlay(situation, Path(scratch)))
        recipe = aicr.resolve(
            catalog,
            aicr.Criteria(**situation.criteria),  # type: ignore[arg-type]
            configuration=situation.configuration or None,
        )
        document: Any = dict(recipe.document)
        document["metadata"] = {**document.get("metadata", {}), **situation.metadata}
        document["componentRefs"] = [
            {**ref, "overrides": {**ref.get("overrides", {}), **situation.overrides[ref["name"]]}}
            if ref["name"] in situation.overrides
            else ref
            for ref in document["componentRefs"]
        ]
        with _advice() as advice:
            try:
                made = plan(document, catalog, aicr.BundleOptions(**situation.flags))
            except aicr.AicrError as error:
                return Result(situation, error.code, _said(situation, [str(error)]) or str(error))
    for outcome, texts in ((NOTE, made.notes), (ADVICE, advice)):
        said = _said(situation, texts)
        if said:
            return Result(situation, outcome, said)
    return Result(situation, SILENT, "")


def _said(situation: Situation, texts: list[str]) -> str:
    return next((text for text in texts if situation.said in text), "")


def _overlay(situation: Situation, folder: Path) -> str:
    """A --data folder with one overlay: the leaf of these criteria and some mixins."""
    place = folder / "overlays"
    place.mkdir()
    found = aicr.resolve(aicr.Catalog.builtin(), aicr.Criteria(**situation.criteria))  # type: ignore[arg-type]
    leaf = found.document["metadata"]["appliedOverlays"][-1]
    criteria = "".join(f"    {key}: {value}\n" for key, value in situation.criteria.items())
    mixins = "".join(f"    - {mixin}\n" for mixin in situation.mixins)
    (folder / "registry.yaml").write_text(
        "apiVersion: aicr.run/v1beta1\nkind: ComponentRegistry\ncomponents: []\n", encoding="utf-8"
    )
    (place / "site.yaml").write_text(
        "kind: RecipeMetadata\napiVersion: aicr.run/v1beta1\nmetadata:\n  name: site\nspec:\n"
        f"  base: {leaf}\n  criteria:\n{criteria}  mixins:\n{mixins}",
        encoding="utf-8",
    )
    return str(folder)


class _Collector(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


@contextmanager
def _advice() -> Iterator[list[str]]:
    """What validations log meanwhile."""
    logger = logging.getLogger("aicr.bundle.validations")
    collector, level = _Collector(), logger.level
    logger.addHandler(collector)
    logger.setLevel(logging.INFO)
    try:
        yield collector.texts
    finally:
        logger.removeHandler(collector)
        logger.setLevel(level)


def report(results: list[Result]) -> str:
    """The results as a table for people."""
    lines = []
    for function in FUNCTIONS:
        lines.append(function)
        for result in results:
            situation = result.situation
            if situation.function == function:
                wrong = "" if result.expected else f"  WRONG: expected {situation.outcome}"
                lines.append(
                    f"  {situation.kind:<12}  {result.outcome:<15}  {situation.leaf}  "
                    f"[{situation.given}]{wrong}"
                )
    odd = sum(not result.expected for result in results)
    lines.append(f"{len(FUNCTIONS)} functions, {len(results)} situations, {odd} not as expected")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run every situation and print what came of it."""
    results = [run(situation) for situation in SITUATIONS]
    sys.stdout.write(report(results))
    for result in results:
        if not result.expected:
            sys.stderr.write(f"\n{result.situation.function}: {result.said}\n")
    return 1 if any(not result.expected for result in results) else 0


if __name__ == "__main__":
    raise SystemExit(main())
