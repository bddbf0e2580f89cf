"""Situations on a real API server: policysched, and kube-scheduler for the claims about it.

`make test` plays the situations in which the API server matters: it validates, completes or rejects a step, or splits
an object. `POLICYSCHED_SITUATIONS=all` plays all that it accepts, for both schedulers.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from functools import partial

import pytest

from policysched.app.configuration.profiles import configured_profiles
from policysched.app.running import process
from policysched.model.release import RELEASES
from tests.controlplane.plane import ControlPlane
from tests.controlplane.releases import chosen
from tests.e2e.schedulers import in_process
from tests.requeueing.control_plane import (
    Found,
    KubeScheduler,
    Stage,
    bare_plane,
    configuration_of,
    moves_in,
    profile_name,
)
from tests.requeueing.situations import Change
from tests.requeueing.test_situations import TABLE

pytestmark = pytest.mark.controlplane
SERVED = [row for row in TABLE if row.served]
ALL = os.environ.get("POLICYSCHED_SITUATIONS") == "all"
ROWS = SERVED if ALL else [row for row in SERVED if any(isinstance(step, Change) and step.part for step in row.steps)]


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with bare_plane() as made:
        yield made


def differences(found: list[Found], wanted: list[frozenset[str]]) -> list[str]:
    return [
        f"{one.claim}: {sorted(one.wakes)} in place of {sorted(wakes)}, by {sorted(one.events)}"
        for one, wakes in zip(found, wanted, strict=True)
        if one.wakes != wakes
    ]


async def test_policysched_wakes_whom_the_table_says(plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    release = RELEASES[chosen().minor]
    profiles = configured_profiles(configuration_of(ROWS), release=release)
    monkeypatch.setattr(process, "default_profile", lambda name, **_: profiles[name])
    names = dict.fromkeys(map(profile_name, ROWS))
    async with in_process(plane.kubeconfig(), *names) as scheduler:
        stage = Stage(plane.api, lambda: list(moves_in(scheduler.lines)))
        found = [await asyncio.to_thread(partial(stage.play, row)) for row in ROWS]
    assert differences(found, [row.wakes_in(release) for row in ROWS]) == []


def test_kube_scheduler_wakes_whom_the_table_says(plane: ControlPlane) -> None:
    with KubeScheduler(plane, configuration_of(ROWS)) as scheduler:
        stage = Stage(plane.api, scheduler.moves)
        found = [stage.play(row) for row in ROWS]
    assert differences(found, [row.wakes_in(RELEASES[chosen().minor]) for row in ROWS]) == []
