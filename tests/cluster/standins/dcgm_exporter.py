"""Stands in for the DCGM exporter, and for Prometheus: serves fixed pages.

python dcgm_exporter.py PORT metrics|empty|series|no-series
"""

from __future__ import annotations

import http.server
import json
import sys

METRICS = (
    "DCGM_FI_DEV_GPU_UTIL",
    "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_DEV_GPU_TEMP",
    "DCGM_FI_DEV_POWER_USAGE",
)


def page(kind: str) -> str:
    """What is served."""
    if kind in ("series", "no-series"):
        found = [{"metric": {"gpu": "0"}, "value": [1, "35"]}] if kind == "series" else []
        data = {"resultType": "vector", "result": found}
        return json.dumps({"status": "success", "data": data})
    shown = METRICS if kind == "metrics" else METRICS[:1]
    return "".join(
        f'# HELP {name} Text.\n# TYPE {name} gauge\n{name}{{gpu="0",UUID="GPU-0",Hostname="n"}} 31\n'
        for name in shown
    )


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers every GET alike."""

    def do_GET(self) -> None:
        """The page."""
        body = page(sys.argv[2]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Quiet."""


if __name__ == "__main__":
    http.server.ThreadingHTTPServer(("", int(sys.argv[1])), Handler).serve_forever()
