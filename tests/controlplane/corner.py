"""A corner of a shared control plane for one test: a namespace, labelled nodes and a scheduler's name of its own.

It knows how pods are kept inside, a node selector, and nothing of who schedules them. Tests that count nodes in
messages want the whole control plane wiped instead, for a scheduler sees all nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from tests.controlplane.api import Json
from tests.controlplane.loading import until
from tests.controlplane.plane import ControlPlane

LABEL: Final = "policysched.io/corner"


@dataclass(frozen=True)
class Corner:
    """Named after its test; the name is the namespace's and the scheduler's too."""

    plane: ControlPlane
    name: str

    def __post_init__(self) -> None:
        self.plane.load([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name}}])

    def nodes(self, count: int, *, cpu: str = "4", labels: Json | None = None, **status: Any) -> list[str]:
        """Make nodes of 8Gi and 110 pods, wait until they are Ready and untainted, and give their names."""
        names = [f"{self.name}-n{number}" for number in range(1, count + 1)]
        amounts = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
        state = {"capacity": amounts, "allocatable": amounts} | status
        self.plane.load(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {
                    "name": name,
                    "labels": {"kubernetes.io/hostname": name, LABEL: self.name} | (labels or {}),
                },
                "status": state,
            }
            for name in names
        )
        return names

    def pod(self, name: str, *, on: str = "", labels: Json | None = None, **spec: Any) -> Json:
        """Give a pod of one container, for this corner's scheduler and nodes; `on` is its node from the start."""
        fields = {"schedulerName": self.name, "nodeSelector": {LABEL: self.name}} | ({"nodeName": on} if on else {})
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": self.name, "labels": labels or {}},
            "spec": fields | {"containers": [{"name": "c", "image": "registry.k8s.io/pause:3.10"}]} | spec,
        }

    def pods(self) -> list[Json]:
        """List the corner's pods."""
        return self.plane.objects("Pod", self.name)

    def get(self, name: str) -> Json:
        """Read a pod."""
        return self.plane.api.get("Pod", name, self.name)

    def bind(self, pod: str, node: str, uid: str = "") -> None:
        """Bind a pod by hand."""
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        metadata = {"name": pod, "namespace": self.name} | ({"uid": uid} if uid else {})
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        self.plane.api.call("POST", f"/api/v1/namespaces/{self.name}/pods/{pod}/binding", body)

    def comes_to_run(self, pod: str) -> Json:
        """Wait until a pod runs and is Ready, and give it."""

        def running() -> Json | None:
            found = self.get(pod)
            ready = {"type": "Ready", "status": "True"}
            conditions = found["status"].get("conditions") or ()
            is_ready = any(ready.items() <= each.items() for each in conditions)
            return found if found["status"]["phase"] == "Running" and is_ready else None

        found: Json = until(running, f"pod {pod} runs")
        return found

    def leave(self) -> None:
        """Delete the pods, the nodes and the namespace, which takes itself a few seconds more to go."""
        api = self.plane.api
        api.call("DELETE", api.kind("Node").path(None) + f"?labelSelector={LABEL}={self.name}")
        api.call("DELETE", api.kind("Pod").path(self.name), {"gracePeriodSeconds": 0})
        api.delete("Namespace", self.name)
