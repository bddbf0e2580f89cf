"""A proxy that fails at bindings, conditions, evictions and reads of single pods, in every way that a gateway has."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web

from tests.e2e.proxy import JSON, Proxy, hang, is_watch, reset
from tests.e2e.proxy import status as refusal

RATES: Final = {"bind": 0.45, "read": 0.4, "delete": 0.3, "status": 0.2}
"""How often each kind of request fails."""
REFUSALS: Final = {"refused with 403": 403, "refused with 409": 409, "refused with 429": 429, "refused with 500": 500}
LATE: Final = 0.5
"""How late requests and lines of watches may come. Units: seconds."""
WATCH: Final = (5.0, 10.0)
"""How long watches last. Units: seconds."""
FAULTS: Final = (
    *REFUSALS,
    "a page of 404",
    "broken before",
    "no answer",
    "done, and broken after",
    "done, and 504 after",
    "done, and an empty answer",
    "done twice",
    "done late",
)


@dataclass
class FailingWrites(Proxy):
    """The proxy; what fails is drawn."""

    rng: random.Random = field(default_factory=random.Random)
    well: bool = False
    """Whether nothing fails any more."""
    failed: Counter[str] = field(default_factory=Counter)
    """How often something failed, by request and fault."""

    async def _answer_or_strike(self, request: web.Request) -> web.StreamResponse:
        if is_watch(request):
            return await self._watch(request)
        kind = _kind(request)
        if self.well or self.rng.random() >= RATES.get(kind, 0):
            return await self.forward(request)
        fault = self.rng.choice(FAULTS)
        self.failed[f"{kind}: {fault}"] += 1
        return await self._failing(request, fault)

    async def _failing(self, request: web.Request, fault: str) -> web.StreamResponse:
        if fault in REFUSALS:
            return await refusal(REFUSALS[fault])(self, request)
        if fault == "a page of 404":
            return web.Response(status=404, text="<html>not found")
        if fault == "no answer":
            return await hang(self, request)
        if fault == "broken before":
            return await reset(self, request)
        return await self._done(request, fault)

    async def _done(self, request: web.Request, fault: str) -> web.StreamResponse:
        """Pass a request on, to its end whoever waits, and fail at the answer."""
        if fault == "done late":
            await asyncio.sleep(self.rng.random() * LATE)
        answer = await asyncio.shield(self.forward(request))
        if fault == "done twice":
            return await asyncio.shield(self.forward(request))
        if fault == "done, and broken after":
            return await reset(self, request)
        if fault == "done, and 504 after":
            return web.Response(status=504, text=json.dumps({"kind": "Status", "code": 504}), headers=JSON)
        return web.Response(status=201) if fault == "done, and an empty answer" else answer

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        """Pass lines on late, and break the watch after a while."""
        ends = asyncio.get_running_loop().time() + self.rng.uniform(*WATCH)
        async with self.server.session.get(self.server.url + request.path_qs) as answer:
            response = web.StreamResponse(status=answer.status, headers=JSON)
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                if not self.well:
                    await asyncio.sleep(self.rng.random() * LATE)
                    if asyncio.get_running_loop().time() > ends:
                        assert request.transport is not None
                        request.transport.abort()
                        break
                await response.write(chunk)
            return response


def _kind(request: web.Request) -> str:
    if "/pods/" not in request.path:
        return ""
    if request.path.endswith("/binding"):
        return "bind"
    if request.path.endswith("/status"):
        return "status"
    return {"GET": "read", "DELETE": "delete"}.get(request.method, "")
