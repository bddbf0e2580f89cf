"""List one resource, page by page; and ask discovery whether a server serves it.

An answer of status 200 is no proof: a gateway may answer in the server's place, or mix up paths. A list has the
resource's kind, a version and items; all its pages are of one version. Lists are asked for without a version: the API
server then gives the newest state there is, from etcd or from a cache that has caught up.

A path that is not found may be a gateway's word: what the server serves is asked of its discovery (`is_served`).

Source: kubernetes.io/docs/reference/using-api/api-concepts (resourceVersion, the semantics of get and list).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from http import HTTPStatus
from typing import TypeVar
from urllib.parse import quote

import msgspec

from policysched.framework import ApiError
from policysched.kube.transport import Transport
from policysched.model.lenient_json import UNREADABLE, elements, members

PAGE = 500
FIRST_PAGE = 2000
"""That of a first list, while which nobody waits for the loop: an API server takes some 5 ms for each page."""
MOST_PAGES = 4000
"""Two million objects of a kind are more than any etcd holds."""
DIGITS = 19
"""How many digits a version has at most: etcd counts in 64 bits, with a sign."""
LARGEST_PAGE = 1 << 30
"""How large a page may be: etcd takes no object of more than 1.5 MiB, and as JSON it may be longer. Units: bytes."""
LARGEST_LIST = 8 << 30
"""How large a list in one piece may be: etcd recommends to keep no more. Units: bytes."""
WHOLE = 0
"""The size of pages that asks for everything in one piece."""
Listed = tuple[str, list[msgspec.Raw]]
"""A list's version and its items, or those of one page."""


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
        ApiError: the server refused, could not be reached, or its answer is no such list.
        ConnectionProblemError: the credentials expired and cannot be renewed.
    """
    try:
        return await _read(transport, path, kind, PAGE)
    except ApiError as error:
        if error.status != HTTPStatus.GONE:
            raise
        # Everything at once cannot expire on the way.
        return await _read(transport, path, kind, WHOLE)


def is_older(version: str, than: str) -> bool:
    """Return whether a resource version is older than another; of versions that no API server counts nothing is known.

    So a single absurd one does not make all later ones old.

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
    """List all objects of a kind, page by page; the next page is asked for before this one is looked at.

    Args:
        transport: Makes the requests.
        path: Where the objects are.
        kind: Their kind, empty where nobody knows that.
        limit: How many objects a page has, `WHOLE` for all of them.

    Raises:
        ApiError: the server refused, could not be reached, or its answer is no such list; its status is 410 where the
            next page cannot be had any more.
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
    """Read a page with an item that cannot be read: it spoils no other. None for what is no page."""
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


async def is_served(transport: Transport, path: str) -> bool:
    """Return whether a server says that it serves a path like `/apis/GROUP/VERSION/PLURAL`.

    Raises:
        ApiError: it does not say.
        ConnectionProblemError: the credentials expired and cannot be renewed.
    """
    root, _, plural = path.rpartition("/")
    groups = await _read_served(transport, "/apis", _Groups)
    if root not in {f"/apis/{version.group_version}" for group in groups.groups for version in group.versions}:
        return False
    return any(one.name == plural for one in (await _read_served(transport, root, _Resources)).resources)


async def _read_served(transport: Transport, path: str, shape: type[T]) -> T:
    answer = await transport.request("GET", path)
    try:
        return msgspec.json.decode(answer, type=shape)
    except msgspec.MsgspecError as error:
        raise ApiError(0, "Malformed", f"the answer for {path} is not a discovery document: {error}") from error
