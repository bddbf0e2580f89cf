"""Host ports, images, node features, priority and quality of service of pods, as kube-scheduler works them out."""

from __future__ import annotations

from typing import Any

import pytest

from policysched.model.pod_requirements import (
    HostPort,
    any_conflict,
    conflict,
    container_count,
    declared_features,
    host_ports,
    is_system,
    normalized_image_name,
    pod_images,
    pod_priority,
    qos_class,
    required_features,
)
from policysched.model.release import RELEASES, V1_36, V1_37, V1_38, Release
from tests.model.build import pod

RESTART = "RestartAllContainersOnContainerExits"
NAMESPACES = "UserNamespacesHostNetworkSupport"
MOUNTS = "VolumeBindMountOptions"
OCI, MLDSA = "SecurityProfileOCI", "PodCertificateMLDSA"
RULED = {"restartPolicyRules": [{"action": "Restart"}, {"action": "RestartAllContainers"}]}
MOUNTED = {"volumeMounts": [{"mountPath": "/a"}, {"mountPath": "/b", "bindMountOptions": ["noexec"]}]}
PULLED = {"securityContext": {"seccompProfile": {"type": "OCI"}}}


def certificates(*key_types: str) -> list[dict[str, Any]]:
    sources = [{"podCertificate": {"signerName": "a.com/b", "keyType": one}} for one in key_types]
    return [{"name": "token"}, {"name": "x", "projected": {"sources": [{"configMap": {"name": "c"}}, *sources]}}]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, set()),
        ({"containers": [{}, RULED]}, {RESTART}),
        ({"initContainers": [RULED]}, {RESTART}),
        ({"containers": [{"restartPolicyRules": [{"action": "Restart"}]}]}, set()),
        ({"hostNetwork": True, "hostUsers": False}, {NAMESPACES}),
        ({"hostNetwork": True, "hostUsers": True}, set()),
        ({"hostNetwork": True}, set()),
        ({"hostUsers": False}, set()),
        ({"containers": [RULED], "hostNetwork": True, "hostUsers": False}, {RESTART, NAMESPACES}),
        ({"resources": {"requests": {"cpu": "1"}}}, set()),
        ({"containers": [{}, MOUNTED]}, {MOUNTS}),
        ({"initContainers": [MOUNTED]}, {MOUNTS}),
        ({"ephemeralContainers": [MOUNTED]}, {MOUNTS}),
        ({"containers": [{"volumeMounts": [{"mountPath": "/a"}]}]}, set()),
        (PULLED, {OCI}),
        ({"containers": [{}, PULLED]}, {OCI}),
        ({"initContainers": [PULLED]}, {OCI}),
        ({"ephemeralContainers": [PULLED]}, {OCI}),
        ({"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}, "containers": [{}]}, set()),
        ({"securityContext": {}, "containers": [{"securityContext": {"privileged": True}}]}, set()),
        ({"volumes": certificates("ED25519", "MLDSA65")}, {MLDSA}),
        ({"volumes": certificates("MLDSA44")}, {MLDSA}),
        ({"volumes": certificates("MLDSA87")}, {MLDSA}),
        ({"volumes": certificates("MLDSA99", "RSA3072")}, set()),
        ({"volumes": certificates()}, set()),
    ],
)
def test_features_are_inferred_from_the_spec(spec: dict[str, Any], expected: set[str]) -> None:
    assert required_features(pod(spec), V1_38.node_features) == expected
    assert required_features(pod(spec), V1_37.node_features) == expected - {OCI, MLDSA}
    assert required_features(pod(spec), V1_36.node_features) == expected - {OCI, MLDSA, MOUNTS}


@pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
def test_known_features_are_sorted(release: Release) -> None:
    assert list(release.node_features) == sorted(release.node_features)


def test_unknown_features_of_a_node_are_overlooked() -> None:
    known = V1_37.node_features
    assert declared_features(["AAA", RESTART, "S", NAMESPACES, "Z"], known) == {RESTART, NAMESPACES}
    assert declared_features([], known) == frozenset()
    assert declared_features(known, known) == set(known)
    assert declared_features(known, V1_36.node_features) == set(V1_36.node_features)


def test_declared_features_out_of_order_are_overlooked() -> None:
    assert declared_features([NAMESPACES, RESTART], V1_37.node_features) == {NAMESPACES}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("root", "root:latest"),
        ("root:tag", "root:tag"),
        ("gcr.io:5000/root", "gcr.io:5000/root:latest"),
        ("gcr.io:5000/root:tag", "gcr.io:5000/root:tag"),
        ("root@sha256:1234", "root@sha256:1234"),
        ("a/b/c", "a/b/c:latest"),
        ("", ":latest"),
    ],
)
def test_image_name_gets_a_tag_where_it_has_none(name: str, expected: str) -> None:
    assert normalized_image_name(name) == expected


def test_images_are_listed_from_init_containers_to_volumes() -> None:
    one = pod(
        {
            "containers": [{"image": "c:1"}, {"image": "c:1"}],
            "initContainers": [{"image": "i"}],
            "volumes": [{"name": "x"}, {"name": "y", "image": {"reference": "v:1"}}],
        }
    )
    assert pod_images(one) == ("i:latest", "c:1", "c:1", "v:1")
    assert container_count(one) == 3


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


@pytest.mark.parametrize(
    ("priority", "expected", "system"),
    [
        (None, 0, False),
        (0, 0, False),
        (-5, -5, False),
        (1_999_999_999, 1_999_999_999, False),
        (2_000_000_000, 2_000_000_000, True),
    ],
)
def test_priority_of_a_pod(priority: int | None, expected: int, system: bool) -> None:
    one = pod({} if priority is None else {"priority": priority})
    assert (pod_priority(one), is_system(one)) == (expected, system)


def resources(requests: dict[str, str] | None = None, limits: dict[str, str] | None = None) -> dict[str, Any]:
    return {"resources": {"requests": requests or {}, "limits": limits or {}}}


BOTH = {"cpu": "1", "memory": "1Gi"}

QOS = [
    ("nothing", {"containers": [resources()]}, "BestEffort"),
    ("zeros", {"containers": [resources({"cpu": "0"}, {"memory": "0"})]}, "BestEffort"),
    ("other resources", {"containers": [resources({"a.b/c": "1"}, {"a.b/c": "1"})]}, "BestEffort"),
    ("requests only", {"containers": [resources(BOTH)]}, "Burstable"),
    ("equal", {"containers": [resources(BOTH, BOTH)]}, "Guaranteed"),
    ("equal numbers", {"containers": [resources({"cpu": "1000m", "memory": "1024Mi"}, BOTH)]}, "Guaranteed"),
    ("cpu only", {"containers": [resources({"cpu": "1"}, {"cpu": "1"})]}, "Burstable"),
    ("lower requests", {"containers": [resources({"cpu": "1", "memory": "1Mi"}, BOTH)]}, "Burstable"),
    ("one container without", {"containers": [resources(BOTH, BOTH), resources()]}, "Burstable"),
    ("init container without", {"containers": [resources(BOTH, BOTH)], "initContainers": [resources()]}, "Burstable"),
    ("limits without requests", {"containers": [resources({}, BOTH)]}, "Burstable"),
    ("pod as a whole", {"containers": [resources()], **resources(BOTH, BOTH)}, "Guaranteed"),
    ("pod as a whole, requests", {"containers": [resources(BOTH, BOTH)], **resources(BOTH)}, "Burstable"),
    ("pod as a whole, cpu", {"containers": [], **resources({"cpu": "1"}, {"cpu": "1"})}, "Burstable"),
    ("pod as a whole, empty", {"containers": [resources(BOTH, BOTH)], **resources()}, "BestEffort"),
]


@pytest.mark.parametrize(("spec", "expected"), [case[1:] for case in QOS], ids=[case[0] for case in QOS])
def test_quality_of_service_follows_from_resources(spec: dict[str, Any], expected: str) -> None:
    assert qos_class(pod(spec)) == expected


def test_quality_of_service_of_the_status_counts_first() -> None:
    assert qos_class(pod(status={"qosClass": "Guaranteed"})) == "Guaranteed"
