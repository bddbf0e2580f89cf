"""A sandbox and the scheduler in one process, for the demo, benchmarks and tests.

The scheduler is that of `policysched run` and uses HTTP, so it behaves as in a cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import msgspec

from policysched.app.clock import SystemClock
from policysched.app.configuration.election import NO_ELECTION
from policysched.app.demo.sandbox_setup import new_sandbox, start, written_kubeconfig
from policysched.app.dry_run.dry_run import dry_run
from policysched.app.running.run import run_scheduler
from policysched.app.running.run_options import RunOptions
from policysched.errors import PolicyschedError
from policysched.kube.connection import Connection
from policysched.kube.transport import JSON, MERGE_PATCH, Transport
from policysched.model.kinds import KINDS
from policysched.model.policy import API_VERSION, KIND, PLURAL
from policysched.sandbox import Sandbox

Object = dict[str, Any]
T = TypeVar("T")
DEFAULTS: Final = RunOptions()
POLL: Final = 0.02
"""Time between two calls in `ScheduledSandbox.until`. Units: seconds."""

_PATHS: Final = {
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/namespaces/{}/pods",
    "Event": "/api/v1/namespaces/{}/events",
    "Namespace": "/api/v1/namespaces",
    "PodGroup": "/apis/scheduling.k8s.io/v1beta1/namespaces/{}/podgroups",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "ResourceClaim": "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims",
    KIND: f"/apis/{API_VERSION}/{PLURAL}",
}


class Api:
    """Client with which a demo creates, reads and changes objects of a few kinds; the scheduler uses another client."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def create(self, obj: Object) -> Object:
        """Create an object."""
        namespace = obj["metadata"].get("namespace", "default")
        return await self._ask("POST", _PATHS[obj["kind"]].format(namespace), obj)

    async def get(self, kind: str, name: str, namespace: str = "default") -> Object:
        """Read an object."""
        return await self._ask("GET", f"{_PATHS[kind].format(namespace)}/{name}")

    async def list(self, kind: str, namespace: str = "default") -> list[Object]:
        """List the objects of a kind."""
        items: list[Object] = (await self._ask("GET", _PATHS[kind].format(namespace)))["items"]
        return items

    async def patch(self, kind: str, name: str, patch: Object, namespace: str = "default") -> Object:
        """Change some fields of an object."""
        return await self._ask("PATCH", f"{_PATHS[kind].format(namespace)}/{name}", patch, MERGE_PATCH)

    async def delete(self, kind: str, name: str, namespace: str = "default") -> None:
        """Delete an object."""
        await self._ask("DELETE", f"{_PATHS[kind].format(namespace)}/{name}")

    async def _ask(self, method: str, path: str, body: Object | None = None, content_type: str = JSON) -> Object:
        data = msgspec.json.encode(body) if body is not None else None
        answer = await self._transport.request(method, path, data, content_type=content_type)
        made: Object = msgspec.json.decode(answer)
        return made


@dataclass(frozen=True, slots=True)
class ScheduledSandbox:
    """A sandbox and its scheduler."""

    sandbox: Sandbox
    api: Api
    scheduler: asyncio.Task[None]

    async def until(self, ask: Callable[[], Awaitable[T | None]], what: str, seconds: float = 30.0) -> T:
        """Call a function until its result is not None, and return the result.

        Args:
            ask: Returns None while the condition is not met.
            what: The condition, for the error.
            seconds: The timeout.

        Raises:
            PolicyschedError: timeout, or the scheduler ended.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while (answer := await ask()) is None:
            if self.scheduler.done():
                self.scheduler.result()
                raise PolicyschedError("the scheduler ended unexpectedly")
            if loop.time() > end:
                raise PolicyschedError(f"timed out after {seconds:g} s waiting for {what}")
            await asyncio.sleep(POLL)
        return answer

    async def runs_on(self, name: str) -> str:
        """Wait until a pod of the namespace default runs, and return its node.

        Raises:
            PolicyschedError: timeout, or the scheduler ended.
        """

        async def node() -> str | None:
            pod = await self.api.get("Pod", name)
            return pod["spec"].get("nodeName") if pod["status"].get("phase") == "Running" else None

        return await self.until(node, f"a node for pod {name}")

    async def failure_of(self, name: str) -> str:
        """Wait for an event FailedScheduling of a pod, and return the event's message.

        Raises:
            PolicyschedError: timeout, or the scheduler ended.
        """

        async def failure() -> str | None:
            for event in await self.api.list("Event"):
                about = event.get("involvedObject") or {}
                if event.get("reason") == "FailedScheduling" and about.get("name") == name:
                    return str(event.get("message", ""))
            return None

        return await self.until(failure, f"an event about pod {name}")

    async def apply(self, policy: Object) -> Object:
        """Create or update a policy and wait for its status."""
        name = policy["metadata"]["name"]
        if any(one["metadata"]["name"] == name for one in self.sandbox.objects(KIND)):
            cleared = {**dict.fromkeys(self._policy(name)["spec"]), **policy["spec"]}
            made = await self.api.patch(KIND, name, {"spec": cleared})
        else:
            made = await self.api.create(policy)
        generation = made["metadata"]["generation"]

        async def observed() -> Object | None:
            found = self._policy(name)
            return found if (found.get("status") or {}).get("observedGeneration", 0) >= generation else None

        return await self.until(observed, f"the status of policy {name}")

    def explain(self, pod: Object) -> Object:
        """Return the decision record of a dry-run for a new pod."""
        objects = [one for kind in KINDS for one in self.sandbox.objects(kind)]
        return dry_run(objects, pod).to_dict()

    def _policy(self, name: str) -> Object:
        return next(one for one in self.sandbox.objects(KIND) if one["metadata"]["name"] == name)


@asynccontextmanager
async def scheduled_sandbox(
    objects: Sequence[Object] = (), options: RunOptions = DEFAULTS, *, kubelet_seconds: float | None = 0.05
) -> AsyncIterator[ScheduledSandbox]:
    """Start a sandbox and a scheduler; stop both at the end.

    Args:
        objects: The initial objects of the sandbox.
        options: The options of the scheduler, without a kubeconfig and leader election.
        kubelet_seconds: Seconds per step of the simulated kubelets and controllers; None disables them.
    """
    sandbox = new_sandbox(kubelet_seconds=kubelet_seconds)
    sandbox.load(objects)
    await start(sandbox)
    connection = Connection(sandbox.url, SystemClock())
    stop = asyncio.Event()
    with written_kubeconfig(sandbox.kubeconfig()) as path:
        complete = replace(options, kubeconfig=path, leader_election=NO_ELECTION)
        scheduler = asyncio.ensure_future(run_scheduler(complete, stop))
        try:
            yield ScheduledSandbox(sandbox, Api(Transport(connection)), scheduler)
        finally:
            stop.set()
            await asyncio.gather(scheduler, return_exceptions=True)
            await connection.close()
            await sandbox.stop()
