"""Situations of plugins that check a node alone (taints, labels, resources, ports, features) and of gates."""

from __future__ import annotations

from typing import Final

from tests.e2e.objects import node
from tests.requeueing.situations import (
    Change,
    Create,
    Delete,
    Situation,
    allocating,
    also_tolerating,
    annotated,
    both,
    containers,
    device_class,
    host,
    labelled,
    on_node_named,
    on_nodes_with,
    placed,
    rejected,
    situation,
    taint,
    tainted,
    tolerating,
    with_spec,
    with_status,
)

_GROWS: Final = {"cpu": "4", "memory": "16Gi"}
_ALLOCATED: Final = {
    "name": "c",
    "image": "registry.k8s.io/pause:3.10",
    "imageID": "",
    "ready": True,
    "restartCount": 0,
    "allocatedResources": {"cpu": "1"},
    "resources": {"requests": {"cpu": "1"}},
}
"""Status of a container whose resize the kubelet has not completed."""
_ACTUATED: Final = {"requests": {"cpu": "400m"}}
_INFEASIBLE: Final = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
_RESTARTING: Final = {
    "restartPolicyRules": [
        {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [3]}}
    ],
    "restartPolicy": "Never",
}  # fmt: skip


TAINTS: Final[tuple[Situation, ...]] = (
    situation(
        "a node that grows does not help a pod that its taint repels",
        plugins="TaintToleration NodeResourcesFit",
        given=[node("oak", cpu="2", taints=[taint("dry")])],
        waiting=[
            rejected("repelled", "TaintToleration", requests={"cpu": "4"}),
            rejected("hardy", "NodeResourcesFit", requests={"cpu": "4"}, tolerations=tolerating("dry")),
        ],
        steps=[Change("Node", "oak", allocating(cpu="4"), "/status")],
        wakes="hardy",
        events="NodeUpdateNodeAllocatable",
    ),
    situation(
        "a toleration helps the pod that gets it",
        plugins="TaintToleration",
        given=[node("oak", taints=[taint("dry")])],
        waiting=[rejected("hardened", "TaintToleration"), rejected("other", "TaintToleration")],
        steps=[Change("Pod", "hardened", also_tolerating("dry"))],
        wakes="hardened",
        events="UnschedulablePodUpdatePodToleration",
    ),
    situation(
        "another taint helps the pod that tolerates it",
        plugins="TaintToleration",
        given=[node("oak", taints=[taint("dry")])],
        waiting=[
            rejected("cold", "TaintToleration", tolerations=tolerating("frost")),
            rejected("wet", "TaintToleration", tolerations=tolerating("flood")),
            rejected("tender", "TaintToleration"),
        ],
        steps=[Change("Node", "oak", tainted(taint("frost")))],
        wakes="cold",
        events="NodeUpdateNodeTaint",
    ),
    situation(
        "a node with a taint helps the pod that tolerates it",
        plugins="TaintToleration",
        given=[node("oak", taints=[taint("dry")])],
        waiting=[
            rejected("cold", "TaintToleration", tolerations=tolerating("frost")),
            rejected("tender", "TaintToleration"),
        ],
        steps=[Create(node("elm", taints=[taint("frost")]))],
        wakes="cold",
        events="NodeAdd",
    ),
    situation(
        "labels of its own do not help a pod that taints repel",
        plugins="TaintToleration",
        given=[node("oak", taints=[taint("dry")])],
        waiting=[rejected("tender", "TaintToleration")],
        steps=[Change("Pod", "tender", labelled(leaf="green"))],
        events="UnschedulablePodUpdatePodLabel",
    ),
    situation(
        "labels and taints that change at once help pods that either kept out",
        plugins="TaintToleration NodeAffinity",
        given=[host("oak", soil="clay"), node("elm", labels={"soil": "sand"}, taints=[taint("dry")])],
        waiting=[
            rejected("sandy", "NodeAffinity TaintToleration", affinity=on_nodes_with("soil", "sand")),
            rejected("loamy", "NodeAffinity TaintToleration", affinity=on_nodes_with("soil", "loam")),
            rejected(
                "rocky",
                "NodeAffinity",
                affinity=on_nodes_with("soil", "rock"),
                tolerations=tolerating("dry"),
            ),
        ],
        steps=[Change("Node", "elm", both(labelled(soil="loam"), tainted()))],
        # the taint that rejected `sandy` is gone, though the label no longer matches
        wakes="sandy loamy",
        by_taints="rocky",
        events="NodeUpdate",
    ),
    situation(
        "a taint that goes helps nobody whom labels or amounts kept out",
        plugins="NodeAffinity NodeResourcesFit",
        given=[host("oak", "2", soil="clay"), node("elm", cpu="2", taints=[taint("dry")])],
        waiting=[
            rejected("large", "NodeResourcesFit", requests={"cpu": "4"}),
            rejected("sandy", "NodeAffinity", affinity=on_nodes_with("soil", "sand")),
        ],
        steps=[Change("Node", "elm", tainted())],
        by_taints="large sandy",
        events="",
    ),
    situation(
        "an uncordoned node helps",
        plugins="NodeUnschedulable",
        given=[node("oak") | {"spec": {"unschedulable": True}}],
        waiting=[rejected("any", "NodeUnschedulable")],
        steps=[Change("Node", "oak", with_spec(unschedulable=False, taints=[]))],
        wakes="any",
        events="NodeUpdateNodeTaint",
    ),
    situation(
        "a new node helps where all were cordoned",
        plugins="NodeUnschedulable",
        given=[node("oak") | {"spec": {"unschedulable": True}}],
        waiting=[rejected("any", "NodeUnschedulable")],
        steps=[Create(node("elm"))],
        wakes="any",
        events="NodeAdd",
    ),
    situation(
        "a new node that is cordoned does not help",
        plugins="NodeUnschedulable",
        given=[node("oak") | {"spec": {"unschedulable": True}}],
        waiting=[rejected("any", "NodeUnschedulable")],
        steps=[Create(node("elm") | {"spec": {"unschedulable": True}})],
        events="NodeAdd",
    ),
    situation(
        "a toleration of cordons helps, another one does not",
        plugins="NodeUnschedulable",
        given=[node("oak") | {"spec": {"unschedulable": True}}],
        waiting=[rejected("brave", "NodeUnschedulable"), rejected("other", "NodeUnschedulable")],
        steps=[
            Change("Pod", "brave", also_tolerating("node.kubernetes.io/unschedulable")),
            Change("Pod", "other", also_tolerating("dry")),
        ],
        wakes="brave",
        events="UnschedulablePodUpdatePodToleration",
    ),
)
LABELS: Final[tuple[Situation, ...]] = (
    situation(
        "a node's new label helps the pod that asks for it",
        plugins="NodeAffinity",
        given=[host("oak", soil="clay")],
        waiting=[
            rejected("sandy", "NodeAffinity", affinity=on_nodes_with("soil", "sand")),
            rejected("rocky", "NodeAffinity", affinity=on_nodes_with("soil", "rock")),
        ],
        steps=[Change("Node", "oak", labelled(soil="sand"))],
        wakes="sandy",
        events="NodeUpdateNodeLabel",
    ),
    situation(
        "another label does not help where the node matched before",
        plugins="NodeAffinity NodeResourcesFit",
        given=[host("oak", "2", soil="clay"), host("elm", soil="sand")],
        waiting=[
            rejected(
                "large",
                "NodeAffinity NodeResourcesFit",
                requests={"cpu": "4"},
                affinity=on_nodes_with("soil", "clay"),
            ),
        ],
        steps=[Change("Node", "oak", labelled(soil="clay", shade="deep"))],
        events="NodeUpdateNodeLabel",
    ),
    situation(
        "a new node helps the pod that asks for its label",
        plugins="NodeAffinity",
        given=[host("oak", soil="clay")],
        waiting=[
            rejected("sandy", "NodeAffinity", affinity=on_nodes_with("soil", "sand")),
            rejected("rocky", "NodeAffinity", affinity=on_nodes_with("soil", "rock")),
        ],
        steps=[Create(host("elm", soil="sand"))],
        wakes="sandy",
        events="NodeAdd",
    ),
    situation(
        "a pod that named its node waits for what either plugin of the two says",
        plugins="NodeAffinity NodeResourcesFit",
        given=[host("oak", "2"), host("elm", "2")],
        waiting=[
            rejected("large", "NodeAffinity NodeResourcesFit", requests={"cpu": "4"}, affinity=on_node_named("oak")),
            rejected("larger", "NodeAffinity NodeResourcesFit", requests={"cpu": "6"}, affinity=on_node_named("oak")),
        ],
        steps=[Change("Node", "oak", allocating(cpu="4"), "/status")],
        wakes="large",
        events="NodeUpdateNodeAllocatable",
    ),
    situation(
        "annotations and conditions of a node help nobody",
        plugins="NodeAffinity NodeResourcesFit TaintToleration",
        given=[host("oak", "2", soil="clay")],
        waiting=[
            rejected("large", "NodeResourcesFit", requests={"cpu": "4"}),
            rejected("sandy", "NodeAffinity", affinity=on_nodes_with("soil", "sand")),
        ],
        steps=[
            Change("Node", "oak", annotated({"garden.example.com/seen": "yes"})),
            Change(
                "Node",
                "oak",
                lambda obj: obj["status"].update(conditions=[{"type": "Ready", "status": "False"}]),
                "/status",
            ),
        ],
        events="",
    ),
    situation(
        "a node that goes helps nobody whom labels or amounts kept out",
        plugins="NodeAffinity NodeResourcesFit",
        given=[host("oak", "2", soil="clay"), host("elm", "2", soil="clay")],
        waiting=[
            rejected("large", "NodeResourcesFit", requests={"cpu": "4"}),
            rejected("sandy", "NodeAffinity", affinity=on_nodes_with("soil", "sand")),
        ],
        steps=[Delete("Node", "elm")],
        events="",
    ),
)
AMOUNTS: Final[tuple[Situation, ...]] = (
    situation(
        "a waiting pod that asks for less than before is tried",
        plugins="NodeResourcesFit",
        given=[node("oak", cpu="2")],
        waiting=[
            rejected("shrinking", "NodeResourcesFit", requests={"cpu": "4"}),
            rejected("steady", "NodeResourcesFit", requests={"cpu": "4"}),
        ],
        steps=[Change("Pod", "shrinking", with_spec(containers=containers(requests={"cpu": "2"})), "/resize")],
        wakes="shrinking",
        events="UnschedulablePodUpdatePodScaleDown",
    ),
    situation(
        "a pod that leaves its node helps",
        plugins="NodeResourcesFit",
        given=[node("oak", cpu="2"), placed("tenant", "oak", requests={"cpu": "2"})],
        waiting=[rejected("next", "NodeResourcesFit", requests={"cpu": "2"})],
        steps=[Delete("Pod", "tenant")],
        wakes="next",
        events="AssignedPodDelete",
    ),
    situation(
        "a placed pod whose resize became infeasible frees what it asked for",
        plugins="NodeResourcesFit",
        given=[node("oak", cpu="4"), placed("tenant", "oak", requests={"cpu": "3"})],
        waiting=[
            rejected("next", "NodeResourcesFit", requests={"cpu": "2"}),
            rejected("large", "NodeResourcesFit", requests={"cpu": "4"}),
        ],
        steps=[
            Change("Pod", "tenant", with_status(containerStatuses=[_ALLOCATED]), "/status"),
            Change("Pod", "tenant", with_status(conditions=[_INFEASIBLE]), "/status"),
        ],
        wakes="next large",
        events="AssignedPodUpdatePodScaleDown",
    ),
    situation(
        "a placed pod whose pod-level allocation falls frees the difference",
        plugins="NodeResourcesFit",
        given=[
            node("oak", cpu="4"),
            placed("tenant", "oak", requests={"cpu": "1"}, resources={"requests": {"cpu": "1"}}),
        ],
        waiting=[rejected("next", "NodeResourcesFit", requests={"cpu": "3500m"})],
        steps=[
            Change("Pod", "tenant", with_status(allocatedResources={"cpu": "3"}, resources=_ACTUATED), "/status"),
            Change(
                "Pod", "tenant", with_status(allocatedResources={"cpu": "400m"}, conditions=[_INFEASIBLE]), "/status"
            ),
        ],
        wakes="next",
        events="AssignedPodUpdatePodScaleDown",
    ),
    situation(
        "a waiting pod that is deleted frees nothing",
        plugins="NodeResourcesFit",
        given=[node("oak", cpu="2")],
        waiting=[
            rejected("one", "NodeResourcesFit", requests={"cpu": "4"}),
            rejected("two", "NodeResourcesFit", requests={"cpu": "4"}),
        ],
        steps=[Delete("Pod", "two")],
        events="",
    ),
    situation(
        "a new node helps the pod that fits on it",
        plugins="NodeResourcesFit",
        given=[node("oak", cpu="2")],
        waiting=[
            rejected("large", "NodeResourcesFit", requests={"cpu": "4"}),
            rejected("larger", "NodeResourcesFit", requests={"cpu": "5"}),
        ],
        steps=[Create(node("elm", cpu="4"))],
        wakes="large",
        events="NodeAdd",
    ),
    situation(
        "a node that grows helps the pod that fits on it then",
        plugins="NodeResourcesFit",
        given=[node("oak", cpu="2")],
        waiting=[
            rejected("large", "NodeResourcesFit", requests={"cpu": "4"}),
            rejected("larger", "NodeResourcesFit", requests={"cpu": "5"}),
        ],
        steps=[Change("Node", "oak", allocating(cpu="4"), "/status")],
        wakes="large",
        events="NodeUpdateNodeAllocatable",
    ),
    situation(
        "memory does not help where cpu is short, devices or not",
        plugins="NodeResourcesFit",
        given=[node("oak", extended={"example.com/gpu": "1"})],
        waiting=[rejected("large", "NodeResourcesFit", requests={"cpu": "5", "example.com/gpu": "1"})],
        steps=[Change("Node", "oak", allocating(memory="16Gi"), "/status")],
        events="NodeUpdateNodeAllocatable",
    ),
    situation(
        "memory does not help where a device is missing that no class stands for",
        plugins="NodeResourcesFit",
        given=[node("oak")],
        waiting=[rejected("device", "NodeResourcesFit", requests={"example.com/gpu": "1"})],
        steps=[Change("Node", "oak", allocating(memory="16Gi"), "/status")],
        events="NodeUpdateNodeAllocatable",
    ),
    situation(
        "any amount may help where a class stands for the device",
        plugins="NodeResourcesFit NodeAffinity",
        given=[
            device_class("gpus", "example.com/gpu"),
            host("oak"),
            host("elm", "2", soil="sand"),
        ],
        waiting=[
            rejected(
                "device",
                "NodeAffinity NodeResourcesFit",
                requests={"cpu": "4", "example.com/gpu": "1"},
                affinity=on_nodes_with("soil", "sand"),
            ),
        ],
        steps=[Change("Node", "oak", allocating(memory="16Gi"), "/status")],
        wakes="device",
        events="NodeUpdateNodeAllocatable",
    ),
    situation(
        "a new device class helps the pod that asks for its resource",
        plugins="NodeResourcesFit",
        given=[node("oak")],
        waiting=[
            rejected("device", "NodeResourcesFit", requests={"cpu": "4", "example.com/gpu": "1"}),
            rejected("other", "NodeResourcesFit", requests={"cpu": "4", "example.com/nic": "1"}),
        ],
        steps=[Create(device_class("gpus", "example.com/gpu"))],
        wakes="device",
        events="resource.k8s.io/DeviceClassAdd",
    ),
    situation(
        "a device class that comes to stand for a resource helps the pod that asks for it",
        plugins="NodeResourcesFit",
        given=[device_class("gpus"), node("oak")],
        waiting=[
            rejected("device", "NodeResourcesFit", requests={"cpu": "4", "example.com/gpu": "1"}),
            rejected("other", "NodeResourcesFit", requests={"cpu": "4", "example.com/nic": "1"}),
        ],
        steps=[Change("DeviceClass", "gpus", with_spec(extendedResourceName="example.com/gpu"))],
        wakes="device",
        events="resource.k8s.io/DeviceClassUpdate",
    ),
    situation(
        "an amount that nobody asks for does not help",
        plugins="NodeResourcesFit NodeAffinity",
        given=[host("oak"), host("elm", "2", soil="sand")],
        waiting=[
            rejected(
                "large",
                "NodeAffinity NodeResourcesFit",
                requests={"cpu": "4"},
                affinity=on_nodes_with("soil", "sand"),
            ),
        ],
        steps=[Change("Node", "oak", allocating(memory="16Gi"), "/status")],
        events="NodeUpdateNodeAllocatable",
    ),
    situation(
        "an amount that is asked for helps, though another plugin keeps the pod off that node",
        plugins="NodeResourcesFit NodeAffinity",
        given=[host("oak"), host("elm", "2", soil="sand")],
        waiting=[
            rejected(
                "large",
                "NodeAffinity NodeResourcesFit",
                requests={"cpu": "4"},
                affinity=on_nodes_with("soil", "sand"),
            ),
        ],
        steps=[Change("Node", "oak", allocating(cpu="5"), "/status")],
        wakes="large",
        events="NodeUpdateNodeAllocatable",
    ),
    situation(
        "room for more pods helps",
        plugins="NodeResourcesFit NodeAffinity",
        given=[
            node("oak", labels={"soil": "clay"}, extended={"pods": "2"}),
            node("elm", labels={"soil": "sand"}, extended={"pods": "1"}),
            placed("tenant", "elm"),
        ],
        waiting=[rejected("second", "NodeAffinity NodeResourcesFit", affinity=on_nodes_with("soil", "sand"))],
        steps=[Change("Node", "oak", allocating(pods="3"), "/status")],
        wakes="second",
        events="NodeUpdateNodeAllocatable",
    ),
    situation(
        "a node that shrinks helps nobody",
        plugins="NodeResourcesFit",
        given=[node("oak", cpu="4")],
        waiting=[rejected("large", "NodeResourcesFit", requests={"cpu": "5"})],
        steps=[Change("Node", "oak", allocating(cpu="3"), "/status")],
        events="NodeUpdateNodeAllocatable",
    ),
)
PORTS: Final[tuple[Situation, ...]] = (
    situation(
        "a pod that leaves helps the one that asks for its port",
        plugins="NodePorts",
        given=[
            node("oak"),
            placed("web", "oak", containers=containers(host_port=8080)),
            placed("mail", "oak", containers=containers(host_port=8025)),
        ],
        waiting=[
            rejected("next-web", "NodePorts", containers=containers(host_port=8080)),
            rejected("next-mail", "NodePorts", containers=containers(host_port=8025)),
        ],
        steps=[Delete("Pod", "web")],
        wakes="next-web",
        events="AssignedPodDelete",
    ),
    situation(
        "a new node helps where a port was taken",
        plugins="NodePorts",
        given=[node("oak"), placed("web", "oak", containers=containers(host_port=8080))],
        waiting=[rejected("next-web", "NodePorts", containers=containers(host_port=8080))],
        steps=[Create(node("elm"))],
        wakes="next-web",
        events="NodeAdd",
    ),
)
FEATURES: Final[tuple[Situation, ...]] = (
    situation(
        "a node that declares a feature helps the pod that requires it",
        plugins="NodeDeclaredFeatures",
        given=[node("oak")],
        waiting=[rejected("picky", "NodeDeclaredFeatures", containers=[containers()[0] | _RESTARTING])],
        steps=[
            Change(
                "Node",
                "oak",
                lambda obj: obj["status"].update(declaredFeatures=["RestartAllContainersOnContainerExits"]),
                "/status",
            )
        ],
        wakes="picky",
        events="NodeUpdateNodeDeclaredFeature",
        served=False,
    ),
    situation(
        "a node's labels do not help a pod that requires a feature",
        plugins="NodeDeclaredFeatures",
        given=[node("oak")],
        waiting=[rejected("picky", "NodeDeclaredFeatures", containers=[containers()[0] | _RESTARTING])],
        steps=[Change("Node", "oak", labelled(soil="sand"))],
        events="",
        served=False,
    ),
    situation(
        "a pod that requires a feature no longer is tried",
        plugins="NodeDeclaredFeatures",
        given=[node("oak")],
        waiting=[rejected("picky", "NodeDeclaredFeatures", containers=[containers()[0] | _RESTARTING])],
        steps=[Change("Pod", "picky", with_spec(containers=containers()))],
        wakes="picky",
        events="UnschedulablePodUpdate",
        served=False,
    ),
    situation(
        "a pod's labels do not help it where it still requires a feature",
        plugins="NodeDeclaredFeatures",
        given=[node("oak")],
        waiting=[rejected("picky", "NodeDeclaredFeatures", containers=[containers()[0] | _RESTARTING])],
        steps=[Change("Pod", "picky", labelled(leaf="green"))],
        events="UnschedulablePodUpdatePodLabel",
        served=False,
    ),
)
GATES: Final[tuple[Situation, ...]] = (
    situation(
        "only the last gate that goes lets a pod in",
        plugins="SchedulingGates",
        given=[node("oak")],
        waiting=[
            rejected("free", "SchedulingGates", schedulingGates=[{"name": "example.com/one"}]),
            rejected(
                "still-gated",
                "SchedulingGates",
                schedulingGates=[{"name": "example.com/one"}, {"name": "example.com/two"}],
            ),
        ],
        steps=[
            Change("Pod", "free", with_spec(schedulingGates=[])),
            Change("Pod", "still-gated", with_spec(schedulingGates=[{"name": "example.com/two"}])),
        ],
        wakes="free",
        events="UnschedulablePodUpdatePodSchedulingGatesEliminated",
    ),
    situation(
        "nothing but its gates lets a gated pod in",
        plugins="SchedulingGates NodeResourcesFit TaintToleration",
        given=[node("oak", cpu="2"), placed("tenant", "oak", requests={"cpu": "2"})],
        waiting=[rejected("gated", "SchedulingGates", schedulingGates=[{"name": "example.com/one"}])],
        steps=[
            Delete("Pod", "tenant"),
            Create(node("elm")),
            Change("Pod", "gated", labelled(leaf="green")),
            Change("Pod", "gated", also_tolerating("dry")),
        ],
        events="",
    ),
)
NODE_SITUATIONS: Final = (*TAINTS, *LABELS, *AMOUNTS, *PORTS, *FEATURES, *GATES)
