"""Reading of a cluster's objects for both sides of a plan; unreadable objects are left out and reported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec.structs import replace

from policysched.app.admission import Admission, take_ephemeral_claims
from policysched.app.dry_run.saved_pods import SavedPods
from policysched.app.files.given import unlisted
from policysched.app.files.workload_pods import HASH
from policysched.app.object_names import nearest_key
from policysched.errors import UsageError
from policysched.model.decode import ObjectError
from policysched.model.defaults import implied_namespace
from policysched.model.kinds import FINISHED, NODES, PODS, POLICIES, kind_of
from policysched.model.objects import Pod
from policysched.model.objects.meta import OwnerReference
from policysched.model.pod_requirements import is_static
from policysched.model.policy import decode_policy
from policysched.model.release import Release
from policysched.state.cluster import Cluster
from policysched.state.tables.amounts import PodResources

Object = Mapping[str, Any]
PER_NODE: Final = {"DaemonSet": "a DaemonSet has one pod per node", "Node": "static pods belong to their node"}
"""Kinds of controllers that have no number of replicas, each with the reason."""


@dataclass(frozen=True, slots=True)
class ReadPod:
    """A decoded pod of the planned cluster, with its resource requests."""

    pod: Pod
    resources: PodResources

    @property
    def is_static(self) -> bool:
        """Whether the kubelet runs the pod from a file, so that no scheduler places the pod."""
        return is_static(self.pod)

    @property
    def has_ended(self) -> bool:
        """Whether the pod has ended or is being deleted."""
        return self.pod.status.phase in FINISHED or self.pod.metadata.deletion_timestamp is not None


@dataclass(slots=True)
class ClusterObjects:
    """The objects of a cluster on one side of a plan: without or with the change."""

    admission: Admission
    release: Release
    """The Kubernetes release whose rules apply."""
    others: list[Any] = field(default_factory=list)
    """Objects other than pods and nodes."""
    nodes: dict[str, Any] = field(default_factory=dict)
    pods: dict[str, ReadPod] = field(default_factory=dict)
    """Pods by `namespace/name`."""
    policies: list[Object] = field(default_factory=list)
    """Policies as read from the cluster, not compiled."""
    left_out: list[str] = field(default_factory=list)
    created: frozenset[str] = frozenset()
    """Pods that DaemonSets create on new nodes, by `namespace/name`."""
    deleted: frozenset[str] = frozenset()
    """DaemonSets' pods that are deleted together with their nodes."""

    @property
    def schedulable(self) -> list[Pod]:
        """Pods that a scheduler places: all except finished pods, pods that are being deleted and static pods."""
        return [one.pod for one in self.pods.values() if not (one.is_static or one.has_ended)]

    def cluster(self, seconds: float) -> Cluster:
        """Build the cluster, with all pods that have a node.

        Args:
            seconds: The time. Units: seconds since 1970.
        """
        made = Cluster(release=self.release)
        for obj in (*self.others, *self.nodes.values()):
            made.take(obj)
        for name in dict.fromkeys(one.pod.metadata.namespace for one in self.pods.values()):
            if name not in made.namespaces:
                made.set_namespace(implied_namespace(name))
        for one in self.pods.values():
            if one.pod.status.phase not in FINISHED:
                self._take(made, one)
        made.time.move(seconds)
        return made

    def _take(self, made: Cluster, one: ReadPod) -> None:
        if one.pod.spec.node_name in self.nodes:
            made.set_pod(one.pod, one.resources)
        else:
            take_ephemeral_claims(made, one.pod, self.admission)
            if one.pod.status.nominated_node_name:
                made.nominations.update(one.pod)


def read_objects(objects: Iterable[Object], release: Release) -> ClusterObjects:
    """Read the objects of a cluster to which the rules of a release apply.

    Raises:
        UsageError: a value is not an object, or a priority class is malformed, because the queue order would then be
            unknown.
    """
    given = list(unlisted(objects))
    admission = Admission(given, release)
    made = ClusterObjects(admission, release)
    saved = SavedPods(admission)
    for raw in given:
        kind = kind_of(raw)
        try:
            if kind is POLICIES:
                decode_policy(raw)  # a malformed policy is left out
                made.policies.append(raw)
            elif kind is PODS:
                pod, resources = saved.read(raw)
                made.pods[pod.key] = ReadPod(pod, resources)
            elif kind is NODES:
                node = kind.decode(admission.complete(raw))
                made.nodes[node.metadata.name] = node
            elif kind is not None:
                made.others.append(kind.decode(admission.complete(raw)))
        except ObjectError as error:
            made.left_out.append(str(error))
    return made


def controller_of(pod: Pod) -> OwnerReference | None:
    """Return the owner reference to a pod's controller."""
    return next((one for one in pod.metadata.owner_references if one.controller), None)


def workload_of(pod: Pod) -> str:
    """Return the workload of a pod: `namespace/name (Kind)`; for a ReplicaSet of a Deployment, the Deployment."""
    owner = controller_of(pod)
    namespace = pod.metadata.namespace
    if owner is None:
        return f"{namespace}/{pod.metadata.name} (Pod)"
    suffix = f"-{pod.metadata.labels.get(HASH, '')}"
    if owner.kind == "ReplicaSet" and len(suffix) > 1 and owner.name.endswith(suffix):
        return f"{namespace}/{owner.name.removesuffix(suffix)} (Deployment)"
    return f"{namespace}/{owner.name} ({owner.kind})"


def scaled(pods: Mapping[str, ReadPod], workload: str, replicas: int) -> dict[str, ReadPod]:
    """Return the pods with a workload scaled to a number of replicas.

    New pods are copies of an existing one without a node. When scaling down, pods without a node are removed first,
    then the newest.

    Args:
        pods: All pods.
        workload: `[namespace/]name`, as `workload_of` returns.
        replicas: New number of pods.

    Raises:
        UsageError: the workload has no pod, several workloads match, or the workload has one pod per node.
    """
    wanted = workload if "/" in workload else f"default/{workload}"
    found: dict[str, list[str]] = {}
    for key, one in pods.items():
        name = workload_of(one.pod)
        if one.pod.status.phase not in FINISHED and wanted in {name, name.rpartition(" (")[0]}:
            found.setdefault(name, []).append(key)
    if len(found) != 1:
        problem = "several workloads of this name: " + ", ".join(sorted(found)) if found else "no pod of this workload"
        names = {workload_of(one.pod).rpartition(" (")[0] for one in pods.values()}
        meant = "" if found else nearest_key(wanted, names)
        raise UsageError("; ".join(filter(None, (f"--replicas {workload}: the cluster has {problem}", meant))))
    [(name, keys)] = found.items()
    kind = name.rpartition(" (")[2].removesuffix(")")
    if kind in PER_NODE:
        raise UsageError(f"--replicas {workload}: {PER_NODE[kind]}; use --nodes and --without-node")
    keys.sort(key=lambda key: _age(pods[key].pod))
    made = {key: one for key, one in pods.items() if key not in set(keys[replicas:])}
    for number in range(replicas - len(keys)):
        one = _like(pods[keys[0]], number + 1)
        made[one.pod.key] = one
    return made


def _age(pod: Pod) -> tuple[bool, str, str]:
    return (not pod.spec.node_name, pod.metadata.creation_timestamp or "", pod.metadata.name)


def _like(one: ReadPod, number: int) -> ReadPod:
    """Return a pending copy of a pod."""
    pod = one.pod
    metadata = replace(pod.metadata, name=f"{pod.metadata.name}-plan-{number}", uid="", creation_timestamp=None)
    made = replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=""), status=type(pod.status)())
    return ReadPod(made, one.resources)
