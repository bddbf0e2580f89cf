"""What policies of a profile keep for a pod belongs to who asked."""

from __future__ import annotations

import random

from policysched.app.configuration.profiles import default_profile
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.record import make_record
from tests.build import cluster, node, pod
from tests.rules.build import filtering, policy_set, scoring


def test_engines_of_one_profile_decide_alike() -> None:
    in_zone = 'sum(node.pods.count(peer.labels["team"] == "t")) by node.labels["zone"]'
    policies = policy_set(
        p={"filters": filtering(f"({in_zone}) < 2")},
        q={"scores": scoring(f'100 - 10 * ({in_zone}) - if(pod.labels["team"] == "t", 1, 0)')},
    )
    profile = policies.join(default_profile(off=("ImageLocality",)))
    around = cluster(*(node(f"n{number}", labels={"zone": str(number % 3)}) for number in range(9)))
    one, other = (Engine(around, profile, random.Random(0)) for _ in range(2))
    waiting = pod(labels={"team": "t"})
    for number in range(7):
        assert make_record(one.decide(waiting)) == make_record(other.decide(waiting))
        around.set_pod(pod(f"p{number}", on=f"n{number}", labels={"team": "t"}))
    assert one.decide(waiting).feasible_count == 0
