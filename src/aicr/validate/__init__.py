"""``aicr validate``: a recipe's checks against a cluster, from plan to report.

``` catalog, images ─► preflight, readiness, affinity ─► plan, environment, objects ─► runner_job
| runner_local
                          (gates)                        (documents)                (the cluster, processes)
phases ◄── report ◄── extraction, verdicts ◄── what the runner saw
```

Everything but the runners, `run` and `interrupts` is pure: documents in, documents out. A check
is one Kubernetes Job; what it found comes back through its exit code, its termination message and
its output (`aicr.contract`). This package knows no single check: those are in `aicr.checks`,
which does not know this package.
"""

from __future__ import annotations
