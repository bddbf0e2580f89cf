"""The host ports of a pod, and when two of them cannot share a node.

Knows pods only; the columns of ports in use are kept in `policysched.state`. An address that is not given means
every address, and a protocol that is not given means TCP: both are settled here, so that nobody else has to.

Source: pkg/scheduler/util/utils.go (GetHostPorts), kube-scheduler/framework/types.go (HostPortInfo), v1.36.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from policysched.model.objects import Container, ContainerPort, Pod

ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - a wildcard to compare with, nothing is bound to it


class HostPort(NamedTuple):
    """A port of the node that a pod takes; the address and the protocol are never empty."""

    address: str
    protocol: str
    port: int


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """List the ports of the node that the pod takes, each once.

    Restartable init containers run as long as the pod and count; the other init containers do not.
    """
    return tuple(dict.fromkeys(_normal(port) for one in _lasting(pod) for port in one.ports if port.host_port > 0))


def conflict(wanted: HostPort, used: HostPort) -> bool:
    """Tell whether two pods with these ports cannot share a node: same port, and addresses that meet."""
    if (wanted.protocol, wanted.port) != (used.protocol, used.port):
        return False
    return ANY_ADDRESS in (wanted.address, used.address) or wanted.address == used.address


def any_conflict(wanted: Iterable[HostPort], used: Iterable[HostPort]) -> bool:
    """Tell whether any of the wanted ports is taken."""
    taken: dict[tuple[str, int], list[HostPort]] = {}
    for one in used:
        taken.setdefault((one.protocol, one.port), []).append(one)
    return any(conflict(port, other) for port in wanted for other in taken.get((port.protocol, port.port), ()))


def _lasting(pod: Pod) -> Iterable[Container]:
    yield from (one for one in pod.spec.init_containers if one.restart_policy == "Always")
    yield from pod.spec.containers


def _normal(port: ContainerPort) -> HostPort:
    return HostPort(port.host_ip or ANY_ADDRESS, port.protocol or "TCP", port.host_port)
