"""Preflight: checks of GPUs and fabric that run in a pod before its workload does.

```
config ─► admission (which pods, which containers, which patch) ─► server (TLS, probes, metrics)
   └────► gang, controller (who belongs together, and the ConfigMap that says so)
```

`admission` decides on plain documents and imports nothing but the base install; `server*` are the
only modules that import the extra ``webhook``. This package must not know recipes or bundles.
Source: preflight spec, decisions 16 to 27, 31, 69 to 79.
"""
