"""Random scripts about preemption with pod groups: full nodes, and pods of higher priority that come.

The pods that are placed have priorities of their own, so that no two choices of victims cost the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random
from typing import Any

from tests.recorder.group_scripts import REQUIRED, ZONE, Script, Thing, written_group, written_member, written_script
from tests.recorder.scripts import written_node

HIGH = 100_000
"""A priority above that of all placed pods."""


def preemption_scripts(seed: int, numbers: Iterable[int]) -> Iterator[Script]:
    """Make scripts; each has random numbers of its own."""
    for number in numbers:
        name = f"{seed}-preemption-{number}"
        yield _Maker(Random(name)).script(name)


class _Maker:
    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.nodes = [f"n{number}" for number in range(1, rng.choice((1, 2, 3, 4, 5, 8)) + 1)]
        self.left = dict.fromkeys(self.nodes, 4)
        self.labels = [f"l{number}" for number in range(3)]
        self.placed = 0

    def script(self, name: str) -> Script:
        rng = self.rng
        groups = {one: self.group(one) for one in ("u", "v", "w")[: rng.randint(0, 3)]}
        steps: list[Any] = [{"at": 0.011, "set": self.node(one)} for one in self.nodes]
        steps += [{"at": 0.012, "set": one} for one in groups.values()]
        steps += [{"at": 0.013, "set": pod} for pod in self.residents(groups)]
        steps += [{"at": 0.014, "set": self.budget(label)} for label in self.labels if rng.random() < 0.4]
        for number in range(rng.choice((1, 1, 2))):
            steps.append({"at": 0.5173 + 7 * number, "set": self.preemptor(f"p{number}")})
        ranks = dict(zip(self.nodes, rng.sample(range(101), len(self.nodes)), strict=True))
        return written_script(name, ranks, steps, until=40.0)

    def node(self, name: str) -> Thing:
        made: Thing = written_node(name, **{ZONE: self.rng.choice("ab")})
        amounts = {"cpu": "4", "memory": "16Gi", "pods": "20"}
        made["status"] = {"allocatable": amounts, "capacity": amounts}
        return made

    def group(self, name: str) -> Thing:
        mode = self.rng.choice(({"all": {}}, {"all": {}}, {"single": {}}, None))
        spec: Thing = {"priority": self.rng.choice((10, 20, 30)), **({} if mode is None else {"disruptionMode": mode})}
        return written_group(name, 1, **spec)

    def residents(self, groups: dict[str, Thing]) -> Iterator[Thing]:
        """Fill the nodes with pods, alone and of groups."""
        rng = self.rng
        for node in self.nodes:
            while self.left[node] > 0:
                cpu = rng.randint(1, min(2, self.left[node]))
                self.left[node] -= cpu
                self.placed += 1
                group = rng.choice((None, *groups))
                own = rng.choice((10, 20, 30)) * 1000 + self.placed
                priority = own if group is None else groups[group]["spec"]["priority"]
                pod = written_member(f"old{self.placed}", group, str(cpu), priority=priority, nodeName=node)
                pod["metadata"]["labels"] = {"app": rng.choice(self.labels)}
                pod["status"] = {"startTime": f"1999-12-31T00:{self.placed:02}:00Z", "phase": "Running"}
                yield pod

    def budget(self, label: str) -> Thing:
        allowed = self.rng.choice((0, 0, 1, 2))
        return {
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": label, "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": label}}},
            "status": {"disruptionsAllowed": allowed},
        }  # fmt: skip

    def preemptor(self, name: str) -> Thing:
        rng = self.rng
        spec: Thing = {"priority": rng.choice((HIGH, HIGH, 20_000))}
        peers = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": rng.choice(self.labels)}}}
        if rng.random() < 0.2:
            spec["affinity"] = {"podAntiAffinity": {REQUIRED: [peers]}}
        elif rng.random() < 0.2:
            spec["topologySpreadConstraints"] = [{"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **peers}]
        return written_member(name, None, rng.choice(("1", "2", "3", "4")), **spec)
