"""NodePorts: conflicts by address, protocol and number."""

from __future__ import annotations

from typing import Any

import pytest

from policysched.framework import SKIP, Resource, unschedulable
from policysched.model.objects import Container, ContainerPort, Pod, PodStatus
from policysched.plugins.nodes.node_filters import NodePorts
from tests.build import cluster, node, pod
from tests.plugins.ask import filtered, hinted, node_change, pod_change, rejected


def port(text: str) -> ContainerPort:
    """Read `address/protocol/number`."""
    address, protocol, number = text.split("/")
    return ContainerPort(host_ip=address, protocol=protocol, host_port=int(number))


CONFLICTS = [
    ("/TCP/80", "/TCP/80", True),
    ("/TCP/80", "/UDP/80", False),
    ("/TCP/80", "/TCP/81", False),
    ("10.0.0.1/TCP/80", "10.0.0.2/TCP/80", False),
    ("10.0.0.1/TCP/80", "10.0.0.1/TCP/80", True),
    ("10.0.0.1/TCP/80", "0.0.0.0/TCP/80", True),
    ("/TCP/80", "10.0.0.1/TCP/80", True),
    ("0.0.0.0/TCP/80", "10.0.0.1/UDP/80", False),
]


@pytest.mark.parametrize(("wanted", "used", "conflicts"), CONFLICTS)
def test_node_ports_conflict(wanted: str, used: str, conflicts: bool) -> None:
    state = cluster(node("used"), node("free"), pod("holder", on="used", ports=[port(used)]))
    answer = filtered(NodePorts(), pod(ports=[port("/SCTP/1"), port(wanted)]), state)
    reason = unschedulable("node(s) didn't have free ports for the requested pod ports")
    assert answer == ({"used": reason} if conflicts else {})


def test_node_ports_follow_pods_that_come_and_go() -> None:
    state = cluster(node("a"), node("b"))
    plugin, incoming = NodePorts(), pod(ports=[port("/TCP/80")])
    prepared: Any = plugin.prepare_filter(incoming, state)
    state.set_pod(pod("holder", on="b", ports=[port("10.0.0.1/TCP/80")]))
    assert plugin.filter(prepared, slice(0, 2)).tolist() == [0, 1]
    state.remove_pod("default.holder")
    assert plugin.filter(prepared, slice(0, 2)).tolist() == [0, 0]


def test_node_ports_of_restartable_init_containers_count() -> None:
    lasting = Container(restart_policy="Always", ports=(port("/TCP/80"),))
    passing = Container(ports=(port("/TCP/80"),))
    state = cluster(node(), pod("holder", on="n1", init_containers=[lasting]))
    assert rejected(NodePorts(), pod(ports=[port("/TCP/80")]), state) == {"n1"}
    assert filtered(NodePorts(), pod(init_containers=[passing]), state) is SKIP


def test_node_ports_skips_pods_without_host_ports() -> None:
    assert filtered(NodePorts(), pod(ports=[ContainerPort(container_port=80)]), cluster(node())) is SKIP


@pytest.mark.parametrize(("wanted", "used", "conflicts"), CONFLICTS)
def test_node_ports_waits_for_a_conflicting_pod_to_go(wanted: str, used: str, conflicts: bool) -> None:
    gone = pod("holder", on="n1", ports=[port(used)])
    assert hinted(NodePorts(), pod(ports=[port(wanted)]), pod_change(gone, None)) is conflicts


def test_node_ports_waits_for_nominated_pods_but_not_for_others_without_a_place() -> None:
    waiting = pod("holder", ports=[port("/TCP/80")])
    nominated = Pod(metadata=waiting.metadata, spec=waiting.spec, status=PodStatus(nominated_node_name="n1"))
    incoming = pod(ports=[port("/TCP/80")])
    for gone, helps in ((waiting, False), (nominated, True)):
        assert hinted(NodePorts(), incoming, pod_change(gone, None, resource=Resource.PENDING_POD)) is helps


def test_node_ports_waits_for_new_nodes() -> None:
    assert hinted(NodePorts(), pod(ports=[port("/TCP/80")]), node_change(None, node()))
