"""`Cluster`: nodes, placed and assumed pods, and other objects that decisions read; each change updates it.

Each method applies a change and returns it as a `Change`. An assumed pod is treated as a placed pod until it is
confirmed or forgotten.

Source: pkg/scheduler/backend/cache/cache.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, get_args

from msgspec.structs import replace

from policysched.model.kinds import FINISHED, Resource
from policysched.model.objects import (
    DeviceClass,
    DeviceTaintRule,
    Namespace,
    Node,
    Pod,
    PodDisruptionBudget,
    PodGroup,
    ResourceClaim,
    ResourceSlice,
    Stored,
    Workload,
)
from policysched.model.release import DEFAULT, Release
from policysched.model.requests import amounts_in_use
from policysched.state.cluster_devices import ClusterDevices
from policysched.state.cluster_events import (
    Action,
    Change,
    departure,
    details_differ,
    node_difference,
    pod_difference,
    weighs_differently,
)
from policysched.state.domain_sums import SharedSums
from policysched.state.namespace_sets import NamespaceSets
from policysched.state.nominated.nominations import Nominations
from policysched.state.object_selectors import ObjectSelectors
from policysched.state.object_tables import ObjectTables, Workloads
from policysched.state.placed.counters import PodCounters
from policysched.state.placed.existing_terms import ExistingTerms
from policysched.state.placed.pod_ages import PodAgeTable
from policysched.state.placed.pods import PlacedPod, PodSignatures, PodTable, has_another_signature, pod_id
from policysched.state.pod_groups import PodGroups
from policysched.state.resource_claims import ResourceClaims
from policysched.state.tables.ages import AgeTable, ClusterTime
from policysched.state.tables.amounts import PodResources, PortTable, pod_resources_by
from policysched.state.tables.columns import ColumnSet, distinct
from policysched.state.tables.domains import DomainTable
from policysched.state.tables.interner import Strings
from policysched.state.tables.journal import Aspect, Journal, aspects_of
from policysched.state.tables.metrics import Metrics
from policysched.state.tables.nodes import ImageTable, NodeTable
from policysched.state.volumes.attachments import Attachments
from policysched.state.volumes.storage import Storage

_NOTHING: Final = Change(Resource.OTHER, Action.NONE)
_A_POD: Final = int(Aspect.USAGE | Aspect.PODS)
"""The parts of a node that change if a pod without host ports is placed on the node or removed from it."""
_A_POD_WITH_PORTS: Final = int(Aspect.USAGE | Aspect.PODS | Aspect.PORTS)


class Cluster:
    """The nodes, placed pods and other objects that decisions read."""

    def __init__(self, strings: Strings | None = None, release: Release = DEFAULT) -> None:
        self.release = release
        """The Kubernetes release whose rules apply to nodes and placed pods, such as for resized pods."""
        self.amounts_in_use = amounts_in_use(compares_sums=release.resizes_compare_sums)
        """Function that returns the amounts that a placed pod uses, also while it is resized."""
        self.pod_resources = pod_resources_by(self.amounts_in_use)
        """Function that returns the requested amounts and host ports of a pod."""
        self.strings = strings if strings is not None else Strings()
        columns = ColumnSet()
        self.journal = Journal()
        self.time = ClusterTime()
        self.nodes = NodeTable(columns, self.strings, release.node_features)
        self.ages = AgeTable(columns, self.nodes, self.journal, self.time)
        self.metrics = Metrics(columns, self.nodes, self.journal, self.time)
        self.domains = DomainTable(self.nodes, self.journal)
        self.images = ImageTable()
        self.ports = PortTable()
        self.pods = PodTable()
        self.nominations = Nominations(self.pod_resources)
        self.pod_groups = PodGroups() if release.generic_workload else None
        """The pod groups with their members; None if the release schedules all pods one by one."""
        self.pod_ages = PodAgeTable(self.pods, self.journal, self.time)
        self.signatures = PodSignatures()
        self.existing_terms = ExistingTerms()
        self.counters = PodCounters(columns, self.pods, self.signatures, self.existing_terms)
        self.sums = SharedSums(self.journal)
        self.objects = ObjectTables()
        self.budget_selectors = ObjectSelectors()
        self.storage = Storage(self.objects)
        self.workloads = Workloads()
        self.attachments = Attachments(columns, self.nodes, self.pods, self.storage)
        self.namespaces: dict[str, Mapping[str, str]] = {}
        self.namespace_sets = NamespaceSets()
        self._follows_details = False
        """Whether changes of annotations and phases of placed pods are recorded, because a policy reads them."""
        self.devices = ClusterDevices(self.objects, self.nodes, release)
        self.resource_claims = ResourceClaims(self.devices.allocated, of_groups=release.workload_claims)
        """The ResourceClaims of the cluster: as stored on the API server, and as assumed after a write."""
        self.unknown_namespaces: set[str] = set()
        """The namespaces of placed pods whose Namespace object is unknown."""
        self.namespaces_stamp = 0
        """A number that changes if labels of a namespace change, or a Namespace object becomes known or unknown."""

    def set_node(self, node: Node) -> Change:
        """Add a node, or replace the node of the same name."""
        name = node.metadata.name
        self.nodes.tidy()
        self._give_rows_back()
        row = self.nodes.row_for(name)
        old = self.nodes.nodes[row]
        action = Action.ADD if old is None else node_difference(old, node)
        images = _images(node)
        if action is Action.NONE:
            self.nodes.nodes[row] = node
        else:
            self.nodes.store(row, node)
        self.ages.store(row, node)
        if action is Action.NONE:
            return Change(Resource.NODE, action, old, node, row)
        if old is None or action & Action.UPDATE_NODE_LABEL:
            self.devices.set_node(row, node)
        self.images.replace(row, _images(old), images)
        if old is None:
            self.images.stamp += 1
            self.attachments.touch_node(row)
            self.metrics.store(row, name)
        self.journal.note(row, Aspect.PRESENCE if old is None else aspects_of(action))
        return Change(Resource.NODE, action, old, node, row)

    def remove_node(self, name: str) -> Change:
        """Remove a node; the pods on the node stay counted until the node returns or the pods are deleted."""
        row = self.nodes.row_of.get(name, -1)
        old = self.nodes.nodes[row] if row >= 0 else None
        if old is None:
            self._release_if_empty(row)
            return Change(Resource.NODE, Action.NONE)
        self.images.replace(row, _images(old), {})
        self.images.stamp += 1
        self.nodes.clear(row)
        self.devices.remove_node(row)
        self.ages.store(row, None)
        self.metrics.store(row, None)
        self.journal.note(row, Aspect.PRESENCE)
        self._release_if_empty(row)
        return Change(Resource.NODE, Action.DELETE, old, None, row)

    def set_pod(self, pod: Pod, measured: PodResources | None = None) -> Change:
        """Add or replace a pod that has a node; a pod that has finished is removed.

        Args:
            pod: The pod.
            measured: The pod's requests, if they are known.
        """
        identity = pod_id(pod)
        placed = self.pods.by_id.get(identity)
        if pod.status.phase in FINISHED:
            return self.remove_pod(identity)
        if placed is None:
            row = self._place(identity, pod, self.nodes.row_for(pod.spec.node_name), measured, assumed=False)
            change = Change(Resource.ASSIGNED_POD, Action.ADD, None, pod, row)
        else:
            change = self._update_pod(identity, placed, pod)
        if self.pod_groups is not None:
            self.pod_groups.assign(pod)
        return change

    def remove_pod(self, identity: str) -> Change:
        """Remove a placed or assumed pod; a pod without a node is removed from its pod group."""
        if self.pod_groups is not None:
            self.pod_groups.remove(identity)
        placed = self.pods.by_id.get(identity)
        if placed is None:
            return Change(Resource.ASSIGNED_POD, Action.NONE)
        return self._remove_placed(identity, placed)

    def assume(self, pod: Pod, row: int, measured: PodResources | None = None) -> None:
        """Place a pod on the node of a row before the pod's binding is confirmed (assume it).

        Raises:
            ValueError: The pod is placed or assumed already.
        """
        identity = pod_id(pod)
        if identity in self.pods.by_id:
            raise ValueError(f"pod {pod.key} is in the cache, so can't be assumed")
        self._place(identity, pod, row, measured, assumed=True)
        if self.pod_groups is not None:
            self.pod_groups.assume(pod)

    def forget(self, identity: str) -> Change:
        """Remove an assumed pod from its node, so that it is pending again; a pod whose binding was confirmed stays."""
        placed = self.pods.by_id.get(identity)
        if placed is None or not placed.assumed:
            return Change(Resource.ASSIGNED_POD, Action.NONE)
        if self.pod_groups is not None:
            self.pod_groups.forget(placed.pod)
        return self._remove_placed(identity, placed)

    def _remove_placed(self, identity: str, placed: PlacedPod) -> Change:
        name = self.nodes.names[placed.row]
        self._displace(identity)
        return departure(placed.pod, name, placed.row)

    def take_away(self, placed: PlacedPod) -> None:
        """Remove a placed pod from its node for a simulation; the pod stays a member of its pod group."""
        self._displace(pod_id(placed.pod))

    def put_back(self, placed: PlacedPod) -> None:
        """Place a pod on its node again after `take_away` removed it."""
        self._place(pod_id(placed.pod), placed.pod, placed.row, placed.pod_resources, assumed=placed.assumed)

    def is_assumed(self, identity: str) -> bool:
        """Return whether a pod is assumed: placed before its binding is confirmed."""
        placed = self.pods.by_id.get(identity)
        return placed is not None and placed.assumed

    def is_elsewhere(self, pod: Pod) -> bool:
        """Return whether the cluster has a pod on another node than its `spec.nodeName` states."""
        placed = self.pods.by_id.get(pod_id(pod))
        return placed is not None and self.nodes.names[placed.row] != pod.spec.node_name

    def set_namespace(self, namespace: Namespace) -> Change:
        """Add or replace a namespace."""
        name, labels = namespace.metadata.name, namespace.metadata.labels
        before = self.namespaces.get(name)
        changed = before != labels
        self.namespaces[name] = labels
        self.unknown_namespaces.discard(name)
        if changed:
            self.namespaces_stamp += 1
            self.namespace_sets.put(name, labels)
        old = None if before is None else replace(namespace, metadata=replace(namespace.metadata, labels=before))
        return Change(Resource.NAMESPACE, Action.UPDATE_OTHER if changed else Action.NONE, old, namespace)

    def remove_namespace(self, name: str) -> Change:
        """Remove a namespace; the returned change makes no waiting pod schedulable."""
        if self.namespaces.pop(name, None) is not None:
            self.namespaces_stamp += 1
            self.namespace_sets.drop(name)
            if self.signatures.of_namespace(name):
                self.unknown_namespaces.add(name)
        return Change(Resource.NAMESPACE, Action.NONE)

    def follow_details(self) -> None:
        """Record changes of annotations and phases of placed pods from now on, because a policy reads them."""
        if not self._follows_details:
            self._follows_details = True
            self.journal.note_all(distinct(self.pods.rows[self.pods.rows >= 0]), int(Aspect.POD_DETAILS))

    def take(self, obj: Any) -> Change:
        """Add or replace an object of any kind that scheduling reads (`policysched.model.kinds`); return the change."""
        own = _OWN.get(type(obj))
        return own[0](self, obj) if own is not None else self.objects.put(obj)

    def drop(self, obj: Any) -> Change:
        """Remove an object of any kind that scheduling reads (`policysched.model.kinds`); return the change."""
        own = _OWN.get(type(obj))
        return own[1](self, obj) if own is not None else self.objects.drop(obj)

    def set_workload(self, workload: Workload) -> Change:
        """Add or replace a Service or workload controller; the returned change makes no waiting pod schedulable."""
        self.workloads.put(workload)
        return _NOTHING

    def remove_workload(self, workload: Workload) -> Change:
        """Remove a Service or workload controller."""
        self.workloads.drop(workload)
        return _NOTHING

    def set_budget(self, budget: PodDisruptionBudget) -> Change:
        """Add or replace a PodDisruptionBudget, and compile its label selector."""
        self.budget_selectors.put(_key(budget), budget.spec.selector)
        return self.objects.put(budget)

    def remove_budget(self, budget: PodDisruptionBudget) -> Change:
        """Remove a PodDisruptionBudget."""
        self.budget_selectors.put(_key(budget), None)
        return self.objects.drop(budget)

    def set_pod_group(self, group: PodGroup) -> Change:
        """Add or replace a PodGroup object."""
        if self.pod_groups is not None:
            self.pod_groups.put(group)
        return self.objects.put(group)

    def remove_pod_group(self, group: PodGroup) -> Change:
        """Remove a PodGroup object; the pods of the group stay."""
        if self.pod_groups is not None:
            self.pod_groups.drop(group)
        return self.objects.drop(group)

    def set_stored(self, obj: Stored) -> Change:
        """Add or replace a storage object: PersistentVolume, PersistentVolumeClaim, StorageClass or CSI object."""
        change = self.storage.put(obj)
        self.attachments.follow(change)
        return change

    def remove_stored(self, obj: Stored) -> Change:
        """Remove a storage object: PersistentVolume, PersistentVolumeClaim, StorageClass or CSI object."""
        change = self.storage.drop(obj)
        self.attachments.follow(change)
        return change

    def _update_pod(self, identity: str, placed: PlacedPod, pod: Pod) -> Change:
        old = placed.pod
        if self.is_elsewhere(pod):
            self._displace(identity)
            row = self._place(identity, pod, self.nodes.row_for(pod.spec.node_name), None, assumed=False)
            return Change(Resource.ASSIGNED_POD, Action.ADD, None, pod, row)
        confirmed, row = placed.assumed, placed.row
        if weighs_differently(old, pod):
            self._displace(identity)
            row = self._place(identity, pod, self.nodes.row_for(pod.spec.node_name), None, assumed=False)
        elif has_another_signature(old, pod):
            self._take_version(identity, placed, pod)
        else:
            self.pods.update(placed, pod)
        action = pod_difference(old, pod, self.amounts_in_use)
        if self._follows_details and details_differ(old, pod):
            self.journal.note(row, int(Aspect.POD_DETAILS))
            action = action or Action.UPDATE_OTHER
        if confirmed:
            return Change(Resource.ASSIGNED_POD, Action.ADD, None, pod, row)
        return Change(Resource.ASSIGNED_POD, action, old, pod, row)

    def _place(self, identity: str, pod: Pod, row: int, measured: PodResources | None, *, assumed: bool) -> int:
        try:
            placed = PlacedPod(pod, row, measured if measured is not None else self.pod_resources(pod), assumed)
            self._enter(placed)
        except Exception:
            self._release_if_empty(row)
            raise
        self.pods.insert(identity, placed)
        if self.nominations:
            self.nominations.discard(identity)
        if self.storage.place(placed):
            self.attachments.touch(row, identity)
        self._count(placed, 1)
        return row

    def _take_version(self, identity: str, placed: PlacedPod, pod: Pod) -> None:
        """Replace a placed pod by a newer version with equal resources, of which labels or affinity may differ.

        Nearly every confirmed binding is such a version: the API server adds the node's topology labels to the pod.
        """
        version = PlacedPod(pod, placed.row, placed.pod_resources, assumed=False)
        self._enter(version)
        self.pods.replace(identity, version)
        if self.nominations:
            self.nominations.discard(identity)
        if self.storage.take_version(placed, version):
            counts_anew = not self.attachments.counts_alike(placed.row, identity)
        else:
            had_volumes = self.storage.displace(placed)
            counts_anew = self.storage.place(version) or had_volumes
        if counts_anew:
            self.attachments.touch(placed.row, identity)
        self.counters.move(placed, version)
        self._leave(placed)
        if version.signature != placed.signature:
            self.journal.note(placed.row, int(Aspect.PODS))

    def _displace(self, identity: str) -> None:
        placed = self.pods.remove(identity)
        if self.storage.displace(placed):
            self.attachments.touch(placed.row, identity)
        self._count(placed, -1)
        self._leave(placed)
        self._release_if_empty(placed.row)

    def _enter(self, placed: PlacedPod) -> None:
        """Count a placed pod in its signature (set of alike pods) and register a new signature; undo on failure."""
        placed.signature, is_new = self.signatures.enter(placed)
        if not is_new:
            return
        try:
            self.existing_terms.appear(placed.signature, placed.pod)
            self.counters.appear(placed.signature, placed)
            self._enter_namespace(placed.pod.metadata.namespace)
        except Exception:
            self._leave(placed)
            raise

    def _leave(self, placed: PlacedPod) -> None:
        if self.signatures.leave(placed.signature):
            self.counters.vanish(placed.signature, placed)
            self.existing_terms.vanish(placed.signature)
            self._leave_namespace(placed.pod.metadata.namespace)

    def _enter_namespace(self, name: str) -> None:
        if name not in self.namespaces and name not in self.unknown_namespaces:
            self.unknown_namespaces.add(name)
            self.namespaces_stamp += 1

    def _leave_namespace(self, name: str) -> None:
        if name in self.unknown_namespaces and not self.signatures.of_namespace(name):
            self.unknown_namespaces.discard(name)
            self.namespaces_stamp += 1

    def _count(self, placed: PlacedPod, count: int) -> None:
        self.nodes.take(placed.row, placed.pod_resources, count)
        self.counters.add(placed, count)
        if placed.pod_resources.ports:
            self.ports.add(placed.row, placed.pod_resources.ports, count)
            self.journal.note(placed.row, _A_POD_WITH_PORTS)
        else:
            self.journal.note(placed.row, _A_POD)

    def _give_rows_back(self) -> None:
        """Shrink the arrays over nodes after pods on unknown nodes were deleted."""
        if not self.nodes.may_give_back:
            return
        self.attachments.refresh()
        if self.nodes.give_back():
            self.journal.forget()

    def _release_if_empty(self, row: int) -> None:
        if row >= 0 and self.nodes.nodes[row] is None and not self.pods.has_row(row):
            self.nodes.release(row)
            self.attachments.forget(row)


def _key(budget: PodDisruptionBudget) -> str:
    return f"{budget.metadata.namespace}/{budget.metadata.name}"


def _images(node: Node | None) -> dict[str, int]:
    if node is None:
        return {}
    sizes: dict[str, int] = {}
    for image in node.status.images:
        for name in image.names:
            sizes.setdefault(name, image.size_bytes)
    return sizes


_OWN: Final[Mapping[type, tuple[Callable[[Cluster, Any], Change], Callable[[Cluster, Any], Change]]]] = {
    Node: (Cluster.set_node, lambda cluster, node: cluster.remove_node(node.metadata.name)),
    Pod: (Cluster.set_pod, lambda cluster, pod: cluster.remove_pod(pod_id(pod))),
    Namespace: (Cluster.set_namespace, lambda cluster, one: cluster.remove_namespace(one.metadata.name)),
    DeviceClass: (
        lambda cluster, one: cluster.devices.set_class(one),
        lambda cluster, one: cluster.devices.remove_class(one),
    ),
    ResourceSlice: (
        lambda cluster, one: cluster.devices.set_slice(one),
        lambda cluster, one: cluster.devices.remove_slice(one),
    ),
    DeviceTaintRule: (
        lambda cluster, rule: cluster.devices.set_taint_rule(rule),
        lambda cluster, rule: cluster.devices.remove_taint_rule(rule),
    ),
    ResourceClaim: (
        lambda cluster, claim: cluster.resource_claims.put(claim),
        lambda cluster, claim: cluster.resource_claims.drop(claim),
    ),
    PodDisruptionBudget: (Cluster.set_budget, Cluster.remove_budget),
    PodGroup: (Cluster.set_pod_group, Cluster.remove_pod_group),
    **dict.fromkeys(get_args(Stored), (Cluster.set_stored, Cluster.remove_stored)),
    **dict.fromkeys(get_args(Workload), (Cluster.set_workload, Cluster.remove_workload)),
}
"""For each kind of objects with more than a table by name: the methods of `Cluster` that add and remove one."""
