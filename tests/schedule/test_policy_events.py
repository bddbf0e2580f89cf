"""Events on policies: one for each generation, only by the leader, and limited in number."""

from __future__ import annotations

from typing import Any

from policysched.framework import PolicyEvent
from policysched.kube.events.bodies import SeriesMemory
from policysched.schedule.policy_events import COMBINED, MOST, WITHIN
from tests.rules.build import policy
from tests.schedule.reloading import BAD, GOOD, OPEN, Stand, running, written_back


def told(stand: Stand) -> list[tuple[str, str, str]]:
    """Return type, reason and note of each event on a policy."""
    events: list[Any] = stand.client.events
    return [(one.type, one.reason, one.note) for one in events if isinstance(one, PolicyEvent)]


async def test_an_edit_that_takes_force_and_one_that_is_refused_are_told() -> None:
    async with running(policy(**OPEN)) as stand:
        await stand.settled(policy(generation=2, **BAD), policy(generation=2, **BAD))
        await stand.settled(policy(generation=3, mode="Shadow", **GOOD))
        await stand.settled(policy(generation=4, mode="Disabled", **GOOD))
    first, refused, shadow, disabled = told(stand)
    assert first == ("Normal", "PolicyActive", "generation 1 is in force")
    assert refused[:2] == ("Warning", "PolicyRejected")
    assert refused[2].startswith("generation 2 is rejected: E0")
    assert "spec.filters[0].require: " in refused[2]
    assert refused[2].endswith("; the last good generation 1 stays in force")
    assert shadow == ("Normal", "PolicyActive", "generation 3 is accepted; mode Shadow: it does not act")
    assert disabled == ("Normal", "PolicyActive", "generation 4 is accepted; mode Disabled: it has no effect")


async def test_a_policy_that_never_was_in_force_is_told_so() -> None:
    async with running(policy(**BAD)) as stand:
        [(_, reason, note)] = told(stand)
    assert (reason, note.rpartition("; ")[2]) == ("PolicyRejected", "no generation is in force")


async def test_what_was_told_before_a_restart_is_not_told_again() -> None:
    async with running(policy(**OPEN)) as stand:
        again = written_back(stand, OPEN)
    async with running(again) as stand:
        await stand.settled(again)
        assert told(stand) == []
        await stand.settled(policy(generation=2, **BAD))
        assert len(told(stand)) == 1


async def test_many_edits_are_told_as_one_series() -> None:
    async with running(policy(**OPEN)) as stand:
        for number in range(2, 60):
            await stand.settled(policy(generation=number, **(GOOD if number % 2 else OPEN)))
        assert len(told(stand)) == 59
        assert {note for _, _, note in told(stand)[MOST:]} == {COMBINED}
        memory = SeriesMemory()
        entries = [memory.note(event)[0] for event in stand.client.events]
        assert len({id(one) for one in entries}) == MOST + 1
        assert entries[-1].count == 59 - MOST
        stand.clock.at += WITHIN + 1
        await stand.settled(policy(generation=60, **OPEN))
        assert told(stand)[-1][2] == "generation 60 is in force"


async def test_who_does_not_lead_tells_nothing() -> None:
    stand = Stand()
    await stand.reloader.start([policy(**OPEN), policy("b", **BAD)])
    assert told(stand) == []
