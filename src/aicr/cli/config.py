"""``--config``: flags that were not given get their values from an AICRConfig file.

A flag wins over the file, and says so; lists are replaced and never joined (recipe spec 6.5, bundler
spec 1.6). The commands go on reading their flags; what a flag would be blamed for is told of the place in
the file instead. Criteria rank between flags and a snapshot, so ``cli.criteria`` takes them from
``arguments.configured`` itself.

Loaded only when the flag is given.
"""

from __future__ import annotations

import re

from aicr.catalog.criteria_values import FIELDS
from aicr.cli.sources import read_input
from aicr.contract.config import Config, dotted, load
from aicr.errors import AicrError, invalid
from aicr.recipe.criteria import ANY, check_value, normalise

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from typing import Any, Final

    from aicr.catalog.catalog import Catalog
    from aicr.cli.console import Console
    from aicr.recipe.explain_types import Explanation

    Place = tuple[str, ...]

#: Flag -> where its value stands below ``spec``. The order is that of the messages.
_CATALOGUE: Final[dict[str, Place]] = {
    "--data": ("recipe", "data"),
    "--criteria-strict": ("recipe", "criteriaStrict"),
}
_RECIPE: Final[dict[str, Place]] = {
    **_CATALOGUE,
    "--snapshot": ("recipe", "input", "snapshot"),
    "--profile": ("recipe", "profile"),
    "--slurm-accounting-mode": ("recipe", "configuration", "slurm", "accounting", "mode"),
    "--runtime-inventory": ("recipe", "configuration", "runtimeInventory"),
    "--gke-tcpxo-interfaces": ("recipe", "configuration", "gke", "tcpxoInterfaces"),
}
_RECIPE_OUTPUT: Final[dict[str, Place]] = {
    "--output": ("recipe", "output", "path"),
    "--format": ("recipe", "output", "format"),
}
_VALUES: Final[dict[str, Place]] = {
    "--set": ("bundle", "deployment", "set"),
    "--dynamic": ("bundle", "deployment", "dynamic"),
    "--system-node-selector": ("bundle", "scheduling", "systemNodeSelector"),
    "--system-node-toleration": ("bundle", "scheduling", "systemNodeTolerations"),
    "--accelerated-node-selector": ("bundle", "scheduling", "acceleratedNodeSelector"),
    "--accelerated-node-toleration": ("bundle", "scheduling", "acceleratedNodeTolerations"),
    "--workload-gate": ("bundle", "scheduling", "workloadGate"),
    "--workload-selector": ("bundle", "scheduling", "workloadSelector"),
    "--nodes": ("bundle", "scheduling", "nodes"),
    "--storage-class": ("bundle", "scheduling", "storageClass"),
    "--shared-storage-class": ("bundle", "scheduling", "sharedStorageClass"),
    "--dra-eviction-node-label": ("bundle", "scheduling", "draEvictionNodeLabel"),
}
_BUNDLE: Final[dict[str, Place]] = {
    "--data": ("recipe", "data"),
    "--recipe": ("bundle", "input", "recipe"),
    "--output": ("bundle", "output", "target"),
    "--image-refs": ("bundle", "output", "imageRefs"),
    "--deployer": ("bundle", "deployment", "deployer"),
    "--repo": ("bundle", "deployment", "repo"),
    "--vendor-charts": ("bundle", "deployment", "vendorCharts"),
    "--app-name": ("bundle", "deployment", "appName"),
    **_VALUES,
    "--attest": ("bundle", "attestation", "enabled"),
    "--certificate-identity-regexp": ("bundle", "attestation", "certificateIdentityRegexp"),
    "--oidc-device-flow": ("bundle", "attestation", "oidcDeviceFlow"),
    "--fulcio-url": ("bundle", "attestation", "fulcioURL"),
    "--rekor-url": ("bundle", "attestation", "rekorURL"),
    "--signing-key": ("bundle", "attestation", "signingKey"),
    "--insecure-tls": ("bundle", "registry", "insecureTLS"),
    "--plain-http": ("bundle", "registry", "plainHTTP"),
}

_VERIFY: Final[dict[str, Place]] = {
    "--min-trust-level": ("verify", "policy", "minTrustLevel"),
    "--require-creator": ("verify", "policy", "requireCreator"),
    "--cli-version-constraint": ("verify", "policy", "cliVersionConstraint"),
    "--certificate-identity-regexp": ("verify", "trust", "certificateIdentityRegexp"),
    "--key": ("verify", "trust", "key"),
    "--trust-root": ("verify", "trust", "trustRoot"),
}
_VALIDATE: Final[dict[str, Place]] = {
    "--recipe": ("validate", "input", "recipe"),
    "--snapshot": ("validate", "input", "snapshot"),
    "--phase": ("validate", "execution", "phases"),
    "--skip-check": ("validate", "execution", "skipChecks"),
    "--fail-on-error": ("validate", "execution", "failOnError"),
    "--fail-fast": ("validate", "execution", "failFast"),
    "--no-cluster": ("validate", "execution", "noCluster"),
    "--no-cleanup": ("validate", "execution", "noCleanup"),
    "--timeout": ("validate", "execution", "timeout"),
    "--namespace": ("validate", "agent", "namespace"),
    "--image": ("validate", "agent", "image"),
    "--image-pull-secret": ("validate", "agent", "imagePullSecrets"),
    "--job-name": ("validate", "agent", "jobName"),
    "--service-account-name": ("validate", "agent", "serviceAccountName"),
    "--require-gpu": ("validate", "agent", "requireGpu"),
    "--node-selector": ("validate", "agent", "nodeSelector"),
    "--toleration": ("validate", "agent", "tolerations"),
    "--evidence-dir": ("validate", "evidence", "cncf", "dir"),
    "--cncf-submission": ("validate", "evidence", "cncf", "cncfSubmission"),
    "--feature": ("validate", "evidence", "cncf", "features"),
    "--emit-attestation": ("validate", "evidence", "attestation", "out"),
    "--bom": ("validate", "evidence", "attestation", "bom"),
    "--push": ("validate", "evidence", "attestation", "push"),
    "--plain-http": ("validate", "evidence", "attestation", "plainHTTP"),
    "--insecure-tls": ("validate", "evidence", "attestation", "insecureTLS"),
}

_SNAPSHOT: Final[dict[str, Place]] = {
    "--output": ("snapshot", "output", "path"),
    "--format": ("snapshot", "output", "format"),
    "--template": ("snapshot", "output", "template"),
    "--namespace": ("snapshot", "agent", "namespace"),
    "--image": ("snapshot", "agent", "image"),
    "--image-pull-secret": ("snapshot", "agent", "imagePullSecrets"),
    "--job-name": ("snapshot", "agent", "jobName"),
    "--service-account-name": ("snapshot", "agent", "serviceAccountName"),
    "--node-selector": ("snapshot", "agent", "nodeSelector"),
    "--toleration": ("snapshot", "agent", "tolerations"),
    "--require-gpu": ("snapshot", "agent", "requireGpu"),
    "--runtime-class": ("snapshot", "agent", "runtimeClassName"),
    "--os": ("snapshot", "agent", "os"),
    "--requests": ("snapshot", "agent", "requests"),
    "--limits": ("snapshot", "agent", "limits"),
    "--timeout": ("snapshot", "execution", "timeout"),
    "--no-cleanup": ("snapshot", "execution", "noCleanup"),
    "--privileged": ("snapshot", "execution", "privileged"),
    "--max-nodes-per-entry": ("snapshot", "execution", "maxNodesPerEntry"),
}

#: Command -> its flags, the section it is about, and whether it must take all that the file says.
COMMANDS: Final[dict[str, tuple[dict[str, Place], str, bool]]] = {
    "recipe": ({**_RECIPE, **_RECIPE_OUTPUT}, "recipe", True),
    "recipe list": (_CATALOGUE, "recipe", False),
    "query": (_RECIPE, "recipe", True),
    # The node count of a recipe's criteria is the flag that both sections have.
    "explain": (
        {**_RECIPE, **{flag: place for flag, place in _VALUES.items() if flag != "--nodes"}},
        "recipe",
        False,
    ),
    "bundle": (_BUNDLE, "bundle", True),
    "verify": (_VERIFY, "verify", True),
    "validate": (_VALIDATE, "validate", True),
    "snapshot": (_SNAPSHOT, "snapshot", True),
}

#: A blank here is not "unset" but a mistake that has a message of its own (bundler spec 1.1).
_BLANK_IS_SAID: Final = ("--storage-class", "--shared-storage-class")

#: Advice about flags, and the same about fields.
_HINTS: Final = (("repeat the flag", "add an entry"), ("drop the flag", "drop the field"))


class Configured:
    """What a config file gave to one command line.

    Attributes:
        source: the name of the file.
        criteria: ``spec.recipe.criteria`` without empty fields.
        gpu_nodes: ``spec.bundle.scheduling.nodes``, 0 when absent.
    """

    def __init__(self, config: Config) -> None:
        self.source = config.source
        found = config.get("recipe", "criteria") or {}
        self.criteria: dict[str, Any] = {key: value for key, value in found.items() if value}
        self.gpu_nodes: int = config.get("bundle", "scheduling", "nodes") or 0
        self._config = config
        self._taken: dict[str, Place] = {}

    def value(self, *place: str) -> Any:
        """What the file says at a place below ``spec``; None when it says nothing."""
        return self._config.get(*place)

    def add_criteria(
        self, stated: dict[str, Any], said: dict[str, str], catalog: Catalog, strict: bool
    ) -> list[str]:
        """Add the criteria of the file to those *stated*, and their wording to *said*.

        Returns lines for people about words that were stated otherwise before.

        Raises:
            AicrError: INVALID_REQUEST for a word that the catalogue does not know.
        """
        lines = []
        for field, value in self.criteria.items():
            if field in FIELDS:
                where = self._config.where("recipe", "criteria", field)
                check_value(field, value, catalog, strict=strict, where=where)
                if normalise(field, value) == ANY:
                    continue
            path = f"spec.recipe.criteria.{field}"
            if field not in stated:
                stated[field] = value
                said[field] = f"{path} {value} of {self.source}"
            elif field in FIELDS and normalise(field, stated[field]) != normalise(field, value):
                lines.append(f"{said[field]} wins over {path} {value} of {self.source}")
        return lines

    def fill(self, arguments: argparse.Namespace, flag: str, place: Place) -> str:
        """Give a flag the value of the file, unless it was given on the command line.

        Returns a line for people when the flag wins over another value, else "".
        """
        value = self._config.get(*place)
        if value is None or (value == "" and flag not in _BLANK_IS_SAID):
            return ""
        given, name = vars(arguments), _name(flag)
        if isinstance(value, dict):
            value = [f"{key}={label}" for key, label in value.items()]
        if _is_given(given, name):
            wins = given[name] != value
            return f"{flag} wins over {dotted(('spec', *place))} of {self.source}" if wins else ""
        given[name] = value
        self._taken[flag] = place
        return ""

    def check_none(self, command: str, flag: str, place: Place) -> None:
        """Refuse a value for which the command has no flag, so that it cannot be lost unseen.

        Raises:
            AicrError: INVALID_REQUEST with the place of the value.
        """
        value = self._config.get(*place)
        if value:
            raise invalid(
                f"{dotted(('spec', *place))} is set, and this version of aicr {command} has no {flag}",
                where=self._config.where(*place),
                hint="take it out of the file: it could not have its effect",
            )

    def relocate(self, explanation: Explanation) -> None:
        """Say of bundle flags in an explanation, in place, where they stand in the file."""
        for item in explanation.get("items") or ():
            for step in item["steps"]:
                flag, _, entry = step["name"].partition(" ")
                if flag in self._taken:
                    step["where"] = self._place_of(flag, entry)

    def _place_of(self, flag: str, entry: str) -> str:
        """The place of a flag's value, or of the entry of its list that starts with a text."""
        place = self._taken[flag]
        values = self._config.get(*place)
        if entry and isinstance(values, list):
            for index, value in enumerate(values):
                if value.startswith(f"{entry}="):
                    return self._config.where(*place, index)
        return self._config.where(*place)

    def blame(self, error: AicrError) -> None:
        """Rewrite an error, in place, that names a flag whose value stands in the file."""
        for link in error.chain():
            for flag, place in self._taken.items():
                name = re.compile(rf"(?<![-\w]){flag}(?![-\w])")
                if name.fullmatch(link.where):
                    link.where = self._config.where(*place)
                    for words, instead in _HINTS:
                        link.hint = link.hint.replace(words, instead)
                path = dotted(("spec", *place))
                link.message = name.sub(path, link.message)
                link.hint = name.sub(path, link.hint)


def run(
    command: str,
    execute: Callable[[argparse.Namespace, Console], int],
    arguments: argparse.Namespace,
    console: Console,
) -> int:
    """Fill *arguments* from the file that ``--config`` names, then run the command.

    Raises:
        AicrError: what is wrong with the file; what the command raises.
    """
    config = load(read_input(arguments.config, what="config file"), arguments.config)
    if config.notice:
        console.warn(config.notice)
    flags, section, whole = COMMANDS[command]
    if config.get(section) is None:
        console.warn(f"{config.source} has no spec.{section}, which is what aicr {command} reads")
    configured = Configured(config)
    for flag, place in flags.items():
        if _name(flag) in arguments:
            said = configured.fill(arguments, flag, place)
            if said:
                console.say(said)
        elif whole:
            configured.check_none(command, flag, place)
    arguments.configured = configured
    try:
        return execute(arguments, console)
    except AicrError as error:
        configured.blame(error)
        raise


def _name(flag: str) -> str:
    return flag[2:].replace("-", "_")


def _is_given(given: dict[str, Any], name: str) -> bool:
    """Whether a flag was on the command line: an empty list and a switch that is off were not."""
    return name in given.get("_given", ()) or given[name] not in (None, False, [])
