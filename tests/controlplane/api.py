"""A small client of an API server for setting tests up: requests one after the other, waiting for each.

It knows how objects are addressed, from the server's own discovery, and nothing of what they mean. Fixtures that live
longer than an event loop use it, so it has none.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

Json = dict[str, Any]
JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
_DISCOVERY: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_IDLE: Final = 20.0
"""How old an idle connection may be before another is made. Units: seconds."""
_MOST_TURNS_AWAY: Final = 10
"""How often a request is made that the server has no time for (429)."""


class RefusedError(Exception):
    """The server's answer is a failure; `status` is its code and `body` what it sent."""

    def __init__(self, request: str, status: int, body: bytes) -> None:
        super().__init__(f"{request}: {status}: {body.decode('utf-8', 'replace')[:2000]}")
        self.status = status
        self.body = body


@dataclass(frozen=True, slots=True)
class Kind:
    """How objects of a kind are addressed."""

    prefix: str
    plural: str
    namespaced: bool
    verbs: frozenset[str]

    def path(self, namespace: str | None, name: str = "") -> str:
        """Give the path of a collection, over all namespaces with None, or of an object."""
        inside = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{self.prefix}{inside}/{self.plural}" + (f"/{name}" if name else "")


class Api:
    """Requests of one user over one connection; threads take turns. It must be closed."""

    def __init__(self, port: int, tls: ssl.SSLContext, token: str) -> None:
        self._port = port
        self._tls = tls
        self._head = {"Authorization": f"Bearer {token}", "Accept": JSON}
        self._turn = threading.Lock()
        self._open: http.client.HTTPSConnection | None = None
        self._used = 0.0
        self._kinds: dict[tuple[str, str], Kind] = {}

    def raw(self, method: str, path: str, body: Any = None, head: Mapping[str, str] | None = None) -> bytes:
        """Make a request and give the body of its answer.

        Raises:
            RefusedError: the answer is a failure.
            OSError: there is no answer.
        """
        for _ in range(_MOST_TURNS_AWAY):
            status, found = self._answer(method, path, body, head)
            if status != http.HTTPStatus.TOO_MANY_REQUESTS:
                break
            time.sleep(1.0)  # what it asks for while the storage of a new kind begins
        if status >= http.HTTPStatus.BAD_REQUEST:
            raise RefusedError(f"{method} {path}", status, found)
        return found

    def _answer(self, method: str, path: str, body: Any, head: Mapping[str, str] | None) -> tuple[int, bytes]:
        data = None if body is None else json.dumps(body)
        sent = self._head | ({"Content-Type": JSON} if data else {}) | dict(head or {})
        with self._turn:
            connection = self._connection()
            try:
                connection.request(method, path, data, sent)
                answer = connection.getresponse()
                found = answer.read()
            except (OSError, http.client.HTTPException) as error:
                self._hang_up()
                raise ConnectionError(f"{method} {path}: {error!r}") from error
        return answer.status, found

    def call(self, method: str, path: str, body: Any = None, media: str = JSON) -> Json:
        """Make a request with a JSON answer.

        Raises:
            RefusedError: the answer is a failure.
            OSError: there is no answer.
        """
        found: Json = json.loads(self.raw(method, path, body, {"Content-Type": media} if body is not None else None))
        return found

    def answers(self, path: str) -> bool:
        """Whether a GET request succeeds now."""
        try:
            self.raw("GET", path)
        except (RefusedError, OSError):
            return False
        return True

    def kind(self, name: str, api_version: str = "") -> Kind:
        """Find a kind: the core group's or the first in the server's order where no version is told.

        Raises:
            KeyError: it is not served.
        """
        if (name, api_version) not in self._kinds:
            self._discover()
        return self._kinds[name, api_version]

    def create(self, obj: Json) -> Json:
        """Create an object; one without a namespace goes into `default`."""
        kind = self.kind(obj["kind"], obj["apiVersion"])
        return self.call("POST", kind.path(obj["metadata"].get("namespace", "default")), obj)

    def objects(
        self, kind: str, namespace: str | None = None, *, labels: str = "", api_version: str = ""
    ) -> list[Json]:
        """List the objects of a kind, of all namespaces where none is told."""
        query = f"?labelSelector={labels}" if labels else ""
        items: list[Json] = self.call("GET", self.kind(kind, api_version).path(namespace) + query)["items"]
        return items

    def get(self, kind: str, name: str, namespace: str = "default") -> Json:
        """Read an object."""
        return self.call("GET", self.kind(kind).path(namespace, name))

    def patch(self, kind: str, name: str, change: Json, namespace: str = "default", part: str = "") -> Json:
        """Merge a change into an object, or into its subresource, as `/status`."""
        return self.call("PATCH", self.kind(kind).path(namespace, name) + part, change, MERGE_PATCH)

    def delete(self, kind: str, name: str, namespace: str = "default", **options: Any) -> None:
        """Delete an object; the options are those of DeleteOptions."""
        self.call("DELETE", self.kind(kind).path(namespace, name), options or None)

    def close(self) -> None:
        """Close the connection; another request makes another."""
        with self._turn:
            self._hang_up()

    def _hang_up(self) -> None:
        if self._open is not None:
            self._open.close()
        self._open = None

    def _connection(self) -> http.client.HTTPSConnection:
        if time.monotonic() - self._used > _IDLE:
            self._hang_up()
        self._used = time.monotonic()
        if self._open is None:
            self._open = http.client.HTTPSConnection("127.0.0.1", self._port, timeout=30, context=self._tls)
        return self._open

    def _discover(self) -> None:
        self._kinds.clear()
        for root in ("/api", "/apis"):
            for group in json.loads(self.raw("GET", root, head={"Accept": _DISCOVERY}))["items"]:
                self._note(root, group["metadata"].get("name", ""), group["versions"])

    def _note(self, root: str, group: str, versions: list[Json]) -> None:
        for version in versions:
            api_version = f"{group}/{version['version']}" if group else version["version"]
            for each in version.get("resources", ()):
                verbs = frozenset(each["verbs"])
                found = Kind(f"{root}/{api_version}", each["resource"], each["scope"] == "Namespaced", verbs)
                name = each["responseKind"]["kind"]
                self._kinds.setdefault((name, api_version), found)
                if "list" in verbs:
                    self._kinds.setdefault((name, ""), found)
