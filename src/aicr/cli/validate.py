"""``aicr validate``: hold a cluster against a recipe.

The order is that of validators spec 1.3: flags, recipe, names of checks, snapshot, gates, checks,
report, evidence, verdict. What is wrong with the input is found before a cluster is contacted.
"""

from __future__ import annotations

import os

from aicr.cli import validate_flags
from aicr.cli.arguments import Parser
from aicr.errors import INTERNAL, AicrError, invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from typing import Any

    from aicr.cli.console import Console
    from aicr.cli.validate_flags import Options
    from aicr.cli.validate_inputs import Inputs
    from aicr.kube.client import Client
    from aicr.validate.results import PhaseResult
    from aicr.validate.run import Order

_EXAMPLES = """\
examples:
  aicr validate -r recipe.yaml
  aicr validate -r recipe.yaml -s snapshot.yaml --phase deployment
  aicr validate -r recipe.yaml -s snapshot.yaml --no-cluster
  aicr validate -r recipe.yaml --runner local --parallel 4 -o report.json \\
      --report report.html

Phases run in the order deployment, conformance, performance. The report (CTRF)
goes to stdout or --output, words for people to stderr. Exit status 0 also when
every check was skipped, unless --strict; 8 when a phase failed (not with
--fail-on-error=false); 2 when readiness or an input is wrong, whatever
--fail-on-error says. docs/validate.md has the whole story.
"""


def parser() -> Parser:
    """The parser of this command."""
    found = Parser(
        prog="aicr validate",
        usage="aicr validate --recipe FILE [flags]",
        description="Hold a cluster against a recipe: readiness, then the checks it declares.",
        epilog=_EXAMPLES,
    )
    validate_flags.add_flags(found)
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Validate; 0 when nothing failed.

    Raises:
        AicrError: INTERNAL ``validation failed: …`` when a phase failed; INVALID_REQUEST for
            inputs, names and readiness; what kept checks from running.
    """
    import gc

    environ = os.environ
    options = validate_flags.Options(arguments, environ)
    # A run may last an hour, and documents of clusters are large.
    gc.enable()
    _check_targets(options)
    _check_evidence(options)
    if options.cncf_submission:
        return _submit(arguments, options, console, environ)
    order, inputs = _order(arguments, options, console, environ)
    found = _validated(order, inputs, options, console, environ)
    return _conclude(order, inputs, options, found, console)


def _check_targets(options: Options) -> None:
    """Refuse a place for the report that cannot be meant, before an hour is spent on its content.

    Raises:
        AicrError: INVALID_REQUEST naming the flag.
    """
    for flag, target in (("--output", options.output), ("--report", options.report)):
        if target.startswith("cm://") and flag == "--output":
            from aicr.kube import config_maps

            config_maps.parse(target)
        elif target.startswith("cm://"):
            raise invalid(f"{flag} {target}: a page is not written to a ConfigMap", where=flag)
        elif target not in ("", "-"):
            folder = os.path.dirname(os.path.realpath(target))
            if os.path.isdir(target):
                raise invalid(f"{target} is a folder", where=flag, hint="name a file in it")
            if not os.path.isdir(folder):
                hint = f"create it: mkdir -p {folder}"
                raise invalid(f"the folder {folder} does not exist", where=flag, hint=hint)


def _check_evidence(options: Options) -> None:
    from aicr.cli import validate_evidence

    if validate_evidence.wanted(options):
        validate_evidence.package(options)


def _submit(
    arguments: argparse.Namespace, options: Options, console: Console, environ: Mapping[str, str]
) -> int:
    """Collect a CNCF submission, for which no check runs."""
    from aicr.cli import validate_evidence, validate_inputs
    from aicr.validate.gpu_policy import UNSPECIFIED
    from aicr.validate.phases import ORDER

    policy = UNSPECIFIED
    if options.recipe:
        inputs = validate_inputs.load(arguments, options, console, environ, _run_id())
        policy = validate_inputs.policy(inputs, ORDER, [], console)
    package = validate_evidence.package(options)
    for line in package.collect_cncf(
        options.evidence_dir, options.feature, policy=policy, kubeconfig=options.kubeconfig
    ):
        console.say(line)
    return 0


def _order(
    arguments: argparse.Namespace, options: Options, console: Console, environ: Mapping[str, str]
) -> tuple[Order, Inputs]:
    """Everything that files say, checked as far as it can be without a snapshot."""
    from aicr.cli import validate_inputs
    from aicr.cli.validate_report import Live
    from aicr.validate import images, runtime_ref
    from aicr.validate.gpu_policy import UNSPECIFIED
    from aicr.validate.phases import is_configured, requested
    from aicr.validate.plan import Place
    from aicr.validate.run import Order, check_names
    from aicr.validate.timing import Timing

    validate_inputs.warn_ignored_projections(options, console)
    run_id = _run_id()
    inputs = validate_inputs.load(arguments, options, console, environ, run_id)
    document: Any = runtime_ref.resolve(inputs.recipe.document, inputs.recipe.catalog.tree)
    policy = (
        UNSPECIFIED
        if options.no_cluster
        else validate_inputs.policy(inputs, requested(options.phases), options.skip_check, console)
    )
    order = Order(
        recipe=document,
        snapshot=None,
        catalog=inputs.catalog,
        place=Place(options.namespace, run_id, tuple(options.image_pull_secrets)),
        setting=inputs.setting,
        timing=Timing.from_environment(environ),
        policy=policy,
        phases=options.phases,
        skipped=options.skip_check,
        fail_fast=options.fail_fast,
        parallel=options.parallel,
    )
    check_names(order, Live(console))
    if options.emit_attestation:
        used = [entry.image for entry in inputs.catalog.entries]
        if not arguments.allow_mutable_validator_tags:
            images.refuse_mutable(used, inputs.setting.tag)
        elif moving := images.mutable(used):
            console.warn(
                "this evidence is to be thrown away: it names images by tags that may move "
                f"({', '.join(moving)})"
            )
    for phase in options.phases or ():
        if not is_configured(document, phase):
            console.warn(f"the recipe says nothing about phase {phase}")
    return order, inputs


def _validated(
    order: Order,
    inputs: Inputs,
    options: Options,
    console: Console,
    environ: Mapping[str, str],
) -> list[PhaseResult]:
    from dataclasses import replace

    from aicr.cli import validate_inputs
    from aicr.cli.validate_report import Live
    from aicr.validate import interrupts
    from aicr.validate.run import Run, gates

    if options.snapshot:
        validate_inputs.read_snapshot(inputs, options, console)
        order = replace(order, snapshot=inputs.snapshot)
    live = Live(console)
    if options.no_cluster:
        console.say("no cluster is contacted (--no-cluster)")
        validate_inputs.warn_versions(inputs, console)
        return Run(order, gates(order, live), live).without_cluster()
    return interrupts.run(_in_cluster(order, inputs, options, console, environ), say=console.say)


async def _in_cluster(
    order: Order,
    inputs: Inputs,
    options: Options,
    console: Console,
    environ: Mapping[str, str],
) -> list[PhaseResult]:
    from dataclasses import replace

    from aicr.cli import validate_inputs
    from aicr.cli.validate_report import Live
    from aicr.kube import connect
    from aicr.validate.run import Run, gates

    live = Live(console)
    async with connect(kubeconfig=options.kubeconfig, environ=environ) as client:
        # First of all, so that nobody validates a cluster that was not meant (decision 13).
        inputs.cluster = _place_line(client, options)
        console.say(inputs.cluster)
        console.say(f"run {order.place.run_id}")
        if inputs.snapshot is None:
            await validate_inputs.take_snapshot(inputs, options, client, console, environ)
            order = replace(order, snapshot=inputs.snapshot)
        validate_inputs.warn_versions(inputs, console)
        if options.no_cleanup:
            console.warn(
                "--no-cleanup keeps the binding to cluster-admin; remove it with: kubectl delete "
                "clusterrolebinding -l app.kubernetes.io/name=aicr-validator"
            )
        run = Run(order, gates(order, live), live)
        return await run.with_runner(_runner(order, options, client, live, environ))


def _place_line(client: Client, options: Options) -> str:
    config = client.config
    where = f"context {config.context}" if config.context else config.source
    return f"{where}, server {config.server}, namespace {options.namespace}"


def _runner(
    order: Order, options: Options, client: Client, live: Any, environ: Mapping[str, str]
) -> Any:
    if options.runner == validate_flags.LOCAL:
        from aicr.validate.runner_local import LocalRunner

        return LocalRunner(
            order.timing,
            live,
            namespace=options.namespace,
            kubeconfig=options.kubeconfig,
            environ=environ,
        )
    from aicr.validate.runner_job import JobRunner

    return JobRunner(client, order.place, order.timing, live, cleanup=not options.no_cleanup)


def _conclude(
    order: Order,
    inputs: Inputs,
    options: Options,
    found: list[PhaseResult],
    console: Console,
) -> int:
    """Write the report and the evidence, and judge.

    Raises:
        AicrError: INTERNAL when the run failed; what cannot be written.
    """
    from aicr.cli import validate_evidence, validate_report
    from aicr.cli.sources import write_output
    from aicr.validate.run import failing, merged, skipped_declared
    from aicr.yamlio import jsontext

    report = merged(found)
    text = jsontext.dump_json(report)
    write_output(text, options.output, console, key="report.json", kubeconfig=options.kubeconfig)
    console.flush()
    validate_report.show(found, console)
    if options.report:
        from aicr.validate import report_html

        facts = {
            "recipe": options.recipe,
            "cluster": inputs.cluster,
            "run": order.place.run_id,
        }
        write_output(report_html.render(report, facts), options.report, console)
    validate_evidence.write(options, inputs, found, report, console.say)
    if options.output not in ("", "-"):
        console.say(f"report written to {options.output}")
    problems = []
    if failing(found):
        problems.append("one or more phases did not pass")
    if options.strict:
        names = skipped_declared(order, found)
        if names:
            problems.append(f"declared checks were skipped (--strict): {', '.join(names)}")
    if problems and options.fail_on_error:
        raise AicrError(
            INTERNAL,
            f"validation failed: {'; '.join(problems)}",
            hint="the table above and the report say why",
        )
    return 0


def _run_id() -> str:
    import secrets
    from datetime import UTC, datetime

    from aicr.contract import labels

    return labels.run_id(datetime.now(UTC), secrets.token_hex(8))
