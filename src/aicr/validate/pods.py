"""Reading Jobs and pods: has it ended, what keeps it from starting, and is there any hope.

Waiting ends early for what waiting does not mend (decision 14): a wrong image name, an image that
cannot be pulled, a pod that no node takes, a pod that may not be created. Everything here works
on documents as the API gives them; `Patience` alone has memory, and is told the time.

It must not know how documents come in. Source: validators spec 3.6, 3.7; decision 14.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from aicr.contract.container import CONTAINER
from aicr.errors import INTERNAL, SERVICE_UNAVAILABLE, TIMEOUT, UNAUTHORIZED
from aicr.validate.images import not_on_node
from aicr.validate.timing import Timing

Document = Mapping[str, Any]

COMPLETE: Final = "Complete"
FAILED: Final = "Failed"
DEADLINE_EXCEEDED: Final = "DeadlineExceeded"

_NEVER_PULLED: Final = "ErrImageNeverPull"
#: What every pod waits for on its way.
_ORDINARY: Final = frozenset({"ContainerCreating", "PodInitializing", ""})
#: No second attempt can end otherwise.
_AT_ONCE: Final = frozenset({"InvalidImageName", _NEVER_PULLED})
#: The node tries again, and is given a little time.
_PULLING: Final = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "ImageInspectError"}
)
_STARTING: Final = frozenset(
    {"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff"}
)


@dataclass(frozen=True, slots=True)
class Hopeless:
    """Why waiting ends now, and the code of what could not be told."""

    message: str
    code: str


def ended(job: Document) -> tuple[str, Document] | None:
    """(``Complete`` or ``Failed``, the condition) of a Job that has ended; None for another."""
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition.get("type") in (COMPLETE, FAILED) and condition.get("status") == "True":
            return condition["type"], condition
    return None


def status_of(pod: Document) -> Document | None:
    """The status of the check's container; sidecars are passed over."""
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        if status.get("name") == CONTAINER:
            found: Document = status
            return found
    return None


def terminated(pod: Document) -> Document | None:
    """The ``terminated`` state of the check's container, once it has ended."""
    return ((status_of(pod) or {}).get("state") or {}).get("terminated")


def has_started(pod: Document) -> bool:
    """Whether the check's container runs or has run, so that there is a log to follow."""
    state = (status_of(pod) or {}).get("state") or {}
    return "running" in state or "terminated" in state


def waiting(pod: Document) -> tuple[str, str]:
    """(reason, message) of what the check's container waits for, or of why no node takes the pod."""
    state = ((status_of(pod) or {}).get("state") or {}).get("waiting")
    if state:
        return str(state.get("reason") or ""), str(state.get("message") or "")
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return str(condition.get("reason") or ""), str(condition.get("message") or "")
    return "", ""


def explained(pod: Document) -> str:
    """``Reason: message`` of what a pod waits for or died of as a whole; "" if it does not say."""
    status = pod.get("status") or {}
    reason, message = waiting(pod)
    if status.get("reason"):
        reason, message = str(status["reason"]), str(status.get("message") or "")
    return ": ".join(part for part in (reason, message) if part)


def remarkable(pod: Document) -> str:
    """What a pod waits for, if it is not what every pod waits for; "" otherwise."""
    reason, message = waiting(pod)
    if reason in _ORDINARY:
        return ""
    return ": ".join(part for part in (reason, message) if part)


def of_job(pods: Iterable[Document], uid: str) -> list[Document]:
    """The pods that a Job with this UID owns."""
    return [
        pod
        for pod in pods
        if any(
            owner.get("uid") == uid
            for owner in (pod.get("metadata") or {}).get("ownerReferences") or ()
        )
    ]


def choose(pods: Sequence[Document]) -> Document | None:
    """The pod that speaks for a Job: of several, one that did not pass before one that did."""

    def rank(pod: Document) -> tuple[bool, bool, str]:
        end = terminated(pod)
        created = str((pod.get("metadata") or {}).get("creationTimestamp") or "")
        return (end is not None and end.get("exitCode") != 0, end is not None, created)

    return max(pods, key=rank, default=None)


@dataclass
class Patience:
    """Whether there is hope for one check, over time. *timing* says how long each thing may take."""

    timing: Timing
    _since: dict[str, float] = field(default_factory=dict)

    def judge(self, pod: Document | None, now: float, refused: str = "") -> Hopeless | None:
        """Look at the pod of a Job that has not ended.

        Args:
            pod: the pod, or None while there is none.
            now: seconds on any steady clock.
            refused: why the Job's pod could not be created, from its events; "" if nothing was said.
        """
        if pod is None:
            self._lasting("no pod", now)
            if refused:
                return Hopeless(f"validator pod cannot be created: {refused}", _code_of(refused))
            return None
        reason, message = waiting(pod)
        said = ": ".join(part for part in (reason, message) if part)
        if reason in _AT_ONCE:
            return Hopeless(self._image(pod, reason, said), SERVICE_UNAVAILABLE)
        if reason in _PULLING:
            if self._lasting("pull", now) >= self.timing.pull:
                return Hopeless(self._image(pod, reason, said), SERVICE_UNAVAILABLE)
        elif reason in _STARTING:
            if self._lasting("start", now) >= self.timing.pull:
                return Hopeless(f"validator container cannot start: {said}", INTERNAL)
        elif reason == "Unschedulable":
            if self._lasting("schedule", now) >= self.timing.schedule:
                return Hopeless(
                    f"no node took the validator pod within {self.timing.schedule:g}s: {said}",
                    TIMEOUT,
                )
        else:
            self._since.clear()
        return None

    def without_pod(self, now: float) -> bool:
        """Whether a Job has had no pod for so long that its events should be asked why."""
        return self._lasting("no pod", now) >= self.timing.pod_created

    def _lasting(self, what: str, now: float) -> float:
        """For how long the pod has been in a state; another state begins anew."""
        if what not in self._since:
            self._since = {what: now}
        return now - self._since[what]

    def _image(self, pod: Document, reason: str, said: str) -> str:
        image = next(
            (
                str(one.get("image"))
                for one in (pod.get("spec") or {}).get("containers") or ()
                if one.get("name") == CONTAINER
            ),
            "",
        )
        if reason == _NEVER_PULLED:
            node = str((pod.get("spec") or {}).get("nodeName") or "")
            return f"validator container cannot start: {said}; {not_on_node(image, node)}"
        return f"validator container cannot start: {said}"


def refusal(events: Iterable[Document]) -> str:
    """Why a Job's pod could not be created, from the Job's events; "" if none says so."""
    found = [
        event
        for event in events
        if event.get("reason") == "FailedCreate" and event.get("type") == "Warning"
    ]
    return str(found[-1].get("message") or "") if found else ""


def last_warning(events: Iterable[Document]) -> str:
    """``Reason: message`` of the latest warning about a pod; "" if there is none."""

    def when(event: Document) -> str:
        series = event.get("series") or {}
        times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
        return str(next(filter(None, times), ""))

    found = max((one for one in events if one.get("type") == "Warning"), key=when, default=None)
    if found is None:
        return ""
    return f"{found.get('reason', '')}: {found.get('message', '')}"


def _code_of(refused: str) -> str:
    return UNAUTHORIZED if "forbidden" in refused else INTERNAL


def node_trouble(node: Document) -> str:
    """Why a node cannot be relied on, ``not ready (reason: message)``; "" for one that is ready."""
    for condition in (node.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Ready":
            if condition.get("status") == "True":
                return ""
            said = [str(condition.get(key) or "") for key in ("reason", "message")]
            return f"not ready ({': '.join(part for part in said if part)})"
    return "not ready (it reports no Ready condition)"
