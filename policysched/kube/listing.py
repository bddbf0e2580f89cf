"""List requests of one resource, page by page; discovery requests for served resources.

Status 200 alone proves nothing: a gateway may answer instead of the API server, or confuse paths. A valid list has the
resource's kind, a resourceVersion and items, and all its pages have one resourceVersion. Lists are requested without a
resourceVersion, so the API server returns the newest state.

A gateway can also answer 404, so `is_served` asks discovery whether the server serves the resource.

Source: kubernetes.io/docs/reference/using-api/api-concepts (resourceVersion, the semantics of get and list).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from policysched.framework import ApiError
from policysched.kube.transport import Transport
from policysched.model.kinds import ApiKind
from policysched.reading.lenient_json import UNREADABLE, elements, members

PAGE = 500
FIRST_PAGE = 2000
"""Page size of the first list, before scheduling starts: objects per request. A page takes the server 5 ms."""
MOST_PAGES = 4000
"""Largest number of pages of a list; more is an error. Two million objects of a kind do not fit into etcd."""
DIGITS = 19
"""Largest number of digits of a resourceVersion: etcd counts in signed 64 bits."""
LARGEST_PAGE = 1 << 30
"""Largest answer with one page; more is an error. Units: bytes."""
LARGEST_LIST = 8 << 30
"""Largest answer with a whole list, as large as etcd's recommended database; more is an error. Units: bytes."""
WHOLE = 0
"""Page size with which a request returns the whole list in one answer."""
Listed = tuple[str, list[msgspec.Raw]]
"""The resourceVersion and the items of a list or a page."""


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str
    continue_: str = msgspec.field(default="", name="continue")


class _Head(msgspec.Struct):
    kind: str
    metadata: _Metadata


class _Page(_Head):
    items: list[msgspec.Raw] | None


_HEAD = msgspec.json.Decoder(_Head)
_PAGE = msgspec.json.Decoder(_Page)


async def read_list(transport: Transport, path: str, kind: str) -> Listed:
    """List all objects of a kind.

    Raises:
        ApiError: the server rejected the request, was unreachable, or its answer is not such a list.
        ConnectionProblemError: the credentials expired and cannot be renewed.
    """
    try:
        return await _read(transport, path, kind, PAGE)
    except ApiError as error:
        if error.status != HTTPStatus.GONE:
            raise
        # A list in one answer cannot expire between pages.
        return await _read(transport, path, kind, WHOLE)


def is_older(version: str, than: str) -> bool:
    """Return whether a resourceVersion is older than another; False if either is not a number.

    So one absurd version does not make all later versions old.

    Source: KEP-5504: versions of one resource can be compared as integers.
    """
    return _is_counted(version) and _is_counted(than) and int(version) < int(than)


def _is_counted(version: str) -> bool:
    return len(version) <= DIGITS and version.isascii() and version.isdecimal()


async def _read(transport: Transport, path: str, kind: str, limit: int) -> Listed:
    raws: list[msgspec.Raw] = []
    version = ""
    async with aclosing(read_pages(transport, path, kind, limit)) as pages:
        async for version, some in pages:  # noqa: B007 - all are the same
            raws += some
    return version, raws


async def read_pages(transport: Transport, path: str, kind: str, limit: int) -> AsyncGenerator[Listed, None]:
    """Yield all objects of a kind, page by page; the next page is requested before the current one is processed.

    Args:
        transport: Sends the requests.
        path: Path of the resource.
        kind: Kind of the objects; empty if unknown.
        limit: Objects per page; `WHOLE` for all of them.

    Raises:
        ApiError: the server rejected the request, was unreachable, or its answer is not such a list; status 410 if the
            next page has expired.
        ConnectionProblemError: the credentials expired and cannot be renewed.
    """
    version, token = "", ""
    before: set[int] = set()
    asked = _ask(transport, path, limit, token)
    try:
        for number in range(1, MOST_PAGES + 1):
            page = _decode(await asked, path, kind)
            if version and page.metadata.resource_version != version:
                raise _malformed(path, "its pages have different resourceVersions")
            before.add(hash(token))
            if page.metadata.continue_ and hash(page.metadata.continue_) in before:
                raise _malformed(path, "its pages repeat a continue token")
            version, token = page.metadata.resource_version, page.metadata.continue_
            if token and number < MOST_PAGES:
                asked = _ask(transport, path, limit, token)
            yield version, page.items or []
            if not token:
                return
        raise _malformed(path, f"it has more than {MOST_PAGES} pages")
    finally:
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)


def _ask(transport: Transport, path: str, limit: int, token: str) -> asyncio.Future[bytes]:
    query = f"?limit={limit}&continue={quote(token, safe='')}" if token else f"?limit={limit}"
    most = LARGEST_PAGE if limit else LARGEST_LIST
    return asyncio.ensure_future(transport.request("GET", path + query, most=most))


def _decode(answer: bytes, path: str, kind: str) -> _Page:
    try:
        page = _PAGE.decode(answer)
    except UNREADABLE as error:
        outlined = _outline(answer)
        if outlined is None:
            raise _malformed(path, str(error)) from error
        page = outlined
    if not page.kind.endswith("List") or kind not in ("", page.kind.removesuffix("List")):
        raise _malformed(path, f"it is of kind {page.kind!r:.80}")
    if not page.metadata.resource_version:
        raise _malformed(path, "it has no resourceVersion")
    return page


def _outline(answer: bytes) -> _Page | None:
    """Read a page that has an unreadable item, without decoding items; None if the answer is not a page."""
    parts = members(answer)
    try:
        head = _HEAD.decode(b'{"kind":%b,"metadata":%b}' % (parts["kind"], parts["metadata"]))
        return _Page(head.kind, head.metadata, [msgspec.Raw(one) for one in elements(parts["items"])])
    except (KeyError, *UNREADABLE):
        return None


def _malformed(path: str, why: str) -> ApiError:
    return ApiError(0, "Malformed", f"the answer for {path} is not a valid list: {why}")


T = TypeVar("T")


class _Version(msgspec.Struct, rename="camel"):
    group_version: str


class _Group(msgspec.Struct):
    versions: list[_Version]


class _Groups(msgspec.Struct, tag_field="kind", tag="APIGroupList"):
    groups: list[_Group]


class _Resource(msgspec.Struct):
    name: str


class _Resources(msgspec.Struct, tag_field="kind", tag="APIResourceList"):
    resources: list[_Resource]


async def is_served(transport: Transport, kind: ApiKind[Any]) -> bool:
    """Return whether the server's discovery lists a kind of an API group, in any version that can be read.

    Raises:
        ApiError: discovery is unavailable.
        ConnectionProblemError: the credentials expired and cannot be renewed.
    """
    groups = await _read_served(transport, "/apis", _Groups)
    served = {version.group_version for group in groups.groups for version in group.versions}
    for version in (one.api_version for one in kind.versions() if one.api_version in served):
        found = await _read_served(transport, f"/apis/{version}", _Resources)
        if any(one.name == kind.plural for one in found.resources):
            return True
    return False


async def in_served_version(kind: ApiKind[Any], send: Callable[[ApiKind[Any]], Awaitable[T]]) -> T:
    """Send a request for the newest API version of a kind; if the server does not find it, for older versions.

    Args:
        kind: The kind, whose versions have the same fields.
        send: Sends the request for the kind in one version.

    Raises:
        ApiError: the server rejected the request; if no version was found, the error of the newest version.
    """
    newest, *older = kind.versions()
    try:
        return await send(newest)
    except ApiError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        absent = error
    for version in older:
        try:
            return await send(version)
        except ApiError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
    raise absent


async def _read_served(transport: Transport, path: str, shape: type[T]) -> T:
    answer = await transport.request("GET", path)
    try:
        return msgspec.json.decode(answer, type=shape)
    except msgspec.MsgspecError as error:
        raise ApiError(0, "Malformed", f"the answer for {path} is not a discovery document: {error}") from error
