"""Keep a handler up to date with all objects of one resource: list, then watch, for ever.

It knows the newest version of every object, so that a list after a gap becomes the differences: what vanished
meanwhile is reported as deleted, and an object that was made anew under an old name as a deletion and an addition.
Trouble never ends it: it says what is wrong in one line (`problem`) and tries again.

Source: client-go/tools/cache/reflector.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from contextlib import aclosing
from typing import Generic, Protocol, TypeVar
from urllib.parse import quote

import msgspec

from policysched.errors import ConnectionProblemError
from policysched.framework import ApiError
from policysched.kube.items import HasMetadata, Items, OnBroken, identify
from policysched.kube.resources import Watched
from policysched.kube.retry import Pacing, Retry
from policysched.kube.transport import Status, Transport
from policysched.model.decode import ObjectError
from policysched.model.outline import elements, members

log = logging.getLogger(__name__)
T = TypeVar("T", bound=HasMetadata)
T_contra = TypeVar("T_contra", contravariant=True)
PAGE = 500
SHORTEST_WATCH = 300
"""The server ends a watch after this to twice this time, so that not all end together. Units: seconds."""
GRACE = 30
ABSENT = 5.0
"""How often a resource that need not exist is asked for again: who installs it wants to see it work. Units: seconds."""
GONE = 410
STALE = frozenset((400, 404, GONE, 504))
"""Statuses after which only a new list helps: 504 is also said of a version that the server has not reached."""


class Handler(Protocol[T_contra]):
    """What hears about the objects."""

    def replace(self, changed: Sequence[T_contra], gone: Sequence[T_contra]) -> None:
        """Take the outcome of a list: objects that are new or changed, and those that are no longer there."""

    def upsert(self, obj: T_contra) -> None:
        """Take an object that is new or changed."""

    def delete(self, obj: T_contra) -> None:
        """Take note that an object, in the version last heard of, is gone."""


class _PageMetadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct):
    metadata: _PageMetadata = msgspec.field(default_factory=_PageMetadata)
    items: list[msgspec.Raw] | None = None


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


CHANGES = frozenset(("ADDED", "MODIFIED", "DELETED"))
UNREADABLE = (msgspec.MsgspecError, UnicodeError, RecursionError)
_PAGE = msgspec.json.Decoder(_Page)
_PAGE_METADATA = msgspec.json.Decoder(_PageMetadata)
_LINE = msgspec.json.Decoder(_Line)
_STATUS = msgspec.json.Decoder(Status)
_TEXT = msgspec.json.Decoder(str)


class Reflector(Generic[T]):
    """The list and watch of one resource."""

    def __init__(
        self,
        transport: Transport,
        watched: Watched[T],
        handler: Handler[T],
        pacing: Pacing,
        *,
        on_broken: OnBroken | None = None,
    ) -> None:
        self.synced = asyncio.Event()
        """Set once the handler has heard of every object there was at the start."""
        self.problem = ""
        """What keeps it from being up to date, in one line; empty while nothing does."""
        self.absent = False
        """True while the server does not have the resource, or not for us, and that is tolerated."""
        self._transport, self._watched, self._handler = transport, watched, handler
        self._items = Items(watched, on_broken or _log_broken)
        self._pacing, self._retry = pacing, Retry(pacing)
        self._version: str | None = None

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            try:
                if self._version is None:
                    await self._list()
                await self._watch(self._version or "")
            except (ApiError, ConnectionProblemError) as error:
                await self._recover(error)
            except Exception:  # whoever ends here would end the process
                log.exception("following %s failed: listing again", self._watched.name)
                self._version = None
                await self._retry.pause()

    async def _list(self) -> None:
        try:
            version, raws = await self._pages(PAGE)
        except ApiError as error:
            if error.status != GONE:
                raise
            version, raws = await self._pages(0)
        self._replace(raws)
        self._version, self.absent = version, False
        self._well()

    async def _pages(self, limit: int) -> tuple[str, list[msgspec.Raw]]:
        """List page by page; a limit of 0 asks for everything at once, which cannot expire on the way."""
        raws: list[msgspec.Raw] = []
        token = ""
        while True:
            query = f"?limit={limit}&continue={quote(token, safe='')}" if token else f"?limit={limit}"
            answer = await self._transport.request("GET", self._watched.path + query)
            page = _read_page(answer, self._watched.name)
            raws += page.items or ()
            token = page.metadata.continue_
            if not token:
                return page.metadata.resource_version, raws

    def _replace(self, raws: Iterable[msgspec.Raw]) -> None:
        changed, gone = self._items.replace(raws)
        self._handler.replace(changed, gone)
        if not self.synced.is_set():
            log.info("listed %s count=%d", self._watched.name, len(self._items))
            self.synced.set()

    async def _watch(self, version: str) -> None:
        seconds = round(SHORTEST_WATCH * (1 + self._pacing.random()))
        query = f"?watch=1&allowWatchBookmarks=true&timeoutSeconds={seconds}&resourceVersion={quote(version)}"
        heard = False
        async with aclosing(self._transport.lines(self._watched.path + query, seconds + GRACE)) as stream:
            async for lines in stream:
                self._well()
                for line in filter(None, lines):
                    self._hear(line)
                    heard = True
                if heard:
                    self._retry.reset()
        if not heard:
            # A watch that ends without a word may be a server that ends all of them at once.
            self._retry.reset()
            await self._retry.pause()

    def _hear(self, line: bytes) -> None:
        try:
            event = _read_line(line)
        except UNREADABLE as error:
            self._version = None
            text = f"the watch of {self._watched.name} sent a line that cannot be read: {error}"
            raise ApiError(0, "Malformed", text) from error
        if event.type == "ERROR":
            raise _error(event.object)
        if event.type in CHANGES:
            version = self._change(event)
        else:
            version = identify(event.object)[1]
            if event.type != "BOOKMARK" or not version:
                self._items.skip(event.object, f"an event of type {event.type!r} that says nothing")
        self._version = version or self._version

    def _change(self, event: _Line) -> str:
        before, after, version = self._items.take(event.object, deleted=event.type == "DELETED")
        if before is not None:
            self._handler.delete(before)
        if after is not None:
            self._handler.upsert(after)
        return version

    async def _recover(self, error: ApiError | ConnectionProblemError) -> None:
        status = error.status if isinstance(error, ApiError) else 401
        listing = self._version is None
        if status in STALE:
            self._version = None
        if listing and status in self._watched.tolerated:
            await self._do_without(error)
            return
        if status == GONE and self._retry.failures == 0:
            self._retry.failures = 1
            log.info("the watch of %s is too old: listing again", self._watched.name)
            return
        self._trouble(f"{self._watched.name}: {error}")
        await self._retry.pause((isinstance(error, ApiError) and error.retry_after) or 0.0)

    async def _do_without(self, error: Exception) -> None:
        if not self.absent:
            log.warning("going on without %s: %s", self._watched.name, error)
            self.absent = True
            self._replace(())
        self._well()
        self._retry.reset()
        await self._retry.pause(ABSENT)

    def _trouble(self, problem: str) -> None:
        if problem != self.problem:
            log.warning("%s", problem)
        self.problem = problem

    def _well(self) -> None:
        if self.problem:
            log.info("%s: up to date again", self._watched.name)
        self.problem = ""


def _read_page(answer: bytes, name: str) -> _Page:
    """Read a page of a list; an item that cannot be read spoils no other."""
    try:
        return _PAGE.decode(answer)
    except UNREADABLE as error:
        parts = members(answer)
        try:
            metadata = _PAGE_METADATA.decode(parts["metadata"])
        except (KeyError, *UNREADABLE):
            raise ApiError(0, "Malformed", f"the list of {name} is no list: {error}") from error
        return _Page(metadata, [msgspec.Raw(one) for one in elements(parts.get("items", b""))])


def _read_line(line: bytes) -> _Line:
    """Read an event, whatever is wrong with its object.

    Raises:
        msgspec.DecodeError: it is no event.
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
    return ApiError(status.code, status.reason, status.message, status.retry_after)


def _log_broken(error: ObjectError, _: bytes) -> None:
    log.error("left out, because it cannot be used: %s", error)
