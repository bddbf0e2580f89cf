"""Table of workloads: nodes, placed pods, measured pods, and changes during the run.

Shapes are those of scheduler_perf; sizes are smaller, so that all runs take about half an hour.

Source: test/integration/scheduler_perf/*/performance-config.yaml, v1.36.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from bench.cluster import devices, policies, templates
from bench.cluster.devices import Supply
from bench.cluster.templates import APP, DEVOPS, Json

NULL, KUBE, ALL_NODES, UNBATCHED, UNSPREAD, OURS = (
    "null",
    "kube-scheduler",
    "kube-scheduler, all nodes",
    "kube-scheduler, no batching",
    "kube-scheduler, no spreading",
    "policysched",
)
SCHEDULERS: Final = (KUBE, ALL_NODES, UNBATCHED, UNSPREAD, NULL, OURS)
WITH_SPREADING: Final = (KUBE, ALL_NODES, UNBATCHED, NULL, OURS)
MAIN: Final = (KUBE, NULL, OURS)
MOON: Final = ("moon-1", "moon-2", "moon-3")
DEFAULT_NODES: Final = 5000


@dataclass(frozen=True, slots=True)
class PodSet:
    """A number of pods of one template, distributed round robin over namespaces."""

    template: str
    count: int
    namespaces: Sequence[str] = ("default",)
    volume: str = ""
    """Volume template of each pod; empty: none."""
    claim: str = ""
    """Claim template of each pod; empty: none."""
    sharing: int = 1
    """Number of pods that share a claim."""
    apps: int = 0
    """Number of values of the label `app`; 0: no label."""
    resources: int = 0
    """Number of extended resources, of which each pod requests one; 0: none."""
    waits: bool = False
    """Whether the pods, created before the run, are pending instead of placed."""
    group: int = 0
    """Number of pods of each pod group; 0: no groups."""
    gang: bool = True
    """Whether a group needs all its pods; else it has the policy `basic`."""


@dataclass(frozen=True, slots=True)
class Churn:
    """Periodic changes by another client during the run.

    `create` makes pods, `recreate` makes and deletes a node, a pod that fits nowhere and a Service, `delete` deletes
    pods that were placed before. Units: seconds.
    """

    mode: str
    every: float
    template: str = ""


@dataclass(frozen=True, slots=True)
class Workload:
    """One workload: the objects before the run, the measured pods, and the changes during the run."""

    name: str
    measured: PodSet
    before: Sequence[PodSet] = ()
    nodes: int = DEFAULT_NODES
    zones: Sequence[str] = ()
    pods_per_node: int = 110
    csi: bool = False
    """Whether each node has a CSINode with a volume limit."""
    namespaces: Sequence[str] = ()
    labels: Json | None = None
    """Labels of the namespaces."""
    extra: Sequence[Json] = ()
    devices: Supply | None = None
    churn: Churn | None = None
    from_start: bool = False
    """Whether the rate counts from the scheduler's start instead of the first binding."""
    policies: int = 0
    edited: bool = False
    """Whether the weight of a policy is patched every second."""
    rate: float = 0.0
    """Rate of pod creations. Units: pods a second. 0: all pods exist before the scheduler starts."""
    against: str = ""
    """Name of the baseline workload by whose figures this workload's figures of the same scheduler are divided."""
    schedulers: Sequence[str] = MAIN
    judged: bool = True
    """Whether the placements are checked by a replay; impossible if pods are deleted during the run."""

    def sized(self, nodes: int | None, pods: int | None) -> Workload:
        """Return a copy with other numbers of nodes and pods; placed pods and devices scale with the nodes."""
        if nodes is None or self.nodes == 1:
            share, nodes = (1.0 if nodes is None else nodes / DEFAULT_NODES), self.nodes
        else:
            share = nodes / self.nodes
        before = [replace(one, count=max(1, round(one.count * share))) for one in self.before]
        devices = self.devices and self.devices.sized(share)
        count = self.measured.count if pods is None else min(self.measured.count, pods)
        return replace(self, nodes=nodes, before=before, measured=replace(self.measured, count=count), devices=devices)

    def same_objects(self) -> Workload:
        """Return a copy without the fields that do not change the objects, for comparison."""
        return replace(self, name="", churn=None, edited=False, against="", schedulers=(), judged=True)

    @property
    def has_groups(self) -> bool:
        """Whether the pods belong to pod groups, so that servers and schedulers need the feature gate."""
        return self.measured.group > 0

    @property
    def node_names(self) -> list[str]:
        """Names of all nodes."""
        return ["scheduler-perf-node"] if self.nodes == 1 else [f"scheduler-perf-{n:05}" for n in range(self.nodes)]

    def measured_names(self) -> list[tuple[str, str]]:
        """Return namespace and name of each measured pod."""
        return list(_names("measured", self.measured))

    def measured_pods(self) -> Iterator[Json]:
        """Yield the measured pods."""
        for index, (namespace, name) in enumerate(self.measured_names()):
            yield _pod(self.measured, index, name, namespace)

    def standing(self) -> Iterator[list[Json]]:
        """Yield the objects that are not measured pods, in lists; each list depends only on earlier lists."""
        labels = self.labels or {}
        yield [templates.namespace(name, labels) for name in self.namespaces]
        zones = self.zones or ("",)
        names = self.node_names
        per_node = str(self.pods_per_node)
        yield [templates.node(name, zones[n % len(zones)], per_node) for n, name in enumerate(names)]
        yield [templates.csi_node(name) for name in names] if self.csi else []
        yield [*self.extra, *policies.make(self.policies)]
        yield list(self.devices.objects(names)) if self.devices else []
        yield [*self._claims(), *self._groups()]
        yield list(self._volumes())
        yield list(self._placed(names))

    def _volumes(self) -> Iterator[Json]:
        for purpose, pods in self._sets():
            if pods.volume:
                for namespace, name in _names(purpose, pods):
                    claim, volume, _ = templates.volume(pods.volume, name, namespace)
                    yield from (claim, volume)

    def _claims(self) -> Iterator[Json]:
        pods = self.measured
        for namespace, name in list(_names("measured", pods))[:: pods.sharing] if pods.claim else ():
            yield devices.claim(pods.claim, name, namespace)

    def _groups(self) -> Iterator[Json]:
        pods = self.measured
        for first in range(0, pods.count, pods.group) if pods.group else ():
            least = min(pods.group, pods.count - first) if pods.gang else None
            name = group_name(first // pods.group)
            yield templates.pod_group(name, pods.namespaces[0], least, templates.priority(pods.template))

    def _placed(self, nodes: Sequence[str]) -> Iterator[Json]:
        """Yield the pods created before the run, on the nodes round robin."""
        turn = 0
        for purpose, pods in self._sets()[:-1]:
            for index, (namespace, name) in enumerate(_names(purpose, pods)):
                made = _pod(pods, index, name, namespace)
                if not pods.waits:
                    made["spec"]["nodeName"] = nodes[turn % len(nodes)]
                    turn += 1
                yield made

    def _sets(self) -> list[tuple[str, PodSet]]:
        return [*((f"before-{n}", one) for n, one in enumerate(self.before)), ("measured", self.measured)]


def _names(purpose: str, pods: PodSet) -> Iterator[tuple[str, str]]:
    for index in range(pods.count):
        yield pods.namespaces[index % len(pods.namespaces)], f"{purpose}-{index:05}"


def _pod(pods: PodSet, index: int, name: str, namespace: str) -> Json:
    labels = {"app": f"app-{index % pods.apps}"} if pods.apps else {}
    stated = templates.volume(pods.volume, name, namespace)[2] if pods.volume else {}
    if pods.claim:
        stated |= devices.using(f"measured-{index - index % pods.sharing:05}")
    if pods.resources:
        stated |= devices.asking(index % pods.resources)
    if pods.group:
        stated |= {"schedulingGroup": {"podGroupName": group_name(index // pods.group)}}
    return templates.pod(pods.template, name, namespace, labels, **stated)


def group_name(number: int) -> str:
    """Return the name of a pod group."""
    return f"group-{number:05}"


def _pods(template: str, count: int, **more: object) -> PodSet:
    return PodSet(template, count, **more)  # type: ignore[arg-type]


SCHED: Final = ("sched-0", "sched-1")
_TEAMS: Final = tuple(f"init-ns-{number}" for number in range(100))
_IN_SCHED: Final = {"namespaces": SCHED}


def _affinity(name: str, template: str, before: int, count: int, *zones: str) -> Workload:
    """Return a workload of pods with affinity for their own color in named namespaces."""
    first, then = (
        _pods(template, number, namespaces=[where]) for number, where in zip((before, count), SCHED, strict=True)
    )
    return Workload(name, then, [first], zones=zones, namespaces=SCHED)


def _selected(name: str, template: str, before: int, count: int, *zones: str) -> Workload:
    """Return a workload of pods with affinity for their own color in namespaces with a label."""
    first = _pods(template, before, namespaces=_TEAMS)
    then = _pods(template, count, namespaces=["measure-ns-0"])
    return Workload(name, then, [first], zones=zones, namespaces=[*_TEAMS, "measure-ns-0"], labels=DEVOPS)


def _plain(name: str, count: int = 2000, **more: object) -> Workload:
    return Workload(name, _pods("pod-default", count), [_pods("pod-default", 1000)], **more)  # type: ignore[arg-type]


_APPS: Final = {"before": [_pods("pod-default", 1000, apps=20)], "zones": ("zone1", "zone2", "zone3")}
_STEADY: Final = replace(_plain("steady", 2000), rate=100.0)
_OF_APPS: Final = _pods("pod-default", 2000, apps=20)
_TEN: Final = Supply()
_MIXED: Final = (
    "pod-default",
    "pod-with-pod-affinity",
    "pod-with-pod-anti-affinity",
    "pod-with-preferred-pod-affinity",
    "pod-with-preferred-pod-anti-affinity",
)


def _claiming(name: str, claim: str, count: int, supply: Supply = _TEN, **more: Any) -> Workload:
    """Return a workload of pods with claims, without a check of placements, as the replay has no devices."""
    return Workload(
        name,
        _pods("pod-claiming", count, claim=claim, **more),
        nodes=500,
        devices=supply,
        judged=False,
    )


def _grouped(name: str, count: int, size: int, *, gang: bool) -> Workload:
    """Return a workload of pod groups of one size."""
    return Workload(name, _pods("pod-of-group", count, group=size, gang=gang))


_GROUPED: Final = (
    _grouped("gangs-of-3", 3000, 3, gang=True),
    _grouped("gangs-of-1000", 3000, 1000, gang=True),
    _grouped("basic-groups-of-3", 3000, 3, gang=False),
    _grouped("basic-groups-of-1000", 3000, 1000, gang=False),
    Workload(
        "gang-preemption",
        _pods("pod-taking-a-node", 100, group=100),
        [_pods("pod-tenth-of-node", 1000)],
        nodes=100,
        from_start=True,
        schedulers=(KUBE, OURS),
        judged=False,
    ),
)
_CLAIMING: Final = (
    _claiming("claims", "one", 2500),
    _claiming("claims-half-taken", "one", 2000, Supply(taken=2500)),
    _claiming("claims-to-the-last-device", "one", 1000, Supply(left=1000)),
    _claiming("claims-of-five-pods", "one", 2500, sharing=5),
    _claiming("claims-selector", "selected", 500),
    _claiming("claims-match-attribute", "matched", 1000, Supply("roots")),
    _claiming("claims-partitions-backtracking", "seven", 500, Supply("parts", 500)),
    _claiming("claims-shared-capacity", "shares", 1000, Supply("shares", 1000)),
    _claiming("extended-resources-50-classes", "", 2500, Supply(classes=50), resources=50),
)
WORKLOADS: Final[Sequence[Workload]] = (
    replace(_plain("basic", 4000), schedulers=SCHEDULERS),
    Workload(
        "node-affinity", _pods("pod-with-node-affinity", 2000), [_pods("pod-with-node-affinity", 1000)], zones=["zone1"]
    ),
    replace(_affinity("pod-affinity", "pod-with-pod-affinity", 2000, 1000, "zone1"), schedulers=SCHEDULERS),
    _affinity("pod-anti-affinity", "pod-with-pod-anti-affinity", 1000, 1000),
    _affinity("preferred-pod-affinity", "pod-with-preferred-pod-affinity", 2000, 1000),
    _affinity("preferred-pod-anti-affinity", "pod-with-preferred-pod-anti-affinity", 2000, 1000),
    _selected("pod-affinity-ns-selector", "pod-affinity-ns-selector", 2000, 1000, "zone1"),
    _selected("pod-anti-affinity-ns-selector", "pod-anti-affinity-ns-selector", 2000, 1000),
    _selected("preferred-pod-affinity-ns-selector", "pod-preferred-affinity-ns-selector", 2000, 1000),
    _selected("preferred-pod-anti-affinity-ns-selector", "pod-preferred-anti-affinity-ns-selector", 2000, 1000),
    Workload(
        "topology-spreading",
        _pods("pod-with-topology-spreading", 1500),
        [_pods("pod-default", 2000)],
        zones=MOON,
        schedulers=WITH_SPREADING,
    ),
    Workload(
        "preferred-topology-spreading",
        _pods("pod-with-preferred-topology-spreading", 1500),
        [_pods("pod-default", 2000)],
        zones=MOON,
    ),
    Workload(
        "default-topology-spreading",
        _pods("pod-with-label", 1500, namespaces=["service-ns"]),
        [_pods("pod-default", 2000)],
        zones=MOON,
        namespaces=["service-ns"],
        extra=[templates.service("service", "service-ns", APP)],
    ),
    Workload(
        "mixed",
        _pods("pod-default", 2000),
        [_pods(one, 500, namespaces=["sched-0"]) for one in _MIXED],
        zones=["zone1"],
        namespaces=SCHED,
    ),
    _plain("unschedulable-churn", churn=Churn("create", 0.2, "pod-high-priority-large-cpu")),
    _plain("mixed-churn", churn=Churn("recreate", 1.0, "pod-high-priority-large-cpu")),
    Workload(
        "gated",
        _pods("light-pod", 2000),
        [_pods("light-pod", 1000), _pods("gated-pod", 2000, waits=True)],
        nodes=1,
        pods_per_node=90_000,
        churn=Churn("delete", 0.02),
        judged=False,
    ),
    Workload(
        "secrets",
        _pods("pod-with-secret-volume", 2000),
        [_pods("pod-with-secret-volume", 1000)],
        extra=[templates.secret("secret", "default")],
    ),
    Workload(
        "in-tree-volumes", _pods("pod-default", 1000, volume="pv-aws"), [_pods("pod-default", 500, volume="pv-aws")]
    ),
    Workload(
        "csi-volumes",
        _pods("pod-default", 1000, volume="pv-csi"),
        [_pods("pod-default", 500, volume="pv-csi")],
        nodes=2000,
        csi=True,
    ),
    Workload(
        "preemption",
        _pods("pod-high-priority", 500),
        [_pods("pod-low-priority", 2000)],
        nodes=500,
        from_start=True,
        schedulers=(KUBE, OURS),
        judged=False,
    ),
    Workload(
        "preemption-churn",
        _pods("pod-default", 2000),
        [_pods("pod-low-priority", 8000)],
        nodes=2000,
        churn=Churn("create", 0.2, "pod-high-priority"),
        schedulers=(KUBE, OURS),
        judged=False,
    ),
    Workload("apps", _OF_APPS, schedulers=(NULL, OURS), **_APPS),  # type: ignore[arg-type]
    Workload("apps-20-policies", _OF_APPS, policies=20, against="apps", schedulers=(OURS,), **_APPS),  # type: ignore[arg-type]
    Workload("start-50000-placed", _pods("pod-default", 200), [_pods("pod-default", 50_000)], judged=False),
    _STEADY,
    replace(_STEADY, name="steady-20-policies", measured=_OF_APPS, policies=20, schedulers=(OURS,), **_APPS),  # type: ignore[arg-type]
    replace(
        _STEADY,
        name="steady-20-policies-edited",
        measured=_OF_APPS,
        policies=20,
        edited=True,
        against="steady-20-policies",
        schedulers=(OURS,),
        **_APPS,  # type: ignore[arg-type]
    ),
    *_CLAIMING,
    *_GROUPED,
)
QUICK: Final = (
    "basic",
    "pod-affinity",
    "pod-anti-affinity",
    "topology-spreading",
    "apps",
    "apps-20-policies",
    "steady",
)
"""Names of the workloads of a quick run."""
