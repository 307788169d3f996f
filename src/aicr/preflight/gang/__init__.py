"""Gangs: which pods belong together, how many there must be, and the ConfigMap that tells them.

```
pod ─► resolver ─► discoverer ─► Anchor (gang id, object) ─► Group (minimum)
                   native | podgroup + expression                │
pods mounting one ConfigMap ────────────────────────────► coordination (pure) ─► desired ConfigMap
admission ─► registration: the skeleton, before the pod exists
```

Membership is by the ConfigMap that a pod mounts, because that is what its checks will read, and by
pod UID. Nothing here watches or queues; `aicr.preflight.controller` does. Source: preflight spec 3 and
4, decisions 22, 25, 27, 70 to 72.
"""
