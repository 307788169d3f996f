"""Stands in for Dynamo's frontend: answers chat completions in the words of the real one.

What it says depends on the model that a request names: "no-words" gets an answer without content, "busy"
a 503.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Frontend(BaseHTTPRequestHandler):
    """One request."""

    def do_POST(self) -> None:
        """Answer a chat completion."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        model = body.get("model", "")
        if self.path != "/v1/chat/completions":
            self._answer(404, {"message": "Not Found", "code": 404})
        elif "busy" in model:
            self._answer(503, {"message": "no worker is ready", "code": 503})
        else:
            content = "" if "no-words" in model else "Hello! How can I help you?"
            message = {"role": "assistant", "content": content}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            self._answer(
                200, {"object": "chat.completion", "model": model, "choices": [choice], "usage": {}}
            )

    def _answer(self, status: int, document: object) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing of it is of interest."""


if __name__ == "__main__":
    ThreadingHTTPServer(
        ("", int(sys.argv[sys.argv.index("--http-port") + 1])), Frontend
    ).serve_forever()
