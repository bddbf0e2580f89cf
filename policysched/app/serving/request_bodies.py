"""Reading of request bodies with a concurrency limit.

If the limit is reached, the body that has been read for the longest time is aborted, so slow senders do not block
others.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final

from aiohttp import web

from policysched.app.serving.refused import RefusedError

AGAIN: Final = {"Retry-After": "1"}


class Bodies:
    """Reads request bodies, with limits on their size and on the number of bodies in memory.

    Args:
        what: Kind of request, for messages.
        most: Largest number of requests being read or processed; more are rejected.
        largest: Largest body. Units: bytes.
    """

    def __init__(self, what: str, most: int, largest: int) -> None:
        self._what, self._most, self._largest = what, most, largest
        self._awaited: dict[asyncio.Timeout, None] = {}
        self._processing = 0

    @asynccontextmanager
    async def read(self, request: web.BaseRequest) -> AsyncIterator[bytes]:
        """Yield a request's body; the body counts towards the limit while the context is active.

        Raises:
            RefusedError: 429 with too many requests, 413 if it is too large.
        """
        if len(self._awaited) + self._processing >= self._most:
            self._make_room()
        body = await self._received(request)
        self._processing += 1
        try:
            yield body
        finally:
            self._processing -= 1

    def _make_room(self) -> None:
        oldest = next(iter(self._awaited), None)
        if oldest is None:
            raise RefusedError(HTTPStatus.TOO_MANY_REQUESTS, f"too many {self._what} are in progress", AGAIN)
        del self._awaited[oldest]
        oldest.reschedule(asyncio.get_running_loop().time())

    async def _received(self, request: web.BaseRequest) -> bytes:
        body, deadline = bytearray(), asyncio.timeout(None)
        self._awaited[deadline] = None
        try:
            async with deadline:
                async for chunk in request.content.iter_any():
                    body += chunk
                    if len(body) > self._largest:
                        text = f"the body is larger than {self._largest >> 10} KiB"
                        raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text)
        except TimeoutError:
            text = f"the request body arrives too slowly while other {self._what} wait"
            raise RefusedError(HTTPStatus.TOO_MANY_REQUESTS, text, AGAIN) from None
        finally:
            self._awaited.pop(deadline, None)
        return bytes(body)
