"""The assertion engine: expressions, assertion trees, health checks, and running them.

Lowest first: `jmespath` (expressions), `findings` (what does not match), `tree` (assertions on one
document), `document` (what a health check says), `vacuity` (what would prove nothing), `looking` and
`runner` (a cluster, polled), `selection` (whose check), `gate` (the readiness gate as a state machine)
and `gate_loop` (the gate on a cluster).
`looking`, `runner` and `gate_loop` are asynchronous; the rest is pure, `selection` but for reading files.
"""
