"""The checks that a validation run executes, and what they are written with.

```
sdk/            what every check uses: Check, Context, Skip, require, nodes, pods, namespaces
deployment/     conformance/     performance/     one check a file, each with one CHECK
registry        name of a check → its module, loaded on demand
main            `aicr-check NAME`, the program that runs inside a check container
```

A check looks at a cluster through `aicr.kube.port.Cluster`; it never knows who started it, how its
result is collected, or what a recipe is beyond the validation input that it is handed.
"""
