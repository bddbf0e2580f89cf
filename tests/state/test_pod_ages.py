"""Rows with a pod whose age changed are noted as long as somebody holds the ages."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec.structs import replace

from policysched.framework import Aspect, Cluster
from policysched.model.objects import Pod
from tests.build import cluster, node, pod


def born(name: str, on: str, second: int) -> Pod:
    made = pod(name, on=on)
    created = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return replace(made, metadata=replace(made.metadata, creation_timestamp=created))


def changed(made: Cluster, to: float) -> list[int]:
    position = made.journal.position
    made.time.move(to)
    found = made.journal.since(position)
    assert found is not None
    rows, aspects = found
    return sorted(rows[(aspects & int(Aspect.AGE)) != 0].tolist())


def test_rows_are_noted_when_a_pod_s_age_changes() -> None:
    made = cluster(node("a"), node("b"), born("p", "a", 1000), born("q", "b", 1003), pod("r", on="b"))
    made.time.move(1005.0)
    held = made.pod_ages.held()
    assert made.pod_ages.held() is held
    assert [changed(made, time) for time in (1009.5, 1010.0, 1012.0, 1013.5)] == [[], [0], [], [1]]
    made.set_pod(born("late", "a", 1014))
    assert changed(made, 1015.0) == [0]
    assert [changed(made, time) for time in (1019.0, 1020.0, 1021.0)] == [[], [0], []]
    assert changed(made, 1005.0) == [0, 1]
    del held
    assert changed(made, 2000.0) == []


def test_ages_of_pods_without_a_creation_time_never_change() -> None:
    made = cluster(node("a"), pod("p", on="a"))
    held = made.pod_ages.held()
    assert held.exact(10.0).tolist() == [float("-inf")]
    assert changed(made, 1000.0) == []
