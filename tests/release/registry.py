"""A registry of OCI artefacts on the loopback interface, as far as pushing and pulling a chart needs one."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit


class Registry(ThreadingHTTPServer):
    """Blobs and manifests by their digests, with their media types, and digests of manifests by their tags."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.stored: dict[str, tuple[str, bytes]] = {}
        self.tags: dict[str, str] = {}

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Begin an upload."""
        self._answer(202, Location=f"{urlsplit(self.path).path}one")

    def do_PUT(self) -> None:
        """Store a blob or a manifest."""
        parts = urlsplit(self.path)
        content = self.rfile.read(int(self.headers["Content-Length"]))
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        if "/manifests/" in parts.path:
            self._registry.tags[parts.path.rpartition("/")[2]] = digest
        else:
            assert parse_qs(parts.query)["digest"] == [digest]
        self._registry.stored[digest] = (self.headers.get("Content-Type", ""), content)
        self._answer(201, Docker_Content_Digest=digest, Location=parts.path)

    def do_GET(self) -> None:
        """Return a blob, or a manifest by digest or tag."""
        name = self.path.rpartition("/")[2]
        digest = self._registry.tags.get(name, name)
        if digest not in self._registry.stored:
            self._answer(404 if name else 200)
            return
        kind, content = self._registry.stored[digest]
        self._answer(200, content, Content_Type=kind, Docker_Content_Digest=digest)

    def __getattr__(self, name: str) -> Any:
        if name == "do_HEAD":
            return self.do_GET
        raise AttributeError(name)

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    @property
    def _registry(self) -> Registry:
        return cast("Registry", self.server)

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@contextmanager
def serving() -> Iterator[Registry]:
    """Serve an empty registry."""
    registry = Registry()
    thread = threading.Thread(target=registry.serve_forever)
    thread.start()
    try:
        yield registry
    finally:
        registry.shutdown()
        registry.server_close()
        thread.join()
