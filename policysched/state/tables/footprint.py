"""What a pod takes on the node where it is placed.

Computed once a pod, or once a pod class for pods that are about to be placed, and then only added and subtracted.

Source: pkg/scheduler/framework/types.go (PodInfo.calculateResource, NodeInfo.update).
"""

from __future__ import annotations

from dataclasses import dataclass

from policysched.model.objects import Pod
from policysched.model.pod_requirements import host_ports
from policysched.model.requests import placed_nonzero, placed_requests
from policysched.state.tables.ports import HostPort


@dataclass(frozen=True, slots=True)
class Footprint:
    """Amounts by resource name (cpu in millicores, others whole), without zeros, and host ports."""

    amounts: tuple[tuple[str, int], ...]
    nonzero_cpu_millis: int
    nonzero_memory_bytes: int
    ports: tuple[HostPort, ...]


def footprint(pod: Pod) -> Footprint:
    """Measure a placed pod, or one that is about to be placed."""
    requests = placed_requests(pod)
    named = (
        ("cpu", requests.cpu_millis),
        ("memory", requests.memory_bytes),
        ("ephemeral-storage", requests.ephemeral_bytes),
        *requests.scalars,
    )
    cpu_millis, memory_bytes = placed_nonzero(pod)
    return Footprint(
        amounts=tuple((name, amount) for name, amount in named if amount),
        nonzero_cpu_millis=cpu_millis,
        nonzero_memory_bytes=memory_bytes,
        ports=tuple(host_ports(pod)),
    )
