"""What a pod takes of volumes and claims on its way to a node, told to a server that acts as the test says."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.framework import ApiError, AssumedPod, Cluster, Code, Handle, PreFlight, Status
from policysched.model.objects import PersistentVolume, PersistentVolumeClaim, Pod
from policysched.plugins.volumes.reservation import POLL, SLOWEST_POLL, VolumeReservation, bound_to
from policysched.plugins.volumes.volume_binding import VolumeBinding
from tests.build import node
from tests.plugins.stored import DONE, ZONE, claim, claiming, storage_class, volume, with_storage

PLUGIN = VolumeBinding(bind_timeout=10)
SELECTED = "volume.kubernetes.io/selected-node"
STATIC = storage_class("static", provisioner="kubernetes.io/no-provisioner")
NODES = (node("a", labels={ZONE: "a"}), node("b", labels={ZONE: "b"}))
Act = Callable[[Cluster], None]


class Server:
    """Takes writes as an API server would, and lets the volume controllers act while a binding waits."""

    def __init__(self, around: Cluster, *acts: Act) -> None:
        self.around = around
        self.acts = list(acts)
        self.written: list[tuple[str, str]] = []
        self.errors: dict[str, ApiError] = {}
        self.seconds = 0.0

    @property
    def handle(self) -> Handle:
        made: Any = self
        return Handle(made, made, self.pause, {}, lambda _: None)

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    async def pause(self, seconds: float) -> None:
        self.seconds += seconds
        if self.acts:
            self.acts.pop(0)(self.around)

    async def claim_volume(self, one: PersistentVolume) -> str:
        assert one.spec.claim_ref is not None
        return self._take(one.metadata.name, one.spec.claim_ref.name)

    async def select_node(self, one: PersistentVolumeClaim, name: str) -> str:
        return self._take(one.metadata.name, name)

    def _take(self, name: str, text: str) -> str:
        if name in self.errors:
            raise self.errors[name]
        self.written.append((name, text))
        return "2"


def reserved(around: Cluster, of: Pod, name: str = "a") -> VolumeReservation:
    assumed = AssumedPod(of, name, around)
    around.assume(of, around.nodes.row_of[name])
    assert PLUGIN.reserve(assumed) is None
    made = assumed.state.read(PLUGIN.name)
    assert isinstance(made, VolumeReservation)
    return made


def settled(one: PersistentVolumeClaim, to: str, version: str = "3") -> PersistentVolumeClaim:
    """A claim that the controllers have bound."""
    metadata = replace(one.metadata, resource_version=version, annotations={**one.metadata.annotations, **DONE})
    return replace(one, metadata=metadata, spec=replace(one.spec, volume_name=to))


def named(one: PersistentVolume, by: PersistentVolumeClaim, version: str = "2") -> PersistentVolume:
    """A volume as the server stores it once it names a claim."""
    bound = bound_to(one, by)
    return replace(bound, metadata=replace(bound.metadata, resource_version=version))


def put(*objects: Any) -> Act:
    def act(around: Cluster) -> None:
        for one in objects:
            around.set_stored(one)

    return act


WAITING, FREE = claim(of="static"), volume(of="static")
POD = claiming("p", "c")


def static() -> Cluster:
    return with_storage(*NODES, WAITING, FREE, STATIC)


# Assuming


def test_an_existing_volume_is_taken_at_once() -> None:
    around = static()
    made = reserved(around, POD)
    assumed = around.storage.volumes.get("v")
    assert assumed is not None
    assert assumed.spec.claim_ref is not None
    reference = assumed.spec.claim_ref
    assert (reference.kind, reference.namespace, reference.name, reference.uid) == (
        "PersistentVolumeClaim", "default", "c", "u-c",
    )  # fmt: skip
    assert assumed.metadata.annotations == {"pv.kubernetes.io/bound-by-controller": "yes"}
    assert around.storage.volumes.stored("v") == FREE
    made.undo()
    assert around.storage.volumes.get("v") == FREE


def test_the_next_pod_does_not_get_a_volume_that_is_taken() -> None:
    around = static()
    around.set_stored(claim("d", of="static"))
    made = reserved(around, POD)
    other = claiming("q", "d")
    state: Any = PLUGIN.prepare_filter(other, around)
    assert PLUGIN.filter(state, slice(0, 2)).all()
    made.undo()
    state = PLUGIN.prepare_filter(other, around)
    assert not PLUGIN.filter(state, slice(0, 2)).any()


def test_a_claim_to_be_provisioned_is_marked_with_the_node() -> None:
    around = with_storage(*NODES, claim(), storage_class())
    made = reserved(around, POD, "b")
    assumed = around.storage.claims.get("default/c")
    assert assumed is not None
    assert assumed.metadata.annotations == {SELECTED: "b"}
    made.undo()
    assert around.storage.claims.get("default/c") == claim()


def test_a_volume_that_was_meant_for_the_claim_gets_no_mark_of_the_controller() -> None:
    meant = volume(of="static", claimRef={"namespace": "default", "name": "c"})
    bound = bound_to(meant, WAITING)
    assert (bound.metadata.annotations, bound.spec.claim_ref and bound.spec.claim_ref.uid) == ({}, "u-c")


def test_nothing_is_held_where_nothing_is_left_to_bind() -> None:
    around = with_storage(*NODES, claim(to="v"), volume())
    for one in (POD, claiming("q")):
        assumed = AssumedPod(one, "a", around)
        assert PLUGIN.reserve(assumed) is None
        assert PLUGIN.pre_bind_pre_flight(assumed) == PreFlight(works=False, parallel=True)
        PLUGIN.unreserve(assumed)


def test_claims_that_cannot_be_used_any_more_are_a_status() -> None:
    answer = PLUGIN.reserve(AssumedPod(POD, "a", with_storage(*NODES)))
    assert isinstance(answer, Status)
    assert answer.reasons == ('persistentvolumeclaim "c" not found',)


def test_volumes_that_are_out_of_step_are_given_back() -> None:
    around = static()
    made = VolumeReservation(POD, "a", around, 10)
    newer = replace(FREE, metadata=replace(FREE.metadata, name="w", resource_version="9"))
    around.set_stored(newer)
    stale = replace(newer, metadata=replace(newer.metadata, resource_version="1"))
    answer = made.assume([(FREE, WAITING), (stale, WAITING)], [])
    assert isinstance(answer, Status)
    assert (answer.code, answer.message) == (Code.ERROR, '"w" is out of sync (stored: 9, assume: 1)')
    assert around.storage.volumes.get("v") == FREE


# Telling the server, and waiting


async def test_a_binding_is_written_and_waited_for() -> None:
    around = static()
    server = Server(around, put(named(FREE, WAITING)), put(settled(WAITING, "v")))
    assert await reserved(around, POD).pre_bind(server.handle) == ""
    assert (server.written, server.acts) == ([("v", "c")], [])


async def test_versions_of_thousands_of_digits_are_compared() -> None:
    around, long = static(), "9" * 5000
    server = Server(around, put(named(FREE, WAITING, long)), put(settled(WAITING, "v", long)))
    assert await reserved(around, POD).pre_bind(server.handle) == ""


async def test_a_provisioned_claim_is_waited_for_until_its_volume_is_known() -> None:
    around = with_storage(*NODES, claim(), storage_class())
    marked = claim(metadata={"annotations": {SELECTED: "a"}, "resourceVersion": "2"})
    server = Server(around, put(marked), put(settled(marked, "new")), put(volume("new")))
    assert await reserved(around, POD).pre_bind(server.handle) == ""
    assert (server.written, server.acts) == ([("c", "a")], [])


async def test_what_is_known_already_is_not_written_again() -> None:
    around = with_storage(*NODES, WAITING, named(FREE, WAITING, "1"), STATIC)
    server = Server(around, put(settled(WAITING, "v")))
    assert await reserved(around, POD).pre_bind(server.handle) == ""
    assert server.written == []


async def test_waiting_ends_after_the_timeout() -> None:
    around = static()
    server = Server(around)
    assert await reserved(around, POD).pre_bind(server.handle) == "binding volumes: context deadline exceeded"
    assert 9.9 < server.seconds < 10.2


async def test_volumes_that_do_not_come_are_looked_for_less_and_less_often() -> None:
    around = static()
    looks: list[float] = []

    def look(_: Cluster) -> None:
        looks.append(server.seconds)

    server = Server(around, *[look] * 1000)
    await reserved(around, POD).pre_bind(server.handle)
    between = [later - earlier for earlier, later in zip([0.0, *looks], looks, strict=False)]
    assert between[0] == POLL
    assert max(between) == pytest.approx(SLOWEST_POLL)
    assert len(looks) < 2 * server.seconds


async def test_what_is_as_it_was_is_not_judged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[float] = []
    judge = VolumeReservation._problem

    def counting(reservation: VolumeReservation) -> str:
        judged.append(server.seconds)
        return judge(reservation)

    monkeypatch.setattr(VolumeReservation, "_problem", counting)
    around = static()
    nothing: list[Act] = [lambda _: None] * 5
    server = Server(around, *nothing, put(replace(FREE, metadata=replace(FREE.metadata, labels={"a": "b"}))))
    await reserved(around, POD).pre_bind(server.handle)
    assert len(judged) == 2
    assert server.seconds >= 10


async def test_a_server_that_refuses_ends_the_binding() -> None:
    around = static()
    server = Server(around)
    server.errors["v"] = ApiError(409, "Conflict", "the object has been modified")
    assert await reserved(around, POD).pre_bind(server.handle) == "the object has been modified"


def gone(kind: Any) -> Act:
    def act(around: Cluster) -> None:
        around.remove_stored(kind)

    return act


@pytest.mark.parametrize(
    ("act", "problem"),
    [
        (gone(FREE), 'failed to check binding: persistentvolumes "v" not found'),
        (gone(WAITING), 'failed to check binding: persistentvolumeclaims "default/c" not found'),
        (put(volume(of="static", metadata={"resourceVersion": "5"})), 'ClaimRef got reset for pv "v"'),
        (
            put(named(volume(of="static", nodes={ZONE: ["b"]}), WAITING)),
            'pv "v" node affinity doesn\'t match node "a": no matching NodeSelectorTerms',
        ),
        (lambda around: around.remove_node("a") and None, 'failed to get node "a": node "a" not found'),
        (lambda around: around.forget("default.p") and None, 'pod does not exist any more: pod "p" not found'),
    ],
)
async def test_what_makes_waiting_for_a_binding_useless(act: Act, problem: str) -> None:
    around = static()
    assert await reserved(around, POD).pre_bind(Server(around, act).handle) == f"binding volumes: {problem}"


MARKED = claim(metadata={"annotations": {SELECTED: "a"}, "resourceVersion": "2"})


@pytest.mark.parametrize(
    ("acts", "problem"),
    [
        ([gone(claim())], 'failed to check provisioning pvc: persistentvolumeclaims "default/c" not found'),
        ([put(MARKED), put(claim(metadata={"resourceVersion": "3"}))], 'provisioning failed for PVC "c"'),
        (
            [put(volume("new", nodes={ZONE: ["b"]}), settled(MARKED, "new"))],
            'pv "new" node affinity doesn\'t match node "a": no matching NodeSelectorTerms',
        ),
    ],
)
async def test_what_makes_waiting_for_provisioning_useless(acts: list[Act], problem: str) -> None:
    around = with_storage(*NODES, claim(), storage_class())
    server = Server(around, *acts)
    assert await reserved(around, POD).pre_bind(server.handle) == f"binding volumes: {problem}"
