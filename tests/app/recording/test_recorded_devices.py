"""Decisions about pods with resource claims are made again from a record, and the devices that claims got with them.

`POLICYSCHED_DECISIONS=5000` records as many decisions as that.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from policysched.app.configuration.profiles import NO_PLUGINS, default_profile
from policysched.app.recording import entries, writer
from policysched.app.recording.entries import Begin
from policysched.app.recording.file_format import BlockWriter, encoded, read_entries
from policysched.app.replay.what_if import what_if
from tests.app.dry_runs import policy, requiring
from tests.app.recording.device_life import GPU, DeviceLife, devices_recorded
from tests.app.recording.recorded import completed, recording, replayed
from tests.build import node
from tests.plugins.dynamic_resources.objects import allocated, claim, claiming, gpu_class, resource_slice
from tests.schedule.stand import ME

DECISIONS = int(os.environ.get("POLICYSCHED_DECISIONS", "300"))


def entries_of(*files: Path) -> list[list[Any]]:
    return [entry for path in files for entry in read_entries(path)]


def asks_for_devices(pod: Any) -> bool:
    requests = [one.get("resources", {}).get("requests", {}) for one in pod["spec"]["containers"]]
    return bool(pod["spec"].get("resourceClaims")) or any(GPU in one for one in requests)


def missing(life: DeviceLife) -> set[str]:
    """What is to become of claims and has not yet."""
    return {"create", "allocate", "reserve", "deallocate", "allocate refused"} - life.server.counts.keys()


def with_claims(folder: Path) -> int:
    """How many decisions of a record are about pods that ask for devices."""
    return sum(entry[0] == entries.DECIDED and asks_for_devices(entry[1][2]) for entry in entries_of(*folder.iterdir()))


@pytest.mark.parametrize("seed", [1, 2])
async def test_decisions_with_claims_replay_without_a_difference(tmp_path: Path, seed: int) -> None:
    life = await devices_recorded(tmp_path, DECISIONS * 3 // 2, seed, goes_on=lambda life: bool(missing(life)))
    found = replayed(tmp_path)
    assert [one.to_dict() for one in found.differences] == []
    assert (found.exit_code, found.decisions) == (0, life.recorder.decisions)
    assert with_claims(tmp_path) >= DECISIONS
    assert found.claims > DECISIONS // 10
    assert found.to_dict()["claims"] == found.claims
    counted = Counter(entry[0] for entry in entries_of(*tmp_path.iterdir()))
    assert counted[entries.ALLOCATED] >= found.claims
    assert all(counted[name] for name in (entries.RELEASED, entries.ASSUMED, entries.RESTORED))


async def test_each_file_replays_alone_with_claims_in_flight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "SMALLEST_LIMIT", 1)

    def in_flight(path: Path) -> tuple[int, int]:
        begin = next(msgspec.convert(entry[1], Begin) for entry in read_entries(path) if entry[0] == entries.BEGIN)
        return len(begin.assumed_claims), len(begin.claims_in_flight)

    def goes_on(_: DeviceLife) -> bool:
        begun = [in_flight(path) for path in sorted(tmp_path.iterdir())[:-1]]
        return not all(map(any, zip(*begun, strict=True))) or not begun

    await devices_recorded(tmp_path, DECISIONS // 3, limit=400_000, goes_on=goes_on)
    for path in tmp_path.iterdir():
        found = replayed(path)
        assert (found.differences, found.remainder) == ([], [])


async def test_claims_that_fall_back_to_what_is_stored_give_their_devices_back_in_a_replay(tmp_path: Path) -> None:
    async with recording(tmp_path, default_profile(ME), completed({"schedulerName": ME})) as stand:
        held = claim("held")
        for one in (gpu_class(), node("n1"), resource_slice("n1", "d1"), held, claim("wanted")):
            stand.scheduler.take(one)
        known = stand.scheduler.cluster.resource_claims
        known.assume(allocated(claim("held", version="2"), "n1", "d1"))
        await stand.settled(claiming("wanted", name="early"))
        assert stand.notes
        known.restore(held.key)
        await stand.settled(claiming("wanted", name="late"))
    decided = [entry[1] for entry in entries_of(*tmp_path.iterdir()) if entry[0] == entries.DECIDED]
    assert [bool(one[6][0]) for one in decided[:2]] == [False, True]
    assert [one.to_dict() for one in replayed(tmp_path).differences] == []


async def test_devices_that_come_out_otherwise_are_named(tmp_path: Path) -> None:
    await devices_recorded(tmp_path, DECISIONS // 3)
    [path] = tmp_path.iterdir()
    told = entries_of(path)
    first = next(entry for entry in told if entry[0] == entries.ALLOCATED)
    claim = first[1][1]
    [result, *_] = claim["status"]["allocation"]["devices"]["results"]
    device, result["device"] = result["device"], "d99"
    with path.open("wb") as file:
        BlockWriter(file).write([encoded(entry) for entry in told])
    [difference] = replayed(path).differences[:1]
    assert difference.what == f"devices of {claim['metadata']['namespace']}/{claim['metadata']['name']}"
    names = [one.partition(", ")[0].rpartition("/")[2] for one in (difference.recorded, difference.replayed)]
    assert names == ["d99", device]


async def test_other_policies_would_have_moved_pods_with_claims(tmp_path: Path) -> None:
    await devices_recorded(tmp_path, DECISIONS // 3)
    same = what_if([tmp_path], policies=[policy("all", **requiring("true"))], plugins=NO_PLUGINS)
    assert same.effects == ()
    asked = {
        f"{entry[1][2]['metadata']['namespace']}/{entry[1][2]['metadata']['name']}": entry[1]
        for entry in entries_of(*tmp_path.iterdir())
        if entry[0] == entries.DECIDED and asks_for_devices(entry[1][2])
    }
    placed = {key for key, told in asked.items() if told[6][0]}
    assert placed
    away = what_if([tmp_path], policies=[policy("none", **requiring("false"))], plugins=NO_PLUGINS)
    assert placed <= {one.pod for one in away.effects if str(one.effect) == "unschedulable"}
