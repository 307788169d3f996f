"""Flags of ``aicr validate``, what they mean together, and which of them exclude each other.

Everything here is decided before a cluster is contacted, in the order of validators spec 1.2. A
value comes from the flag, else from its environment variable, else from the config file, else it
is the default.
"""

from __future__ import annotations

from aicr.cli.arguments import Once, Parser, Switch, whole_number
from aicr.errors import invalid, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence
    from typing import Any, Final

FEATURES: Final = (
    *("dra-support", "gang-scheduling", "secure-access", "accelerator-metrics"),
    *("ai-service-metrics", "inference-gateway", "robust-operator", "pod-autoscaling"),
    "cluster-autoscaling",
)
_ALIASES: Final = {
    "dra": "dra-support",
    "gang": "gang-scheduling",
    "secure": "secure-access",
    "metrics": "accelerator-metrics",
    "gateway": "inference-gateway",
    "operator": "robust-operator",
    "hpa": "pod-autoscaling",
}
JOB: Final = "job"
LOCAL: Final = "local"
_TRUE: Final = ("1", "t", "true", "yes", "on")
_FALSE: Final = ("0", "f", "false", "no", "off")
#: Flags that are about a bundle of evidence and mean nothing without one.
_OF_ATTESTATION: Final = (
    *("full", "allow_mutable_validator_tags", "bom", "push", "no_sign", "plain_http"),
    *("insecure_tls", "signing_key", "identity_token", "oidc_device_flow", "yes"),
)
#: Provider dumps: flag, variable.
PROJECTIONS: Final = (
    ("oke_addons", "AICR_OKE_ADDONS_PATH"),
    ("aks_gpu_pools", "AICR_AKS_GPU_POOLS_PATH"),
    ("gke_gpu_pools", "AICR_GKE_GPU_POOLS_PATH"),
)


def add_flags(found: Parser) -> None:
    """Add every flag of validators spec 1.1, and those of our own, to a parser."""
    given = found.add_argument_group("input")
    _once(given, "--recipe", "-r", help="file, http(s) address or cm://NAMESPACE/NAME (required)")
    _once(given, "--snapshot", "-s", help="likewise; without it an agent takes one")
    _once(given, "--config", help="AICRConfig file with values for flags that are not given")
    _once(given, "--data", metavar="DIR", help="directory laid over the built-in catalogue")
    _once(given, "--kubeconfig", help="which cluster; default as kubectl: KUBECONFIG, in-cluster")
    what = found.add_argument_group("what runs")
    _many(what, "--phase", metavar="NAME", help="deployment, conformance, performance or all (all)")
    _many(what, "--skip-check", metavar="NAME", help="withhold a declared check from this run")
    _once(
        what, "--runner", metavar="HOW", help="job: in the cluster (default); local: processes here"
    )
    _switch(what, "--no-cluster", help="gates and constraints only: nothing is contacted")
    _once(
        *(what, "--parallel"),
        metavar="N",
        type=whole_number,
        help="checks at once in deployment and conformance (1)",
    )
    verdict = found.add_argument_group("verdict")
    verdict.add_argument(
        "--fail-on-error",
        action=Once,
        nargs="?",
        const="true",
        default=None,
        metavar="true|false",
        help="exit 8 when a check failed (true); readiness is not covered and always ends the run",
    )
    _switch(verdict, "--fail-fast", help="stop after the first phase that failed")
    _switch(verdict, "--strict", help="a declared check that was skipped fails the run")
    where = found.add_argument_group("where it runs")
    _once(where, "--namespace", "-n", help="of Jobs and their documents (aicr-validation)")
    _many(where, "--image-pull-secret", metavar="NAME", help="of the agent and the checks")
    _many(where, "--node-selector", metavar="K=V", help="of the agent and of checks' workloads")
    _many(where, "--toleration", metavar="K=V:EFFECT", help="likewise; * tolerates everything")
    _switch(where, "--no-cleanup", help="keep Jobs, access rights and documents to look at")
    agent = found.add_argument_group("snapshot agent, when there is no --snapshot")
    _once(agent, "--image", help="of the agent, not of checks")
    _once(agent, "--job-name", metavar="PREFIX", help="of its Job (aicr-validate)")
    _once(agent, "--service-account-name", metavar="NAME", help="used as it is if it exists (aicr)")
    _once(
        agent, "--timeout", metavar="DURATION", help="for the snapshot; checks have their own (5m)"
    )
    _switch(agent, "--require-gpu", help="give the agent a GPU")
    for flag, _ in PROJECTIONS:
        provider = flag.partition("_")[0].upper()
        name = f"--{flag.replace('_', '-')}"
        _once(agent, name, metavar="FILE", help=f"merge a dump of {provider} into the snapshot")
    output = found.add_argument_group("output")
    _once(output, "--output", "-o", help="the report (CTRF, JSON); default: stdout")
    _once(output, "--report", metavar="FILE", help="the report as one HTML page")
    evidence = found.add_argument_group("evidence")
    _once(evidence, "--evidence-dir", metavar="DIR", help="write CNCF conformance pages")
    _switch(evidence, "--cncf-submission", help="collect evidence by behaviour instead of checks")
    _many(evidence, "--feature", "-f", metavar="NAME", help="of the submission; default: all")
    _once(evidence, "--emit-attestation", metavar="DIR", help="write a bundle of recipe evidence")
    _switch(evidence, "--full", help="do not redact it")
    _switch(evidence, "--allow-mutable-validator-tags", help="such evidence is to be thrown away")
    _once(evidence, "--bom", metavar="FILE", help="a CycloneDX bill of materials made before")
    _once(evidence, "--push", metavar="REF", help="push the bundle to a registry and sign it")
    _switch(evidence, "--no-sign", help="push without signing")
    _switch(evidence, "--plain-http", help="the registry speaks HTTP")
    _switch(evidence, "--insecure-tls", help="do not check the registry's certificate")
    _once(evidence, "--signing-key", metavar="FILE", help="private key (PEM) to sign with")
    _once(evidence, "--identity-token", metavar="TOKEN", help="OIDC token to sign with")
    _switch(evidence, "--oidc-device-flow", help="log in with a code on another device")
    _switch(evidence, "--yes", "-y", help="do not ask before signing")


def _once(group: Any, *flags: str, **options: Any) -> None:
    options.setdefault("metavar", "FILE" if flags[0] not in ("--namespace", "--image") else "NAME")
    group.add_argument(*flags, action=Once, **options)


def _many(group: Any, *flags: str, **options: Any) -> None:
    group.add_argument(*flags, action="append", default=[], **options)


def _switch(group: Any, *flags: str, **options: Any) -> None:
    group.add_argument(*flags, action=Switch, const=True, default=None, **options)


class Options:
    """What one command line asks for, with defaults in place.

    Attributes are named as the flags. Raises INVALID_REQUEST for what cannot be meant.
    """

    def __init__(self, arguments: argparse.Namespace, environ: Mapping[str, str]) -> None:
        self._given: set[str] = getattr(arguments, "_given", set())
        self.arguments, self._environ = arguments, environ
        self.recipe: str = arguments.recipe or ""
        self.snapshot: str = arguments.snapshot or ""
        self.kubeconfig: str = arguments.kubeconfig or ""
        self.output: str = arguments.output or ""
        self.report: str = arguments.report or ""
        self.no_cluster = bool(arguments.no_cluster)
        self.skip_check: list[str] = list(arguments.skip_check)
        self.evidence_dir: str = arguments.evidence_dir or ""
        self.cncf_submission = bool(arguments.cncf_submission)
        self.feature: list[str] = list(arguments.feature)
        self.emit_attestation: str = arguments.emit_attestation or ""
        self.push: str = arguments.push or ""
        self._check_combinations()
        self.feature = _features(self.feature)
        self.phases = self._phases(arguments.phase)
        self.fail_on_error = _truth(arguments.fail_on_error, "--fail-on-error", default=True)
        self.fail_fast = bool(arguments.fail_fast)
        self.strict = bool(arguments.strict)
        self.runner = self._runner(arguments.runner)
        self.parallel = self._parallel(arguments.parallel)
        self.namespace = self.value("namespace", "AICR_NAMESPACE") or "aicr-validation"
        self.image_pull_secrets: list[str] = list(arguments.image_pull_secret)
        self.image = self.value("image", "AICR_VALIDATOR_IMAGE")
        self.job_name: str = arguments.job_name or "aicr-validate"
        self.service_account_name: str | None = arguments.service_account_name
        self.no_cleanup = bool(arguments.no_cleanup)
        self.require_gpu = _truth(
            self.value("require_gpu", "AICR_REQUIRE_GPU"), "AICR_REQUIRE_GPU", default=False
        )
        self.node_selector = self._node_selector(arguments.node_selector)
        self.tolerations = self._tolerations(arguments.toleration)
        self.timeout = self._timeout(arguments.timeout)
        self._check_attestation()

    def value(self, name: str, variable: str) -> Any:
        """A flag that an environment variable may stand for: flag, variable, config file."""
        found = getattr(self.arguments, name)
        said = self._environ.get(variable, "")
        return said if said and name not in self._given else found

    def is_explicit(self, name: str) -> bool:
        """Whether a flag was on the command line itself."""
        return name in self._given

    def configured(self, *path: str) -> Any:
        """What the config file says at a path below ``spec.validate``; None without one."""
        found = getattr(self.arguments, "configured", None)
        return None if found is None else found.value("validate", *path)

    def _check_combinations(self) -> None:
        """The refusals 1 to 6 of validators spec 1.2, in its order."""
        if self.cncf_submission and not self.evidence_dir:
            raise invalid(
                "--cncf-submission requires --evidence-dir",
                where="--cncf-submission",
                hint="name the folder for its pages with --evidence-dir DIR",
            )
        if self.feature and not self.cncf_submission:
            raise invalid(
                "--feature requires --cncf-submission",
                where="--feature",
                hint="it chooses what a submission collects; drop it, or add --cncf-submission",
            )
        if self.cncf_submission and self.no_cluster:
            raise invalid(
                "--cncf-submission cannot be used with --no-cluster",
                where="--no-cluster",
                hint="a submission is collected from a cluster",
            )
        if self.evidence_dir and self.skip_check:
            raise invalid(
                "--evidence-dir cannot be used with --skip-check: a withheld check would leave no page, "
                "and the submission would read as complete",
                where="--skip-check",
                hint="run twice, once for evidence with all checks",
            )
        for name, flag in (("emit_attestation", "--emit-attestation"), ("push", "--push")):
            if self.no_cluster and self.is_explicit(name):
                raise invalid(
                    f"--no-cluster cannot be used with {flag}: nothing runs that it could attest",
                    where=flag,
                    hint="drop one of the two",
                )
        if self.no_cluster:
            # From the config file alone it is left out without a word against this run.
            self.emit_attestation = self.push = ""
        if self.no_cluster and not self.snapshot:
            raise invalid(
                "--no-cluster requires a snapshot",
                where="--no-cluster",
                hint="name one with --snapshot; aicr snapshot takes one",
            )

    def _check_attestation(self) -> None:
        for name in _OF_ATTESTATION:
            if self.is_explicit(name) and not self.emit_attestation:
                flag = f"--{name.replace('_', '-')}"
                raise invalid(
                    f"{flag} requires --emit-attestation",
                    where=flag,
                    hint="it is about the bundle of evidence; add --emit-attestation DIR, or drop it",
                )

    def _phases(self, words: Sequence[str]) -> tuple[str, ...] | None:
        from aicr.validate.phases import parse_selection

        return parse_selection(words)

    def _runner(self, word: str | None) -> str:
        if word is None:
            return JOB
        if word not in (JOB, LOCAL):
            near = nearest(word, [JOB, LOCAL])
            raise invalid(
                f'unknown runner "{word}"',
                where="--runner",
                hint=f'did you mean "{near}"?' if near else f"{JOB} or {LOCAL}",
            )
        if self.no_cluster:
            raise invalid(
                "--runner cannot be used with --no-cluster, which runs nothing",
                where="--runner",
                hint="drop one of the two",
            )
        return word

    def _parallel(self, number: int | None) -> int:
        from aicr.validate.run import MOST_PARALLEL

        chosen = 1 if number is None else number
        if not 1 <= chosen <= MOST_PARALLEL:
            raise invalid(
                f"{chosen} checks at once are not possible",
                where="--parallel",
                hint=f"1 to {MOST_PARALLEL}",
            )
        return chosen

    def _node_selector(self, words: list[str]) -> dict[str, str] | None:
        from aicr.bundle.node_flags import parse_selector

        if words:
            return parse_selector(words, "--node-selector")
        return {} if self.configured("agent", "nodeSelector") is not None else None

    def _tolerations(self, words: list[str]) -> list[dict[str, Any]] | None:
        from aicr.bundle.node_flags import parse_toleration, tolerate_all

        if words:
            return [
                tolerate_all() if word == "*" else parse_toleration(word, "--toleration")
                for word in words
            ]
        return [] if self.configured("agent", "tolerations") is not None else None

    def _timeout(self, text: str | None) -> float:
        from aicr.errors import AicrError
        from aicr.values import durations

        if text is None:
            return 300.0
        try:
            found = durations.parse(text)
        except AicrError as error:
            raise invalid(
                f'invalid timeout "{text}"', where="--timeout", hint=error.hint
            ) from error
        if found <= 0:
            raise invalid(
                f"a timeout of {text} leaves no time", where="--timeout", hint="for example 5m"
            )
        return found / durations.SECOND


def _features(words: Sequence[str]) -> list[str]:
    """Names of features, aliases resolved; empty for all.

    Raises:
        AicrError: INVALID_REQUEST for a name that is none.
    """
    found: list[str] = []
    for word in words:
        name = _ALIASES.get(word, word)
        if name != "all" and name not in FEATURES:
            near = nearest(word, [*FEATURES, *_ALIASES, "all"])
            raise invalid(
                f'unknown feature "{word}"',
                where="--feature",
                hint=f'did you mean "{near}"?' if near else f"known: {', '.join(FEATURES)}, all",
            )
        if name not in found:
            found.append(name)
    return [] if "all" in found else found


def _truth(value: Any, where: str, *, default: bool) -> bool:
    """A boolean of a flag, a variable or the config file."""
    if value is None or value == "":
        return default
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise invalid(f'"{value}" is neither true nor false', where=where, hint="true or false")
