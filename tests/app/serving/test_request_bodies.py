"""Bodies of requests: who sends slowly gives way to those who come later, and keeps no place."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from policysched.app.serving.answers import refusal
from policysched.app.serving.refused import RefusedError
from policysched.app.serving.request_bodies import Bodies
from tests.app.serving.ports import Port, open_port

HEAD = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n"


class Endpoint:
    """Reads bodies, and works on them as long as it is told to."""

    def __init__(self) -> None:
        self.bodies = Bodies("tests", 2, 4)
        self.begun = 0
        self.release = asyncio.Event()
        self.release.set()

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.begun += 1
        try:
            async with self.bodies.read(request) as body:
                await self.release.wait()
                return web.Response(body=body)
        except RefusedError as error:
            return refusal(error)

    async def has_begun(self, number: int) -> None:
        while self.begun < number:
            await asyncio.sleep(0.01)


@asynccontextmanager
async def sent(port: Port, data: bytes) -> AsyncIterator[asyncio.StreamReader]:
    """Open a connection and send something."""
    context = ssl._create_unverified_context()  # noqa: S323 - the port's certificate is its own
    reader, writer = await asyncio.open_connection("127.0.0.1", port.port, ssl=context)
    try:
        writer.write(data)
        await writer.drain()
        yield reader
    finally:
        writer.close()
        await writer.wait_closed()


async def test_slow_senders_give_way_the_oldest_first() -> None:
    endpoint = Endpoint()
    async with open_port(endpoint.answer) as port, sent(port, HEAD) as first:
        await endpoint.has_begun(1)
        async with sent(port, HEAD + b"ab"):
            await endpoint.has_begun(2)
            assert await port.get("/", "POST", data="good") == (200, "good")
            answer = await first.read()
    assert answer.startswith(b"HTTP/1.1 429 ")
    said = json.loads(answer.partition(b"\r\n\r\n")[2])["message"]
    assert said == "the request body arrives too slowly while other tests wait"


async def test_requests_at_work_do_not_give_way() -> None:
    endpoint = Endpoint()
    endpoint.release.clear()
    async with open_port(endpoint.answer) as port:
        working = [asyncio.create_task(port.get("/", "POST", data="good")) for _ in range(2)]
        await endpoint.has_begun(2)
        code, said = await port.get("/", "POST", data="late")
        assert (code, json.loads(said)["message"]) == (429, "too many tests are in progress")
        endpoint.release.set()
        assert await asyncio.gather(*working) == [(200, "good")] * 2
        assert await port.get("/", "POST", data="good") == (200, "good")
        assert (await port.get("/", "POST", data="large"))[0] == 413


async def test_senders_that_hang_up_free_their_places() -> None:
    endpoint = Endpoint()
    async with open_port(endpoint.answer) as port:
        for number in range(1, 5):
            async with sent(port, HEAD):
                await endpoint.has_begun(number)
        endpoint.release.clear()
        working = [asyncio.create_task(port.get("/", "POST", data="good")) for _ in range(2)]
        await endpoint.has_begun(6)
        endpoint.release.set()
        assert await asyncio.gather(*working) == [(200, "good")] * 2
