"""Random scripts about preemption with pod groups: full nodes, and pods of higher priority that come.

The pods that are placed have priorities of their own, so that no two choices of victims cost the same.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from random import Random
from typing import Any

from tests.recorder.group_scripts import (
    REQUIRED,
    ZONE,
    Script,
    Thing,
    constrained,
    place_by_topology,
    written_group,
    written_member,
    written_script,
)
from tests.recorder.scripts import written_node

HIGH = 100_000
"""A priority above that of all placed pods."""


def preemption_scripts(
    seed: int, numbers: Iterable[int], *, of_groups: bool, in_zones: bool = False
) -> Iterator[Script]:
    """Make scripts; each has random numbers of its own.

    Args:
        seed: Where the random numbers begin.
        numbers: Which scripts to make.
        of_groups: Whether groups preempt others; else single pods do.
        in_zones: Whether most groups that preempt are constrained to one zone.
    """
    for number in numbers:
        name = f"{seed}-{'groups' if of_groups else 'pods'}-{number}"
        script = _Maker(Random(name)).script(name, of_groups=of_groups)
        if in_zones:
            _constrain(script, Random(f"{name}-zones"))
        yield script


def _constrain(script: Script, rng: Random) -> None:
    place_by_topology(script, dict(zip("ab", rng.sample(range(101), 2), strict=True)))
    for step in script["steps"]:
        thing = step["set"]
        if thing["kind"] == "PodGroup" and thing["metadata"]["name"].startswith("p") and rng.random() < 0.8:
            thing["spec"] |= constrained(ZONE)


class _Maker:
    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.nodes = [f"n{number}" for number in range(1, rng.choice((1, 2, 3, 4, 5, 8)) + 1)]
        self.left = dict.fromkeys(self.nodes, 4)
        self.labels = [f"l{number}" for number in range(3)]
        self.placed = 0

    def script(self, name: str, *, of_groups: bool) -> Script:
        rng = self.rng
        groups = {one: self.group(one) for one in ("u", "v", "w")[: rng.randint(0, 3)]}
        steps: list[Any] = [{"at": 0.011, "set": self.node(one)} for one in self.nodes]
        steps += [{"at": 0.012, "set": one} for one in groups.values()]
        steps += [{"at": 0.013, "set": pod} for pod in self.residents(groups)]
        steps += [{"at": 0.014, "set": self.budget(label)} for label in self.labels if rng.random() < 0.4]
        for number in range(rng.choice((1, 1, 2))):
            at = 0.5173 + 12 * number
            coming = self.preemptors(f"p{number}", number) if of_groups else [self.preemptor(f"p{number}", None)]
            steps += [{"at": round(at + 0.0137 * place, 4), "set": one} for place, one in enumerate(coming)]
        ranks = dict(zip(self.nodes, rng.sample(range(101), len(self.nodes)), strict=True))
        return written_script(name, ranks, steps, until=40.0)

    def node(self, name: str) -> Thing:
        made: Thing = written_node(name, **{ZONE: self.rng.choice("ab")})
        amounts = {"cpu": "4", "memory": "16Gi", "pods": "20"}
        made["status"] = {"allocatable": amounts, "capacity": amounts}
        return made

    def group(self, name: str) -> Thing:
        mode: Thing | None = self.rng.choice(({"all": {}}, {"all": {}}, {"single": {}}, None))
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

    def preemptors(self, name: str, number: int) -> list[Thing]:
        """Write a group and its members; no later group preempts an earlier one, whose pods are all alike."""
        rng = self.rng
        size = rng.choice((1, 2, 2, 3, 4, 6))
        priority = 20_000 if number else rng.choice((HIGH, HIGH, 20_000))
        least = rng.choice((None, 1, size, size, max(size - 1, 1)))
        like = self.preemptor(f"{name}-0", name)
        like["spec"]["priority"] = priority
        if rng.random() < 0.1:
            like["spec"]["preemptionPolicy"] = "Never"
        members = [copy.deepcopy(like) for _ in range(size)]
        for place, one in enumerate(members):
            one["metadata"]["name"] = f"{name}-{place}"
            if rng.random() < 0.3:
                one["spec"]["containers"][0]["resources"]["requests"]["cpu"] = rng.choice(("1", "2", "4"))
        return [*members, written_group(name, least, priority=priority)]

    def preemptor(self, name: str, group: str | None) -> Thing:
        rng = self.rng
        spec: Thing = {"priority": rng.choice((HIGH, HIGH, 20_000))}
        peers = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": rng.choice(self.labels)}}}
        if rng.random() < 0.2:
            spec["affinity"] = {"podAntiAffinity": {REQUIRED: [peers]}}
        elif rng.random() < 0.2:
            spec["topologySpreadConstraints"] = [{"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **peers}]
        return written_member(name, group, rng.choice(("1", "2", "3", "4")), **spec)
