"""Helpers that test plugins and policies without a cluster.

    record = decide(MyPlugin, make_pod("web"), [make_node("n1"), make_node("n2")])
    assert record["selected"] == "n2"

    with scheduling(MyPlugin, nodes=[make_node("n1")]) as scheduler:
        assert scheduler.schedule(make_pod("web")).node == "n1"

    assert run("policies/").passed  # tests of policies, see docs/write/testing.md

All helpers run the engine of `policysched run`, without a network; time is a `FakeClock`. `objects` makes nodes and
pods, `plugin` runs one plugin, `policies` runs tests of policies. `scheduler` is a whole scheduler on the event loop of
`fake_time`, with `recorded_writes` in place of an API server. No other package imports this one.
"""

from __future__ import annotations

from policysched.app.policy_tests.running import PolicyTestResult
from policysched.app.policy_tests.suite import PolicyTestRun
from policysched.testing.fake_time import FakeClock
from policysched.testing.objects import make_node, make_pod, read_pod
from policysched.testing.plugin import connected_handle, decide
from policysched.testing.policies import run
from policysched.testing.scheduler import PodOutcome, TestedScheduler, scheduling

__all__ = [
    "FakeClock",
    "PodOutcome",
    "PolicyTestResult",
    "PolicyTestRun",
    "TestedScheduler",
    "connected_handle",
    "decide",
    "make_node",
    "make_pod",
    "read_pod",
    "run",
    "scheduling",
]
