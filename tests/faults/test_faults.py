"""A few faults with few pods; `make faults` plays all of them with 500, and with kube-scheduler too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.controlplane.plane import ControlPlane
from tests.e2e.objects import DEFINITION
from tests.faults import devices
from tests.faults.__main__ import CONTROLLERS
from tests.faults.device_faults import DEVICE_FAULTS, KILLS
from tests.faults.faults import FAULTS
from tests.faults.playing import play
from tests.faults.report import as_json, table
from tests.faults.scene import SHORT, Outcome
from tests.faults.schedulers import State, read_dump
from tests.faults.upgrades import UPGRADES, older_commit

pytestmark = pytest.mark.controlplane
BY_NAME = {one.name: one for one in (*FAULTS, *DEVICE_FAULTS, *UPGRADES)}
PLAYED = (
    "API server killed (SIGKILL)",
    "bind conflicts",
    "5 % of requests fail",
    "watches cut every second",
    "pods and a node deleted",
    "upgrade from v1alpha1 and back",
    "devices: API server killed (SIGKILL)",
    "devices: claims change before they are written",
    "devices: scheduler killed between allocation and binding",
)


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """A control plane of its own: its API server is killed."""
    with ControlPlane(controllers=(*CONTROLLERS, *devices.CONTROLLERS), kubelets=False) as made:
        made.load([DEFINITION])
        yield made


@pytest.mark.parametrize("name", PLAYED)
def test_fault_loses_no_pod_and_leaves_the_state_of_a_fresh_list(plane: ControlPlane, name: str) -> None:
    if BY_NAME[name] in UPGRADES and not older_commit():
        pytest.skip("the repository has no history from which to take the older version")
    outcome = play(BY_NAME[name], "policysched", plane, SHORT)
    assert outcome.holds(shares=False), outcome
    assert outcome.restarts == (KILLS if "scheduler killed" in name else 0)
    assert outcome.apart == 0


DUMPED = """I1123 01:09:00.000001 1 dumper.go:62] "Dump of cached NodeInfo" nodes=<
\tNode name: n1
\tDeleted: false
\tRequested Resources: &{MilliCPU:400 Memory:0 EphemeralStorage:0 AllowedPodNumber:0 ScalarResources:map[]}
\tAllocatable Resources:&{MilliCPU:2000}
\tScheduled Pods(number: 1):
\tname: web, namespace: default, uid: 00000000-0000-0000-0000-000000000001, phase: Pending, nominated node:\x20
\tNominated Pods(number: 1):
\tname: next, namespace: default, uid: 00000000-0000-0000-0000-000000000002, phase: Pending, nominated node: n1
\t
\t
\tNode name: n2
\tDeleted: true
\tRequested Resources: &{MilliCPU:0 Memory:0}
\tScheduled Pods(number: 0):
 >
I1123 01:09:00.000002 1 dumper.go:73] "Dump of scheduling queue" summary="activeQ:0" pods=<
\tname: next, namespace: default, uid: 00000000-0000-0000-0000-000000000002, phase: Pending, nominated node: n1
 >
"""


def test_what_kube_scheduler_dumps_is_read() -> None:
    one, two = (f"00000000-0000-0000-0000-00000000000{number}" for number in (1, 2))
    found = read_dump(DUMPED)
    assert found == State({"n1": frozenset({one})}, {"n1": 400}, frozenset({two}), frozenset({"n1"}))
    assert read_dump(DUMPED.removesuffix(" >\n")) is None
    assert found.differences(State({"n1": frozenset({one})}, {"n1": 200}, frozenset(), frozenset({"n1"}))) == 2


def test_outcome_with_a_loss_is_wrong_and_told() -> None:
    lost = Outcome("fault", "policysched", 40, lost=["p"], apart=None, right_after=1.25, kept_mib=-2.0)
    assert not lost.holds(shares=True)
    over = Outcome("fault", "kube-scheduler", 40, over=3, note="told")
    assert (over.holds(shares=True), over.holds(shares=False)) == (True, False)
    assert '"lost": [\n      "p"\n    ]' in as_json([lost, over])
    assert [list(map(str, column.cells)) for column in table([lost, over]).columns][5:8] == [
        ["–", "0"],
        ["1.2", "0.0"],
        ["-2", "0"],
    ]


CLAIM = {
    "metadata": {"name": "c", "finalizers": [devices.FINALIZER]},
    "status": {
        "allocation": {"devices": {"results": [{"pool": "n", "device": "d"}]}},
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
    },
}
POD = {
    "metadata": {"name": "p", "uid": "u"},
    "spec": {"nodeName": "n"},
    "status": {"resourceClaimStatuses": [{"name": "device", "resourceClaimName": "c"}]},
}


def test_devices_that_are_given_twice_or_for_nobody_are_named() -> None:
    assert not devices.faults_of([CLAIM], [POD])
    twin = CLAIM | {"metadata": {"name": "twin"}}
    assert "device n/d is in 2 claims" in devices.faults_of([CLAIM, twin], [POD])
    assert devices.faults_of([CLAIM], []) == ["claim c is held for nobody"]
    assert devices.faults_of([], [POD]) == ["pod p on n has no claim"]
    elsewhere = POD | {"spec": {"nodeName": "other"}}
    assert devices.faults_of([CLAIM], [elsewhere]) == ["pod p on other has devices [('n', 'd')]"]
    bare = CLAIM | {"metadata": {"name": "c"}}
    assert devices.faults_of([bare], [POD]) == [f"pod p on n has a claim without {devices.FINALIZER}"]
