"""Random scripts: a small cluster, plugins at some of their points, what they answer, and what happens meanwhile.

Scores are made so that no two nodes ever have the same total: the plugin `order` scores each node below 10, and all
others in tens. Pods come and things happen at moments of their own, off the whole seconds at which the queue works.
In some of them pods have priorities and fill the nodes, and DefaultPreemption is on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Any, Final

Script = dict[str, Any]
NAME: Final = "recorded"
"""The scheduler's name."""
POINTS: Final = (
    "preEnqueue", "preFilter", "filter", "postFilter", "preScore", "score", "reserve", "permit", "preBind", "bind",
    "postBind",
)  # fmt: skip
PREEMPTING: Final = 0.4
"""How many of the scripts have DefaultPreemption."""
CYCLES: Final = 3
"""In how many cycles of a pod plugins may have something against it."""
NO_DEEDS: Final = ("preEnqueue", "filter", "score", "normalizeScore")
"""Points at which plugins do nothing to other pods: kube-scheduler holds its queue's lock at the first one, and asks at
the others in an order that nobody promises."""
REASONS: Final = ("too small", "too far away", "not today", "no seat left")
REJECTIONS: Final = ("Unschedulable", "UnschedulableAndUnresolvable")


def scripts(seed: int, numbers: Iterable[int]) -> Iterator[Script]:
    """Make scripts."""
    for number in numbers:
        yield script(Random(f"{seed}/{number}"), f"{seed}-{number}")


def script(rng: Random, name: str) -> Script:
    """Make a script."""
    maker = _Maker(rng)
    return maker.script(name)


class _Maker:
    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.nodes = [f"n{number}" for number in range(1, rng.randint(2, 5))]
        self.pods = [f"p{number}" for number in range(1, rng.randint(2, 6))]
        self.recorders = [f"recorder-{letter}" for letter in "abc"[: rng.choice((1, 2, 2, 2, 3))]]
        self.stray = rng.choice(self.recorders)
        """The only plugin that fails on single nodes and whose scores leave their range: which of several failures is
        told depends on the order of nodes, which nobody promises."""
        self.focus = rng.sample(sorted(ANSWERS), rng.randint(1, 4))
        if "preBindPreFlight" in self.focus:
            self.focus = sorted({*self.focus, "preBind"})
        self.preempts = rng.random() < PREEMPTING
        """Whether pods have priorities and nodes hold few of them."""
        self.wants: dict[str, tuple[str, int]] = {}
        """What each pod requests of the CPU, and its priority."""

    def script(self, name: str) -> Script:
        plugins = [self.plugin(one) for one in self.recorders]
        sorts = self.rng.random() < 0.1
        if sorts:
            plugins.append({"name": "sorter", "sort": True})
        return {
            "id": name,
            "config": self.config(sorts=sorts),
            "plugins": [*plugins, self.order()],
            "steps": sorted([*self.beginning(), *self.happenings()], key=lambda step: step["at"]),
            "until": self.rng.choice((60.0, 60.0, 700.0)),
        }

    def config(self, *, sorts: bool) -> Any:
        rng = self.rng
        plugins: dict[str, Any] = {}
        if rng.random() < 0.4:  # none of the default plugins but those without which there is no profile
            plugins["multiPoint"] = {"disabled": [{"name": "*"}], "enabled": [{"name": "DefaultBinder"}]}
            plugins["multiPoint"]["enabled"] += [] if sorts else [{"name": "PrioritySort"}]
            needed = ("NodeResourcesFit", "DefaultPreemption") if self.preempts else ()
            plugins["multiPoint"]["enabled"] += [{"name": one} for one in needed]
        if sorts:
            plugins["queueSort"] = {"enabled": [{"name": "sorter"}], "disabled": [{"name": "PrioritySort"}]}
        everywhere = [one for one in self.recorders if rng.random() < 0.3]
        if everywhere:
            several = plugins.setdefault("multiPoint", {}).setdefault("enabled", [])
            several += [{"name": one, "weight": rng.randint(1, 4)} for one in everywhere]
        for point in POINTS:
            sure = self.preempts and point == "preFilter"  # it numbers the cycle, before what-ifs clone its state
            here = [one for one in self.recorders if one not in everywhere and (sure or rng.random() < 0.85)]
            rng.shuffle(here)
            plugins[point] = self.at_point(point, here, everywhere)
        return {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "percentageOfNodesToScore": 100,
            "parallelism": 16 if "preBindPreFlight" in self.focus else 1,
            "profiles": [{"schedulerName": NAME, "plugins": plugins}],
        }

    def at_point(self, point: str, here: list[str], everywhere: list[str]) -> Any:
        """List plugins at a point; recorders bind before the default binder does."""
        rng = self.rng
        if point == "bind":
            binders = [*here, *everywhere, "DefaultBinder"]
            return {"enabled": [{"name": one} for one in binders], "disabled": [{"name": "*"}]}
        if point == "score":
            listed = [{"name": one, "weight": rng.randint(1, 4)} for one in (*here, *everywhere)]
            return {"enabled": [*listed, {"name": "order", "weight": 1}], "disabled": [{"name": "*"}]}
        sure = self.preempts and point == "preFilter"
        off = [{"name": one} for one in everywhere if not sure and rng.random() < 0.1]
        off += [{"name": "DefaultPreemption"}] if point == "postFilter" and not self.preempts else []
        return {"enabled": [{"name": one} for one in here], "disabled": off}

    def order(self) -> Any:
        places = self.rng.sample(range(10), len(self.nodes) + 2)
        by_node = {node: {"score": place} for node, place in zip([*self.nodes, "n8", "n9"], places, strict=True)}
        score = {pod: [{"byNode": by_node}] * 12 for pod in self.pods}
        return {"name": "order", "plainScore": True, "answers": {"score": score}}

    def plugin(self, name: str) -> Any:
        rng = self.rng
        found: dict[str, Any] = {"name": name, "answers": {}, "takes": taking(name)}
        found |= {flag: True for flag in ("plainFilter", "plainScore") if rng.random() < 0.3}
        if self.preempts or rng.random() < 0.4:
            found["events"] = [self.event() for _ in range(rng.randint(0, 2))]
        for point in sorted({*self.focus, "score"}):
            if point == "preEnqueue" and name != self.recorders[0]:
                continue  # the plugins are asked in an order that nobody promises, until one objects
            answers = {pod: self.answers(point, found) for pod in self.pods if rng.random() < 0.6}
            found["answers"][point] = {pod: some for pod, some in answers.items() if some}
        return found

    def event(self) -> Any:
        rng = self.rng
        resource, actions = rng.choice((
            ("Node", ["Add"]), ("Node", ["UpdateNodeLabel"]), ("Node", ["Add", "UpdateNodeLabel"]),
            ("Pod", ["Delete"]), ("Pod", ["Add", "Delete"]), ("Pod", ["UpdatePodLabel"]),
        ))  # fmt: skip
        return {"resource": resource, "actions": actions, "hint": rng.choice(("", "Queue", "Skip", "Error"))}

    def answers(self, point: str, plugin: Any) -> list[Any]:
        """Make the answers in the first cycles of a pod; after them there is nothing against it."""
        rng = self.rng
        made = []
        for _ in range(rng.randint(1, CYCLES)):
            answer = ANSWERS[point](self, plugin) if rng.random() < 0.75 else {}
            if point not in NO_DEEDS and rng.random() < 0.15:
                answer["do"] = [self.deed() for _ in range(rng.randint(1, 2))]
            made.append(answer)
        return made

    def deed(self) -> Any:
        rng = self.rng
        act = rng.choice(("allow", "allow", "reject", "activate"))
        found = {"act": act, "pod": rng.choice(self.pods)}
        if act != "activate":
            found["plugin"] = rng.choice(self.recorders)
        return found | ({"message": "go away"} if act == "reject" else {})

    def status(self, *codes: str) -> Any:
        rng = self.rng
        return {"code": rng.choice(codes), "reasons": rng.sample(REASONS, rng.choice((1, 1, 1, 2)))}

    def some_nodes(self) -> list[str]:
        return self.rng.sample(self.nodes, self.rng.randint(1, len(self.nodes)))

    def beginning(self) -> list[Any]:
        steps = [{"at": 0.011, "set": written_node(name)} for name in self.nodes]
        at = 0.5173
        for pod in self.pods:
            steps.append({"at": round(at, 4), "set": self.pod(pod)})
            at += self.rng.choice((0.0041, 0.1, 0.7, 2.3))
        return steps

    def pod(self, name: str, **labels: str) -> Any:
        rng, rank = self.rng, str(self.rng.randint(1, 99)).zfill(2)
        if not self.preempts:
            return written_pod(name, "500m", 0, rank=rank, **labels)
        if name not in self.wants:
            self.wants[name] = rng.choice(("1", "2", "3")), rng.choice((0, 0, 10, 100))
        cpu, priority = self.wants[name]
        return written_pod(name, cpu, priority, rank=rank, **labels)

    def happenings(self) -> list[Any]:
        rng = self.rng
        found = []
        for number in range(rng.randint(0, 6)):
            at = round(0.7311 + number * 0.0013 + rng.randint(0, 200) / 10, 4)
            found.append({"at": at, **rng.choice(HAPPENINGS)(self)})
        gone = set()
        kept = []
        for step in sorted(found, key=lambda step: step["at"]):
            name = step.get("remove", {}).get("name") or step.get("set", {}).get("metadata", {}).get("name")
            if name in gone or (step["at"] < 8 and name in self.pods):
                continue
            gone |= {name} if "remove" in step else set()
            kept.append(step)
        return kept


def written_pod(name: str, cpu: str = "500m", priority: int = 0, **labels: str) -> Any:
    """Write a pod for the scheduler of scripts."""
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {
            "schedulerName": NAME, "priority": priority,
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}],
        },
    }  # fmt: skip


def taking(plugin: str) -> float:
    """Return how long a plugin takes at PreBind and Bind: sums of these meet no cycle, and no other sums."""
    return {"a": 0.00037, "b": 0.00041, "c": 0.00043}[plugin[-1]]


def written_node(name: str, **labels: str) -> Any:
    """Write a node."""
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "20"}
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {"allocatable": amounts, "capacity": amounts},
    }  # fmt: skip


def _on_nodes(maker: _Maker, one: Callable[[], Any]) -> Any:
    return {"byNode": {node: one() for node in maker.some_nodes()}}


def _filter(maker: _Maker, plugin: Any) -> Any:
    rng = maker.rng
    if plugin["name"] == maker.stray and rng.random() < 0.2:
        return {"byNode": {rng.choice(maker.nodes): {"code": "Error", "reasons": ["no answer"]}}}
    if rng.random() < 0.3:
        return {"byNode": {node: maker.status(*REJECTIONS) for node in maker.nodes}}
    return _on_nodes(maker, lambda: maker.status(*REJECTIONS))


def _pre_filter(maker: _Maker, _plugin: Any) -> Any:
    rng = maker.rng
    kind = rng.choice(("status", "status", "skip", "narrow", "narrow", "narrow", "empty"))
    if kind == "status":
        return maker.status(*REJECTIONS, "Pending", "Error")
    if kind == "skip":
        return {"code": "Skip"}
    return {"nodes": [] if kind == "empty" else [*maker.some_nodes(), *rng.sample(["nowhere"], rng.randint(0, 1))]}


def _score(maker: _Maker, plugin: Any) -> Any:
    rng = maker.rng
    if plugin["name"] == maker.stray and rng.random() < 0.15:
        return {"byNode": {rng.choice(maker.nodes): {"code": "Error", "reasons": ["no answer"]}}}
    if plugin["name"] == maker.stray and not plugin.get("plainScore") and rng.random() < 0.3:
        return {"byNode": {node: {"score": rng.randint(-500, 500) * 10} for node in maker.some_nodes()}}
    if plugin["name"] == maker.stray and rng.random() < 0.15:
        return {"byNode": {rng.choice(maker.nodes): {"score": rng.choice((-10, 110, 1 << 40))}}}
    return _on_nodes(maker, lambda: {"score": rng.randint(0, 10) * 10})


def _normalize(maker: _Maker, plugin: Any) -> Any:
    rng = maker.rng
    if rng.random() < 0.1:
        return maker.status("Error")
    if plugin["name"] == maker.stray and rng.random() < 0.2:
        return {"byNode": {rng.choice(maker.nodes): {"score": rng.choice((-10, 110))}}}
    return {"byNode": {node: {"score": rng.randint(0, 10) * 10} for node in maker.nodes}}


def _post_filter(maker: _Maker, _plugin: Any) -> Any:
    rng = maker.rng
    found = maker.status("Success", "Unschedulable", "Unschedulable", "UnschedulableAndUnresolvable", "Error")
    if rng.random() < 0.5:
        found["nominate"] = rng.choice(["", *maker.nodes])
    return found


def _permit(maker: _Maker, _plugin: Any) -> Any:
    rng = maker.rng
    if rng.random() < 0.6:
        return {"code": "Wait", "timeout": rng.choice((0.5, 2.0, 7.5, 75.0))}
    return maker.status(*REJECTIONS, "Error", "Pending")


def _binding(maker: _Maker, *codes: str) -> Any:
    found = maker.status(*codes) if maker.rng.random() < 0.8 else {}
    return found | ({"pause": maker.rng.choice((0.3, 1.7, 6.1))} if maker.rng.random() < 0.3 else {})


_PRE_FLIGHT: Final = {True: ("Skip",), False: ("Skip", "Skip", "Skip", "Error", "Unschedulable")}
"""Without failures where pods wait at Permit: kube-scheduler goes on to wait for such a pod in its next attempt."""


def _pre_flight(maker: _Maker, _plugin: Any) -> Any:
    found = {} if maker.rng.random() < 0.6 else maker.status(*_PRE_FLIGHT["permit" in maker.focus])
    return found | ({"allowParallel": True} if maker.rng.random() < 0.7 else {})


ANSWERS: Final[dict[str, Callable[[_Maker, Any], Any]]] = {
    "preEnqueue": lambda maker, _: maker.status(*REJECTIONS, "Error"),
    "preFilter": _pre_filter,
    "filter": _filter,
    "postFilter": _post_filter,
    "preScore": lambda maker, _: {"code": "Skip"} if maker.rng.random() < 0.6 else maker.status("Error", *REJECTIONS),
    "score": _score,
    "normalizeScore": _normalize,
    "reserve": lambda maker, _: maker.status(*REJECTIONS, "Error", "Pending"),
    "permit": _permit,
    "preBindPreFlight": _pre_flight,
    "preBind": lambda maker, _: _binding(maker, *REJECTIONS, "Error"),
    "bind": lambda maker, _: _binding(maker, "Success", "Success", "Skip", "Error", "Unschedulable"),
    "postBind": lambda maker, _: {"do": [maker.deed()]},
}
"""What plugins may answer, by point."""
HAPPENINGS: Final[tuple[Callable[[_Maker], Any], ...]] = (
    lambda maker: {"set": written_node(maker.rng.choice(("n8", "n9")))},
    lambda maker: {"set": written_node(maker.rng.choice(maker.nodes), colour=maker.rng.choice(("red", "blue")))},
    lambda maker: {"remove": {"kind": "Pod", "name": maker.rng.choice(maker.pods)}},
    lambda maker: {"set": maker.pod(maker.rng.choice(maker.pods), colour=maker.rng.choice(("red", "blue")))},
    lambda maker: {"do": maker.deed()},
    lambda maker: {"do": maker.deed()},
)
"""What may happen in the cluster."""
