"""Health events: what a check tells the platform connector of its node, and the one client that tells it.

```
events      an Event in words, no wire            wire       Event → HealthEvents message and back
transport   one call on a Unix socket             client     retries, token, strategy: what checks use
connector   a server that shows what arrives      health_event_pb2   generated from proto/
```

`events` needs the base install only; the others need the extra ``health``. The exit code of a check
decides whether a pod starts; the event decides what happens to the node. This package decides neither.
Source: preflight specification 5.
"""
