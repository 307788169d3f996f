"""Taking snapshots: what is measured on a machine and in a cluster, and the agent that does it there.

```
ports (files, commands) ─► os_*, gpu, pci, systemd, network ─┐
kube.reader             ─► kubernetes, topology, conflicts  ─┼─► taking ─► snapshot document
provider dumps          ─► projections                      ─┘      ▲ main (in the pod), agent (outside)
```

Every reader of text is a pure function; files, processes and the API come in through arguments. A
collector never guesses: what it could not tell is named with its reason, and the reading is absent.
Decision 34 calls this the upper half of `snapshot`, whose document it writes.
"""
