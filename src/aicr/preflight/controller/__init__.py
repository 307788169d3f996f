"""The loops behind gang coordination: caches, queues, election.

```
Pod cache ──┐                          ┌─► gang ConfigMaps          (leader only)
ConfigMap ──┼─► keys ─► queue ─► reconcile
cache       │                          └─► PreflightConfig statuses (leader only)
PreflightConfig cache ─► resolver of this process                   (every replica)
```

What is decided stands in `aicr.preflight.gang` and is pure; here is when it is decided, on what data,
and how it is written. A decision needs fresh caches: pods that were not seen because a watch was cut
are not pods that are gone. Source: preflight spec 3.6, 4.4, 4.6, decisions 22, 23.
"""
