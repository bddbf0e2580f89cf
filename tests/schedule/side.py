"""Comparison of engines that share a cluster."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable

from policysched.app.configuration.profiles import default_profile
from policysched.framework import Cluster
from policysched.model.objects import Pod
from policysched.rules.compile.policy import CompiledPolicy
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.record import Record, make_record


class Side:
    """An engine over a shared cluster, with its own policies."""

    def __init__(self, cluster: Cluster, off: Collection[str]) -> None:
        self._profile = default_profile("default-scheduler", off=off)
        self.engine = Engine(cluster, self._profile, random.Random(0))
        self.policies = PolicySet()

    def use(self, policies: Iterable[CompiledPolicy]) -> Side:
        self.policies = PolicySet.of(policies, self.policies)
        self.engine.use(self.policies.join(self._profile))
        return self

    def record(self, of: Pod) -> Record:
        """Return the record of a decision without the randomly selected node."""
        decision = self.engine.decide(of)
        made = make_record(decision, self.policies.active)
        assert made.pop("selected", None) in {*made.get("best", ()), None}
        return made | {"rejectors": decision.rejectors() if decision.row < 0 else None}
