"""A proxy between a scheduler and a real API server that fails, cuts and delays; in a thread of its own.

It knows no objects. Which requests fail is drawn with a fixed seed, so that runs differ in the requests alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml
from aiohttp import web

from tests.controlplane.plane import ControlPlane
from tests.e2e.proxy import Proxy, is_watch, too_many
from tests.e2e.server import Server

T = TypeVar("T")
SHARE: Final = 0.05
"""How many requests fail where some do."""
_STATUS: Final = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "made to fail"}


Before = Callable[["FaultyProxy", web.Request], Awaitable[bool]]


class FaultyProxy(Proxy):
    """A way to a server on which requests fail, watches end and what they say comes late.

    Units: seconds.
    """

    chance: random.Random | None = None
    """What draws the requests that fail; None lets all pass."""
    lasting: float | None = None
    """How long a watch lasts at most."""
    late: float = 0.0
    """How late events come."""
    before: Before | None = None
    """Is asked before a request is passed on, and may do something else first; where it says no, nobody answers."""

    targets: Sequence[str] = ()
    """URLs of servers; each request goes to a random one. Empty: all requests go to `server`."""

    def target(self) -> str:
        return random.choice(self.targets) if self.targets else self.server.url

    async def _answer_or_strike(self, request: web.Request) -> web.StreamResponse:
        # Clients hang up where they please.
        with contextlib.suppress(ConnectionError):
            if self.before is not None and not await self.before(self, request):
                assert request.transport is not None
                request.transport.abort()
                return web.Response()
            if self.chance is not None and self.chance.random() < SHARE:
                return await self._fail(request, self.chance.choice((500, 429, None)))
            return await (self._watch(request) if is_watch(request) else self.forward(request))
        return web.Response()

    def break_all(self) -> None:
        """Break all connections that are in use."""
        self._break(*self._open.values())

    async def _fail(self, request: web.Request, code: int | None) -> web.StreamResponse:
        """Refuse, or do what was asked and never say so."""
        self.struck["requests"] += 1
        if code is None:
            if not is_watch(request):
                await self.forward(request)
            await asyncio.sleep(1)
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if code == 429:
            return await too_many(self, request)
        return web.json_response(_STATUS | {"code": code}, status=code)

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        headers = {"Accept": request.headers.get("Accept", "application/json")}
        async with self.server.session.get(self.target() + request.path_qs, headers=headers) as answer:
            kept = {name: answer.headers[name] for name in ("Content-Type",) if name in answer.headers}
            response = web.StreamResponse(status=answer.status, headers=kept)
            await response.prepare(request)
            try:
                async with asyncio.timeout(self.lasting):
                    async for chunk in _later(answer.content.iter_any(), lambda: self.late):
                        await response.write(chunk)
            except TimeoutError:
                self.struck["watches"] += 1
            return response


async def _later(chunks: AsyncIterator[bytes], seconds: Callable[[], float]) -> AsyncIterator[bytes]:
    """Give what comes so many seconds after it came, in its order."""
    loop, waiting = asyncio.get_running_loop(), asyncio.Queue[tuple[float, bytes]]()

    async def read() -> None:
        async for chunk in chunks:
            waiting.put_nowait((loop.time() + seconds(), chunk))
        waiting.put_nowait((loop.time(), b""))

    reading = asyncio.create_task(read())
    try:
        while True:
            when, chunk = await waiting.get()
            await asyncio.sleep(when - loop.time())
            if not chunk:
                return
            yield chunk
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


class ProxyThread:
    """A proxy for callers without a loop; a context manager.

    Args:
        plane: The control plane it leads to.
        kubeconfig: The file that it writes, for who goes through it.
    """

    def __init__(self, plane: ControlPlane, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self._plane = plane
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy")

    def __enter__(self) -> ProxyThread:
        self._thread.start()
        self._do(self._begin())
        cluster = {"clusters": [{"name": "c", "cluster": {"server": self.proxy.url}}]}
        context = {"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}
        config = {"apiVersion": "v1", "kind": "Config", "users": [{"name": "u", "user": {}}]} | cluster | context
        self.kubeconfig.write_text(yaml.safe_dump(config), "utf-8")
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def use(
        self,
        *,
        seed: int | None = None,
        lasting: float | None = None,
        late: float = 0.0,
        before: Before | None = None,
        targets: Sequence[str] = (),
    ) -> None:
        """Have requests fail, watches end, or events come late from now on; without arguments all is well again.

        Args:
            seed: what the requests that fail are drawn from.
            lasting: how long a watch lasts; those that are open end now.
            late: how late events come.
            before: what is asked before each request.
            targets: URLs of the servers that get the requests; all open connections break if they change.
        """

        async def change() -> None:
            self.proxy.chance = None if seed is None else random.Random(seed)
            self.proxy.lasting, self.proxy.late, self.proxy.before = lasting, late, before
            changed, self.proxy.targets = self.proxy.targets != targets, targets
            if changed or lasting is not None:
                self.proxy.break_all()

        self._do(change())

    @property
    def struck(self) -> int:
        """How many requests failed, and how many watches were ended."""
        return self.proxy.struck.total()

    async def _begin(self) -> None:
        identities = self._plane.identities
        headers = {"Authorization": f"Bearer {identities.token()}"}
        self._server = Server(self._plane.url, self._plane.kubeconfig(), headers, identities.tls())
        await self._server.__aenter__()
        self.proxy = FaultyProxy(self._server)
        await self.proxy.listen()

    async def _end(self) -> None:
        self.proxy.break_all()
        await self.proxy.end()
        await self._server.__aexit__()

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        future: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return future.result(30)
