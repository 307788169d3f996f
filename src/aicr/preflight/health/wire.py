"""Events as the message that the platform connector reads, and back.

Fields 11, 14, 15, 17 and 18 stay unset, and one message holds one event, as the original's checks
send it. It must not know: sockets, retries.
Source: preflight specification 5.1 and 5.2.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from google.protobuf.json_format import MessageToDict

from aicr.preflight.health import health_event_pb2 as pb
from aicr.preflight.health.events import Event, Source

METHOD: Final = "/datamodels.PlatformConnector/HealthEventOccurredV1"
VERSION: Final = 1


def encode(event: Event, source: Source, when: datetime) -> bytes:
    """The bytes of a HealthEvents message with one event.

    Raises:
        ValueError: the action or the strategy has no number, which is a bug of the caller.
    """
    message = pb.HealthEvent(
        version=VERSION,
        agent=source.agent,
        componentClass=source.component_class,
        checkName=event.check_name,
        isFatal=event.is_fatal,
        isHealthy=event.is_healthy,
        message=event.message,
        recommendedAction=event.action,
        errorCode=list(event.error_codes),
        entitiesImpacted=[
            pb.Entity(entityType=entity.type, entityValue=entity.value) for entity in event.entities
        ],
        nodeName=source.node,
        processingStrategy=source.strategy,
    )
    message.generatedTimestamp.FromDatetime(when)
    return pb.HealthEvents(version=VERSION, events=[message]).SerializeToString()


def decode(data: bytes) -> list[dict[str, Any]]:
    """The events of a message as plain documents; unknown enum numbers stay numbers.

    Raises:
        google.protobuf.message.DecodeError: *data* is no such message.
    """
    events = pb.HealthEvents.FromString(data).events
    return [
        MessageToDict(
            event, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
        )
        for event in events
    ]
