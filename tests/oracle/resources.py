"""What generated pods request: containers, pod-level resources, overhead, and resizes in progress.

Knows nothing of nodes. The amounts are small beside a node's, so that clusters fill up over several
pods; a few requests are larger than any node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .quantities import Quantities, cpu, memory, tiny_memory

if TYPE_CHECKING:
    from random import Random

GPUS: list[str | int] = ["0", "1", "2", 4]
CPU_MILLIS = [0, 1, 50, 100, 250, 333, 500, 1000, 1500]
MEMORY_MEBIBYTES = [0, 1, 64, 200, 256, 500, 1024, 2048]


def requests(rng: Random, *, scale: int = 1) -> Quantities:
    """Draw a container's requests; any resource may be missing.

    Units: cores, gibibytes, pieces; scale multiplies CPU and memory.
    """
    found: Quantities = {}
    if rng.random() < 0.8:
        found["cpu"] = cpu(rng, rng.choice(CPU_MILLIS) * scale)
    if rng.random() < 0.8:
        found["memory"] = memory(rng, rng.choice(MEMORY_MEBIBYTES) * scale)
    if rng.random() < 0.04:
        found["memory"] = tiny_memory(rng)
    if rng.random() < 0.1:
        found["ephemeral-storage"] = memory(rng, rng.choice([0, 100, 4096, 20480]))
    found |= {name: rng.choice(GPUS) for name in ("example.com/gpu", "example.com/fpga") if rng.random() < 0.08}
    if rng.random() < 0.06:
        found["hugepages-2Mi"] = rng.choice(["64Mi", "512Mi", "0"])
    if rng.random() < 0.02:
        found[rng.choice(["example.com/nowhere", "kubernetes.io/batch-cpu", "storage"])] = "1"
    return found


def resources(rng: Random, *, scale: int = 1) -> dict[str, Quantities]:
    """Draw a container's resources; limits without requests become requests."""
    asked = requests(rng, scale=scale)
    shape = rng.random()
    if shape < 0.7:
        return {"requests": asked}
    if shape < 0.85:
        return {"limits": asked}
    kept = {name: amount for name, amount in asked.items() if rng.random() < 0.5}
    return {"requests": kept, "limits": asked}


def containers(rng: Random, *, scale: int = 1) -> list[dict[str, Any]]:
    """Draw one to three containers."""
    count = rng.choice([1, 1, 1, 2, 3])
    return [_container(rng, f"c{i}", scale=scale) for i in range(count)]


def init_containers(rng: Random, *, scale: int = 1) -> list[dict[str, Any]]:
    """Draw one to three init containers, half of them sidecars that keep running."""
    found = []
    for i in range(rng.randint(1, 3)):
        container = _container(rng, f"i{i}", scale=scale * rng.choice([1, 1, 2]))
        if rng.random() < 0.5:
            container["restartPolicy"] = "Always"
        found.append(container)
    return found


def _container(rng: Random, name: str, *, scale: int) -> dict[str, Any]:
    container: dict[str, Any] = {"name": name, "image": "app:1"}
    if rng.random() < 0.9:
        container["resources"] = resources(rng, scale=scale)
    return container


def pod_level(rng: Random) -> dict[str, Quantities]:
    """Draw resources of a whole pod: requests, or limits that its containers complete."""
    amounts: Quantities = {}
    if rng.random() < 0.7:
        amounts["cpu"] = cpu(rng, rng.choice(CPU_MILLIS) * 2)
    if rng.random() < 0.7:
        amounts["memory"] = memory(rng, rng.choice(MEMORY_MEBIBYTES) * 2)
    if rng.random() < 0.15:
        amounts["hugepages-2Mi"] = "128Mi"
    return rng.choice([{"requests": amounts}, {"limits": amounts}])


def overhead(rng: Random) -> Quantities:
    """Draw what running the pod costs by itself."""
    return {"cpu": cpu(rng, rng.choice([10, 250])), "memory": memory(rng, rng.choice([10, 120]))}


def resize(rng: Random, pod: dict[str, Any]) -> None:
    """Give a placed pod the status of a resize: what is allocated and what is in force."""
    spec, status = pod["spec"], pod["status"]
    for field, key in (("containers", "containerStatuses"), ("initContainers", "initContainerStatuses")):
        statuses = [_container_status(rng, c["name"]) for c in spec.get(field, []) if rng.random() < 0.8]
        if statuses:
            status[key] = statuses
    if "resources" in spec and rng.random() < 0.7:
        status["resources"] = reported(rng, "requests")
        if rng.random() < 0.7:
            status |= reported(rng, "allocatedResources")
    if rng.random() < 0.7:
        status["conditions"] = [_resize_condition(rng)]


def _container_status(rng: Random, name: str) -> dict[str, Any]:
    status: dict[str, Any] = {"name": name}
    if rng.random() < 0.8:
        status |= reported(rng, "allocatedResources")
    if rng.random() < 0.8:
        status["resources"] = reported(rng, "requests") if rng.random() < 0.9 else {}
    return status


def reported(rng: Random, field: str) -> dict[str, Quantities]:
    """Draw a field of a status; an empty one is left out, as an API server stores none."""
    amounts = requests(rng)
    return {field: amounts} if amounts else {}


def _resize_condition(rng: Random) -> dict[str, Any]:
    kind = rng.choice(["PodResizePending", "PodResizePending", "PodResizeInProgress"])
    reason = rng.choice(["Infeasible", "Deferred"]) if kind == "PodResizePending" else ""
    return {"type": kind, "status": "True", "reason": reason}
