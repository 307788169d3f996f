"""How laws are tried: the same examples in every run, however slow the machine is.

Hypothesis by itself fails an example that takes longer than 200 ms, or examples that are slow to make,
which a busy machine does to any; and it draws other examples each time, so that a run may fail for what
nobody has changed. `AICR_LAWS=random` draws new ones, to look for more.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "laws",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=os.environ.get("AICR_LAWS") != "random",
)
settings.load_profile("laws")
