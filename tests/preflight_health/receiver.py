"""A platform connector of the tests' own: its message descriptors are declared here by hand, so that a
mistake in our .proto cannot hide in our decoder."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

_KINDS = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "uint32": _KINDS.TYPE_UINT32,
    "string": _KINDS.TYPE_STRING,
    "bool": _KINDS.TYPE_BOOL,
    "enum": _KINDS.TYPE_INT32,
}
#: Name, number, kind, repeated.
_EVENT = [
    ("version", 1, "uint32", False),
    ("agent", 2, "string", False),
    ("componentClass", 3, "string", False),
    ("checkName", 4, "string", False),
    ("isFatal", 5, "bool", False),
    ("isHealthy", 6, "bool", False),
    ("message", 7, "string", False),
    ("recommendedAction", 8, "enum", False),
    ("errorCode", 9, "string", True),
    ("entitiesImpacted", 10, ".check.Entity", True),
    ("generatedTimestamp", 12, ".google.protobuf.Timestamp", False),
    ("nodeName", 13, "string", False),
    ("processingStrategy", 16, "enum", False),
    ("id", 17, "string", False),
    ("customRecommendedAction", 18, "string", False),
]
_ENTITY = [("entityType", 1, "string", False), ("entityValue", 2, "string", False)]
_EVENTS = [("version", 1, "uint32", False), ("events", 2, ".check.Event", True)]


def _message_class() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="check.proto", package="check", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    for name, fields in (("Entity", _ENTITY), ("Event", _EVENT), ("Events", _EVENTS)):
        message = file.message_type.add(name=name)
        for field_name, number, kind, repeated in fields:
            message.field.add(
                name=field_name,
                number=number,
                type=_SCALARS.get(kind, _KINDS.TYPE_MESSAGE),
                type_name=None if kind in _SCALARS else kind,
                label=_KINDS.LABEL_REPEATED if repeated else _KINDS.LABEL_OPTIONAL,
            )
    pool = descriptor_pool.DescriptorPool()
    stamp = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(stamp)
    pool.Add(stamp)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("check.Events"))


EVENTS = _message_class()


def decode(data: bytes) -> Any:
    """A HealthEvents message as the hand-written descriptors read it, with nothing left over."""
    message = EVENTS.FromString(data)
    again = message.SerializeToString(deterministic=True)
    assert len(again) == len(data), "the message holds a field that the interface does not name"
    return message


@dataclass
class Receiver:
    """What arrived, and how calls are answered."""

    path: str
    events: list[Any] = field(default_factory=list)
    metadata: list[dict[str, str]] = field(default_factory=list)
    calls: int = 0
    #: Status for a call by its number, from 1; None takes it.
    answer: Callable[[int], grpc.StatusCode | None] = lambda number: None


@contextmanager
def receiving(
    answer: Callable[[int], grpc.StatusCode | None] = lambda number: None,
) -> Iterator[Receiver]:
    """A server on a Unix socket in a folder of its own, because such a path must be short."""
    folder = Path(tempfile.mkdtemp(prefix="hc"))
    receiver = Receiver(str(folder / "s"), answer=answer)

    def occurred(data: bytes, context: Any) -> bytes:
        receiver.calls += 1
        status = receiver.answer(receiver.calls)
        if status is not None:
            context.abort(status, "not now")
        receiver.metadata.append(
            {key: value for key, value in context.invocation_metadata() if key != "user-agent"}
        )
        message = decode(data)
        assert message.version == 1
        receiver.events += message.events
        return b""

    handler = grpc.unary_unary_rpc_method_handler(occurred)
    threads = ThreadPoolExecutor(2)
    server = grpc.server(threads)
    server.add_generic_rpc_handlers(
        (
            grpc.method_handlers_generic_handler(
                "datamodels.PlatformConnector", {"HealthEventOccurredV1": handler}
            ),
        )
    )
    server.add_insecure_port(f"unix:{receiver.path}")
    server.start()
    try:
        yield receiver
    finally:
        server.stop(0).wait()
        threads.shutdown()
        shutil.rmtree(folder, ignore_errors=True)
