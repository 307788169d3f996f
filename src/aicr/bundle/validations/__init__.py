"""Checks that stop a bundle which would break the cluster, though recipe and charts accept it.

```
registry entry ── validations: [{function, severity, conditions, message}]
                      │
engine   for each rendered component, each of its validations
table      name ─► module and function          (loaded only when a component wires it)
conditions   do the recipe's criteria match?
<topic>        context ─► findings, errors      (pure; no network, no cluster)
engine           severity ─► blocks, a deployment note, or a line of advice
```

What is judged are final values: recipe, flags and overrides together (``effective``). Evidence is
read from every component that the recipe declares; only rendered components are judged (bundler
spec 6). This package must not know deployers, folders or how a bundle is written.
"""
