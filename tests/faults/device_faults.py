"""The faults of pods with claims: between a device that is chosen and a pod that is bound lie several writes."""

from __future__ import annotations

import re
import signal
from typing import Final

from aiohttp import web

from tests.faults.devices import DeviceScene, devices
from tests.faults.faults import Fault, deleted, requests_fail, stopped
from tests.faults.proxy import FaultyProxy
from tests.faults.scene import Scene
from tests.faults.schedulers import UnderTest

CLAIM: Final = re.compile(r"/apis/resource\.k8s\.io/v1/namespaces/default/resourceclaims/([^/]+)(/status)?")
BINDING: Final = re.compile(r"/api/v1/namespaces/default/pods/([^/]+)/binding")
WRITES: Final = ("PUT", "PATCH")
THIRD: Final = 3
KILLS: Final = 3
"""How often the scheduler is killed."""


class _Once:
    """Does something before the first write of every third claim."""

    def __init__(self, method: str, body: str | None = None) -> None:
        self._method, self._body = method, body
        self._known: set[str] = set()

    async def __call__(self, proxy: FaultyProxy, request: web.Request) -> bool:
        found = CLAIM.fullmatch(request.path)
        if request.method in WRITES and found and found[1] not in self._known:
            self._known.add(found[1])
            if len(self._known) % THIRD == 0:
                await self._strike(proxy, request.path.removesuffix("/status"))
        return True

    async def _strike(self, proxy: FaultyProxy, path: str) -> None:
        headers = {"Content-Type": "application/merge-patch+json"} if self._body else {}
        url = proxy.server.url + path
        async with proxy.server.session.request(self._method, url, data=self._body, headers=headers) as answer:
            proxy.struck["claims"] += answer.ok


def _claims_change(scene: Scene) -> str:
    """Change every third claim just before it is written."""
    return _writing(scene, _Once("PATCH", '{"metadata":{"annotations":{"faults":"changed"}}}'), "changed")


def _claims_deleted(scene: Scene) -> str:
    """Delete every third claim between Reserve and PreBind.

    The controller believes for an hour in claims that it has made, be they gone: it is started anew, and makes others.
    """
    assert scene.proxy is not None
    before = _Once("DELETE")
    scene.proxy.use(before=before)
    scene.resume()
    deleted = scene.size.pods // THIRD
    scene.until(lambda: scene.proxy is not None and scene.proxy.struck >= deleted, "claims are deleted")
    scene.until(lambda: len(scene.unbound()) <= deleted, "all pods that have their claims are bound")
    scene.proxy.use()
    scene.plane.restart_controllers()
    scene.until(lambda: not scene.unbound(), "all pods are bound")
    return f"{scene.proxy.struck} claims were deleted before they were written"


def _writing(scene: Scene, before: _Once, what: str) -> str:
    assert scene.proxy is not None
    scene.proxy.use(before=before)
    scene.resume()
    scene.until(lambda: not scene.unbound(), "all pods are bound")
    scene.proxy.use()
    assert scene.proxy.struck, "no claim was met"
    return f"{scene.proxy.struck} claims were {what} before they were written"


class _Kills:
    """Kills a scheduler instead of passing on one of its bindings, some times."""

    def __init__(self, scheduler: UnderTest, every: int) -> None:
        self._scheduler, self._every = scheduler, every
        self._passed = self.kills = 0

    async def __call__(self, proxy: FaultyProxy, request: web.Request) -> bool:  # noqa: ARG002 - what is asked before
        if not BINDING.fullmatch(request.path):
            return True
        lives = self.kills == self._scheduler.restarts  # what a killed one has sent still comes in
        if lives and self.kills < KILLS and self._passed >= (self.kills + 1) * self._every:
            self.kills += 1
            self._scheduler.signal(signal.SIGKILL)
            return False
        self._passed += 1
        return True


def _killed_before_binding(scene: Scene) -> str:
    """Kill the scheduler when it has written what a pod gets, and is about to bind it; it is started again."""
    assert scene.proxy is not None
    [scheduler] = scene.schedulers
    killing = _Kills(scheduler, scene.size.pods // 8)
    scene.proxy.use(before=killing)
    scene.resume()
    between = []
    for number in range(KILLS):
        scene.until(lambda number=number: killing.kills > number, "it is killed")  # type: ignore[misc]
        allocated = sum(bool(devices(one)) for one in scene.api.objects("ResourceClaim", "default"))
        between.append(allocated - scene.bound())
    scene.until(lambda: not scene.unbound(), "all pods are bound")
    scene.proxy.use()
    return f"claims of pods that were not bound when it was killed: {between}"


DEVICE_FAULTS: Final = tuple(
    Fault(f"devices: {name}", strike, scene=DeviceScene, proxied=proxied)
    for name, strike, proxied in (
        ("API server killed (SIGKILL)", stopped(signal.SIGKILL), False),
        ("claims change before they are written", _claims_change, True),
        ("claims deleted between Reserve and PreBind", _claims_deleted, True),
        ("scheduler killed between allocation and binding", _killed_before_binding, True),
        ("5 % of requests fail", requests_fail, True),
        ("pods and a node deleted", deleted, False),
    )
)
