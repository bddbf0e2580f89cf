"""Reflector: informs a handler about all objects of one resource, by list and watch.

The reflector knows the newest version of every object, so a list after a gap becomes differences: a vanished object is
reported as deleted, an object recreated under the same name as a deletion and an addition. Errors never end it.
`problem` describes the current error in one line, and the reflector retries.

A listed object stays valid during errors. Only a DELETED event, or a complete list without the object that is not older
than the known state, deletes it.

Source: client-go/tools/cache/reflector.go.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from http import HTTPStatus
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import quote

import msgspec

from policysched.errors import ConnectionProblemError, OutOfMemoryError
from policysched.framework import ApiError
from policysched.kube.listing import (
    FIRST_PAGE,
    PAGE,
    WHOLE,
    in_served_version,
    is_older,
    is_served,
    read_list,
    read_pages,
)
from policysched.kube.object_cache import (
    CHUNK,
    HasMetadata,
    ObjectCache,
    OnBroken,
    Replacement,
    TextKeeper,
    identify,
)
from policysched.kube.transport import SILENT, ApiStatus, Pacing, Retry, Transport
from policysched.model.decode import ObjectError
from policysched.model.kinds import ApiKind
from policysched.reading.lenient_json import UNREADABLE, members

log = logging.getLogger(__name__)
T = TypeVar("T", bound=HasMetadata)
T_contra = TypeVar("T_contra", contravariant=True)
SILENCE = 180.0
"""Time without a line after which a watch is treated as stuck, and the resource is listed. Units: seconds.

API servers send a bookmark every minute or two.
"""
MOST_OLDER = 8
"""Number of consecutive lists (over two minutes) older than the known state after which such a list is accepted.

Then the server was restored from a backup.
"""
MOST_BROKEN = 8
"""Number of consecutive failed watches, over about two minutes, after which the resource is listed."""
SHORTEST_WATCH = 300
"""Shortest duration of a watch; a random duration up to twice as long spreads their ends. Units: seconds."""
GRACE = 30
TURN = 0.005
"""Longest time spent on events before yielding to the event loop. Units: seconds."""
LASTING = 1.0
"""Shortest duration of a watch that is restarted without a pause. Units: seconds."""
ABSENT = 5.0
"""Interval between requests for an optional resource that the server does not serve. Units: seconds."""
MALFORMED, OLDER = "Malformed", "Older"
UNTRUE = frozenset((MALFORMED, OLDER))
"""Reasons of errors in the contents of a watch, which show that the connection itself works."""
GONE = 410
STALE = frozenset((400, 404, GONE, 504))
"""HTTP statuses that require a new list; 504 is also returned for a resourceVersion that the server has not reached."""


class Handler(Protocol[T_contra]):
    """Interface of the receiver of a reflector's objects."""

    def replace(self, changed: Sequence[T_contra], gone: Sequence[T_contra]) -> None:
        """Apply the differences found by a list: added or changed objects, and deleted objects."""

    def upsert(self, obj: T_contra) -> None:
        """Apply an added or changed object to the handler's state."""

    def delete(self, obj: T_contra) -> None:
        """Apply the deletion of an object, given in its last known version."""


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _OfKind(msgspec.Struct):
    kind: str = ""


CHANGES = frozenset(("ADDED", "MODIFIED", "DELETED"))
_LINE = msgspec.json.Decoder(_Line)
_OF_KIND = msgspec.json.Decoder(_OfKind)
_STATUS = msgspec.json.Decoder(ApiStatus)
_TEXT = msgspec.json.Decoder(str)


HELD = "the objects listed before stay in use"
AWAITED = "pods wait if a plugin of their profile reads these objects"


class Reflector(Generic[T]):
    """Lists and watches one resource and passes the changes to a handler."""

    def __init__(
        self,
        transport: Transport,
        watched: ApiKind[T],
        handler: Handler[T],
        pacing: Pacing,
        *,
        on_broken: OnBroken | None = None,
        texts: TextKeeper[T] | None = None,
    ) -> None:
        self.synced = asyncio.Event()
        """Set when the handler has received all objects of the first list."""
        self.problem = ""
        """Error that prevents updates, in one line; empty without an error. Listed objects stay valid."""
        self.absent = False
        """Whether the server does not serve the resource, or forbids it, and no object was ever listed."""
        self.watched = self._served = watched
        self._transport, self._handler = transport, handler
        self._cache = ObjectCache(watched, on_broken or _log_broken, texts)
        self._pacing, self._retry = pacing, Retry(pacing)
        self._relisting = Retry(pacing)
        """Growing pauses before lists that follow failed watches; reset after a watch that lasts."""
        self._beginnings = _beginnings(watched)
        """Possible first bytes of an object of the kind in the listed API version."""
        self._version: str | None = None
        """The resourceVersion from which the next watch starts; None if a list has to come first."""
        self._newest = ""
        """The newest resourceVersion seen."""
        self._older = 0
        """Number of consecutive lists older than `_newest`."""
        self._unheard = 0
        """Number of consecutive watches that ended without an event."""

    def objects(self) -> tuple[T, ...]:
        """Return the known objects, without deleted objects; thread-safe."""
        return self._cache.objects()

    async def run(self) -> None:
        """List and watch until cancelled.

        Raises:
            OutOfMemoryError: no memory is left for the objects.
        """
        while True:
            try:
                if self._version is None:
                    await self._list()
                await self._watch(self._version or "")
            except (ApiError, ConnectionProblemError) as error:
                await self._recover(error)
            except OutOfMemoryError:
                raise
            except Exception:  # an exception here would end the process
                log.exception("watching %s failed; listing again", self.watched.plural)
                self._version = None
                await self._retry.pause()

    async def list_texts(self) -> None:
        """List once to store raw JSON that was not stored when its objects were watched; the watch continues.

        Raises:
            ApiError: the list cannot be read.
            ConnectionProblemError: the credentials expired and cannot be renewed.
        """
        if self._cache.lacks_texts:
            _, raws = await read_list(self._transport, self._served.path, self._served.stated_kind)
            for _ in self._cache.filling(raws):
                await asyncio.sleep(0)

    async def _list(self) -> None:
        await in_served_version(self.watched, self._list_version)

    async def _list_version(self, kind: ApiKind[T]) -> None:
        """List the kind in one API version, and watch the kind in this version afterwards."""
        try:
            version = await self._take_list(kind, PAGE if self.synced.is_set() else FIRST_PAGE)
        except ApiError as error:
            if error.status != GONE:
                raise
            version = await self._take_list(kind, WHOLE)  # a list in one answer cannot expire
        self._use(kind)
        self._version = self._newest = version
        self.absent = False
        self._clear_problem()

    def _use(self, kind: ApiKind[T]) -> None:
        """Watch the kind in this API version, and log a change of the version."""
        if kind == self._served:
            return
        self._served, self._beginnings = kind, _beginnings(kind)
        said = f"{kind.plural}: the API server serves {kind.api_version}"
        if kind == self.watched:
            log.info("%s", said)
        else:
            log.warning("%s, not %s; %s", said, self.watched.api_version, kind.remedy)

    async def _take_list(self, kind: ApiKind[T], limit: int) -> str:
        """Process a list page by page, with at most `limit` objects per page, and return its resourceVersion.

        During the first list the handler receives each chunk.
        """
        taking, version = self._cache.replacement(), ""
        pages = read_pages(self._transport, kind.path, kind.stated_kind, limit)
        try:
            async with aclosing(pages):
                async for version, raws in pages:  # noqa: B007 - all are the same
                    await self._take_page(taking, raws)
            restored = self._is_restored(version)
        except BaseException:
            taking.abandon()
            raise
        await self._end_list(taking, restored=restored)
        return version

    async def _take_page(self, taking: Replacement[T], raws: Sequence[msgspec.Raw]) -> None:
        """Process the objects of a page in chunks, yielding to the event loop between chunks."""
        for start in range(0, len(raws), CHUNK):
            taking.take(raws[start : start + CHUNK])
            if not self.synced.is_set():
                self._handler.replace(*taking.taken())
            await asyncio.sleep(0)

    def _is_restored(self, version: str) -> bool:
        """Return whether the server was restored from a backup, so that an older list is current.

        Raises:
            ApiError: the list is older and may come from a server that lags behind; list again.
        """
        if not is_older(version, self._newest):
            self._older = 0
            return False
        self._older += 1
        if self._older < MOST_OLDER:
            raise ApiError(
                0, "Older", f"the listed resourceVersion {version} is older than {self._newest}, which was seen before"
            )
        log.warning(
            "%s: the API server returns an older state, as after it was restored; using that state", self.watched.plural
        )
        self._older = 0
        return True

    async def _end_list(self, taking: Replacement[T], *, restored: bool = False) -> None:
        """Pass the changes found by a complete list, as far as not yet passed, to the handler in chunks."""
        changed, gone = taking.finish(anew=restored)
        if changed or gone or not taking.is_told:
            for number, (some_changed, some_gone) in enumerate(_chunks(changed, gone)):
                if number:
                    await asyncio.sleep(0)
                self._handler.replace(some_changed, some_gone)
        if not self.synced.is_set():
            log.info("listed %s: %d object(s)", self.watched.plural, len(self._cache))
            self.synced.set()

    async def _watch(self, version: str) -> None:
        seconds = round(SHORTEST_WATCH * (1 + self._pacing.random()))
        query = f"?watch=1&allowWatchBookmarks=true&timeoutSeconds={seconds}&resourceVersion={quote(version)}"
        heard, clock = False, asyncio.get_running_loop().time
        began, answered = clock(), math.inf
        try:
            async with aclosing(self._transport.lines(self._served.path + query, seconds + GRACE, SILENCE)) as stream:
                async for lines in stream:
                    self._clear_problem()
                    answered = min(answered, clock())
                    heard = await self._process_lines(lines) or heard
                    if heard:
                        self._retry.reset()
                        self._unheard = 0
                    if clock() - answered >= LASTING:
                        self._relisting.reset()
        except ApiError as error:
            if error.status == 0 and error.reason not in UNTRUE:
                self._broke_off(heard=heard, lasted=clock() - answered >= LASTING)
            raise
        if not heard:
            self._unheard += 1
            self._list_if_unheard()
        if not heard or clock() - began < LASTING:
            # The server may be ending all watches at once.
            self._retry.reset()
            await self._retry.pause()

    async def _process_lines(self, lines: Sequence[bytes]) -> bool:
        """Process lines of a watch; return whether the watch had any lines."""
        heard, clock = False, asyncio.get_running_loop().time
        turn_ends = clock() + TURN
        for line in filter(None, lines):
            self._process_line(line)
            heard = True
            if clock() >= turn_ends:
                await asyncio.sleep(0)
                turn_ends = clock() + TURN
        return heard

    def _broke_off(self, *, heard: bool, lasted: bool) -> None:
        """Record that a watch was interrupted; if the watch had lasted, make the next pauses short again."""
        if lasted:
            self._retry.reset()
            self._relisting.reset()
        self._unheard += not heard

    def _list_if_unheard(self) -> None:
        """Require a new list if `MOST_BROKEN` consecutive watches ended without an event."""
        if self._unheard >= MOST_BROKEN:
            self._version, self._unheard = None, 0

    def _process_line(self, line: bytes) -> None:
        try:
            event = _read_line(line)
        except UNREADABLE as error:
            self._version = None
            text = f"the watch of {self.watched.plural} sent a line that cannot be read: {error}"
            raise ApiError(0, MALFORMED, text) from error
        if event.type == "ERROR":
            raise _error(event.object)
        if not self._is_ours(event.object):
            self._version = None
            text = f"the watch of {self.watched.plural} sent an event about an object of another kind"
            raise ApiError(0, MALFORMED, text)
        if event.type in CHANGES:
            self._change(event)
            return
        version = identify(event.object)[1]
        if event.type != "BOOKMARK" or not version:
            self._cache.skip(event.object, f"an event of type {event.type!r} without content")
        self._advance(version)

    def _is_ours(self, raw: msgspec.Raw) -> bool:
        """Return whether an object of a watch has the watched kind, or a kind that cannot be read.

        An object of another kind can have the name of one of ours, which it would replace or delete.
        """
        if not self._beginnings or bytes(raw).startswith(self._beginnings):
            return True
        try:
            return _OF_KIND.decode(raw).kind in ("", self.watched.kind)
        except UNREADABLE:
            return True

    def _change(self, event: _Line) -> None:
        before, after = self._cache.take(event.object, deleted=event.type == "DELETED", reach=self._advance)
        if before is not None:
            self._handler.delete(before)
        if after is not None:
            self._handler.upsert(after)

    def _advance(self, version: str) -> None:
        """Set the resourceVersion from which to watch; raise `ApiError` if it is older than the newest seen."""
        if is_older(version, self._newest):
            self._version = None
            text = f"the watch of {self.watched.plural} went back from resourceVersion {self._newest} to {version}"
            raise ApiError(0, OLDER, text)
        if version:
            self._version = self._newest = version

    async def _recover(self, error: ApiError | ConnectionProblemError) -> None:
        status, reason = (error.status, error.reason) if isinstance(error, ApiError) else (401, "")
        listing = self._version is None
        if status in STALE or reason == SILENT:
            self._version = None
        if listing and status in self.watched.tolerated and await self._can_do_without(status):
            await self._do_without(error)
            return
        if reason == SILENT and not listing:
            log.info("the watch of %s may be stuck; listing again: %s", self.watched.plural, error)
            return
        retry = self._retry if listing or self._version is not None else self._relisting
        if status == GONE and retry.failures == 0:
            retry.failures = 1
            log.info("the watch of %s is too old; listing again", self.watched.plural)
            return
        self._set_problem(f"{self.watched.plural}: {error}; {HELD if self.synced.is_set() else AWAITED}")
        await retry.pause((isinstance(error, ApiError) and error.retry_after) or 0.0)
        if self._retry.failures >= MOST_BROKEN and status != HTTPStatus.TOO_MANY_REQUESTS:
            self._version = None
        self._list_if_unheard()

    async def _can_do_without(self, status: int) -> bool:
        """Return whether the scheduler can run without the resource after a list of it failed with an HTTP status.

        Before the first list, a 404 is not enough: discovery must also not list the resource.
        """
        if self.synced.is_set():
            return not len(self._cache)
        try:
            return status != HTTPStatus.NOT_FOUND or not await is_served(self._transport, self.watched)
        except (ApiError, ConnectionProblemError) as error:
            log.info("cannot find out whether the API server serves %s: %s", self.watched.plural, error)
            return False

    async def _do_without(self, error: Exception) -> None:
        if not self.absent:
            remedy = f"; {self.watched.remedy}" if self.watched.remedy else ""
            log.warning("continuing without %s: %s%s", self.watched.plural, error, remedy)
            self.absent = True
            await self._end_list(self._cache.replacement())
        self._clear_problem()
        self._retry.reset()
        await self._retry.pause(ABSENT)

    def _set_problem(self, problem: str) -> None:
        if problem != self.problem:
            log.warning("%s", problem)
        self.problem = problem

    def _clear_problem(self) -> None:
        if self.problem:
            log.info("%s: up to date again", self.watched.plural)
        self.problem = ""


def _chunks(changed: Sequence[T], gone: Sequence[T]) -> Iterator[tuple[Sequence[T], Sequence[T]]]:
    """Split the differences found by a list into chunks, deletions first, because a new object can reuse a name."""
    if len(changed) + len(gone) <= CHUNK:
        yield changed, gone
        return
    for start in range(0, len(gone), CHUNK):
        yield (), gone[start : start + CHUNK]
    for start in range(0, len(changed), CHUNK):
        yield changed[start : start + CHUNK], ()


def _beginnings(watched: ApiKind[Any]) -> tuple[bytes, ...]:
    """Return the possible first bytes of the watched kind's JSON from API servers; empty if the kind is unknown."""
    if not watched.stated_kind:
        return ()
    kind, version = f'"kind":"{watched.kind}"', f'"apiVersion":"{watched.api_version}"'
    return f"{{{kind},{version}".encode(), f"{{{version},{kind}".encode()


def _read_line(line: bytes) -> _Line:
    """Decode a watch event, even if its object cannot be decoded.

    Raises:
        msgspec.DecodeError: the line is not a watch event.
    """
    try:
        return _LINE.decode(line)
    except UNREADABLE:
        parts = members(line)
        if "object" not in parts:
            raise
        return _Line(_TEXT.decode(parts.get("type", b'""')), msgspec.Raw(parts["object"]))


def _error(raw: msgspec.Raw) -> ApiError:
    try:
        status = _STATUS.decode(raw)
    except UNREADABLE:
        return ApiError(GONE, "Malformed", "the watch ended with an error that cannot be read")
    message = status.message or f"the watch ended with an error of code {status.code} without a message"
    return ApiError(status.code, status.reason, message, status.retry_after)


def _log_broken(error: ObjectError, _: bytes) -> None:
    log.error("left out an object that cannot be used: %s", error)
