"""``aicr snapshot``: measure this machine, or a cluster through an agent that runs on one of its nodes."""

from __future__ import annotations

import os

from aicr.cli.arguments import Once, Parser, Switch, whole_number
from aicr.cli.diff import truth
from aicr.cli.formats import check_format, render
from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any, Final

    from aicr.cli.console import Console
    from aicr.collectors.agent_options import AgentOptions
    from aicr.collectors.local import LocalOptions

#: Key of a snapshot in a ConfigMap.
KEY: Final = "snapshot.yaml"
#: Flags that only mean something to the agent, so giving one asks for it.
_AGENT: Final = {
    "namespace": "--namespace",
    "image": "--image",
    "image_pull_secret": "--image-pull-secret",
    "job_name": "--job-name",
    "service_account_name": "--service-account-name",
    "node_selector": "--node-selector",
    "toleration": "--toleration",
    "runtime_class": "--runtime-class",
    "requests": "--requests",
    "limits": "--limits",
    "privileged": "--privileged",
    "timeout": "--timeout",
    "no_cleanup": "--no-cleanup",
}
_EXAMPLES = """\
examples:
  aicr snapshot -o snapshot.yaml
  aicr snapshot --agent --node-selector nvidia.com/gpu.present=true \\
      -o snapshot.yaml
  aicr snapshot --agent --namespace gpu-operator \\
      -o cm://gpu-operator/aicr-snapshot
  aicr snapshot --agent --aks-gpu-pools pools.json -o snapshot.yaml

Without --agent this machine is measured, and the cluster that it is a node of.
With --agent a Job on a node of the cluster does it, and is removed afterwards.
Flags of the agent ask for it as well.

What could not be told is listed on stderr and under notCollected in the
snapshot. A snapshot without the operating system's release, the server's
version, the node or the node list is refused unless --partial is given.
docs/snapshot.md has all readings.
"""


def parser() -> Parser:
    """The parser of this command."""
    found = Parser(
        prog="aicr snapshot",
        description="Measure this machine or a cluster: the input of recipe and validate.",
        epilog=_EXAMPLES,
    )
    found.once("--output", "-o", metavar="FILE", help="write to a file, or to cm://NAMESPACE/NAME")
    found.once("--format", "-t", metavar="NAME", help="yaml (default), json or table")
    found.once("--template", metavar="FILE", help="render this Jinja2 template instead of a format")
    found.once("--config", metavar="FILE", help="AICRConfig file; flags win")
    _switch(found, "--partial", "take what can be had, and list what is missing")
    _switch(found, "--require-gpu", "fail if there is no GPU; the agent asks for one")
    found.once("--os", metavar="NAME", help="operating system of the node, if it is talos")
    found.once(
        "--max-nodes-per-entry",
        metavar="N",
        type=whole_number,
        help="names in a list of nodes before it is cut (all)",
    )
    for flag, command in (
        ("--oke-addons", "oci ce cluster list-addons --all --output json"),
        ("--aks-gpu-pools", "az aks nodepool list -o json"),
        ("--gke-gpu-pools", "gcloud container node-pools list --format=json"),
    ):
        found.once(flag, metavar="FILE", help=f"what {command} printed")
    place = found.add_argument_group("cluster")
    _once(place, "--kubeconfig", "-k", metavar="FILE", help="kubeconfig (KUBECONFIG)")
    _once(place, "--context", metavar="NAME", help="context of the kubeconfig")
    _switch(place, "--no-cluster", "measure this machine alone")
    _agent_flags(found)
    return found


def _agent_flags(found: Parser) -> None:
    group = found.add_argument_group("agent")
    _switch(group, "--agent", "measure through a Job on a node of the cluster")
    _once(group, "--namespace", "-n", metavar="NAME", help="where it runs (default)")
    _once(group, "--image", metavar="IMAGE", help="its image")
    _many(group, "--image-pull-secret", metavar="NAME", help="secret of that namespace; repeatable")
    _once(group, "--job-name", metavar="NAME", help="prefix of the Job's name (aicr)")
    _once(
        group,
        "--service-account-name",
        metavar="NAME",
        help="use this account if it exists, else a prefix (aicr)",
    )
    _many(group, "--node-selector", metavar="KEY=VALUE", help="label of its node; repeatable")
    _many(
        group,
        "--toleration",
        metavar="KEY=VALUE:EFFECT",
        help="taint that it tolerates (all); repeatable",
    )
    _once(group, "--runtime-class", metavar="NAME", help="runtime class, to see GPUs without one")
    _once(group, "--requests", metavar="LIST", help="cpu=100m,memory=256Mi")
    _once(group, "--limits", metavar="LIST", help="cpu=1,memory=1Gi")
    group.add_argument(
        "--privileged",
        action=Once,
        nargs="?",
        const="true",
        metavar="BOOL",
        help="false: without the node's files, for restricted namespaces (true)",
    )
    _once(group, "--timeout", metavar="DURATION", help="until the snapshot is there (5m)")
    _switch(group, "--no-cleanup", "leave Job and roles in place")


def _once(place: Any, *flags: str, **options: Any) -> None:
    place.add_argument(*flags, action=Once, **options)


def _many(place: Any, *flags: str, **options: Any) -> None:
    place.add_argument(*flags, action="append", default=[], **options)


def _switch(place: Any, flag: str, text: str) -> None:
    place.add_argument(flag, action=Switch, const=True, help=text)


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Take the snapshot, say what it lacks, write it."""
    chosen = check_format(arguments.format)
    if arguments.template is not None and arguments.format is not None:
        raise invalid(
            "--template and --format exclude each other",
            where="--template",
            hint="drop one of the two",
        )
    by_agent = _wants_agent(arguments, console)
    provider = _provider(arguments)
    import asyncio

    _check_target(arguments)
    snapshot = asyncio.run(
        _by_agent(arguments, provider, console) if by_agent else _here(arguments, provider, console)
    )
    text = _text(snapshot, chosen, arguments)
    _write(text, arguments, console)
    return 0


def _wants_agent(arguments: argparse.Namespace, console: Console) -> bool:
    given = [flag for name, flag in _AGENT.items() if getattr(arguments, name) not in (None, [])]
    if os.environ.get("AICR_AGENT_MODE") == "true":
        return False
    if not (arguments.agent or given):
        return False
    if arguments.no_cluster:
        raise invalid(
            f"{'--agent' if arguments.agent else given[0]} needs a cluster",
            where="--no-cluster",
            hint="drop one of the two",
        )
    if not arguments.agent:
        console.say(f"the agent takes the snapshot, because of {', '.join(given)}")
    return True


def _provider(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Subtypes of the cloud dumps, read before any cluster is asked."""
    from aicr.cli.sources import read_input
    from aicr.collectors import projections

    found = []
    for flag, kind in projections.FLAGS.items():
        given = getattr(arguments, flag[2:].replace("-", "_"))
        source = given if given is not None else os.environ.get(projections.VARIABLES[flag])
        if source:
            text = read_input(source, what=f"{flag} file")
            found.append(projections.read(kind, text, source))
    return found


async def _here(
    arguments: argparse.Namespace, provider: list[dict[str, Any]], console: Console
) -> dict[str, Any]:
    from aicr.collectors import local, taking

    taken = await local.snapshot(_local_options(arguments, provider), os.environ, say=console.say)
    for remark in taken.remarks:
        console.say(remark)
    for each in taken.missing:
        console.warn(f"{each.name} could not be told: {taking.reason(each.error)}")
    return taken.document


def _local_options(arguments: argparse.Namespace, provider: list[dict[str, Any]]) -> LocalOptions:
    from aicr.collectors.local import LocalOptions

    return LocalOptions(
        kubeconfig=arguments.kubeconfig or "",
        context=arguments.context or "",
        cluster=False if arguments.no_cluster else None,
        os=arguments.os or "",
        most_names=arguments.max_nodes_per_entry or 0,
        require_gpu=_requires_gpu(arguments),
        partial=bool(arguments.partial),
        provider=tuple(provider),
    )


async def _by_agent(
    arguments: argparse.Namespace, provider: list[dict[str, Any]], console: Console
) -> dict[str, Any]:
    from aicr.collectors import agent, taking
    from aicr.kube import connect

    options = agent_options(arguments, provider)
    async with connect(
        kubeconfig=arguments.kubeconfig or "", context=arguments.context or ""
    ) as cluster:
        console.say(f"cluster: {cluster.config.describe()}")
        document = await agent.capture(cluster, options, say=console.say)
    for entry in document.get(taking.NOT_COLLECTED) or ():
        console.warn(f"{entry['reading']} could not be told: {entry['reason']}")
    return document


def agent_options(arguments: argparse.Namespace, provider: list[dict[str, Any]]) -> AgentOptions:
    """The agent's options as the flags say."""
    from dataclasses import replace

    from aicr.bundle import node_flags
    from aicr.collectors import agent_options as options
    from aicr.collectors.limits import Limits
    from aicr.values import durations

    times = Limits.from_environment(os.environ)
    if arguments.timeout is not None:
        seconds = durations.parse(arguments.timeout) / durations.SECOND
        times = replace(times, agent=seconds)
    given = {
        "namespace": arguments.namespace or os.environ.get("AICR_NAMESPACE"),
        "image": arguments.image or options.default_image(os.environ),
        "job_name": arguments.job_name,
        "runtime_class": arguments.runtime_class,
        "os": arguments.os,
        "most_names": arguments.max_nodes_per_entry,
        "require_gpu": _requires_gpu(arguments),
    }
    return options.AgentOptions(
        **{name: value for name, value in given.items() if value},
        service_account=arguments.service_account_name,
        image_pull_secrets=arguments.image_pull_secret,
        node_selector=node_flags.parse_selector(arguments.node_selector, "--node-selector"),
        tolerations=(
            node_flags.parse_tolerations(arguments.toleration, "--toleration")
            if arguments.toleration or _cleared(arguments, "tolerations")
            else None
        ),
        requests=options.parse_amounts(arguments.requests or "", "--requests"),
        limits=options.parse_amounts(arguments.limits or "", "--limits"),
        privileged=truth(arguments.privileged, "--privileged"),
        partial=bool(arguments.partial),
        cleanup=not arguments.no_cleanup,
        provider=provider,
        times=times,
    )


def _requires_gpu(arguments: argparse.Namespace) -> bool:
    """The flag, or the variable that stands for it."""
    said = os.environ.get("AICR_REQUIRE_GPU", "").strip().lower()
    return bool(arguments.require_gpu) or said in ("1", "t", "true")


def _cleared(arguments: argparse.Namespace, field: str) -> bool:
    """Whether a config file says an empty list, which is not the same as nothing."""
    configured = getattr(arguments, "configured", None)
    return configured is not None and configured.value("snapshot", "agent", field) == []


def _text(snapshot: dict[str, Any], chosen: str, arguments: argparse.Namespace) -> str:
    if arguments.template is None:
        return render(snapshot, chosen)
    from aicr.cli.sources import read_input
    from aicr.collectors import template

    source = arguments.template
    return template.render(read_input(source, what="template"), snapshot, source)


def _check_target(arguments: argparse.Namespace) -> None:
    """Refuse a target that cannot be meant before minutes are spent on its content."""
    target = arguments.output or ""
    if target.startswith("cm://"):
        from aicr.kube import config_maps

        config_maps.parse(target)


def _write(text: str, arguments: argparse.Namespace, console: Console) -> None:
    target = arguments.output or ""
    if not target.startswith("cm://"):
        from aicr.cli.sources import write_output

        write_output(text, target, console)
        return
    import asyncio

    asyncio.run(_write_config_map(text, target, arguments))
    console.say(f"written to {target}")


async def _write_config_map(text: str, target: str, arguments: argparse.Namespace) -> None:
    """Into the cluster that was measured, which a context may have chosen."""
    from aicr.kube import config_maps, connect

    async with connect(
        kubeconfig=arguments.kubeconfig or "", context=arguments.context or ""
    ) as cluster:
        await config_maps.write(cluster, config_maps.parse(target), key=KEY, text=text)
