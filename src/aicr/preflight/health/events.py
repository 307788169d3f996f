"""One health event in plain values, before it becomes a message on the wire.

A check builds these; nothing here knows protobuf, sockets or the clock.
Source: preflight specification 5.1 and 5.2, decision 18 (a GPU is its UUID).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from aicr.errors import invalid, nearest

#: What the platform is to do with an event; the connector takes the first for the second.
STRATEGIES: Final = ("UNSPECIFIED", "EXECUTE_REMEDIATION", "STORE_ONLY", "STORE_AND_ANALYSE")
EXECUTE_REMEDIATION: Final = "EXECUTE_REMEDIATION"
STORE_ONLY: Final = "STORE_ONLY"

#: entityType of a GPU; its value is the UUID.
GPU_UUID: Final = "GPU_UUID"


@dataclass(frozen=True)
class Entity:
    """A thing that an event is about."""

    type: str
    value: str


@dataclass(frozen=True)
class Source:
    """Who sends: the same for all events of a check."""

    agent: str
    component_class: str
    node: str
    strategy: str = EXECUTE_REMEDIATION


@dataclass(frozen=True)
class Event:
    """What was found.

    A healthy event has no error code and no action. Only a fatal one leads to a cordon.
    """

    check_name: str
    message: str
    is_healthy: bool
    is_fatal: bool = False
    #: Name of a RecommendedAction (aicr.fabric.dcgm_codes.ACTIONS).
    action: str = "NONE"
    error_codes: tuple[str, ...] = ()
    entities: tuple[Entity, ...] = ()

    def document(self) -> dict[str, Any]:
        """The event as a plain document, with the field names of the wire."""
        return {
            "checkName": self.check_name,
            "isHealthy": self.is_healthy,
            "isFatal": self.is_fatal,
            "message": self.message,
            "recommendedAction": self.action,
            "errorCode": list(self.error_codes),
            "entitiesImpacted": [
                {"entityType": entity.type, "entityValue": entity.value} for entity in self.entities
            ],
        }


def healthy(check_name: str, message: str, *entities: Entity) -> Event:
    """Nothing is wrong."""
    return Event(check_name, message, True, entities=entities)


def finding(
    check_name: str, message: str, action: str, *codes: str, entities: tuple[Entity, ...] = ()
) -> Event:
    """The hardware is at fault: the node is to be cordoned."""
    return Event(check_name, message, False, True, action, codes, entities)


def notice(
    check_name: str,
    message: str,
    *codes: str,
    action: str = "NONE",
    entities: tuple[Entity, ...] = (),
) -> Event:
    """Unhealthy, but no reason to cordon: a warning, or something that could not be tested."""
    return Event(check_name, message, False, False, action, codes, entities)


def gpu(uuid: str) -> Entity:
    """The GPU of that UUID."""
    return Entity(GPU_UUID, uuid)


def check_strategy(text: str) -> str:
    """The name of a processing strategy.

    Raises:
        AicrError: INVALID_REQUEST `Invalid PROCESSING_STRATEGY: X` (preflight specification 6.1).
    """
    if text not in STRATEGIES:
        near = nearest(text, list(STRATEGIES))
        raise invalid(
            f"Invalid PROCESSING_STRATEGY: {text}",
            hint=f"did you mean {near}?" if near else f"one of {', '.join(STRATEGIES)}",
        )
    return text


def as_lines(event: Mapping[str, Any]) -> list[str]:
    """A document of an event for people: what, about what, and what is to be done."""
    word = "healthy" if event["isHealthy"] else "FATAL" if event["isFatal"] else "not fatal"
    lines = [f"{event['checkName']}: {word}: {event['message']}"]
    if event.get("agent"):
        lines.append(f"  from {event['agent']} on node {event.get('nodeName') or '(none)'}")
    if not event["isHealthy"]:
        lines.append(f"  action {event['recommendedAction']}")
    if event["errorCode"]:
        lines.append(f"  code {', '.join(event['errorCode'])}")
    lines += [
        f"  about {entity['entityType']} {entity['entityValue']}"
        for entity in event["entitiesImpacted"]
    ]
    if event.get("processingStrategy"):
        lines.append(f"  strategy {event['processingStrategy']}")
    return lines
