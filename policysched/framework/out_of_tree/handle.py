"""`PluginHandle`: the access of out-of-tree plugins to the cluster, the API server and the queue.

The factory of a plugin receives a handle. The handle works once the scheduler has started; before that, its members
raise NotConnectedError. In a dry-run the members that need a running scheduler raise NotConnectedError, too. `nodes`,
`node`, `pods` and `custom_objects` must be used in the thread of the scheduler's event loop; all other members are
thread-safe.

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
    """Gives an out-of-tree plugin access to nodes and pods, the API server, waiting pods and the scheduling queue."""

    def __init__(self, profile_name: str = "") -> None:
        self.profile_name = profile_name
        """The scheduler name of the profile that runs the plugin."""
        self.watch = PluginWatch()
        """Measures the run time of the plugin's methods."""
        self._infos: list[NodeInfo] = []
        self._infos_of: Cluster | None = None
        self._cluster: Cluster | None = None
        self._services: Handle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0

    def connect(self, cluster: Cluster, services: Handle | None = None) -> None:
        """Connect the handle to a cluster and, unless in a dry-run, to a running scheduler."""
        self._cluster, self._services = cluster, services
        if services is None:
            return
        self.watch.monotonic = services.clock.monotonic
        with contextlib.suppress(RuntimeError):
            self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()

    def infos(self, cluster: Cluster) -> Sequence[NodeInfo]:
        """Return, from a cache, the NodeInfo of each node by the node's row."""
        if self._infos_of is not cluster:
            self._infos_of, self._infos = cluster, []
        self._infos += (NodeInfo(cluster, row) for row in range(len(self._infos), cluster.nodes.size))
        return self._infos

    @property
    def nodes(self) -> NodeInfos:
        """All nodes in their current state."""
        return NodeInfos.of_all(self._connected)

    def node(self, name: str) -> NodeInfo | None:
        """Return a node by name, or None if it does not exist."""
        cluster = self._connected
        row = cluster.nodes.row_of.get(name)
        return NodeInfo(cluster, row) if row is not None and cluster.nodes.present.data[row] else None

    @property
    def pods(self) -> list[Pod]:
        """All placed pods, including pods that are assumed on a node but not bound yet."""
        return [placed.pod for placed in self._connected.pods.by_id.values()]

    def custom_objects(self, resource: CustomResource) -> Mapping[str, CustomObject]:
        """Return the objects of a custom resource by `namespace/name`; the plugin's `events` must have a hint for it.

        The mapping is empty if the API server does not serve the resource or the scheduler is not allowed to read it.
        """
        return MappingProxyType(self._connected.objects.custom(resource))

    @property
    def client(self) -> Client:
        """The client for writes to the API server; its methods are `async def`, see `wait_for`."""
        return self._running.client

    @property
    def clock(self) -> Clock:
        """The scheduler's source of time."""
        return self._running.clock

    def waiting_pods(self) -> list[WaitingPod]:
        """Return the pods that wait at Permit."""
        return list(self._running.waiting.values())

    def get_waiting_pod(self, uid: str) -> WaitingPod | None:
        """Return the pod with a UID that waits at Permit, or None if it does not wait."""
        return self._running.waiting.get(uid)

    def reject_waiting_pod(self, uid: str) -> bool:
        """Reject the pod with a UID that waits at Permit; return whether it was waiting."""
        waiting = self.get_waiting_pod(uid)
        return waiting is not None and waiting.reject("", "removed")

    def activate(self, pods: Iterable[Pod]) -> None:
        """Move pending pods to the active queue at once, without a backoff."""
        self._soon(self._running.activate, [pod_id(pod) for pod in pods])

    def record(self, pod: Pod, kind: str, reason: str, note: str, *, action: str = "Scheduling") -> None:
        """Record an event about a pod; `kind` is Normal or Warning."""
        self._soon(self.client.record, Event(pod, kind, reason, action, note, self.clock.now()))

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine, such as a call of `client`, on the event loop and return its result.

        Only for methods that run in a worker thread: PreBind, Bind and PostBind that are not `async def`.

        Raises:
            NotConnectedError: called in the event loop's own thread, where waiting would deadlock.
        """
        if self._loop is None or threading.get_ident() == self._thread:
            work.close()
            raise NotConnectedError(
                "wait_for works only in PreBind, Bind and PostBind methods that are not `async def`"
            )
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    @property
    def _connected(self) -> Cluster:
        if self._cluster is None:
            raise NotConnectedError("the scheduler has not started, so there are no nodes and pods yet")
        return self._cluster

    @property
    def _running(self) -> Handle:
        if self._services is None:
            raise NotConnectedError(
                "no scheduler is running: a dry-run has no API server, no queue and no waiting pods"
            )
        return self._services

    def _soon(self, do: Callable[[T], Any], what: T) -> None:
        if self._loop is None or threading.get_ident() == self._thread:
            do(what)
        else:
            self._loop.call_soon_threadsafe(do, what)
