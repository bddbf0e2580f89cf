"""Random nodes, pods and workloads, with few names, labels and amounts, so that they often match."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random

from msgspec.structs import replace

from policysched.model.objects import (
    ContainerPort,
    LabelSelector,
    LabelsSpec,
    Metadata,
    Node,
    NodeAddress,
    NodeCondition,
    NodeSystemInfo,
    OwnerReference,
    Pod,
    ReplicaSet,
    SelectorSpec,
    Service,
    Taint,
    Workload,
)
from tests.build import MIB, node, pod
from tests.schedule.neighbours import some_affinity

IMAGES = {f"i{number}:latest": number * 300 * MIB for number in range(1, 6)}
TAINTS = (
    Taint(key="spot", effect="NoSchedule"),
    Taint(key="old", value="x", effect="PreferNoSchedule"),
    Taint(key="new", effect="NoExecute"),
    Taint(key="spot", value="y", effect="NoExecute"),
)
NAMESPACES = ("default", "a", "b")
FEATURES = ("RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport")
GPU = "x.io/gpu"
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def some_node(chance: Random, name: str, now: float, old: Node | None) -> Node:
    """Return a random node, with the creation time of the node that it replaces."""
    made = node(
        name,
        labels=_node_labels(chance, name),
        taints=[taint for taint in TAINTS if chance.random() < 0.15],
        unschedulable=chance.random() < 0.1,
        allocatable=_amounts(chance),
        images={image: size for image, size in IMAGES.items() if chance.random() < 0.3},
        features=[feature for feature in FEATURES if chance.random() < 0.5],
    )
    conditions = [NodeCondition(type="Ready", status=chance.choice(("True", "False")))]
    conditions += [
        NodeCondition(type=kind, status=chance.choice(("True", "False", "Unknown")))
        for kind in ("DiskPressure", "gpu")
        if chance.random() < 0.7
    ]
    addresses = [NodeAddress(type="InternalIP", address=f"10.0.0.{chance.choice('123')}")] * chance.randint(0, 1)
    info = NodeSystemInfo(
        kubelet_version=chance.choice(("v1.35.0", "v1.36.5+k3s1", "")),
        kernel_version=chance.choice(("6.8.0-45-generic", "6.8.0-rt8", "")),
        container_runtime_version=chance.choice(("containerd://1.7.2", "cri-o://1.30.1", "containerd", "")),
        os_image=chance.choice(("cos", "")),
    )
    annotations = {"rack": chance.choice("rs")} if chance.random() < 0.5 else {}
    if chance.random() < 0.02:
        return Node(metadata=made.metadata)
    created = old.metadata.creation_timestamp if old else written(now - chance.choice((0, 5, 300, 4000, -50)))
    return replace(
        made,
        metadata=replace(made.metadata, annotations=annotations, creation_timestamp=created),
        status=replace(made.status, conditions=conditions, addresses=addresses, node_info=info),
    )


def _node_labels(chance: Random, name: str) -> dict[str, str]:
    labels = {key: chance.choice("xyz") for key in ("zone", "disk", "w.io/a") if chance.random() < 0.6}
    labels |= {"cores": chance.choice(("3", "17", "none"))} if chance.random() < 0.5 else {}
    labels |= {HOST: name if chance.random() < 0.9 else "n0"} if chance.random() < 0.9 else {}
    return labels | ({ZONE: chance.choice(("1", "2", ""))} if chance.random() < 0.8 else {})


def _amounts(chance: Random) -> dict[str, str | int]:
    amounts: dict[str, str | int] = {
        "cpu": chance.randint(0, 16),
        "pods": chance.choice((0, 5, 110, 110, 110)),
    }
    return amounts | ({GPU: chance.randint(0, 3)} if chance.random() < 0.4 else {})


def some_pod(chance: Random, name: str, on: str, *, calm: bool) -> Pod:
    """Return a random pod; if `calm`, without namespace selectors."""
    requests: dict[str, str | int] = {"cpu": f"{chance.randint(0, 3) * 500}m", "memory": "64Mi"}
    if chance.random() < 0.2:
        requests[GPU] = 1
    ports = [ContainerPort(container_port=1, host_port=8080, host_ip=chance.choice(("", "10.0.0.1")))]
    owner = OwnerReference(kind="ReplicaSet", name=chance.choice("rs"), controller=True)
    made = pod(
        name,
        on=on,
        namespace=chance.choice(NAMESPACES),
        labels={"team": chance.choice("ab")} | ({"license": "matlab"} if chance.random() < 0.3 else {}),
        priority=chance.choice((None, 0, 10, 2000)),
        priority_class_name="high" if chance.random() < 0.1 else "",
        requests=requests if chance.random() < 0.9 else {},
        ports=ports if chance.random() < 0.1 else (),
        affinity=some_affinity(chance, calm=calm) if chance.random() < 0.06 else None,
        image=chance.choice(list(IMAGES)),
    )
    owners = [owner] if chance.random() < 0.5 else []
    return replace(made, metadata=replace(made.metadata, owner_references=owners))


def some_workload(chance: Random) -> Workload:
    metadata = Metadata(name=chance.choice(("rs", "other")), namespace=chance.choice(NAMESPACES))
    selector = chance.choice(({}, {"team": "a"}, {"team": "b"}, {"team": "c"}))
    service = Service(metadata=metadata, spec=LabelsSpec(selector=selector))
    if chance.random() < 0.5:
        return ReplicaSet(metadata=metadata, spec=SelectorSpec(selector=LabelSelector(match_labels=selector)))
    return service


def owned(of: Pod, name: str) -> Pod:
    """Return the pod with a ReplicaSet as its controller."""
    owner = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name=name, controller=True)
    return replace(of, metadata=replace(of.metadata, owner_references=[owner]))


def written(seconds: float) -> str:
    """Return a time in the format of the API."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
