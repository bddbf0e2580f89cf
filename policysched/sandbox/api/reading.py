"""Get, list and watch requests: encodings, pages, selectors, start and contents of watches.

An object is encoded once: lists and watches share its bytes. Pages come from a snapshot kept for their list, so all
pages of a list show the same moment. Watches yield lines, which the server writes.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import inf

from policysched.apimachinery import Json, decode, encode
from policysched.apimachinery.errors import Cause, StatusError, gone, invalid
from policysched.apimachinery.kinds import outward
from policysched.apimachinery.resources import ApiResource
from policysched.sandbox.api.requests import Target, flag, number, selection
from policysched.sandbox.api.tables import table
from policysched.sandbox.storage.store import Backend, ObjectStore, Stored, StoreEvent

BOOKMARK_SECONDS = 60.0
MOST_BEHIND = 64 << 20
"""Largest amount of unsent changes of a watch; beyond it the watch is ended. Units: bytes."""
_SNAPSHOTS = 16
_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list "
    "without the continue parameter, or use the continue token in this response to retrieve the remainder of "
    "the results."
)


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list: entries, the list's version, the continue token, and the number of remaining entries."""

    entries: list[Stored]
    revision: int
    token: str = ""
    remaining: int | None = None


class Reader:
    """Answers get, list and watch requests of one sandbox."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._snapshots: OrderedDict[str, tuple[int, list[Stored]]] = OrderedDict()

    def one(self, resource: ApiResource, entry: Stored, accept: str = "", include: str = "Metadata") -> bytes:
        """Encode an object as JSON, or as a table with one row if the client prefers tables."""
        if wants_table(accept):
            return encode(self._table(resource, [entry], entry.revision, include))
        return encode_entry(resource, entry)

    def _table(self, resource: ApiResource, entries: list[Stored], revision: int, include: str) -> Json:
        found = table(resource, [entry.object for entry in entries], self._backend.now(), include)
        return found | {"metadata": {"resourceVersion": str(revision)}}

    def listed(self, target: Target, query: Mapping[str, str], accept: str) -> bytes:
        """Encode a list of objects, or one page of the list."""
        resource = target.resource
        page = self._page(target, query)
        metadata: Json = {"resourceVersion": str(page.revision)}
        if page.token:
            metadata["continue"] = page.token
        if page.remaining:
            metadata["remainingItemCount"] = page.remaining
        if wants_table(accept):
            include = query.get("includeObject", "Metadata")
            return encode(self._table(resource, page.entries, page.revision, include) | {"metadata": metadata})
        head = encode({"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": metadata})
        items = b",".join([_encode_item(resource, entry) for entry in page.entries])
        return head[:-1] + b',"items":[' + items + b"]}"

    def _page(self, target: Target, query: Mapping[str, str]) -> Page:
        limit, token = number(query, "limit"), query.get("continue", "")
        if token:
            try:
                name, start = decode(base64.urlsafe_b64decode(token))
            except ValueError as error:
                text = f"invalid continue token: continue key is not valid: {error}"
                raise StatusError(400, text) from error
            if name not in self._snapshots:
                raise StatusError(410, _TOO_OLD, "Expired")
            revision, entries = self._snapshots[name]
        else:
            start, revision = 0, self._backend.store.revision
            self._check_version(query, target.resource)
            entries = self.selected(target, query)
            name = f"{revision}.{len(self._snapshots)}.{id(entries)}"
        end = start + limit if limit else len(entries)
        if end >= len(entries):
            return Page(entries[start:], revision)
        self._snapshots[name] = revision, entries
        while len(self._snapshots) > _SNAPSHOTS:
            self._snapshots.popitem(last=False)
        plain = "labelSelector" not in query and "fieldSelector" not in query
        rest = base64.urlsafe_b64encode(encode([name, end])).decode()
        return Page(entries[start:end], revision, rest, len(entries) - end if plain else None)

    def _check_version(self, query: Mapping[str, str], resource: ApiResource) -> None:
        asked, present = number(query, "resourceVersion"), self._backend.store.revision
        if asked > present:
            cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
            text = f"Timeout: Too large resource version: {asked}, current: {present}"
            raise StatusError(504, text, details={"causes": [cause], "retryAfterSeconds": 1})
        if query.get("resourceVersionMatch") == "Exact" and asked < present:
            raise gone(asked, self._backend.store.oldest(resource.key))

    def selected(self, target: Target, query: Mapping[str, str]) -> list[Stored]:
        """Return the stored objects that match the path and the selectors of a request."""
        entries = self._backend.store.entries(target.resource.key, target.namespace)
        selects = selection(target, query)
        return entries if selects is None else [entry for entry in entries if selects(entry.object)]

    def watch(self, target: Target, query: Mapping[str, str], accept: str) -> WatchStream:
        """Start a watch from the request's resourceVersion, or with ADDED events for the current objects."""
        resource, store = target.resource, self._backend.store
        initial = flag(query, "sendInitialEvents")
        _check_watch_list(query, initial=initial)
        spec = self._spec(target, query, accept)
        since = number(query, "resourceVersion")
        everything = initial or since == 0 or "resourceVersion" not in query
        if "sendInitialEvents" in query and not initial:
            everything = False
            since = since or store.revision
        present = self.selected(target, query) if everything else []
        events = [] if everything else store.since(resource.key, since)
        watch = WatchStream(store, spec)
        for entry in present:
            watch.push(spec.line("ADDED", entry, store.revision))
        if initial and spec.bookmark:
            watch.push(spec.bookmark(store.revision, True))
        for event in events or ():
            watch.offer(event)
        if events is None:
            watch.push(_event_line("ERROR", encode(gone(since, store.oldest(resource.key)).status)))
            watch.close()
        return watch

    def _spec(self, target: Target, query: Mapping[str, str], accept: str) -> WatchSpec:
        resource = target.resource
        include = query.get("includeObject", "Metadata")

        def row(kind: str, entry: Stored, revision: int) -> bytes:
            return _event_line(kind, encode(self._table(resource, [entry], revision, include)))

        bookmark = partial(_bookmark_line, resource)
        wanted = flag(query, "allowWatchBookmarks") or flag(query, "sendInitialEvents")
        return WatchSpec(
            key=resource.key,
            namespace=target.namespace,
            selects=selection(target, query),
            line=row if wants_table(accept) else partial(_plain_line, resource),
            bookmark=bookmark if wanted and not wants_table(accept) else None,
            seconds=float(number(query, "timeoutSeconds") or self._backend.random.randint(1800, 3600)),
        )


def wants_table(accept: str) -> bool:
    """Return whether a client prefers tables to objects."""
    return "as=Table" in accept


def _plain_line(resource: ApiResource, kind: str, entry: Stored, _: int) -> bytes:
    form = f"{kind} {resource.api_version}"
    if form not in entry.encodings:
        entry.encodings[form] = _event_line(kind, encode_entry(resource, entry))
    return entry.encodings[form]


def _check_watch_list(query: Mapping[str, str], *, initial: bool) -> None:
    match_, field = query.get("resourceVersionMatch", ""), "resourceVersionMatch"
    text = ""
    if initial and match_ != "NotOlderThan":
        text = f"sendInitialEvents requires setting {field} to NotOlderThan"
    elif match_ and "sendInitialEvents" not in query:
        text = f"{field} is forbidden for watch unless sendInitialEvents is provided"
    if text:
        cause = Cause(field, "FieldValueForbidden", f"Forbidden: {text}")
        raise invalid("meta.k8s.io", "ListOptions", "", [cause])


def encode_entry(resource: ApiResource, entry: Stored) -> bytes:
    """Return the JSON of an object in the API version of a resource."""
    return entry.encoded(resource.api_version, outward(resource))


def _encode_item(resource: ApiResource, entry: Stored) -> bytes:
    """Return the JSON of an object as a list item: built-in kinds without kind and apiVersion."""
    if resource.custom is not None:
        return encode_entry(resource, entry)
    view = outward(resource)

    def bare(obj: Json) -> Json:
        shown = view(obj) if view else obj
        return {name: value for name, value in shown.items() if name not in ("kind", "apiVersion")}

    return entry.encoded(f"item {resource.api_version}", bare)


@dataclass(frozen=True, slots=True)
class WatchSpec:
    """Parameters of a watch: resource, namespace, selectors, encoding of events, and duration.

    `selects` decides whether an object is visible (None: all are), `line` encodes an event.
    """

    key: str
    namespace: str
    selects: Callable[[Json], bool] | None
    line: Callable[[str, Stored, int], bytes]
    bookmark: Callable[[int, bool], bytes] | None
    seconds: float


class WatchStream:
    """Stream of event lines for one client; it ends if the client falls too far behind, as in kube-apiserver."""

    def __init__(self, store: ObjectStore, spec: WatchSpec) -> None:
        self._spec = spec
        self.seconds = spec.seconds
        """Duration of the watch. Units: seconds."""
        self.given_up: Callable[[], object] | None = None
        """Callback that ends the connection of a client that does not read its events."""
        self._behind = 0
        """Amount of unsent changes. Units: bytes."""
        self._store = store
        self._pending: deque[bytes] = deque()
        self._wake = asyncio.Event()
        self._stop = store.listen(spec.key, self.offer)
        self.closed = False

    def offer(self, event: StoreEvent) -> None:
        """Queue a change for the client if its selectors match; an object that stops matching is sent as deleted."""
        deleted, before = event.type == "DELETED", event.before
        was, now = self._inside(before), not deleted and self._inside(event.entry)
        if not was and not now:
            return
        entry = event.entry
        if before is not None and not now and not deleted:
            metadata = before.object["metadata"] | {"resourceVersion": str(event.revision)}
            entry = Stored(before.object | {"metadata": metadata}, event.revision)
        seen = "DELETED" if not now else "MODIFIED" if was else "ADDED"
        line = self._spec.line(seen, entry, event.revision)
        self._behind += len(line)
        if self._behind <= MOST_BEHIND:
            self.push(line)
            return
        self._pending.clear()
        self.close()
        if self.given_up is not None:
            self.given_up()

    def push(self, line: bytes) -> None:
        """Queue an encoded line for the client of the watch."""
        self._pending.append(line)
        self._wake.set()

    def close(self) -> None:
        """End the stream; pending lines are still delivered."""
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

    async def lines(self) -> AsyncGenerator[bytes]:
        """Yield the lines to send; join lines that have accumulated."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self._spec.seconds
        bookmark_at = loop.time() + BOOKMARK_SECONDS if self._spec.bookmark else inf
        while True:
            if self._pending:
                chunk = b"".join(self._pending)
                self._pending.clear()
                self._behind = 0
                yield chunk
            if self.closed or loop.time() >= end:
                return
            await self._pause(min(end, bookmark_at) - loop.time())
            if self._spec.bookmark and loop.time() >= bookmark_at:
                bookmark_at = loop.time() + BOOKMARK_SECONDS
                self.push(self._spec.bookmark(self._store.revision, False))

    async def _pause(self, seconds: float) -> None:
        if self._pending:
            return
        self._wake.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, 0)):
                await self._wake.wait()


def _event_line(kind: str, encoded: bytes) -> bytes:
    return b'{"type":"' + kind.encode() + b'","object":' + encoded + b"}\n"


def _bookmark_line(resource: ApiResource, revision: int, initial_end: bool) -> bytes:
    """Return the line of a bookmark; a bookmark that ends the initial list has an annotation."""
    metadata: Json = {"resourceVersion": str(revision)}
    if initial_end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    body = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
    return _event_line("BOOKMARK", encode(body))
