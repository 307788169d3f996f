"""What a caller may say about the agent's pod, checked before anything is sent.

Two differences between "not said" and "said to be nothing" are kept, since both occur in config files:
no tolerations given means all are tolerated, an empty list means none; a service account that was not
named is never looked up, one that was is used as it stands if it exists.

This module must not know Jobs. Source: validators spec 1.1, recipe spec 6.5, config type SnapshotAgent.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from aicr.collectors.limits import Limits
from aicr.collectors.readings import Document
from aicr.contract import container
from aicr.errors import invalid, nearest
from aicr.values import quantities
from aicr.version import __version__

#: Where our images are unless somebody says otherwise (decision 41).
LOCAL_PREFIX: Final = "aicr.local"


def _tag() -> str:
    """The tag of images that belong to this build (decision 40)."""
    return "latest" if importlib.util.find_spec("aicr._stamp") is None else f"v{__version__}"


NAME: Final = "aicr-agent"
IMAGE: Final = f"{LOCAL_PREFIX}/{NAME}:{_tag()}"
#: The agent's whole image, where a flag does not say it.
IMAGE_VARIABLE: Final = "AICR_VALIDATOR_IMAGE"
JOB_NAME: Final = "aicr"
SERVICE_ACCOUNT: Final = "aicr"
OS_KINDS: Final = ("amazonlinux", "cos", "ol", "rhel", "talos", "ubuntu")
GPU_RESOURCE: Final = "nvidia.com/gpu"

#: A prefix and a run id of 32 characters must make a name of at most 63.
LONGEST_PREFIX: Final = 30
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """How the agent's Job is made and how long it may take.

    Attributes:
        job_name: prefix of the Job's name; the run id follows.
        service_account: None for one of the run's own; else used as it is if it exists, or a prefix.
        tolerations: None tolerates everything, [] nothing.
        most_names: names in a list of nodes before it is cut; 0 for all.
        provider: subtypes of cloud dumps to merge into the snapshot (see `projections`).
        partial: take what can be had instead of refusing a snapshot that lacks required readings.
        run_id: "" for a new one; a caller with a run of its own passes that.
    """

    namespace: str = "default"
    image: str = IMAGE
    image_pull_secrets: Sequence[str] = ()
    job_name: str = JOB_NAME
    service_account: str | None = None
    node_selector: Mapping[str, str] | None = None
    tolerations: Sequence[Mapping[str, Any]] | None = None
    require_gpu: bool = False
    runtime_class: str = ""
    os: str = ""
    requests: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)
    privileged: bool = True
    most_names: int = 0
    partial: bool = False
    cleanup: bool = True
    provider: Sequence[Document] = ()
    run_id: str = ""
    times: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        """Check what can be checked without a cluster.

        Raises:
            AicrError: INVALID_REQUEST naming the flag.
        """
        _check_name("--namespace", self.namespace, 63)
        _check_name("--job-name", self.job_name, LONGEST_PREFIX)
        if self.service_account is not None:
            _check_name("--service-account-name", self.service_account, 63)
        if not self.image.strip() or any(character.isspace() for character in self.image):
            raise invalid(f'"{self.image}" is no image', where="--image")
        if self.require_gpu and self.runtime_class:
            raise invalid(
                "--require-gpu and --runtime-class exclude each other",
                where="--runtime-class",
                hint="--require-gpu asks for a GPU of its own; a runtime class shows all without one",
            )
        if self.os and self.os not in OS_KINDS:
            near = nearest(self.os, list(OS_KINDS))
            raise invalid(
                f'unknown OS "{self.os}"',
                where="--os",
                hint=f"did you mean {near}?" if near else f"one of {', '.join(OS_KINDS)}",
            )
        if self.most_names < 0:
            raise invalid(
                f"{self.most_names} names are not possible", where="--max-nodes-per-entry"
            )
        if self.times.agent <= 0:
            raise invalid("a timeout must be longer than nothing", where="--timeout")
        for flag, amounts in (("--requests", self.requests), ("--limits", self.limits)):
            for name, text in amounts.items():
                try:
                    quantities.parse(text)
                except Exception as error:
                    raise invalid(f'"{text}" is no quantity of {name}', where=flag) from error


def default_image(environ: Mapping[str, str]) -> str:
    """The agent's image if no flag names one: all of it, its registry or its tag may be overridden.

    Source: decision 41, validators spec 1.1 (``--image``), 2.4.
    """
    whole = environ.get(IMAGE_VARIABLE, "").strip()
    if whole:
        return whole
    registry = environ.get(container.IMAGE_REGISTRY, "").strip().rstrip("/") or LOCAL_PREFIX
    return f"{registry}/{NAME}:{environ.get(container.IMAGE_TAG, '').strip() or _tag()}"


def parse_amounts(text: str, flag: str) -> dict[str, str]:
    """``cpu=500m,memory=1Gi`` as a map; INVALID_REQUEST for anything else, or a name given twice."""
    found: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, equals, amount = entry.partition("=")
        if not (name and equals and amount):
            raise invalid(f'"{entry}" is not of the form name=quantity', where=flag)
        if name in found:
            raise invalid(f'"{name}" is given twice', where=flag)
        found[name] = amount
    return found


def _check_name(flag: str, text: str, longest: int) -> None:
    if len(text) > longest or not _NAME.fullmatch(text):
        raise invalid(
            f'"{text}" is no name',
            where=flag,
            hint=f"small letters, digits and dashes, at most {longest}, a letter or digit at the ends",
        )
