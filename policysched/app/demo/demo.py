"""The demo: a policy is applied, edited, broken and deleted while pods arrive, and every placement is explained.

It plays on a sandbox with the real scheduler. Each decision is explained by a dry-run over the sandbox's objects just
before its pod is made, so the table shows what the scheduler saw.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Protocol

from rich.console import RenderableType
from rich.text import Text

from policysched.app.demo.scheduled_sandbox import ScheduledSandbox, scheduled_sandbox
from policysched.app.dry_run.tables import plain_table
from policysched.framework import PREFIX
from policysched.model.policy import API_VERSION, KIND
from policysched.sandbox import sandbox_nodes
from policysched.visible import visible

Object = dict[str, Any]
BROKEN: Final = 'node.labels["disk"] = "ssd"'
RULES: Final = "rules that decided"
WIDE: Final = 130
_HELD: Final = "web-hdd"
POLICY: Final = "web-on-ssd"
_DISKS: Final = {"piworknode001": "ssd", "piworknode002": "ssd", "piworknode003": "hdd"}


class Narrator(Protocol):
    """Who tells the audience."""

    width: int
    """How many characters a line of the audience has."""

    def say(self, text: str) -> None:
        """Tell what happens."""

    def show(self, part: RenderableType) -> None:
        """Show a table."""

    def working(self, text: str) -> None:
        """Tell what is awaited, where that can be taken back."""


def demo_nodes() -> list[Object]:
    """Make the tainted control plane and three workers with a disk label."""
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
    """Make the policy: web pods need an SSD and like one node best."""
    cases = [f'node.name == "{favourite}" → 80', "else → 20"]
    spec = {
        "podSelector": {"matchLabels": {"app": "web"}},
        "filters": [{"name": "ssd", "require": require, "message": "no SSD"}],
        "scores": [{"name": "favourite", "normalize": "Max", "cases": cases}],
    }
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": POLICY}, "spec": spec}


def demo_pod(name: str, node_selector: dict[str, str] | None = None) -> Object:
    """Make a web pod."""
    requests = {"cpu": "250m", "memory": "256Mi"}
    container = {"name": "web", "image": "nginx:1.29", "resources": {"requests": requests}}
    spec: Object = {"schedulerName": "policysched", "containers": [container]}
    if node_selector:
        spec["nodeSelector"] = node_selector
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "web"}}, "spec": spec}


async def play(narrator: Narrator) -> None:
    """Play the demo.

    Raises:
        PolicyschedError: something did not happen in time.
    """
    narrator.working("starting an API server in memory and a scheduler")
    async with scheduled_sandbox(demo_nodes()) as on:
        narrator.say("An API server in memory has 4 nodes: a tainted control plane, two with an SSD and one without.")
        await _Demo(on, narrator).play()


class _Demo:
    def __init__(self, on: ScheduledSandbox, narrator: Narrator) -> None:
        self._sandbox = on
        self._narrator = narrator
        self._count = 0

    async def play(self) -> None:
        await self._apply("1. A policy: web pods need an SSD, and piworknode001 is the favourite.", demo_policy())
        await self._place(4)
        edited = demo_policy("piworknode002")
        await self._apply("2. The policy is edited while the scheduler runs: piworknode002 is the favourite.", edited)
        await self._place(3)
        broken = demo_policy("piworknode003", BROKEN)
        await self._apply("3. A broken edit: the last good generation stays in force.", broken)
        await self._place(2)
        await self._hold_back()
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
        self._narrator.say("")
        for part in decision_parts(decisions, self._narrator.width):
            self._narrator.show(part)

    async def _bound(self, pod: Object) -> str:
        name = pod["metadata"]["name"]
        self._narrator.working(f"waiting for pod {name}")
        await self._sandbox.api.create(pod)
        return await self._sandbox.until(lambda: self._node_of(name), f"a node for pod {name}")

    async def _node_of(self, name: str) -> str | None:
        pod = await self._sandbox.api.get("Pod", name)
        return pod["spec"].get("nodeName") if pod["status"].get("phase") == "Running" else None

    async def _hold_back(self) -> None:
        self._narrator.say("\n4. A web pod asks for a node with disk=hdd: the policy holds it back, an event says so.")
        await self._sandbox.api.create(demo_pod(_HELD, {"disk": "hdd"}))
        note = await self._sandbox.until(self._failure, f"an event about pod {_HELD}")
        self._narrator.say(f"   {_HELD}: FailedScheduling: {note}")

    async def _failure(self) -> str | None:
        for event in await self._sandbox.api.list("Event"):
            about = event.get("involvedObject") or {}
            if event.get("reason") == "FailedScheduling" and about.get("name") == _HELD:
                return str(event.get("message", ""))
        return None

    async def _delete(self) -> None:
        self._narrator.say("\n5. The policy is deleted: the pod that it held back is free.")
        await self._sandbox.api.delete(KIND, POLICY)
        node = await self._sandbox.until(lambda: self._node_of(_HELD), f"a node for pod {_HELD}")
        self._narrator.say(f"   {_HELD} runs on {node}")


def decision_parts(decisions: Sequence[tuple[str, str, Object]], width: int) -> Iterator[RenderableType]:
    """Show pods with their node, the scores it got and the rules that decided.

    Args:
        decisions: A pod's name, the node it landed on, and its decision record.
        width: Where a line is shorter than a wide table, the rules stand below it.
    """
    columns = _columns(record["scores"][node] for _, node, record in decisions)
    headings = ["pod", "node"]
    headings += [one.removeprefix(PREFIX) if one.startswith(PREFIX) else _spaced(one) for one in columns]
    rows = [
        [pod, node, *(str(record["scores"][node].get(plugin, "")) for plugin in columns)]
        for pod, node, record in decisions
    ]
    rules, numbers = [_decided(record, node) for _, node, record in decisions], range(2, 2 + len(columns))
    if width >= WIDE:
        rows = [[*row, said] for row, said in zip(rows, rules, strict=True)]
        yield plain_table(None, [*headings, RULES], rows, numbers)
        return
    yield plain_table(None, headings, rows, numbers)
    for text in dict.fromkeys(rules):
        yield Text(visible(f"{RULES}: {text}"))


def _columns(scores: Iterable[Object]) -> list[str]:
    """Name the plugins that gave a node anything; a column of zeros tells nothing."""
    given: dict[str, bool] = {}
    for one in scores:
        for plugin, score in one.items():
            given[plugin] = given.get(plugin, False) or score != 0
    return [plugin for plugin, some in given.items() if some]


def _spaced(name: str) -> str:
    """Put spaces into a plugin's name, so that a narrow table can fold it."""
    return "".join(f" {letter}" if letter.isupper() and index else letter for index, letter in enumerate(name))


def _decided(record: Object, node: str) -> str:
    said = []
    for policy in record.get("rules", {}).values():
        for rule, kept_out in policy.get("filters", {}).items():
            said.append(f"{rule}: not {', '.join(sorted(kept_out))}")
        for rule, values in policy.get("scores", {}).items():
            said.append(f"{rule}: {values[node]} for {node}")
    return "; ".join(said)
