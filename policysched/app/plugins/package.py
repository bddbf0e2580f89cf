"""Write the package of a new plugin: a module, a test that passes, a configuration that enables it, a README.

What it does is small and complete, so that an author changes something that works: pods with a label go to nodes with
the same value of it. Each extension point that is asked for adds its method and its test.
"""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from string import Template
from typing import Final

from policysched.app.configuration.profiles import registry_with
from policysched.app.files.output import folder_problem
from policysched.errors import UsageError
from policysched.late_dataclass import dataclass

DEFAULT_POINTS: Final = ("filter", "score")
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_.][A-Za-z0-9]+)*")
_LONGEST_NAME: Final = 63
_LONGEST_LINE: Final = 120
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|[0-9]+")


@dataclass(frozen=True, slots=True)
class PointTemplate:
    """What a new plugin has for an extension point."""

    method: str
    imports: str
    """What the method needs of `policysched.plugin`."""
    test: str
    config: str = ""
    """Further configuration of the plugin."""
    fields: str = ""
    """Fields that `__init__` sets."""


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
_MODULE: Final = Template('''"""Scheduler plugin $name: match a label of pods with the same label of nodes."""

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
_TEST: Final = Template('''"""Tests of the plugin $name."""

from __future__ import annotations

$imports

from $module import $klass

GROUP = "example.io/group"
NODES = [make_node("a-1", labels={GROUP: "a"}), make_node("b-1", labels={GROUP: "b"})]


def test_pod_is_scheduled_with_the_default_plugins_too() -> None:
    with scheduling($klass, nodes=NODES) as scheduler:
        assert scheduler.schedule(make_pod("web")).node in {"a-1", "b-1"}
$tests''')
_PROJECT: Final = Template("""[build-system]
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
_CONFIG: Final = Template("""apiVersion: kubescheduler.config.k8s.io/v1
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
_CLUSTER: Final = """apiVersion: v1
kind: Node
metadata: {name: a-1, labels: {example.io/group: a}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
---
apiVersion: v1
kind: Node
metadata: {name: b-1, labels: {example.io/group: b}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
"""
_POD: Final = Template("""apiVersion: v1
kind: Pod
metadata: {name: web, labels: {example.io/group: a}}
spec:
  schedulerName: $scheduler
  containers:
  - {name: web, image: registry.example/web}
""")
_README: Final = Template("""# $name

A scheduler plugin for policysched. The code is in `$module.py`. `scheduler-config.yaml` enables the plugin.

```sh
$steps
```

The plugin schedules pods with `schedulerName: $scheduler`.
""")


@dataclass(frozen=True, slots=True)
class NewPackage:
    """A package that was written."""

    folder: Path
    files: tuple[str, ...]
    next_steps: tuple[str, ...]
    """Commands, each with what it does."""


def new_package(name: str, points: Iterable[str] = DEFAULT_POINTS, parent: Path = Path()) -> NewPackage:
    """Write the package of a plugin into a new folder of its name.

    Args:
        name: The plugin's name, as configurations will have it.
        points: The extension points where it acts, by kube-scheduler's names.
        parent: Where the folder is made.

    Raises:
        UsageError: the folder exists or cannot be created, the name cannot be used, or a point does not exist.
    """
    chosen = _chosen(points)
    module, folder = _module_name(name), parent / name
    if folder.exists():
        raise UsageError(f"{folder} already exists; nothing was written")
    files = _files(name, module, chosen)
    try:
        folder.mkdir(parents=True)
        for file, text in files.items():
            (folder / file).write_text(text, "utf-8")
    except OSError as error:
        raise UsageError(folder_problem(folder, error)) from error
    return NewPackage(folder, tuple(files), (f"cd {folder}", *_STEPS))


_STEPS: Final = (
    "pip install --editable '.[test]'      # in the environment of policysched",
    "python -m pytest                      # run the tests",
    "policysched plugins                   # list the plugin",
    "policysched dry-run --config scheduler-config.yaml --cluster cluster.yaml --pod pod.yaml",
    "policysched run --config scheduler-config.yaml",
)


def _chosen(points: Iterable[str]) -> list[str]:
    """Return the templates' points in their order; upper case and underscores do not matter."""
    known = {point.lower(): point for point in TEMPLATES}
    wanted = set()
    for point in points:
        found = known.get(point.replace("_", "").lower())
        if found is None:
            raise UsageError(f'unknown extension point "{point}"; use {", ".join(TEMPLATES)}')
        wanted.add(found)
    if not wanted:
        raise UsageError(f"no extension point given; use {', '.join(TEMPLATES)}")
    return [point for point in TEMPLATES if point in wanted]


def _module_name(name: str) -> str:
    """Return the name of a plugin's module.

    Raises:
        UsageError: the plugin cannot be called so.
    """
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        raise UsageError(f'invalid plugin name "{name}": use letters and digits, joined by -, _ or .')
    if name in registry_with():
        raise UsageError(f'plugin "{name}" already exists')
    module = "_".join(_words(name)).lower()
    if keyword.iskeyword(module) or module in sys.stdlib_module_names or module == "policysched":
        raise UsageError(f'invalid plugin name "{name}": {module} is a Python module or keyword')
    return module


def _words(name: str) -> list[str]:
    return _WORD.findall(name)


def _files(name: str, module: str, points: list[str]) -> dict[str, str]:
    words = _words(name)
    klass = "".join(word[:1].upper() + word[1:] for word in words)
    methods = "".join(TEMPLATES[point].method for point in points)
    bases = [f"{point[0].upper()}{point[1:]}Methods" for point in points]
    tests = "".join(TEMPLATES[point].test for point in points)
    imports = {one for point in points for one in TEMPLATES[point].imports.split()} | {"PluginHandle", *bases}
    distribution = "-".join(words).lower()
    given = {
        "name": name,
        "module": module,
        "klass": klass,
        "bases": _bases(klass, bases),
        "distribution": distribution,
        "scheduler": f"{distribution}-scheduler",
        "sequence": "from collections.abc import Sequence\n" if "Sequence[" in methods else "",
        "imports": _import("policysched.plugin", imports),
        "fields": "".join(TEMPLATES[point].fields for point in points),
        "methods": methods,
        "listed": "".join(Template(TEMPLATES[point].config).substitute(name=name) for point in points),
        "steps": "\n".join(_STEPS),
    }
    tools = {"make_node", "make_pod", "scheduling"} | ({"decide"} if "decide(" in tests else set())
    tested = {**given, "imports": _import("policysched.testing", tools), "tests": Template(tests).substitute(given)}
    return {
        "pyproject.toml": _PROJECT.substitute(given),
        "README.md": _README.substitute(given),
        f"{module}.py": _MODULE.substitute(given),
        f"test_{module}.py": _TEST.substitute(tested),
        "scheduler-config.yaml": _CONFIG.substitute(given),
        "cluster.yaml": _CLUSTER,
        "pod.yaml": _POD.substitute(given),
    }


def _bases(klass: str, names: list[str]) -> str:
    """Write the base classes of a class, one per line if they are many."""
    line = f"({', '.join(names)})"
    if len(f"class {klass}{line}:") <= _LONGEST_LINE:
        return line
    return f"(\n{''.join(f'    {name},{chr(10)}' for name in names)})"


def _import(module: str, names: set[str]) -> str:
    """Write an import as linters want it: constants, classes, functions, one a line where they are many."""
    ordered = sorted(names, key=lambda name: (not name.isupper(), not name[0].isupper(), name.lower()))
    line = f"from {module} import {', '.join(ordered)}"
    if len(line) <= _LONGEST_LINE:
        return line
    return f"from {module} import (\n{''.join(f'    {name},{chr(10)}' for name in ordered)})"
