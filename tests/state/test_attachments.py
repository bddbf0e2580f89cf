"""Volumes counted by row: what is kept up to date is what a count from nothing gives, and costs what changed."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.model.objects import Pod, Stored
from policysched.model.objects.pods import AzureDisk, EphemeralSource, Volume
from policysched.state.cluster import Cluster
from policysched.state.placed.pods import pod_id
from tests.build import node
from tests.plugins.stored import attachment, claim, claiming, csi_node, owned, storage_class, volume, with_storage
from tests.work import lines

NODES = tuple(node(f"n{number}") for number in range(3))
DRIVERS = ("csi.x", "csi.y", "disk.csi.azure.com")
CLASSES = ("wait", "absent", "disks")
MANY = 200


def described(around: Cluster) -> dict[str, Any]:
    """All that is told of attached volumes, by node."""
    around.attachments.refresh()
    found: dict[str, Any] = {}
    held = around.attachments
    for name, row in sorted(around.nodes.row_of.items()):
        found[name] = {
            "counts": {driver: held.counts(driver).item(row) for driver in DRIVERS},
            "used": sorted(one for one, rows in held._rows_of.items() if row in rows),
            "error": held.errors.get(row),
        }
    return found


def loaded(there: dict[tuple[str, str], Any]) -> Cluster:
    """A cluster of these objects, each pod counted in the order in which it came."""
    around = Cluster()
    for one in there.values():
        if not isinstance(one, Pod):
            around.take(one)
    for one in there.values():
        if isinstance(one, Pod):
            around.take(one)
    return around


def any_volume(rng: random.Random) -> Stored:
    csi = {"csi": {"driver": "csi.y", "volumeHandle": f"h{rng.randrange(3)}"}}
    in_tree = {"azureDisk": {"diskName": "d", "diskURI": f"u{rng.randrange(3)}"}}
    source: Any = rng.choice((csi, in_tree, {}))
    return volume(f"v{rng.randrange(4)}", **source)


def any_claim(rng: random.Random) -> Stored:
    number = rng.randrange(6)
    to = f"v{rng.randrange(5)}" if rng.random() < 0.5 else ""
    made = claim(rng.choice((f"c{number}", f"p{number}-own")), to=to, of=rng.choice(CLASSES))
    return owned(made, any_pod(rng)) if rng.random() < 0.5 else made


def any_pod(rng: random.Random) -> Pod:
    """Draw a pod; what one of a name uses never changes."""
    number = rng.randrange(6)
    sources: dict[str, Any] = {"made": "own"} if number % 3 == 0 else {}
    if number % 2 == 0:
        sources["azure_disk"] = AzureDisk(disk_name=f"d{number}", disk_uri=f"u{number}")
    return claiming(f"p{number}", f"c{number}", f"c{number // 2}", on=f"n{number % 4}", **sources)


DRAW: tuple[Callable[[random.Random], Any], ...] = (
    any_pod,
    any_pod,
    any_claim,
    any_claim,
    any_volume,
    lambda rng: rng.choice(NODES),
    lambda rng: csi_node(f"n{rng.randrange(4)}", {"csi.x": 3}, rng.choice(("", "kubernetes.io/azure-disk"))),
    lambda rng: storage_class(rng.choice(CLASSES), provisioner=rng.choice((*DRIVERS, "kubernetes.io/azure-disk"))),
    lambda rng: attachment(f"a{rng.randrange(6)}", f"n{rng.randrange(4)}", f"v{rng.randrange(4)}", rng.choice(DRIVERS)),
)


@pytest.mark.parametrize("life", range(20))
def test_what_was_kept_is_what_a_count_from_nothing_gives(life: int) -> None:
    rng = random.Random(life)
    around = Cluster()
    there: dict[tuple[str, str], Any] = {}
    for step in range(250):
        one = rng.choice(DRAW)(rng)
        key = (type(one).__name__, one.metadata.name)
        if key in there and rng.random() < 0.4:
            around.drop(there.pop(key))
        elif isinstance(one, Pod) and key in there and rng.random() < 0.5:
            one = replace(one, metadata=replace(one.metadata, labels={"edit": str(step)}))
            del there[key]
            there[key] = one
            around.take(one)
        else:
            if isinstance(one, Pod):
                around.remove_pod(pod_id(one))
                there.pop(key, None)
            there[key] = one
            around.take(one)
        if step % 7 == 0:
            around.attachments.refresh_row(rng.randrange(3))
        if step % 5 == 0:
            assert described(around) == described(loaded(there))


def crowded(count: int) -> Cluster:
    """A node with pods that have many volumes, and as many attachments."""
    claims = [claim(f"c{number}", to=f"v{number}") for number in range(count)]
    volumes = [volume(f"v{number}", csi={"driver": "csi.x", "volumeHandle": f"h{number}"}) for number in range(count)]
    pods = [claiming(f"p{number}", *(one.metadata.name for one in claims), on="n0") for number in range(4)]
    attached = [attachment(f"a{number}", "n0", f"v{number}") for number in range(count)]
    around = with_storage(*NODES, csi_node("n0", {"csi.x": 9}), *claims, *volumes, *attached, *pods)
    around.attachments.refresh()
    return around


def takes(*objects: Stored | Pod) -> Callable[[Cluster], object]:
    return lambda around: [around.take(one) for one in objects]


def comes_and_goes(around: Cluster) -> None:
    around.take(claiming("small", "c0", on="n0"))
    around.attachments.refresh()
    around.drop(claiming("small", "c0", on="n0"))


CHANGES: dict[str, Callable[[Cluster], object]] = {
    "a pod comes": takes(claiming("small", "c0", on="n0")),
    "a pod comes and goes": comes_and_goes,
    "a claim changes": takes(claim("c0", to="v1")),
    "a volume changes": takes(volume("v0", csi={"driver": "csi.y", "volumeHandle": "other"})),
    "an attachment comes": takes(attachment("new", "n0", "v1")),
    "limits change": takes(csi_node("n0", {"csi.x": 3})),
}


@pytest.mark.parametrize("change", CHANGES)
def test_counting_costs_what_changed_however_many_volumes_the_node_has(change: str) -> None:
    def work(count: int) -> int:
        around = crowded(count)
        act = CHANGES[change]

        def counted() -> None:
            act(around)
            around.attachments.refresh()

        return lines(counted)

    assert work(4 * MANY) == work(MANY)


def test_an_edit_of_a_pod_looks_at_none_of_its_volumes() -> None:
    def work(count: int) -> int:
        around = crowded(count)
        one = claiming("many", *(f"c{number}" for number in range(count)), on="n0")
        around.take(one)
        around.attachments.refresh()

        def edited(label: str) -> None:
            around.take(replace(one, metadata=replace(one.metadata, labels={"edit": label})))
            around.attachments.refresh()

        edited("a")
        return lines(lambda: edited("b"))

    assert work(4 * MANY) == work(MANY)


def test_a_look_at_a_row_with_other_pods_runs_no_line_for_each_volume() -> None:
    def work(count: int) -> int:
        around = crowded(count)
        pods = around.pods.on_row(0)
        used, counts, error = around.attachments.counts_with(0, pods[:2])
        assert (len(used), counts, error) == (count, {"csi.x": count}, "")
        return lines(lambda: around.attachments.counts_with(0, pods[:2]))

    assert work(4 * MANY) == work(MANY)


def test_the_pod_that_came_last_of_those_with_a_fault_is_named() -> None:
    around = with_storage(*NODES, claim("a-own"), claim("b-own"), csi_node("n0", {"csi.x": 1}))
    first, second = (claiming(name, made="own", on="n0") for name in "ab")

    def named() -> str | None:
        around.attachments.refresh()
        return around.attachments.errors.get(0)

    said = "PVC default/{0}-own was not created for pod default/{0} (pod is not owner)"
    around.take(first)
    around.take(second)
    assert named() == said.format("b")
    around.take(owned(claim("b-own"), second))
    assert named() == said.format("a")
    around.take(claim("b-own"))
    assert named() == said.format("b")
    around.drop(second)
    assert named() == said.format("a")
    around.take(owned(claim("a-own"), first))
    assert named() is None


def test_stale_uses_are_taken_without_a_look_at_those_before() -> None:
    """A volume was written that 10 pods of a node name by 8,000 claims each: that took two seconds."""

    def seconds(count: int) -> float:
        claims = [claim(f"c{number}", to="v0") for number in range(count)]
        names = [one.metadata.name for one in claims]
        pods = [claiming(f"p{number}", *names, on="n0") for number in range(10)]
        around = with_storage(*NODES, storage_class("wait"), volume("v0"), *claims, *pods)
        around.attachments.refresh()
        around.take(volume("v0", csi={"driver": "csi.y", "volumeHandle": "h"}))
        begin = time.process_time()
        around.attachments.refresh()
        return time.process_time() - begin

    seconds(100)
    assert seconds(8000) < 8 * max(seconds(2000), 0.01)


@pytest.mark.parametrize("changes", [1, 50])
def test_a_change_of_a_claim_costs_the_same_beside_volumes_that_cannot_be_told(changes: int) -> None:
    def work(count: int) -> int:
        claims = [claim(f"c{number}", to="v0") for number in range(count)]
        names = [one.metadata.name for one in claims]
        pods = [claiming(f"p{number}", *names, on="n0", made="own") for number in range(4)]
        around = with_storage(*NODES, *claims, claim("p3-own"), *pods)
        around.attachments.refresh()
        assert around.attachments.errors
        for number in range(changes):
            around.take(claim(f"c{number}", to="v1"))
        return lines(around.attachments.refresh)

    assert work(4 * MANY) == work(MANY)


def test_claims_of_a_pod_that_change_together_have_it_counted_once() -> None:
    def work(count: int) -> int:
        pod = claiming("p", on="n0")
        volumes = [Volume(name=f"v{number}", ephemeral=EphemeralSource()) for number in range(count)]
        pod = replace(pod, spec=replace(pod.spec, volumes=volumes))
        others = [claim(f"p-v{number}") for number in range(count)]
        around = with_storage(*NODES, *(owned(one, pod) for one in others), pod)
        around.attachments.refresh()
        for one in others:
            around.take(one)
        return lines(around.attachments.refresh)

    assert work(4 * MANY) < 5 * work(MANY)
