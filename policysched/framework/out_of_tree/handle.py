"""`PluginHandle`: what out-of-tree plugins reach the scheduler with.

A plugin is given one as it is made and keeps it. It is connected as the scheduler starts; until then, and in a dry-run
for what belongs to a running scheduler, asking it is an error. Everything but `nodes`, `pods` and `custom_objects`,
which belong to the loop's thread, may be called from any thread.

Source: k8s.io/kube-scheduler/framework/interface.go (Handle), v0.36.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

from policysched.errors import NotConnectedError
from policysched.framework.binding import Handle, WaitingPod
from policysched.framework.client import Client, Clock, Event
from policysched.framework.out_of_tree.node_info import NodeInfo, NodeInfos
from policysched.framework.out_of_tree.watch import PluginWatch
from policysched.model.custom_objects import CustomObject
from policysched.model.kinds import CustomResource
from policysched.model.objects import Pod
from policysched.state.cluster import Cluster
from policysched.state.placed.pods import pod_id

T = TypeVar("T")


class PluginHandle:
    """The nodes and pods, the API server, the pods that wait at Permit, and the queue."""

    def __init__(self, profile_name: str = "") -> None:
        self.profile_name = profile_name
        """The scheduler name of the profile."""
        self.watch = PluginWatch()
        """What plugins take."""
        self._infos: list[NodeInfo] = []
        self._infos_of: Cluster | None = None
        self._cluster: Cluster | None = None
        self._services: Handle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0

    def connect(self, cluster: Cluster, services: Handle | None = None) -> None:
        """Let plugins reach a cluster and, where one runs, a scheduler on the running loop, if there is one yet."""
        self._cluster, self._services = cluster, services
        if services is None:
            return
        self.watch.monotonic = services.clock.monotonic
        with contextlib.suppress(RuntimeError):
            self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()

    def infos(self, cluster: Cluster) -> Sequence[NodeInfo]:
        """Return views of all rows by number, which are made once."""
        if self._infos_of is not cluster:
            self._infos_of, self._infos = cluster, []
        self._infos += (NodeInfo(cluster, row) for row in range(len(self._infos), cluster.nodes.size))
        return self._infos

    @property
    def nodes(self) -> NodeInfos:
        """All nodes, as they are now."""
        return NodeInfos.of_all(self._connected)

    def node(self, name: str) -> NodeInfo | None:
        """Return a node by name, None where there is none."""
        cluster = self._connected
        row = cluster.nodes.row_of.get(name)
        return NodeInfo(cluster, row) if row is not None and cluster.nodes.present.data[row] else None

    @property
    def pods(self) -> list[Pod]:
        """All pods that are on a node or assumed there."""
        return [placed.pod for placed in self._connected.pods.by_id.values()]

    def custom_objects(self, resource: CustomResource) -> Mapping[str, CustomObject]:
        """Return the objects of a custom resource that a plugin's `events` name, by `namespace/name`, as they are now.

        Where the API server does not have the resource, or does not let the scheduler read it, there are none.
        """
        return MappingProxyType(self._connected.objects.custom(resource))

    @property
    def client(self) -> Client:
        """What writes to the API server; its methods are `async def`, see `wait_for`."""
        return self._running.client

    @property
    def clock(self) -> Clock:
        """The time."""
        return self._running.clock

    def waiting_pods(self) -> list[WaitingPod]:
        """Return the pods that wait at Permit."""
        return list(self._running.waiting.values())

    def get_waiting_pod(self, uid: str) -> WaitingPod | None:
        """Return a pod that waits at Permit by its UID, None where it does not wait."""
        return self._running.waiting.get(uid)

    def reject_waiting_pod(self, uid: str) -> bool:
        """Reject a pod that waits at Permit; return whether it waited."""
        waiting = self.get_waiting_pod(uid)
        return waiting is not None and waiting.reject("", "removed")

    def activate(self, pods: Iterable[Pod]) -> None:
        """Have pending pods tried at once."""
        self._soon(self._running.activate, [pod_id(pod) for pod in pods])

    def record(self, pod: Pod, kind: str, reason: str, note: str, *, action: str = "Scheduling") -> None:
        """Write an event about a pod, of the kind Normal or Warning."""
        self._soon(self.client.record, Event(pod, kind, reason, action, note, self.clock.now()))

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine, such as a call of `client`, and wait for it.

        Only for methods that run in a thread of their own: PreBind, Bind and PostBind that are not `async def`.

        Raises:
            NotConnectedError: this is the loop's own thread, which would wait for itself.
        """
        if self._loop is None or threading.get_ident() == self._thread:
            work.close()
            raise NotConnectedError("wait_for is for PreBind, Bind and PostBind that are not `async def`")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    @property
    def _connected(self) -> Cluster:
        if self._cluster is None:
            raise NotConnectedError("the scheduler has not started: there are no nodes and pods yet")
        return self._cluster

    @property
    def _running(self) -> Handle:
        if self._services is None:
            raise NotConnectedError("no scheduler runs: a dry-run has no API server, no queue and no waiting pods")
        return self._services

    def _soon(self, do: Callable[[T], Any], what: T) -> None:
        if self._loop is None or threading.get_ident() == self._thread:
            do(what)
        else:
            self._loop.call_soon_threadsafe(do, what)
