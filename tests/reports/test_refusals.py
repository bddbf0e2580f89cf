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


CPU = 'LimitRange "ratio": cpu max limit to request ratio per Container is 2, but '
MEMORY = 'LimitRange "ratio": memory max limit to request ratio per Pod is 1500m, but '


@pytest.mark.parametrize(
    ("resources", "refusals"),
    [
        ("requests: {cpu: 1, memory: 64Mi}, limits: {cpu: 2, memory: 96Mi}", []),
        ("requests: {cpu: 500m, memory: 64Mi}, limits: {cpu: 2, memory: 128Mi}",
         [f"{CPU}provided ratio is 4.000000", f"{MEMORY}provided ratio is 2.000000"]),
        ("limits: {memory: 64Mi}", [f"{CPU}no request is specified or request is 0"]),
        ("requests: {cpu: 1, memory: 64Mi}",
         [f"{CPU}no limit is specified or limit is 0", f"{MEMORY}no limit is specified or limit is 0"]),
        ("requests: {cpu: 0, memory: 1}, limits: {cpu: 1, memory: 1}",
         [f"{CPU}no request is specified or request is 0"]),
    ],
)  # fmt: skip
def test_the_ratio_of_limits_and_requests_is_noted(
    command: Command, tmp_path: Path, resources: str, refusals: list[str]
) -> None:
    pod = tmp_path / "pod.yaml"
    pod.write_text((POD % ("team-a", "", "1")).replace("requests: {cpu: 1, memory: 64Mi}", resources))
    done = command("dry-run", "--cluster", "nodes3.yaml", "--cluster", "m8-ratio.yaml", "--pod", str(pod))
    assert done.problem.splitlines() == [f"{REFUSED}{one}" for one in refusals]
