"""The table of situations in this process, with the real engine, queue and plugins, one cycle at a time.

Source: test/integration/scheduler/queueing/queue.go (what situations kube-scheduler's own table has), in data of ours.
"""

from __future__ import annotations

from collections import Counter

import pytest

from policysched.model.release import DEFAULT, RELEASES, Release
from policysched.plugins.registry import points_of_defaults
from tests.requeueing.node_situations import NODE_SITUATIONS
from tests.requeueing.peer_situations import PEER_SITUATIONS
from tests.requeueing.player import Player
from tests.requeueing.situations import Situation
from tests.requeueing.volume_situations import VOLUME_SITUATIONS

ELSEWHERE = {"NodeName", "DynamicResources", "DefaultPreemption", "GangScheduling", "DeferredPodScheduling"}
"""Plugins that can reject pods but have no situation in the table."""
TABLE = (*NODE_SITUATIONS, *PEER_SITUATIONS, *VOLUME_SITUATIONS)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.claim)
async def test_situation_wakes_exactly_those_that_it_can_help(row: Situation) -> None:
    for release in releases_of(row):
        await wakes_exactly_those_that_it_can_help(row, release)


def releases_of(row: Situation) -> list[Release]:
    """Return the releases to play a situation in: one, or all where they differ."""
    return [one for one in RELEASES.values() if row.by_taints or one is DEFAULT]


async def wakes_exactly_those_that_it_can_help(row: Situation, release: Release) -> None:
    player = Player(row, release)
    await player.begin()
    assert player.rejectors() == {one.name: one.rejectors for one in row.waiting}
    player.play()
    assert player.ready() == row.wakes_in(release)
    assert player.woken_by() <= row.events_in(release)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.claim)
async def test_situation_that_comes_during_the_attempt_wakes_the_same_pods(row: Situation) -> None:
    for release in releases_of(row):
        player = Player(row, release)
        await player.begin(meanwhile=True)
        assert player.ready() == row.wakes_in(release)


def test_situations_have_names_of_their_own_and_reach_every_plugin_that_rejects() -> None:
    assert [name for name, count in Counter(row.claim for row in TABLE).items() if count > 1] == []
    reached = {plugin for row in TABLE for one in row.waiting for plugin in one.rejectors}
    rejecting = {name for name, points in points_of_defaults().items() if {"filter", "preEnqueue"} & set(points)}
    assert rejecting - reached == ELSEWHERE
