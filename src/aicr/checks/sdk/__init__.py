"""What checks are written with; see docs/checks-sdk.md.

```
check        Check, Setting: what a check says about itself
context      Context: what it is handed
outcome      Skip, failed: how it ends            capability   require: proceed, skip or fail
timeouts     every waiting time
nodes        GPU nodes, cordons, busy nodes       pods         one pod from template to logs
resources    is a workload ready                  namespaces   a namespace of the run, removed by UID
allocation   who advertises GPUs: facts, policy, choice
```
"""

from aicr.checks.sdk.capability import Capability, declares, require, require_list
from aicr.checks.sdk.check import CONFORMANCE, DEPLOYMENT, PERFORMANCE, Check, Setting
from aicr.checks.sdk.context import Context
from aicr.checks.sdk.outcome import Skip, failed

__all__ = [
    "CONFORMANCE",
    "DEPLOYMENT",
    "PERFORMANCE",
    "Capability",
    "Check",
    "Context",
    "Setting",
    "Skip",
    "declares",
    "failed",
    "require",
    "require_list",
]
