"""The Python functions follow the Kubernetes minor that `kube_version` names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import policysched
from policysched.errors import UsageError
from policysched.framework.out_of_tree.handle import PluginHandle
from policysched.model.release import DEFAULT, RELEASES
from policysched.testing import connected_handle, decide, make_node, make_pod, run, scheduling
from tests.app.configuration.test_reading import HEAD
from tests.app.plan.test_plan import ours
from tests.app.why.test_why import bound

NARROWING = {
    **HEAD,
    "profiles": [{"schedulerName": "policysched", "plugins": {"preFilter": {"enabled": [{"name": "NodeName"}]}}}],
}
"""A configuration that only the kube-scheduler of 1.37 and later accepts, because NodeName acts at PreFilter there."""
CLUSTER = [*ours([make_node("n1"), bound("a", "n1", 1)])]
TESTS = {"cluster": {"nodes": [{"name": "n1"}]}, "tests": [{"given": "a pod", "expect": {"best": ["n1"]}}]}


class Anything:
    """A plugin that accepts every node."""

    def filter(self, state: Any, pod: Any, node: Any) -> None:
        """Accept the node."""


def handle_of(kube_version: str) -> PluginHandle:
    with scheduling(Anything, nodes=[make_node("n1")], kube_version=kube_version) as tested:
        return tested.handle


CALLS: dict[str, Callable[[str], Any]] = {
    "dry_run": lambda minor: policysched.dry_run(CLUSTER, make_pod("p"), kube_version=minor),
    "why": lambda minor: policysched.why(CLUSTER, "a", kube_version=minor),
    "plan": lambda minor: policysched.plan(CLUSTER, kube_version=minor),
    "run": lambda minor: run(TESTS, kube_version=minor),
    "decide": lambda minor: decide(Anything, make_pod("p"), [make_node("n1")], kube_version=minor),
    "connected_handle": lambda minor: connected_handle(kube_version=minor),
    "scheduling": handle_of,
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("minor", ["1.34", "1.37.9", "latest", ""])
def test_other_minors_are_refused_with_the_known_ones(name: str, minor: str) -> None:
    with pytest.raises(UsageError, match=r"is not one of auto, 1\.36, 1\.37, 1\.38"):
        CALLS[name](minor)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("minor", [*RELEASES, "auto"])
def test_every_known_minor_is_accepted(name: str, minor: str) -> None:
    assert CALLS[name](minor) is not None


@pytest.mark.parametrize("minor", [*RELEASES, "auto"])
def test_cluster_and_record_have_the_release(minor: str) -> None:
    release = DEFAULT if minor == "auto" else RELEASES[minor]
    records = [CALLS["dry_run"](minor).record, CALLS["decide"](minor), *CALLS["run"](minor).results[0].records]
    assert [one["reference"] for one in records] == [release.minor] * 3
    for name in ("connected_handle", "scheduling"):
        assert CALLS[name](minor)._cluster.release is release


@pytest.mark.parametrize("name", ["why", "plan"])
def test_configuration_is_read_as_that_minor_reads_it(name: str) -> None:
    def ask(minor: str) -> None:
        if name == "why":
            policysched.why(CLUSTER, "a", config=NARROWING, kube_version=minor)
        else:
            policysched.plan(CLUSTER, config=NARROWING, kube_version=minor)

    ask("1.37")
    with pytest.raises(UsageError, match="preFilter"):
        ask("1.36")
