"""Victims of pod groups are restored as if all members were evaluated for each of them, however few are."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest
from msgspec import structs

from policysched.model.objects import Affinity, ContainerPort, Node, Pod, TopologySpreadConstraint
from policysched.schedule.groups.simulation import _Simulation
from tests.build import node, pod
from tests.groups import group
from tests.plugins.inter_pod_affinity.build import away, label, near, term
from tests.plugins.pod_topology_spread.build import hard
from tests.plugins.preempting import world
from tests.schedule.groups.parts import RELEASES, of_group
from tests.schedule.groups.test_group_preemption import HIGH, WHOLE, placed, preempt
from tests.schedule.groups.test_group_preemption import of_group as of_other_group

KEYS = ("host", "zone")
EVALUATIONS = ("reaches", "_row_fits", "_row_fits_reached")
"""The methods of a simulation that spare the evaluation of all members."""


@dataclass(frozen=True, slots=True)
class Case:
    """A cluster full of pods of lower priority, and the members of a group."""

    chance: random.Random

    def nodes(self) -> list[Node]:
        labels = ({"host": f"n{number}", "zone": "yz"[number % 2]} for number in range(4))
        return [node(of["host"], allocatable={"cpu": 6, "pods": 9}, labels=of) for of in labels]

    def olds(self) -> list[Pod]:
        of_whole_group = self.chance.choice((0.0, 0.3))
        made = [self._old(number) for number in range(24)]
        return [of_other_group(one, "u") if self.chance.random() < of_whole_group else one for one in made]

    def members(self) -> list[Pod]:
        return [one for letter in "ab" for one in self._alike(letter)]

    def _old(self, number: int) -> Pod:
        ports = self._ports() if number < 4 else ()
        priority, rule = self.chance.randint(0, 3), self._rule()
        on, labels = f"n{number % 4}", self._labels()
        return placed(f"o{number}", on, priority, cpu=1, minute=number, labels=labels, affinity=rule, ports=ports)

    def _alike(self, letter: str) -> list[Pod]:
        """Members of one pod class."""
        one = of_group(
            pod(
                requests={"cpu": self.chance.randint(1, 6)},
                labels=self._labels(),
                affinity=self._rule(),
                ports=self._ports(),
                topology_spread_constraints=self._spread(),
                **HIGH,
            )
        )
        names = (f"{letter}{number}" for number in range(self.chance.randint(1, 3)))
        return [structs.replace(one, metadata=structs.replace(one.metadata, name=name, uid=name)) for name in names]

    def _labels(self) -> dict[str, str]:
        return {"app": self.chance.choice("xyz")}

    def _ports(self) -> tuple[ContainerPort, ...]:
        return (ContainerPort(container_port=80, host_port=80),) if self.chance.random() < 0.2 else ()

    def _rule(self) -> Affinity | None:
        repelled, attracted = (term(label("app", app), self.chance.choice(KEYS)) for app in "xy")
        return self.chance.choices((None, away(repelled), near(attracted)), (6, 3, 1))[0]

    def _spread(self) -> list[TopologySpreadConstraint]:
        key, skew = self.chance.choice(KEYS), self.chance.randint(1, 3)
        return [hard(key, skew, label("app", "x"))] if self.chance.random() < 0.3 else []


@pytest.mark.parametrize("seed", range(200))
def test_victims_are_those_of_the_evaluation_of_all_members(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(f"restorations/{seed}")
    case, release = Case(chance), chance.choice(RELEASES)
    nodes, olds, pods = case.nodes(), case.olds(), case.members()
    of, groups = group(least=1, **HIGH), [group("u", 1, disruption_mode=WHOLE)]
    found = preempt(world(*nodes, *olds, groups=groups, release=release), of, pods)
    for name in EVALUATIONS:
        monkeypatch.setattr(_Simulation, name, lambda *_: True)
    every = preempt(world(*nodes, *olds, groups=groups, release=release), of, pods)
    assert [one.metadata.name for one in found.victims] == [one.metadata.name for one in every.victims]
    assert (found.nominated, found.status) == (every.nominated, every.status)
