from __future__ import annotations

from typing import Any

import pytest

from policysched.model.needs import HostPort, any_conflict, conflict, host_ports
from tests.model.build import pod


def with_ports(*ports: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"ports": list(ports)} | more


def test_host_ports_fill_in_address_and_protocol() -> None:
    one = pod({"containers": [with_ports({"hostPort": 80}, {"hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"})]})
    assert host_ports(one) == (HostPort("0.0.0.0", "TCP", 80), HostPort("10.0.0.1", "UDP", 53))  # noqa: S104


def test_host_ports_leave_out_container_ports_and_repetitions() -> None:
    one = pod({"containers": [with_ports({"containerPort": 80}, {"hostPort": 81}), with_ports({"hostPort": 81})]})
    assert [port.port for port in host_ports(one)] == [81]


def test_host_ports_of_init_containers_count_only_if_they_restart() -> None:
    init = [with_ports({"hostPort": 1}), with_ports({"hostPort": 2}, restartPolicy="Always")]
    one = pod({"containers": [with_ports({"hostPort": 3})], "initContainers": init})
    assert [port.port for port in host_ports(one)] == [2, 3]


ANY, A, B = "0.0.0.0", "10.0.0.1", "10.0.0.2"  # noqa: S104


@pytest.mark.parametrize(
    ("wanted", "used", "expected"),
    [
        (HostPort(ANY, "TCP", 80), HostPort(ANY, "TCP", 80), True),
        (HostPort(ANY, "TCP", 80), HostPort(A, "TCP", 80), True),
        (HostPort(A, "TCP", 80), HostPort(ANY, "TCP", 80), True),
        (HostPort(A, "TCP", 80), HostPort(A, "TCP", 80), True),
        (HostPort(A, "TCP", 80), HostPort(B, "TCP", 80), False),
        (HostPort(ANY, "TCP", 80), HostPort(ANY, "UDP", 80), False),
        (HostPort(ANY, "TCP", 80), HostPort(ANY, "TCP", 81), False),
        (HostPort("::", "TCP", 80), HostPort(A, "TCP", 80), False),
    ],
)
def test_host_ports_conflict_where_addresses_meet(wanted: HostPort, used: HostPort, expected: bool) -> None:
    assert conflict(wanted, used) is expected
    assert any_conflict([HostPort(B, "SCTP", 1), wanted], iter([HostPort(A, "SCTP", 2), used])) is expected


def test_no_ports_conflict_with_nothing() -> None:
    assert not any_conflict([], [HostPort(ANY, "TCP", 80)])
    assert not any_conflict([HostPort(ANY, "TCP", 80)], [])
