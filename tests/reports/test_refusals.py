"""A dry-run notes why an API server would refuse the pod because of other objects of the cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Command

POD = """kind: Pod
metadata: {name: web, namespace: %s}
spec:
  %scontainers:
  - {name: c, image: i, resources: {requests: {cpu: %s, memory: 64Mi}}}
"""
REFUSED = "note: an API server refuses the pod: "
LIMITED = f'{REFUSED}LimitRange "small": '
QUOTA = 'note: ResourceQuota "none" of namespace team-a is not evaluated'


@pytest.mark.parametrize(
    ("namespace", "more", "cpu", "notes"),
    [
        ("team-a", "", "1", [QUOTA]),
        ("team-a", "", "2", [
            f"{LIMITED}maximum cpu usage per Container is 1, but request is 2",
            f"{LIMITED}maximum cpu usage per Pod is 1500m, but request is 2",
            QUOTA,
        ]),
        ("team-a", "initContainers: [{name: a, image: i, restartPolicy: Always}]\n  ", "1", [
            f"{LIMITED}maximum cpu usage per Pod is 1500m, but limit is 2", QUOTA,
        ]),
        ("team-b", "", "2", []),
        ("team-b", "priority: 100\n  ", "2", [
            f"{REFUSED}spec.priority is 100, but the priority without a priorityClassName is 0",
        ]),
        ("team-b", "priority: 100\n  priorityClassName: high\n  ", "2", [
            f'{REFUSED}spec.priority is 100, but the priority of PriorityClass "high" is 1000',
        ]),
        ("team-b", "priority: 1000\n  priorityClassName: high\n  ", "2", []),
        ("team-b", "priority: 5\n  priorityClassName: unknown\n  ", "2", []),
    ],
)  # fmt: skip
def test_refusals_of_other_objects_are_noted(
    command: Command, tmp_path: Path, namespace: str, more: str, cpu: str, notes: list[str]
) -> None:
    pod = tmp_path / "pod.yaml"
    pod.write_text(POD % (namespace, more, cpu))
    done = command("dry-run", "--cluster", "m8-limits.yaml", "--pod", str(pod))
    assert done.code == 0
    assert done.problem.splitlines() == notes
