"""Evidence of a run that other people can read and check.

```
report ──cncf_pages──► Markdown, a file for each CNCF requirement                (spec 9.1)
cluster ─features, behaviour─► Markdown, a file for each feature that was used   (spec 9.2)
recipe, snapshot, reports ─canonical, bill, predicate, inventory─► bundle ─► folder
folder ─publication─► registry, signature ─► pointer;  folder or registry ─verification─► report
```

Everything left of a folder, a registry or a signature is pure. What is published goes through
`aicr.validate.redaction`, unless somebody asked for everything. The three functions below are what
`aicr validate` calls; each imports its part when it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Say = Callable[[str], None]
Confirm = Callable[[str], bool]


def render_cncf(report: dict[str, Any], directory: str) -> Sequence[str]:
    """Write the CNCF pages of a merged report into *directory*; lines for people.

    Raises:
        AicrError: INVALID_REQUEST without a directory or when it cannot be written; TIMEOUT when
            rendering takes longer than its bound.
    """
    from aicr.validate.evidence import cncf_files

    return cncf_files.render(report, directory)


def collect_cncf(
    directory: str, features: Sequence[str], *, policy: str, kubeconfig: str
) -> Sequence[str]:
    """Use each feature of a cluster and write a page about it; lines for people.

    Raises:
        AicrError: INTERNAL when a section failed, after all pages are written.
    """
    from aicr.validate.evidence import behaviour

    return behaviour.collect(directory, features, policy=policy, kubeconfig=kubeconfig)


def attest(
    request: Mapping[str, Any], *, say: Say | None = None, confirm: Confirm | None = None
) -> Sequence[str]:
    """Write, and push and sign if the request says so, the bundle of a run.

    Lines for people go to *say* as they come, and are returned when there is none; *confirm* asks a
    person before signing names them in public.

    Raises:
        AicrError: what cannot be built, written, pushed or signed; what was done before is kept.
    """
    from aicr.validate.evidence import attesting

    return attesting.attest(request, say=say, confirm=confirm)
