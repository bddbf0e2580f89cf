"""Cases in which a pod fits nowhere, or hardly anywhere, and others would have to go.

Knows nothing of how a case is answered. A case is one of the other generators' with few nodes; here nodes are filled up
until the pod does not fit, and everybody gets what preemption looks at: priorities, start times, disruption budgets,
terminations, nominations. No two pods of a node began at the same time, because kube-scheduler's sort is not stable.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias

from . import configs, selectors
from .generate import single
from .relations import relation
from .storage import storage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from random import Random

Case: TypeAlias = dict[str, Any]
Thing: TypeAlias = dict[str, Any]

MAKERS = {"alone": single, "related": relation, "volumes": storage}
SHARES = [3, 6, 4]
MOST_NODES = 30
LOWEST, HIGHEST = -2_147_483_648, 1_000_000_000
PRIORITIES = [LOWEST, -1000, -1, 0, 0, 1, 100, 100, 1000, HIGHEST]
AMOUNTS = {"cpu": (100, "{}m"), "memory": (256, "{}Mi"), "example.com/gpu": (1, "{}")}
"""What pods ask for in steps, and how that is spelled."""
CONDITIONS = [
    {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"},
    {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"},
    {"type": "DisruptionTarget", "status": "False", "reason": "PreemptionByScheduler"},
]
WAYS = ["pods", "amounts", "amounts", "ports", "apart", "spread"]
"""How nodes are filled up."""
GROUP = {"matchLabels": {"app": "web"}}


def preempting(rng: Random, name: str) -> Case:
    """Generate one case; `themes` tells what it is about and is no part of the question."""
    about = rng.choices([*MAKERS], SHARES)[0]
    case = MAKERS[about](rng, name)
    while sum(thing["kind"] == "Node" for thing in case["objects"]) > MOST_NODES:
        case = MAKERS[about](rng, name)
    case = json.loads(json.dumps(case))  # nothing in it is shared any more, so that it can be changed in one place
    crowd = Crowd(rng, case)
    crowd.settle()
    if about == "volumes" and rng.random() < 0.6:
        crowd.share_claims()
        crowd.fill(rng.choice([0.7, 1.0, 1.0]))
    else:
        crowd.fill(rng.choice([0.0, 0.0, 0.1, 0.4]))
    case["objects"] += [*crowd.nominees(), *crowd.budgets()]
    crowd.part_ports()
    crowd.rank()
    case["config"] = configuration(rng, case["config"])
    return {**case, "preempt": True, "themes": [about, *case["themes"]]}


def cases(seed: int, indices: Iterable[int], random: type[Random]) -> Iterator[Case]:
    """Generate cases, each from a random source of its own."""
    for index in indices:
        yield preempting(random(f"{seed}/preempting/{index}"), f"{seed}-p{index}")


def configuration(rng: Random, config: Thing) -> Thing | None:
    """Take all default plugins in half of the cases, and now and then leave preemption out."""
    if rng.random() < 0.5:
        return None
    profile = config["profiles"][0]
    if rng.random() < 0.03:
        profile["plugins"].setdefault("postFilter", {})["disabled"] = [{"name": "DefaultPreemption"}]
    elif rng.random() < 0.1:
        args = {"minCandidateNodesPercentage": rng.choice([0, 100]), "minCandidateNodesAbsolute": rng.choice([100, 30])}
        configs.put_arguments(profile, "DefaultPreemption", args)
    return config


def is_steady(case: Case) -> bool:
    """Whether no two pods of a node began at the same time, those that have not begun included."""
    placed = [thing for thing in case["objects"] if thing["kind"] == "Pod" and thing.get("spec", {}).get("nodeName")]
    begun = {(pod["spec"]["nodeName"], pod.get("status", {}).get("startTime")) for pod in placed}
    return len(begun) == len(placed)


class Crowd:
    """The pods and nodes of a case, as they are changed."""

    def __init__(self, rng: Random, case: Case) -> None:
        self._rng = rng
        self._case = case
        self._pending: Thing = case["pod"]
        self._nodes: list[Thing] = [thing for thing in case["objects"] if thing["kind"] == "Node"]
        self._placed: dict[str, list[Thing]] = {node["metadata"]["name"]: [] for node in self._nodes}
        for thing in case["objects"]:
            if thing["kind"] == "Pod" and thing["spec"]["nodeName"] in self._placed:
                thing.setdefault("status", {})
                self._placed[thing["spec"]["nodeName"]].append(thing)
        self._pending.setdefault("status", {})
        self._pods = [pod for pods in self._placed.values() for pod in pods]
        self._narrow = False
        """Whether a single victim or two make room on most nodes."""

    def settle(self) -> None:
        """Put pods on nodes that have few, and give all pods labels."""
        least = self._rng.choice([0, 1, 2, 4])
        for home, pods in self._placed.items():
            for _ in range(max(0, least - len(pods))):
                pod = self._make(f"filler-{len(self._pods)}")
                pod["spec"]["nodeName"] = home
                pods.append(pod)
                self._pods.append(pod)
                self._case["objects"].append(pod)
        for pod in self._pods:
            pod["metadata"].setdefault("labels", selectors.labels(self._rng))

    def share_claims(self) -> None:
        """Let the pod use claims that others use already."""
        used = [
            volume["persistentVolumeClaim"]
            for pod in self._pods
            for volume in pod["spec"].get("volumes", ())
            if "persistentVolumeClaim" in volume
        ]
        for volume in self._pending["spec"].get("volumes", ()):
            if used and "persistentVolumeClaim" in volume:
                volume["persistentVolumeClaim"] = dict(self._rng.choice(used))

    def fill(self, spared: float) -> None:
        """Leave no room on nodes: no more pods, not enough of something, or somebody there whom the pod cannot be with.

        Args:
            spared: the share of the nodes that stay as they are.
        """
        ways = ["pods"] if "resources" in self._case["themes"] else WAYS
        chosen = {self._rng.choice(ways), self._rng.choice(ways)}
        self._narrow = self._rng.random() < 0.4
        amounts = self._rng.sample(sorted(AMOUNTS), self._rng.choice([1, 1, 2, 3])) if "amounts" in chosen else []
        for amount in amounts:
            self._ask(amount)
        if "ports" in chosen:
            self._listen(self._pending)
        if "apart" in chosen:
            self._keep_apart()
        if "spread" in chosen:
            self._spread()
        for node in self._nodes:
            if self._rng.random() >= spared:
                self._fill_node(node, self._rng.choice(sorted(chosen)), amounts)

    def nominees(self) -> list[Thing]:
        """Make pods that wait for a node that was promised to them, some of other schedulers."""
        found = []
        for number in range(self._rng.choice([0, 0, 0, 1, 2, 5])):
            pod = self._make(f"promised-{number}")
            pod["metadata"]["labels"] = selectors.labels(self._rng)
            pod["status"]["nominatedNodeName"] = self._rng.choice([*self._placed, "absent"])
            if self._rng.random() < 0.3:
                pod["spec"]["schedulerName"] = "another"
            if self._rng.random() < 0.2:
                self._listen(pod)
            found.append(pod)
        self._pods += found
        return found

    def budgets(self) -> list[Thing]:
        """Make disruption budgets, which may say something of the same pods."""
        spaces = sorted({pod["metadata"].get("namespace", "default") for pod in self._pods}) or ["default"]
        found = [self._budget(f"budget-{number}", spaces) for number in range(self._rng.choice([0, 0, 1, 2, 3, 5]))]
        labelled = [pod["metadata"] for pod in self._pods if pod["metadata"].get("labels")]
        if labelled and self._rng.random() < 0.3:
            label, value = self._rng.choice(sorted(self._rng.choice(labelled)["labels"].items()))
            for number in range(2):
                shared = self._budget(f"shared-{number}", spaces)
                shared["spec"]["selector"] = {"matchLabels": {label: value}}
                found.append(shared)
        return found

    def part_ports(self) -> None:
        """Leave each host port of a node to one pod: of two kube-scheduler takes the port for free once one is away."""
        for pods in self._placed.values():
            taken: set[tuple[str, int]] = set()
            for pod in pods:
                for container in _containers(pod):
                    if not taken.isdisjoint(_ports(pod, container)):
                        del container["ports"]
                taken.update(port for container in _containers(pod) for port in _ports(pod, container))

    def rank(self) -> None:
        """Give every pod a priority and a start time; some are about to go."""
        classes = [
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": f"class-{value}"},
                "value": value,
            }
            for value in {*PRIORITIES}
        ]
        levels = self._rng.sample(PRIORITIES, self._rng.choice([1, 1, 2, 3, 5]))
        for pod in self._pods:
            self._prioritise(pod, self._rng.choice(levels))
        times = self._rng.choice([0, 2, 40])
        for pods in self._placed.values():
            self._begin(pods, times)
        own = self._rng.choice([*levels, *[max(levels) + 1] * (3 * len(levels))])
        self._prioritise(self._pending, own)
        policy = self._rng.choices([None, "PreemptLowerPriority", "Never"], [90, 7, 3])[0]
        if policy is not None:
            self._pending["spec"]["preemptionPolicy"] = policy
        if self._rng.random() < 0.15:
            self._pending["status"]["nominatedNodeName"] = self._rng.choice([*self._placed, "absent"])
            self._leave(self._placed.get(self._pending["status"]["nominatedNodeName"], ()))
        self._case["objects"] += classes

    def _make(self, name: str) -> Thing:
        spaces = [pod["metadata"].get("namespace", "default") for pod in [self._pending, *self._pods[:3]]]
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": self._rng.choice(spaces), "uid": f"uid-{name}"},
            "spec": {"containers": [{"name": "app", "image": "app:1"}]},
            "status": {},
        }

    def _ask(self, amount: str) -> None:
        """Let all pods ask for some of a thing, and remember how much."""
        step, spelled = AMOUNTS[amount]
        for pod in [*self._pods, self._pending]:
            low = 1 if pod is self._pending else 0
            count = self._rng.choice([low, 1, 1, 2, 3, 5]) * step
            requests = _first(pod).setdefault("resources", {}).setdefault("requests", {})
            requests[amount] = spelled.format(count)
            pod.setdefault("asked", {})[amount] = count

    def _listen(self, pod: Thing) -> None:
        _first(pod)["ports"] = [{"containerPort": 7000, "hostPort": 7000, "protocol": "TCP"}]

    def _keep_apart(self) -> None:
        """Let the pod stay away from a group of others, by host or by zone, or them from it."""
        self._pending["metadata"].setdefault("labels", {})["app"] = self._rng.choice(["web", "db"])
        term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": GROUP}
        if self._rng.random() < 0.2:
            term["topologyKey"] = "topology.kubernetes.io/zone"
        affinity = {**self._pending["spec"].get("affinity", {})}
        affinity["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        self._pending["spec"]["affinity"] = affinity

    def _spread(self) -> None:
        """Let the pod go where few of a group are, of more places than there are."""
        self._pending["metadata"].setdefault("labels", {})["app"] = "web"
        constraint = {
            "maxSkew": self._rng.choice([1, 1, 1, 2]),
            "topologyKey": self._rng.choice(["kubernetes.io/hostname", "topology.kubernetes.io/zone"]),
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": GROUP,
            "minDomains": 1 + MOST_NODES,
        }
        self._pending["spec"]["topologySpreadConstraints"] = [constraint]

    def _fill_node(self, node: Thing, way: str, amounts: list[str]) -> None:
        pods = [pod for pod in self._placed[node["metadata"]["name"]] if not _finished(pod)]
        offered = _offered(node)
        if way == "ports" and pods:
            for pod in self._rng.sample(pods, min(len(pods), self._rng.choice([1, 1, 2]))):
                self._listen(pod)
        elif way in {"apart", "spread"} and pods:
            for pod in self._rng.sample(pods, min(len(pods), self._rng.choice([1, 1, 2]))):
                pod["metadata"]["labels"]["app"] = "web"
        elif way == "amounts":
            self._lack(offered, self._rng.choice(amounts), pods)
        else:
            offered["pods"] = str(len(pods))
            return
        offered["pods"] = str(len(pods) + 5)

    def _lack(self, offered: Thing, amount: str, pods: list[Thing]) -> None:
        """Offer less of a thing than all want together, seldom too little for the pod alone."""
        own = self._pending["asked"][amount]
        used = sum(pod["asked"][amount] for pod in pods)
        missing = 1 if self._narrow else self._rng.randint(1, max(1, used))
        offered[amount] = AMOUNTS[amount][1].format(max(own if self._rng.random() < 0.95 else 0, used + own - missing))

    def _budget(self, name: str, spaces: list[str]) -> Thing:
        space = self._rng.choice(spaces)
        names = [pod["metadata"]["name"] for pod in self._pods]
        status: Thing = {"disruptionsAllowed": self._rng.choice([0, 0, 0, 1, 1, 2, 4])}
        if names and self._rng.random() < 0.3:
            going = self._rng.sample(names, min(len(names), self._rng.choice([1, 3, 8])))
            status["disruptedPods"] = dict.fromkeys(going, "2026-01-01T00:00:00Z")
        spec = {} if (found := selectors.selector(self._rng)) is None else {"selector": found}
        metadata = {"name": name, "namespace": space}
        return {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": metadata,
            "spec": spec,
            "status": status,
        }

    def _prioritise(self, pod: Thing, priority: int) -> None:
        pod.pop("asked", None)
        if priority in PRIORITIES and self._rng.random() < 0.2:
            pod["spec"]["priorityClassName"] = f"class-{priority}"
        elif priority or self._rng.random() < 0.8:
            pod["spec"]["priority"] = priority

    def _begin(self, pods: list[Thing], times: int) -> None:
        """Let pods have begun, no two at the same time, one at most not yet; some are about to go.

        Args:
            pods: those of one node.
            times: how many times there are besides as many as pods.
        """
        minutes = self._rng.sample(range(len(pods) + times), len(pods))
        late = self._rng.random() < 0.1
        for pod, minute in zip(pods, minutes, strict=True):
            if not late or minute != max(minutes):
                pod["status"]["startTime"] = f"2026-01-01T{minute // 60:02}:{minute % 60:02}:00Z"
            if self._rng.random() < 0.06:
                self._leave([pod])

    def _leave(self, pods: Iterable[Thing]) -> None:
        for pod in pods:
            if self._rng.random() < 0.7:
                pod["metadata"]["deletionTimestamp"] = "2026-01-01T12:00:00Z"
                pod["metadata"]["deletionGracePeriodSeconds"] = 30
            if self._rng.random() < 0.7:
                kept = [one for one in pod["status"].get("conditions", ()) if one["type"] != "DisruptionTarget"]
                pod["status"]["conditions"] = [*kept, dict(self._rng.choice(CONDITIONS))]


def _containers(pod: Thing) -> list[Thing]:
    return [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]


def _ports(pod: Thing, container: Thing) -> list[tuple[str, int]]:
    """Return the host ports of a container: on its host's network all that it has are ones."""
    shared = pod["spec"].get("hostNetwork", False)
    ports = (
        (port, port.get("hostPort") or (port["containerPort"] if shared else 0)) for port in container.get("ports", ())
    )
    return [(port.get("protocol", "TCP"), number) for port, number in ports if number]


def _first(pod: Thing) -> Thing:
    container: Thing = pod["spec"]["containers"][0]
    return container


def _finished(pod: Thing) -> bool:
    return pod["status"].get("phase") in {"Succeeded", "Failed"}


def _offered(node: Thing) -> Thing:
    status = node["status"]
    offered: Thing = status["allocatable"] if "allocatable" in status else status["capacity"]
    return offered
