"""The demo of a policy: create, edit, break and delete the policy while pods are created, and show each decision.

The demo runs the real scheduler on a sandbox. A dry-run on the objects of the sandbox explains each decision right
before the pod is created.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Protocol

from rich.console import RenderableType
from rich.text import Text

from policysched.app.demo.scheduled_sandbox import ScheduledSandbox, scheduled_sandbox
from policysched.app.dry_run.tables import plain_table
from policysched.app.report_table import short_names
from policysched.model.policy import API_VERSION, KIND
from policysched.sandbox import sandbox_nodes
from policysched.visible import visible

Object = dict[str, Any]
NEXT_STEPS: Final = (
    "\nNext steps:",
    "   Tutorial: run `policysched example tutorial`, read docs/start/tutorial.md",
    "   First policy in a cluster: docs/run/install.md",
    "   Documentation: https://policysched.github.io/policysched/",
)
"""The last lines that each demo prints: commands to try next."""
BROKEN: Final = 'node.labels["disk"] = "ssd"'
_PENDING: Final = "web-hdd"
POLICY: Final = "web-on-ssd"
_DISKS: Final = {"piworknode001": "ssd", "piworknode002": "ssd", "piworknode003": "hdd"}


class Narrator(Protocol):
    """Interface of the object that prints the texts, tables and progress of a demo."""

    def say(self, text: str) -> None:
        """Print lines."""

    def show(self, part: RenderableType) -> None:
        """Print a line, or an empty line and a table."""

    def working(self, text: str) -> None:
        """Show progress on a terminal; the next output replaces it."""


def demo_nodes() -> list[Object]:
    """Return a tainted control-plane node and three workers with the label `disk`."""
    names = ("master", *_DISKS)
    nodes = sandbox_nodes(len(names))
    for node, name in zip(nodes, names, strict=True):
        node["metadata"]["name"] = name
        node["metadata"]["labels"]["kubernetes.io/hostname"] = name
        if name in _DISKS:
            node["metadata"]["labels"]["disk"] = _DISKS[name]
        else:
            node["spec"]["taints"] = [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]
    return nodes


def demo_policy(favourite: str = "piworknode001", require: str = 'node.labels["disk"] == "ssd"') -> Object:
    """Return the policy: web pods require a node with an SSD and prefer one node."""
    cases = [f'node.name == "{favourite}" → 80', "else → 20"]
    spec = {
        "podSelector": {"matchLabels": {"app": "web"}},
        "filters": [{"name": "ssd", "require": require, "message": "no SSD"}],
        "scores": [{"name": "favourite", "cases": cases}],
    }
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": POLICY}, "spec": spec}


def demo_pod(name: str, node_selector: dict[str, str] | None = None) -> Object:
    """Return a web pod."""
    requests = {"cpu": "250m", "memory": "256Mi"}
    container = {"name": "web", "image": "nginx:1.29", "resources": {"requests": requests}}
    spec: Object = {"schedulerName": "policysched", "containers": [container]}
    if node_selector:
        spec["nodeSelector"] = node_selector
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "web"}}, "spec": spec}


async def play(narrator: Narrator) -> None:
    """Run the demo of a policy.

    Raises:
        PolicyschedError: a step did not finish in time.
    """
    narrator.working("starting an in-memory API server and the scheduler")
    async with scheduled_sandbox(demo_nodes()) as on:
        narrator.say("An in-memory API server has 4 nodes: a tainted control plane, two workers with SSD, one without.")
        await _Demo(on, narrator).play()
    for line in NEXT_STEPS:
        narrator.say(line)


class _Demo:
    def __init__(self, on: ScheduledSandbox, narrator: Narrator) -> None:
        self._sandbox = on
        self._narrator = narrator
        self._count = 0

    async def play(self) -> None:
        await self._apply("1. Create a policy: web pods require an SSD and prefer piworknode001.", demo_policy())
        await self._place(4)
        edited = demo_policy("piworknode002")
        await self._apply("2. Edit the policy while the scheduler runs: web pods prefer piworknode002.", edited)
        await self._place(3)
        broken = demo_policy("piworknode003", BROKEN)
        await self._apply("3. Make a mistake in the policy: the last good generation stays in force.", broken)
        await self._place(2)
        await self._create_pending()
        await self._delete()

    async def _apply(self, title: str, policy: Object) -> None:
        self._narrator.say(f"\n{title}")
        spec = policy["spec"]
        self._narrator.say(f"   require {spec['filters'][0]['require']}")
        self._narrator.say(f"   score   {', '.join(spec['scores'][0]['cases'])}")
        status = (await self._sandbox.apply(policy))["status"]
        for one in status.get("diagnostics", ()):
            self._narrator.say(f"   status: {one['severity']}[{one['code']}] {one['field']}: {one['message']}")
        active = next(one for one in status["conditions"] if one["type"] == "Active")
        self._narrator.say(f"   status: Active {active['status']}, {active['message']}")

    async def _place(self, count: int) -> None:
        decisions = []
        for _ in range(count):
            self._count += 1
            pod = demo_pod(f"web-{self._count}")
            record = self._sandbox.explain(pod)
            decisions.append((pod["metadata"]["name"], await self._bound(pod), record))
        for part in decision_parts(decisions):
            self._narrator.show(part)

    async def _bound(self, pod: Object) -> str:
        name = pod["metadata"]["name"]
        self._narrator.working(f"waiting for pod {name}")
        await self._sandbox.api.create(pod)
        return await self._sandbox.runs_on(name)

    async def _create_pending(self) -> None:
        self._narrator.say("\n4. Create a web pod that requires disk=hdd: no node fits, and an event has the reasons.")
        await self._sandbox.api.create(demo_pod(_PENDING, {"disk": "hdd"}))
        note = await self._sandbox.failure_of(_PENDING)
        self._narrator.say(f"   {_PENDING}: FailedScheduling: {note}")

    async def _delete(self) -> None:
        self._narrator.say("\n5. Delete the policy: the scheduler tries the pod again.")
        await self._sandbox.api.delete(KIND, POLICY)
        node = await self._sandbox.runs_on(_PENDING)
        self._narrator.say(f"   {_PENDING} runs on {node}")


def decision_parts(decisions: Sequence[tuple[str, str, Object]]) -> Iterator[RenderableType]:
    """Return a table of pods with the node and its scores, and the results of the policy rules.

    Args:
        decisions: For each pod its name, its node and its decision record.
    """
    plugins = _plugins(record["scores"][node] for _, node, record in decisions)
    rows = [
        [pod, node, *(str(record["scores"][node].get(plugin, "")) for plugin in plugins)]
        for pod, node, record in decisions
    ]
    table = plain_table(None, ["pod", "node", *plugins], rows, range(2, 2 + len(plugins)))
    table.sums_up, table.short = plugins, short_names(plugins)
    yield table
    for text in dict.fromkeys(one for _, node, record in decisions for one in _rule_results(record, node)):
        yield Text(visible(f"rule {text}"))


def _plugins(scores: Iterable[Object]) -> list[str]:
    """Return the plugins that gave a selected node a score other than 0."""
    given: dict[str, bool] = {}
    for one in scores:
        for plugin, score in one.items():
            given[plugin] = given.get(plugin, False) or score != 0
    return [plugin for plugin, some in given.items() if some]


def _rule_results(record: Object, node: str) -> Iterator[str]:
    for policy in record.get("rules", {}).values():
        for rule, rejected in policy.get("filters", {}).items():
            yield f"{rule} rejects {', '.join(sorted(rejected))}"
        for rule, values in policy.get("scores", {}).items():
            yield f"{rule} gives {node} {values[node]}"
