"""preflight-dcgm-diag: DCGM diagnostics on the GPUs of the pod, through a hostengine of the node.

```
settings   variables, levels     hostengine   the port and its documents    response   what an answer says
run        the flow, retries     bindings     the port on DCGM's bindings   verdict    results → events
__main__   the program
```

GPUs are called by UUID from end to end: the container's numbering never reaches the hostengine, and the
hostengine's numbering never reaches an event (decision 18).
Source: preflight specification 6.
"""
