"""The webhook's decision: a raw pod in, a minimal JSON patch and the reasons out.

```
review (bytes) ─► pod (shape) ─► devices, claims (is it a GPU pod?) ─► selection ─► container, volumes
                                                                                       │
review (bytes) ◄──────────────── decision (outcome, patch, warnings) ◄─────────────────┘
handler: asks for claims and gangs, tells of members and events, counts
```

All but `handler`, `claim_lookup` and `events` are pure functions on plain documents. A pod is never
turned into types and back: what this code does not know survives (decision 21). It must not import
the extra ``webhook``. Source: preflight spec 2.
"""
