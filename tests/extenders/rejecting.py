"""An extender that accepts one node, in a thread, for commands that call extenders with an event loop of their own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


class Rejecting(BaseHTTPRequestHandler):
    """An extender that accepts only the node n2, and fails for the pod p9."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        names = [one["metadata"]["name"] for one in asked["Nodes"]["items"]]
        kept = [one for one in asked["Nodes"]["items"] if one["metadata"]["name"] == "n2"]
        answer = {"Nodes": {"items": kept}, "FailedNodes": {name: "not here" for name in names if name != "n2"}}
        if asked["Pod"]["metadata"]["name"] == "p9":
            answer = {"Error": "no answer"}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@contextmanager
def rejecting_extender() -> Iterator[dict[str, Any]]:
    """Run the extender in a thread, and yield a configuration with it."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Rejecting) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "extenders": [{"urlPrefix": f"http://127.0.0.1:{server.server_port}", "filterVerb": "filter"}],
        }
        server.shutdown()
        thread.join()
