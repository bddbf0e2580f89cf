"""A cluster that pods fill exactly, the schedulers that fill it, and what must be so after a fault.

It knows no fault. Pods are made while the schedulers stand still, so that a fault always comes in the middle; who holds
a lease would lose it meanwhile, so then only half of the pods are there when the fault comes.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

from tests.controlplane.api import Json, RefusedError
from tests.controlplane.loading import until
from tests.controlplane.plane import ControlPlane
from tests.faults.proxy import ProxyThread
from tests.faults.schedulers import NAME, State, UnderTest

PATIENCE: Final = 100.0
"""How long after a fault all must be right again. Units: seconds."""
MILLIS: Final = 200
"""What a pod requests. Units: thousandths of a core."""
APART: Final = {"key": "faults/apart", "value": "yes", "effect": "NoSchedule"}
"""The taint of nodes that are not for our pods."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much there is to do."""

    nodes: int
    a_node: int
    """How many pods fill a node."""
    seconds: float
    """How long a fault lasts, where it lasts."""

    @property
    def pods(self) -> int:
        """How many pods fill all nodes."""
        return self.nodes * self.a_node


SHORT: Final = Size(nodes=4, a_node=10, seconds=2.0)
LONG: Final = Size(nodes=25, a_node=20, seconds=6.0)


@dataclass
class Outcome:
    """What one scheduler made of one fault.

    Units: seconds; MiB.
    """

    fault: str
    scheduler: str
    pods: int
    lost: list[str] = field(default_factory=list)
    """Pods that could run and were not bound in time."""
    twice: list[str] = field(default_factory=list)
    """Pods that the API server bound more than once."""
    over: int = 0
    """How many pods are on nodes that were full."""
    apart: int | None = 0
    """Nodes and pods of which the state is not what a fresh list says; None where it cannot be asked."""
    right_after: float = 0.0
    kept_mib: float = 0.0
    restarts: int = 0
    wrong: list[str] = field(default_factory=list)
    """What else is not as it must be."""
    note: str = ""
    """What was counted, or why the fault was not tried."""

    def holds(self, *, shares: bool) -> bool:
        """Whether all is as it must be; where nodes are shared with another scheduler they may get over-full."""
        return not (self.lost or self.twice or self.apart or self.wrong or (self.over and not shares))


class Scene:
    """One fault's cluster."""

    controllers: ClassVar[tuple[str, ...]] = ()
    """The controllers that it needs beside those of all clusters."""
    gates: ClassVar[tuple[str, ...]] = ()
    """The feature gates of all programs."""

    def __init__(self, plane: ControlPlane, size: Size, prefix: str) -> None:
        self.plane, self.size, self.prefix = plane, size, prefix
        self.api = plane.api
        self.schedulers: list[UnderTest] = []
        self.proxy: ProxyThread | None = None
        self.tree: Path | None = None
        """The files of another version of policysched that the schedulers begin in; None for this version."""
        self.left = 0
        """How many pods are yet to be made."""
        self._made = 0

    def make_nodes(self) -> None:
        """Make the nodes, without taints."""
        for number in range(self.size.nodes):
            self.make_node(f"{self.prefix}-n{number:02}", self.size.a_node * MILLIS)

    def make_node(self, name: str, millis: int, *taints: Json) -> None:
        """Make a Ready node, with these taints alone."""
        amounts = {"cpu": f"{millis}m", "memory": "64Gi", "pods": "1000"}
        status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
        labels = {"kubernetes.io/hostname": name, "kubelet": "none"}
        self.api.create(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}
        )
        until(lambda: self.api.patch("Node", name, {"spec": {"taints": list(taints) or None}}), f"node {name}")

    def make_pods(self, count: int, scheduler: str = NAME, **fields: Any) -> list[str]:
        """Make pods, and give their names; `fields` are further ones of their spec."""
        return self._make_pods(self.prefix, count, scheduler, fields)

    def _make_pods(self, stem: str, count: int, scheduler: str, fields: Json) -> list[str]:
        names = [f"{stem}-{self._made + number:04}" for number in range(count)]
        self._made += count
        container = {"name": "c", "image": "pause", "resources": {"requests": {"cpu": f"{MILLIS}m"}}}
        spec = {"schedulerName": scheduler, "containers": [container]} | fields
        for name in names:
            self.api.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
        return names

    def make_left(self, most: int | None = None) -> None:
        """Make pods that are yet to be made, all or so many."""
        count = self.left if most is None else min(self.left, most)
        self.left -= count
        self.make_pods(count)

    def pause(self) -> None:
        """Have the schedulers stand still."""
        for one in self.schedulers:
            one.signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Have them go on."""
        for one in self.schedulers:
            one.signal(signal.SIGCONT)

    def go_to_the_middle(self) -> None:
        """Let them go on until the first tenth of the pods is bound."""
        self.resume()
        wanted = max(self.size.pods // 10, 1)
        self.until(lambda: self.bound() >= wanted, "a tenth of the pods is bound")

    def until(self, holds: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
        """Wait until something holds, while schedulers that end are started again and the server may be away.

        Raises:
            AssertionError: it is never so.
        """

        def look() -> Any:
            for one in self.schedulers:
                one.revive()
            with contextlib.suppress(OSError):
                return holds()
            return None

        return until(look, what, seconds)

    def comes_true(self, holds: Callable[[], Any], seconds: float = PATIENCE) -> bool:
        """Whether something holds in time."""
        try:
            self.until(holds, "", seconds)
        except AssertionError:
            return False
        return True

    def pods(self, query: str = "") -> list[Json]:
        """List the pods, or those that a field selector means."""
        found: list[Json] = self.api.call("GET", f"/api/v1/namespaces/default/pods{query}")["items"]
        return found

    def unbound(self) -> list[str]:
        """Name the pods without a node that are the scheduler's."""
        found = self.pods(f"?fieldSelector=spec.nodeName=,spec.schedulerName={NAME}")
        return [one["metadata"]["name"] for one in found]

    def bound(self) -> int:
        """Count the pods that have a node."""
        return len(self.pods("?fieldSelector=spec.nodeName!="))

    def churn(self) -> None:
        """Delete a tenth of the pods that are bound, and make as many, again and again for as long as a fault lasts."""
        end = time.monotonic() + self.size.seconds
        while time.monotonic() < end:
            bound = [one["metadata"]["name"] for one in self.pods("?fieldSelector=spec.nodeName!=")]
            gone = bound[: max(self.size.pods // 10, 1)]
            self.delete_pods(gone)
            self.make_pods(len(gone))
            time.sleep(0.3)

    def delete_pods(self, names: Iterable[str]) -> None:
        """Delete pods, without grace."""
        for name in names:
            with contextlib.suppress(RefusedError):
                self.api.delete("Pod", name, gracePeriodSeconds=0)

    def empty(self) -> None:
        """Delete all pods, and wait until the schedulers know of none."""
        self._delete_all_pods()
        self.until(lambda: not self.pods(), "no pods")
        self.comes_true(lambda: self.apart() in {0, None}, 20)

    def clear(self) -> None:
        """Delete pods and nodes."""
        self._delete_all_pods()
        self.api.call("DELETE", "/api/v1/nodes", {})
        until(lambda: not self.pods() and not self.api.objects("Node"), "no pods and no nodes")

    def _delete_all_pods(self) -> None:
        """Delete the pods of one node after the other: the answer to the deletion of thousands comes too late."""
        for node in sorted({one["spec"].get("nodeName", "") for one in self.pods()}):
            path = f"/api/v1/namespaces/default/pods?fieldSelector=spec.nodeName={node}"
            self.api.call("DELETE", path, {"gracePeriodSeconds": 0})

    def fresh(self) -> State:
        """Give what a scheduler knows that has just listed everything."""
        placed: dict[str, set[str]] = {}
        pending = set()
        for pod in self.pods():
            uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName")
            if node:
                placed.setdefault(node, set()).add(uid)
            elif pod["spec"]["schedulerName"] == NAME:
                pending.add(uid)
        cpu = {node: MILLIS * len(uids) for node, uids in placed.items()}
        names = frozenset(one["metadata"]["name"] for one in self.api.objects("Node"))
        # A node that is gone is known as long as pods name it.
        whole = {node: frozenset(uids) for node, uids in placed.items()}
        return State(whole, cpu, frozenset(pending), names)

    def apart(self) -> int | None:
        """Count what the schedulers know otherwise than a fresh list; None where none can be asked."""
        fresh = self.fresh()
        told = [one.state() for one in self.schedulers if one.running and one.can_tell]
        if not told:
            return None
        return sum(fresh.differences(one) if one is not None else 1 for one in told)

    def room(self) -> dict[str, int]:
        """Give how many more pods each node has room for that is for ours; less than none where it is over-full."""
        counts = Counter(one["spec"].get("nodeName", "") for one in self.pods())
        nodes = [one["metadata"]["name"] for one in self.api.objects("Node") if APART not in taints(one)]
        return {name: self.size.a_node - counts[name] for name in nodes}

    def wrong(self) -> list[str]:
        """Name what else is wrong with what pods have."""
        return []

    def waits(self, name: str) -> bool:
        """Whether a pod is said to fit nowhere."""
        said = self.api.get("Pod", name)["status"].get("conditions", ())
        return any(one["type"] == "PodScheduled" and one.get("reason") == "Unschedulable" for one in said)

    def memory_mib(self) -> float:
        """Give the resident memory of the larger scheduler, once it had time to give some back."""
        time.sleep(1.0)
        return max(one.memory_mib() for one in self.schedulers)


def taints(node: Json) -> list[Json]:
    """Give the taints of a node."""
    found: list[Json] = node["spec"].get("taints") or []
    return found
