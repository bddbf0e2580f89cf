"""Requests to etcd itself, past the API server: its revision, its values, and forgetting its history.

It knows etcd's JSON gateway and nothing of Kubernetes' objects.
"""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from typing import Any, Final

_MARK: Final = base64.b64encode(b"/policysched-tests/compacted").decode()


class Etcd:
    """An etcd on loopback."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def healthy(self) -> bool:
        """Whether it answers and has a leader, itself."""
        try:
            return bool(self._ask("GET", "/health")["health"] == "true")
        except (OSError, ValueError):
            return False

    def compact(self) -> int:
        """Forget everything before the present revision; give that.

        A key of no meaning is written first, so that whoever read before this call is behind.
        """
        written = self._ask("POST", "/v3/kv/put", {"key": _MARK, "value": _MARK})
        revision = int(written["header"]["revision"])
        self._ask("POST", "/v3/kv/compaction", {"revision": str(revision), "physical": True})
        return revision

    def knows(self, revision: int) -> bool:
        """Whether the state at a revision can still be read."""
        try:
            self._ask("POST", "/v3/kv/range", {"key": _MARK, "revision": str(revision)})
        except urllib.error.HTTPError as error:
            if b"compacted" not in error.read():
                raise
            return False
        return True

    def value(self, key: str) -> dict[str, Any]:
        """Return the JSON at a key, as the API server stores custom resources."""
        found = self._ask("POST", "/v3/kv/range", {"key": base64.b64encode(key.encode()).decode()})
        stored: dict[str, Any] = json.loads(base64.b64decode(found["kvs"][0]["value"]))
        return stored

    def _ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, method=method)  # noqa: S310 - the URL is our own
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
            return found
