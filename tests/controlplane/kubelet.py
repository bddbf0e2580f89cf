"""The kubelets of all nodes, as a process: nodes become Ready, bound pods run, deleted pods go away.

It knows an API server only, and nothing of tests. Every write names the pod's UID, so that a pod made anew under the
same name is never taken for the old one. Nodes with the label `kubelet=none` have none.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final

import aiohttp

from tests.controlplane.kubeletbodies import allocatable, lease, lingering, ready, renewal, running

Json = dict[str, Any]
SELECTOR: Final = "kubelet!=none"
STRATEGIC: Final = "application/strategic-merge-patch+json"
LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_AT_ONCE: Final = 32
_PAUSE: Final = 0.2
"""How long to wait after a failure. Units: seconds."""
_SETTLED: Final = frozenset((404, 409, 422))
"""Answers after which there is nothing more to do: the object is gone, or another one by now."""
_LOST: Final = (aiohttp.ClientError, OSError, TimeoutError, ValueError)


class FailedError(Exception):
    """The server's answer is a failure."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Kubelets:
    """Plays the kubelets of one API server's nodes."""

    def __init__(self, session: aiohttp.ClientSession, url: str, lease_seconds: float) -> None:
        self._session = session
        self._url = url
        self._lease_seconds = lease_seconds
        self._nodes: dict[str, Json] = {}
        self._homeless: dict[str, dict[str, Json]] = {}
        self._latest: dict[str, Json] = {}
        self._busy: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._addresses = 0

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow("/api/v1/nodes", {"labelSelector": SELECTOR}, self._hear_node))
            tasks.create_task(self._follow("/api/v1/pods", {"fieldSelector": "spec.nodeName!="}, self._hear_pod))
            tasks.create_task(self._renew())

    async def _follow(self, path: str, query: dict[str, str], hear: Callable[[str, Json], None]) -> None:
        """List, then watch, for ever; a watch that ends or fails begins again with a list."""
        while True:
            with contextlib.suppress(FailedError, *_LOST):
                found = await self._call("GET", path, query=query)
                hear("LISTED", found)
                for obj in found["items"]:
                    hear("ADDED", obj)
                async for event in self._watch(path, query | {"resourceVersion": found["metadata"]["resourceVersion"]}):
                    hear(event["type"], event["object"])
            await asyncio.sleep(_PAUSE)

    async def _watch(self, path: str, query: dict[str, str]) -> AsyncIterator[Json]:
        """Give the events of a watch, until it ends or says that it cannot go on."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10)
        params = query | {"watch": "true"}
        async with self._session.get(self._url + path, params=params, timeout=timeout) as answer:
            if answer.status != 200:
                return
            async for line in answer.content:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                yield event

    def _hear_node(self, change: str, node: Json) -> None:
        if change == "LISTED":
            present = {each["metadata"]["name"] for each in node["items"]}
            self._nodes = {name: known for name, known in self._nodes.items() if name in present}
            return
        name = node["metadata"]["name"]
        if change == "DELETED":
            self._nodes.pop(name, None)
            return
        known = self._nodes.get(name)
        self._nodes[name] = node
        if known is None or known["metadata"]["uid"] != node["metadata"]["uid"]:
            self._task(self._register(node))
            for uid, pod in self._homeless.pop(name, {}).items():
                self._note(uid, pod)
        elif changes := allocatable(known, node):
            body = {"metadata": {"uid": node["metadata"]["uid"]}, "status": {"allocatable": changes}}
            path = f"/api/v1/nodes/{name}/status"
            self._task(self._insist(lambda: self._call("PATCH", path, body, STRATEGIC)))

    def _hear_pod(self, change: str, pod: Json) -> None:
        if change == "LISTED":
            self._homeless.clear()
            return
        uid, node = pod["metadata"]["uid"], pod["spec"]["nodeName"]
        if change == "DELETED":
            self._homeless.get(node, {}).pop(uid, None)
        elif node not in self._nodes:
            self._homeless.setdefault(node, {})[uid] = pod
        else:
            self._note(uid, pod)

    def _note(self, uid: str, pod: Json) -> None:
        """See to a pod, one step at a time and always from its latest version."""
        self._latest[uid] = pod
        if uid not in self._busy:
            self._busy.add(uid)
            self._task(self._see_to(uid))

    async def _see_to(self, uid: str) -> None:
        while (pod := self._latest.pop(uid, None)) is not None:
            step = self._step(pod)
            if step is not None and not await self._settled(step):
                self._latest.setdefault(uid, pod)
        self._busy.discard(uid)

    def _step(self, pod: Json) -> Callable[[], Awaitable[object]] | None:
        """Say what a pod needs now."""
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        if metadata.get("deletionTimestamp"):
            if metadata.get("finalizers") and not metadata.get("deletionGracePeriodSeconds"):
                return None
            if (rest := lingering(pod, datetime.now(UTC))) > 0:
                self._task(self._see_again(pod, rest))
                return None
            options = {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}}
            return lambda: self._call("DELETE", path, options)
        if pod["status"].get("phase") != "Pending":
            return None
        status = running(pod, self._nodes.get(pod["spec"]["nodeName"], {}), self._address(), _now())
        body = {"metadata": {"uid": metadata["uid"]}, "status": status}
        return lambda: self._call("PATCH", f"{path}/status", body, STRATEGIC)

    async def _see_again(self, pod: Json, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self._note(pod["metadata"]["uid"], pod)

    async def _settled(self, step: Callable[[], Awaitable[object]]) -> bool:
        """Take a step; tell whether it is done or has become pointless, rather than to be repeated."""
        try:
            async with self._room:
                await step()
        except FailedError as error:
            if error.status in _SETTLED:
                return True
        except _LOST:
            pass
        else:
            return True
        await asyncio.sleep(_PAUSE)
        return False

    async def _register(self, node: Json) -> None:
        """Give a node its lease, and the Ready condition where it says nothing of it."""
        name = node["metadata"]["name"]
        await self._insist(lambda: self._call("POST", LEASES, lease(node, _now(), self._lease_seconds)))
        conditions = node["status"].get("conditions") or ()
        if not any(each["type"] == "Ready" for each in conditions):
            body = {"metadata": {"uid": node["metadata"]["uid"]}, "status": {"conditions": [ready(_now())]}}
            await self._insist(lambda: self._call("PATCH", f"/api/v1/nodes/{name}/status", body, STRATEGIC))

    async def _insist(self, step: Callable[[], Awaitable[object]]) -> None:
        while not await self._settled(step):
            pass

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._lease_seconds / 4)
            await asyncio.gather(*(self._renew_one(node) for node in tuple(self._nodes.values())))

    async def _renew_one(self, node: Json) -> None:
        """Renew a lease; one that was swept away with a former node of that name is made again."""
        path = f"{LEASES}/{node['metadata']['name']}"
        with contextlib.suppress(FailedError, *_LOST):
            async with self._room:
                try:
                    await self._call("PATCH", path, renewal(_now()), STRATEGIC)
                except FailedError as error:
                    if error.status == 404:
                        await self._call("POST", LEASES, lease(node, _now(), self._lease_seconds))

    async def _call(
        self, method: str, path: str, body: Json | None = None, media: str = "application/json", **more: Any
    ) -> Json:
        data = None if body is None else json.dumps(body)
        async with self._session.request(
            method, self._url + path, data=data, params=more.get("query"), headers={"Content-Type": media}
        ) as answer:
            if answer.status >= 400:
                raise FailedError(answer.status)
            found: Json = await answer.json(content_type=None)
            return found

    def _task(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _address(self) -> str:
        self._addresses = self._addresses % 0xFFFE + 1
        return f"10.128.{self._addresses >> 8}.{self._addresses & 0xFF}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


async def serve(url: str, authority: str, token: str, lease_seconds: float) -> None:
    """Play until SIGTERM."""
    tls = ssl.create_default_context(cafile=authority)
    timeout = aiohttp.ClientTimeout(total=30)
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=tls, limit=2 * _AT_ONCE),
        headers={"Authorization": f"Bearer {token}"},
        timeout=timeout,
        read_bufsize=1 << 22,
    ) as session:
        work = asyncio.create_task(Kubelets(session, url, lease_seconds).run())
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, work.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await work


def main() -> None:
    """Read the arguments and play."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--server", required=True)
    arguments.add_argument("--certificate-authority", required=True)
    arguments.add_argument("--lease-seconds", type=float, default=40.0)
    told = arguments.parse_args()
    token = os.environ["KUBELET_TOKEN"]
    asyncio.run(serve(told.server, told.certificate_authority, token, told.lease_seconds))


if __name__ == "__main__":
    main()
