"""Law: with a guard, the search for victims finds what trying every set of pods that may go finds.

The reference tries all sets on nodes of a few pods, where only cpu matters, and knows nothing of the search: on each
node the set that kube-scheduler's order of giving back leaves is the one whose pods, the more important one first, are
given up as late as can be. Of all nodes one of least cost is taken.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from policysched.app.configuration.profiles import default_profile
from policysched.model.objects import Pod
from policysched.model.pod_requirements import pod_priority
from policysched.plugins.default_preemption.plugin import PreemptionDetails
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.post_filter import FailedCycle, at_once, run_post_filters
from tests.build import node
from tests.plugins.preempting import low, wanted, world
from tests.rules.build import policy_set

CORES = 4
HEIGHT = 3
"""The priority of the pod that comes."""
PODS = st.tuples(
    st.sampled_from(["a", "b", "c"]),
    st.integers(0, HEIGHT),
    st.integers(1, 3),
    st.sampled_from([None, "ci", "db"]),
)
# A condition and what it says of a pod.
GUARDS: dict[str, Callable[[Pod], bool]] = {
    "true": lambda _: True,
    "false": lambda _: False,
    'victim.labels["app"] != "db"': lambda pod: pod.metadata.labels.get("app") != "db",
    'victim.labels["app"] == "ci"': lambda pod: pod.metadata.labels.get("app") == "ci",
    "victim.priority < 2": lambda pod: pod_priority(pod) < 2,
    'victim.priority == 0 or victim.labels["app"] in ["ci"]': lambda pod: (
        pod_priority(pod) == 0 or pod.metadata.labels.get("app") == "ci"
    ),
    'not (number(victim.labels["app"]) > 1)': lambda _: False,
}


def placed(described: Sequence[tuple[str, int, int, str | None]]) -> list[Pod]:
    """Make pods, leaving out those that find no room on their node any more."""
    left = dict.fromkeys("abc", CORES)
    made = []
    for minute, (on, priority, cpu, app) in enumerate(described):
        if cpu <= left[on]:
            left[on] -= cpu
            labels = {} if app is None else {"app": app}
            made.append(low(f"p{minute}", on, priority, cpu=cpu, minute=minute, labels=labels))
    return made


def cpu_of(pod: Pod) -> int:
    return int(pod.spec.containers[0].resources.requests["cpu"])


def importance(pod: Pod) -> tuple[int, str]:
    return -pod_priority(pod), pod.status.start_time or ""


def victims_on(pods: list[Pod], asked: int, may_go: Any) -> list[str] | None:
    """Try every set of pods that may go: the one that keeps the most important pods, each in its turn."""
    eligible = sorted((pod for pod in pods if pod_priority(pod) < HEIGHT and may_go(pod)), key=importance)
    free = CORES - sum(map(cpu_of, pods))

    def making_room() -> Iterator[tuple[Pod, ...]]:
        for count in range(len(eligible) + 1):
            for chosen in combinations(eligible, count):
                if free + sum(map(cpu_of, chosen)) >= asked:
                    yield chosen

    # Who stays is decided in order of importance; to stay comes before to go.
    best = min(making_room(), key=lambda chosen: [pod in chosen for pod in eligible], default=None)
    return None if best is None else [pod.metadata.name for pod in best]


@given(described=st.lists(PODS, max_size=10), asked=st.integers(2, CORES), guard=st.sampled_from(sorted(GUARDS)))
def test_search_with_a_guard_finds_what_trying_every_set_finds(
    described: list[tuple[str, int, int, str | None]], asked: int, guard: str
) -> None:
    pods = placed(described)
    of = wanted(asked, HEIGHT)
    profile = policy_set(keep={"preemption": {"require": guard}}).join(default_profile())
    decision = Engine(world(*map(node, "abc"), *pods), profile, random.Random(0)).decide(of)
    if decision.row >= 0:
        return
    result = at_once(
        run_post_filters(profile.post_filters, of, FailedCycle(decision, random.Random(0), (), profile.victim_guards))
    )
    on_node = {
        name: victims_on([pod for pod in pods if pod.spec.node_name == name], asked, GUARDS[guard]) for name in "abc"
    }
    expected = {name: victims for name, victims in on_node.items() if victims}
    if not expected:
        assert result.status is not None
        assert any(not GUARDS[guard](pod) for pod in pods if pod_priority(pod) < HEIGHT) == (
            "policy keep/preemption" in result.status.message
        )
        return
    assert isinstance(result.details, PreemptionDetails)
    found = {one.node: [pod.metadata.name for pod in one.victims] for one in result.details.choice.candidates()}
    assert found == expected
    assert result.nominated_node in found
