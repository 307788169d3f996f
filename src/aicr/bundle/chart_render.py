"""Renders a chart that is at hand with the helm that is at hand, to see what it installs.

```
folder of a vendored chart --Helm.render--> text of the manifests, or why there is none
```
Nothing is fetched: the chart's dependencies lie in its ``charts/``. It must not know what the
manifests are looked at for. Source: bundler spec 8.1; decision 58.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from typing import Final, Protocol

from aicr.artifacts import archives
from aicr.bundle.tool_times import ToolTimes
from aicr.errors import NOT_FOUND, SERVICE_UNAVAILABLE, AicrError

_VALUES: Final = ("values.yaml", "cluster-values.yaml")
_CHART_BYTES: Final = 1 << 20
#: Most that is unpacked of one chart, in bytes.
_MOST: Final = 512 << 20


class Renderer(Protocol):
    """What turns the files of a chart folder into manifests."""

    def render(self, release: str, namespace: str, files: Mapping[str, bytes]) -> str:
        """The manifests of a chart folder; AicrError says why there are none."""
        ...


class Helm:
    """``helm template`` in a temporary folder."""

    def __init__(self, program: str = "helm") -> None:
        self._program = program

    def render(self, release: str, namespace: str, files: Mapping[str, bytes]) -> str:
        """The manifests of the chart folder *files*, CRDs left out.

        Raises:
            AicrError: NOT_FOUND without helm, SERVICE_UNAVAILABLE when it refuses the chart.
        """
        program = shutil.which(self._program)
        if program is None:
            raise AicrError(
                NOT_FOUND, "helm is not on PATH", hint="install helm to have charts rendered"
            )
        with tempfile.TemporaryDirectory(prefix="aicr-") as folder:
            chart = os.path.join(folder, "chart")
            for path, data in files.items():
                place = os.path.join(chart, path)
                os.makedirs(os.path.dirname(place), exist_ok=True)
                with open(place, "wb") as stream:
                    stream.write(data)
            command = [program, "template", release, chart, "--namespace", namespace]
            for name in _VALUES:
                if name in files:
                    command += ["-f", os.path.join(chart, name)]
            # Its settings and caches are its user's own; a chart at hand needs none of them.
            environment = dict(os.environ, HELM_CONFIG_HOME=folder, HELM_CACHE_HOME=folder)
            try:
                done = subprocess.run(
                    command,
                    capture_output=True,
                    text=True,
                    timeout=ToolTimes().render,
                    check=False,
                    env=environment,
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                raise AicrError(
                    SERVICE_UNAVAILABLE, f"helm template did not finish: {error}"
                ) from error
            if done.returncode != 0:
                said = done.stderr.replace(folder, "").strip().splitlines()
                raise AicrError(
                    SERVICE_UNAVAILABLE,
                    f"helm template failed: {said[0] if said else done.returncode}",
                )
        return done.stdout


def app_version(archive: bytes) -> str:
    """``appVersion`` of a packed chart, which its templates use where no tag is given; "" if none."""
    from aicr.yamlio import read

    try:
        with archives.opened(archive, most=_MOST) as tar:
            for member in tar:
                if member.isfile() and member.name.count("/") == 1:
                    if not member.name.endswith("/Chart.yaml"):
                        continue
                    if member.size > _CHART_BYTES:
                        return ""
                    text = archives.content(tar, member).decode()
                    chart = read.load(text, source=member.name)
                    found = chart.get("appVersion") if isinstance(chart, dict) else None
                    return str(found) if found is not None else ""
    except (*archives.BROKEN, AicrError):
        return ""
    return ""
