"""The templates of a new plugin's files, with a method and a test per extension point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from string import Template
from typing import Final


@dataclass(frozen=True, slots=True)
class PointTemplate:
    """The code and configuration that a new plugin has for one extension point."""

    method: str
    imports: str
    """Names from `policysched.plugin` that the method needs."""
    test: str
    config: str = ""
    """Configuration that the plugin needs at the extension point, besides the plugin's name."""
    fields: str = ""
    """Fields of the plugin that the generated `__init__` sets."""


TEMPLATES: Final[Mapping[str, PointTemplate]] = {
    "preEnqueue": PointTemplate(
        '''
    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Keep a pod out of the queue while its label has the value `hold`."""
        if pod.metadata.labels.get(self.args.label) == "hold":
            return unresolvable("pod is on hold")
        return None
''',
        "Pod Status unresolvable",
        """

def test_pod_on_hold_is_gated() -> None:
    with scheduling($klass, nodes=NODES) as scheduler:
        assert scheduler.schedule(make_pod("web", labels={GROUP: "hold"})).result == "Gated"
""",
    ),
    "queueSort": PointTemplate(
        '''
    def less(self, a: QueuedPodInfo, b: QueuedPodInfo) -> bool:
        """Sort pods with the label first, then by priority and time in the queue."""
        return self._place(a) < self._place(b)

    def _place(self, queued: QueuedPodInfo) -> tuple[bool, int, float]:
        pod = queued.pod
        return self.args.label not in pod.metadata.labels, -(pod.spec.priority or 0), queued.timestamp
''',
        "QueuedPodInfo",
        """

def test_pod_with_the_label_goes_first() -> None:
    with scheduling($klass) as scheduler:
        scheduler.add(make_pod("other"), make_pod("mine", labels={GROUP: "a"}))
        scheduler.settle()
        scheduler.add(make_node("a-1", labels={GROUP: "a"}, allocatable={"pods": "1"}))
        scheduler.advance(10)
        assert scheduler.outcome("mine").node == "a-1"
        assert scheduler.outcome("other").node == ""
""",
        "    queueSort: {disabled: [{name: PrioritySort}]}\n",
    ),
    "preFilter": PointTemplate(
        '''
    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Skip Filter for pods without the label."""
        return None if self.args.label in pod.metadata.labels else Status(Code.SKIP)
''',
        "Code CycleState NodeInfo Pod Status",
        """

def test_pod_without_the_label_is_not_filtered() -> None:
    assert decide($klass, make_pod("web"), NODES)["result"] == "Scheduled"
""",
    ),
    "filter": PointTemplate(
        '''
    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Reject nodes whose label differs from the label of the pod."""
        wanted = pod.metadata.labels.get(self.args.label)
        if wanted is None or node.labels.get(self.args.label) == wanted:
            return None
        return unresolvable(f"node(s) did not have {self.args.label}={wanted}")
''',
        "CycleState NodeInfo Pod Status unresolvable",
        """

def test_pod_fits_nodes_of_its_group() -> None:
    record = decide($klass, make_pod("web", labels={GROUP: "a"}), NODES)
    assert record["selected"] == "a-1"
    assert record["rejected"]["b-1"]["reasons"] == ["node(s) did not have example.io/group=a"]


def test_label_is_an_argument() -> None:
    record = decide($klass, make_pod("web", labels={"team": "red"}), NODES, args={"label": "team"})
    assert record["result"] == "Unschedulable"
""",
    ),
    "postFilter": PointTemplate(
        '''
    def post_filter(self, state: CycleState, pod: Pod, statuses: NodeStatuses) -> PostFilterResult | Status | None:
        """Report how many nodes would fit the pod after an eviction."""
        full = len(statuses.nodes(Code.UNSCHEDULABLE))
        return unschedulable(f"{full} node(s) would fit the pod after an eviction")
''',
        "Code CycleState NodeStatuses Pod PostFilterResult Status unschedulable",
        """

def test_unschedulable_pod_reports_what_would_help() -> None:
    full = [make_pod(f"on-{node}", node=node, requests={"cpu": "4"}) for node in ("a-1", "b-1")]
    with scheduling($klass, nodes=NODES, pods=full) as scheduler:
        scheduler.schedule(make_pod("web", requests={"cpu": "1"}))
        assert "2 node(s) would fit the pod after an eviction" in scheduler.events("web")[0]
""",
    ),
    "preScore": PointTemplate(
        '''
    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Store a value for Score in the cycle state."""
        state.write(NAME, max(node.pods_count for node in nodes))
        return None
''',
        "CycleState NodeInfo Pod Status",
        "",
    ),
    "score": PointTemplate(
        '''
    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """Prefer nodes with few pods."""
        return max(0, MAX_NODE_SCORE - node.pods_count)
''',
        "MAX_NODE_SCORE CycleState NodeInfo Pod",
        """

def test_node_with_fewer_pods_is_preferred() -> None:
    record = decide($klass, make_pod("web"), NODES, pods=[make_pod("there", node="a-1")])
    assert record["total"] == {"a-1": 99, "b-1": 100}
""",
    ),
    "reserve": PointTemplate(
        '''
    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Reserve something for the pod."""
        self.reserved[pod.metadata.uid] = node_name
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Release the reservation, if any."""
        self.reserved.pop(pod.metadata.uid, None)
''',
        "CycleState Pod Status",
        """

def test_bound_pod_keeps_its_reservation() -> None:
    with scheduling($klass, nodes=NODES) as scheduler:
        node = scheduler.schedule(make_pod("web")).node
        assert list(scheduler.plugin.reserved.values()) == [node]
""",
        fields="        self.reserved: dict[str, str] = {}\n",
    ),
    "permit": PointTemplate(
        '''
    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Status | Wait | None:
        """Delay binding for up to 10 s if the label has the value `wait`."""
        return Wait(timeout=10) if pod.metadata.labels.get(self.args.label) == "wait" else None
''',
        "CycleState Pod Status Wait",
        """

def test_waiting_pod_is_rejected_after_the_timeout() -> None:
    nodes = [make_node("w-1", labels={GROUP: "wait"})]
    with scheduling($klass, nodes=nodes) as scheduler:
        assert scheduler.schedule(make_pod("web", labels={GROUP: "wait"})).result == "Waiting"
        scheduler.advance(10)
        assert "rejected due to timeout" in scheduler.events("web")[0]
""",
    ),
    "preBind": PointTemplate(
        '''
    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Prepare the binding; without `async` this method runs in a thread."""
        log.info("pod %s is about to be bound to %s", pod.key, node_name)
        return None
''',
        "CycleState Pod Status",
        "",
    ),
    "bind": PointTemplate(
        '''
    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Bind pods with the label; skip other pods."""
        if self.args.label not in pod.metadata.labels:
            return Status(Code.SKIP)
        await self.handle.client.bind(pod, node_name)
        self.bound.append(pod.key)
        return None
''',
        "Code CycleState Pod Status",
        """

def test_pod_with_the_label_is_bound_by_the_plugin() -> None:
    with scheduling($klass, nodes=NODES) as scheduler:
        assert scheduler.schedule(make_pod("web", labels={GROUP: "a"})).result == "Scheduled"
        assert scheduler.schedule(make_pod("other")).result == "Scheduled"
        assert scheduler.plugin.bound == ["default/web"]
""",
        "    bind: {enabled: [{name: $name}]}  # before DefaultBinder\n",
        "        self.bound: list[str] = []\n",
    ),
    "postBind": PointTemplate(
        '''
    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Log the bound pod."""
        log.info("pod %s is bound to %s", pod.key, node_name)
''',
        "CycleState Pod",
        "",
    ),
}
"""The templates of a new plugin, by extension point."""
MODULE: Final = Template('''"""Scheduler plugin $name: match a label of pods with the same label of nodes."""

from __future__ import annotations

import logging
${sequence}from dataclasses import dataclass
from typing import Final

$imports

NAME: Final = "$name"
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ${klass}Args:
    """Arguments of the plugin in `pluginConfig`."""

    label: str = "example.io/group"


class $klass$bases:
    """The plugin; each base class has the methods of an extension point."""

    name = NAME

    def __init__(self, args: ${klass}Args, handle: PluginHandle) -> None:
        self.args = args
        self.handle = handle
${fields}$methods''')
TEST: Final = Template('''"""Tests of the plugin $name."""

from __future__ import annotations

$imports

from $module import $klass

GROUP = "example.io/group"
NODES = [make_node("a-1", labels={GROUP: "a"}), make_node("b-1", labels={GROUP: "b"})]


def test_pod_is_scheduled_with_the_default_plugins_too() -> None:
    with scheduling($klass, nodes=NODES) as scheduler:
        assert scheduler.schedule(make_pod("web")).node in {"a-1", "b-1"}
$tests''')
PROJECT: Final = Template("""[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"

[project]
name = "$distribution"
version = "0.1.0"
description = "A scheduler plugin: $name"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["policysched"]

[project.optional-dependencies]
test = ["policysched[testing]"]

[project.entry-points."policysched.plugins"]
"$name" = "$module:$klass"

[tool.hatch.build.targets.wheel]
only-include = ["$module.py"]
""")
CONFIG: Final = Template("""apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: false
profiles:
- schedulerName: $scheduler
  plugins:
    multiPoint:
      enabled:
      - name: $name
$listed  pluginConfig:
  - name: $name
    args:
      label: example.io/group
""")
CLUSTER: Final = """apiVersion: v1
kind: Node
metadata: {name: a-1, labels: {example.io/group: a}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
---
apiVersion: v1
kind: Node
metadata: {name: b-1, labels: {example.io/group: b}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
"""
POD: Final = Template("""apiVersion: v1
kind: Pod
metadata: {name: web, labels: {example.io/group: a}}
spec:
  schedulerName: $scheduler
  containers:
  - {name: web, image: registry.example/web}
""")
README: Final = Template("""# $name

A scheduler plugin for policysched. The code is in `$module.py`. `scheduler-config.yaml` enables the plugin.

```sh
$steps
```

The plugin schedules pods with `schedulerName: $scheduler`.
""")
