"""Field names of the catalogue's documents, by kind of value and in wire order.

Apart from the decoder so that programs that only need the names import no YAML reader.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

REF_STRINGS: Final = (
    "name",
    "namespace",
    "chart",
    "type",
    "source",
    "version",
    "tag",
    "valuesFile",
    "path",
    "healthCheckAsserts",
)
REF_LISTS: Final = ("patches", "dependencyRefs", "manifestFiles", "preManifestFiles")
REF_BOOLS: Final = ("cleanup", "healthCheckSkip")
#: Fields of a component ref in the order they are written (recipe spec 4.1).
REF_ORDER: Final = (
    "name",
    "namespace",
    "chart",
    "type",
    "source",
    "version",
    "tag",
    "valuesFile",
    "overrides",
    "patches",
    "dependencyRefs",
    "manifestFiles",
    "preManifestFiles",
    "path",
    "cleanup",
    "expectedResources",
    "healthCheckAsserts",
    "healthCheckSkip",
)
PHASES: Final = ("readiness", "deployment", "performance", "conformance")
NODE_SELECTION_KEYS: Final = ("selector", "maxNodes", "excludeNodes")
PHASE_KEYS: Final = ("timeout", "constraints", "checks", "nodeSelection", "infrastructure")
CONSTRAINT_KEYS: Final = ("name", "value", "severity", "remediation", "unit")
SPEC_KEYS: Final = (
    "base",
    "criteria",
    "mixins",
    "constraints",
    "componentRefs",
    "validation",
    "profile",
)
CRITERIA_STRINGS: Final = ("service", "accelerator", "intent", "os", "platform")
