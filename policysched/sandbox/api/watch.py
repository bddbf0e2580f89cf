"""One client's watch: which changes it sees, in which form, until its time is over.

It knows the store's events and nothing of HTTP: it yields lines, and the server writes them. Lines are made
from the entries' kept bytes, so that many watches of one resource encode each object once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

from policysched.sandbox.objects import Json, encode
from policysched.sandbox.storage.store import ObjectStore, Stored, StoreEvent

BOOKMARK_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class WatchSpec:
    """What a watch asks for.

    `selects` decides on an object, None selects all; `line` writes an event of a type.
    """

    key: str
    namespace: str
    selects: Callable[[Json], bool] | None
    line: Callable[[str, Stored, int], bytes]
    bookmark: Callable[[int, bool], bytes] | None
    seconds: float


class WatchStream:
    """A stream of event lines for one client."""

    def __init__(self, store: ObjectStore, spec: WatchSpec) -> None:
        self._spec = spec
        self._store = store
        self._pending: deque[bytes] = deque()
        self._wake = asyncio.Event()
        self._stop = store.listen(spec.key, self.offer)
        self.closed = False

    def offer(self, event: StoreEvent) -> None:
        """Take a change of the store, if this client sees it."""
        seen = self._seen(event)
        if seen:
            self.push(self._spec.line(seen, self._shown(seen, event), event.revision))

    def push(self, line: bytes) -> None:
        """Send a line as it is."""
        self._pending.append(line)
        self._wake.set()

    def close(self) -> None:
        """End the stream; lines already taken are still delivered."""
        self.closed = True
        self._stop()
        self._stop = lambda: None
        self._wake.set()

    def _inside(self, entry: Stored | None) -> bool:
        if entry is None:
            return False
        namespace, selects = self._spec.namespace, self._spec.selects
        if namespace and entry.key[0] != namespace:
            return False
        return selects is None or selects(entry.object)

    def _seen(self, event: StoreEvent) -> str:
        """Name the event as this client sees it: an object that leaves its selection is deleted to it."""
        if event.type == "DELETED":
            return "DELETED" if self._inside(event.before) else ""
        now, before = self._inside(event.entry), self._inside(event.before)
        if now:
            return "MODIFIED" if before else "ADDED"
        return "DELETED" if before else ""

    def _shown(self, seen: str, event: StoreEvent) -> Stored:
        left = seen == "DELETED" and event.type != "DELETED" and event.before is not None
        if not left or event.before is None:
            return event.entry
        metadata = event.before.object["metadata"] | {"resourceVersion": str(event.revision)}
        return type(event.before)(event.before.object | {"metadata": metadata}, event.revision)

    async def lines(self) -> AsyncGenerator[bytes]:
        """Yield what there is to send, several lines at once when they have piled up."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self._spec.seconds
        bookmark_at = loop.time() + BOOKMARK_SECONDS
        while True:
            if self._pending:
                chunk = b"".join(self._pending)
                self._pending.clear()
                yield chunk
            if self.closed or loop.time() >= end:
                return
            await self._pause(min(end, bookmark_at) - loop.time())
            if self._spec.bookmark and loop.time() >= bookmark_at:
                bookmark_at = loop.time() + BOOKMARK_SECONDS
                self.push(self._spec.bookmark(self._store.revision, False))

    async def _pause(self, seconds: float) -> None:
        if self._pending or self.closed:
            return
        self._wake.clear()
        try:
            async with asyncio.timeout(max(seconds, 0)):
                await self._wake.wait()
        except TimeoutError:
            return


def event_line(kind: str, encoded: bytes) -> bytes:
    """Write one event of a watch."""
    return b'{"type":"' + kind.encode() + b'","object":' + encoded + b"}\n"


def bookmark_line(api_version: str, kind: str, revision: int, initial_end: bool) -> bytes:
    """Write a bookmark; the one that ends the initial list carries an annotation."""
    metadata: Json = {"resourceVersion": str(revision)}
    if initial_end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return event_line("BOOKMARK", encode({"kind": kind, "apiVersion": api_version, "metadata": metadata}))
