"""Kueue and JobSet beside policysched on a real control plane: what they admit is placed, and nothing before.

`make queues` builds both from their Go modules and plays these tests; `make test` skips them.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from typing import Final

import pytest
import yaml

from tests.controlplane.api import Json
from tests.controlplane.loading import until
from tests.controlplane.plane import ControlPlane
from tests.e2e.objects import DEFINITION, node
from tests.examples.playing import EXAMPLES
from tests.queues.installed import install_jobset, install_kueue

pytestmark = [
    pytest.mark.controlplane,
    pytest.mark.skipif(not os.environ.get("POLICYSCHED_QUEUES"), reason="builds large programs: `make queues`"),
]
QUEUE: Final = "kueue.x-k8s.io/queue-name"
GATE: Final = {"name": "kueue.x-k8s.io/admission"}
RACKS: Final = {"batch-1": "r1", "batch-2": "r2", "service-1": "r3"}
PATIENCE: Final = 60.0
"""Units: seconds."""


def example(name: str) -> Json:
    """Give the only object of a file of the example."""
    found: Json = yaml.safe_load((EXAMPLES / "queues" / name).read_text("utf-8"))
    return found


def job(name: str, count: int, **labels: str) -> Json:
    """Give the Job of the example under another name, with so many pods and further labels."""
    made = example("job.yaml")
    made["metadata"] |= {"name": name, "labels": made["metadata"]["labels"] | labels}
    made["spec"] |= {"parallelism": count, "completions": count}
    return made


def pod(name: str, **metadata: Json) -> Json:
    """Give a pod of the example's Job by itself."""
    spec = example("job.yaml")["spec"]["template"]["spec"]
    head = {"name": name, "labels": {QUEUE: "batch"} | metadata.pop("labels", {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": head | metadata, "spec": spec}


@pytest.fixture(scope="module")
def installed() -> Iterator[ControlPlane]:
    """A control plane with JobSet, Kueue, policysched, and the queue and the policy of the example."""
    with ControlPlane() as made:
        pools = {name: name.partition("-")[0] for name in RACKS}
        labels = {name: {"pool": pools[name], "rack": rack} for name, rack in RACKS.items()}
        made.load([DEFINITION, *(node(name, cpu="4", labels=labels[name]) for name in RACKS)])
        install_jobset(made)
        install_kueue(made, "batch/job", "pod", "jobset.x-k8s.io/jobset")
        run = [sys.executable, "-m", "policysched", "run", f"--kubeconfig={made.kubeconfig()}", "--leader-elect=false"]
        made.start("policysched", [*run, "--secure-port=0", "--scheduler-name=policysched"])
        for name in ("kueue.yaml", "policy.yaml"):
            made.kubectl("apply", "-f", str(EXAMPLES / "queues" / name))
        yield made


@pytest.fixture
def plane(installed: ControlPlane, request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """The same, without workloads."""
    failed = request.session.testsfailed
    yield installed
    installed.keep_logs = installed.keep_logs or request.session.testsfailed > failed
    for kind in ("jobset", "job", "pod"):
        installed.kubectl("delete", kind, "--all", "--wait=false")
    until(lambda: not installed.objects("Pod", "default"), "no pods", PATIENCE)


def nodes_of(plane: ControlPlane, prefix: str) -> list[str]:
    """Give the nodes of pods whose names begin so, an empty name for a pod without one."""
    found = [one for one in plane.objects("Pod", "default") if one["metadata"]["name"].startswith(prefix)]
    return sorted(one["spec"].get("nodeName", "") for one in found if "deletionTimestamp" not in one["metadata"])


def until_placed(plane: ControlPlane, prefix: str, count: int) -> list[str]:
    """Wait until so many pods are there and all of them have a node, and give the nodes."""

    def placed() -> list[str]:
        found = nodes_of(plane, prefix)
        return found if len(found) == count and all(found) else []

    found: list[str] = until(placed, f"{count} pods {prefix}… are placed", PATIENCE)
    return found


def is_suspended(plane: ControlPlane, kind: str, name: str) -> bool:
    return bool(plane.api.get(kind, name)["spec"].get("suspend"))


def waits_for_quota(plane: ControlPlane, owner: str) -> bool:
    """Whether Kueue says that there is no quota for a job now."""
    for one in plane.objects("Workload", "default"):
        if any(each["name"] == owner for each in one["metadata"].get("ownerReferences", ())):
            conditions = one.get("status", {}).get("conditions", ())
            return any(each["type"] == "QuotaReserved" and each["status"] == "False" for each in conditions)
    return False


def test_pods_are_placed_when_kueue_takes_their_gate_away(plane: ControlPlane) -> None:
    for number in range(5):
        plane.api.create(pod(f"p{number}"))
    until(lambda: sum(map(bool, nodes_of(plane, "p"))) == 4, "four pods are placed", PATIENCE)
    [late] = [one for one in plane.objects("Pod", "default") if not one["spec"].get("nodeName")]
    assert GATE in late["spec"]["schedulingGates"]
    assert set(nodes_of(plane, "p")) <= {"", "batch-1", "batch-2"}  # the flavor's nodes
    first = next(one for one in plane.objects("Pod", "default") if one["spec"].get("nodeName"))
    plane.api.delete("Pod", first["metadata"]["name"])
    until_placed(plane, "p", 4)


def test_group_of_pods_is_admitted_and_placed_when_all_are_there(plane: ControlPlane) -> None:
    group = {
        "labels": {"kueue.x-k8s.io/pod-group-name": "three"},
        "annotations": {"kueue.x-k8s.io/pod-group-total-count": "3"},
    }
    for name in ("g1", "g2"):
        plane.api.create(pod(name, **deepcopy(group)))
    plane.api.create(pod("alone"))
    until_placed(plane, "alone", 1)
    assert nodes_of(plane, "g") == ["", ""]
    plane.api.create(pod("g3", **group))
    until_placed(plane, "g", 3)
    for name in ("g1", "g2", "g3"):  # Kueue keeps the pods of a group until all have ended
        plane.api.patch("Pod", name, {"status": {"phase": "Succeeded"}}, part="/status")


def test_job_is_started_within_quota_and_follows_the_policy(plane: ControlPlane) -> None:
    plane.kubectl("apply", "-f", str(EXAMPLES / "queues" / "job.yaml"))
    assert Counter(until_placed(plane, "training", 4)) == {"batch-1": 2, "batch-2": 2}
    plane.api.create(job("second", 2))
    until(lambda: waits_for_quota(plane, "second"), "it waits", PATIENCE)
    assert is_suspended(plane, "Job", "second")
    plane.kubectl("delete", "job", "training")
    until_placed(plane, "second", 2)


def test_urgent_job_preempts_another_of_its_queue(plane: ControlPlane) -> None:
    plane.api.create(job("low", 3))
    until_placed(plane, "low", 3)
    plane.api.create(job("high", 2, **{"kueue.x-k8s.io/priority-class": "urgent"}))
    until_placed(plane, "high", 2)
    until(lambda: is_suspended(plane, "Job", "low") and not nodes_of(plane, "low"), "the other one is suspended")
    plane.kubectl("delete", "job", "high")
    until_placed(plane, "low", 3)


@pytest.mark.parametrize("queued", [True, False], ids=["with Kueue", "alone"])
def test_jobs_of_a_set_have_racks_of_their_own(plane: ControlPlane, *, queued: bool) -> None:
    made = example("jobset.yaml")
    if not queued:
        del made["metadata"]["labels"]
    plane.api.create(made)
    until_placed(plane, "racks", 4)
    racks = [{RACKS[name] for name in nodes_of(plane, f"racks-workers-{number}-")} for number in range(2)]
    assert [len(one) for one in racks] == [1, 1]
    assert racks[0] != racks[1]
    if queued:
        assert racks[0] | racks[1] == {"r1", "r2"}
        plane.api.create(made | {"metadata": made["metadata"] | {"name": "later"}})
        until(lambda: waits_for_quota(plane, "later"), "it waits", PATIENCE)
        assert is_suspended(plane, "JobSet", "later")
        plane.kubectl("delete", "jobset", "racks")
        until_placed(plane, "later", 4)
