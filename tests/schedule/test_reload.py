from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from policysched.model.policy import PolicyKey
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.rules.policy_set.store import PolicyStore, StoredPolicy
from policysched.rules.policy_status.input_presence import CoverageReports
from policysched.rules.policy_status.status import make_status
from policysched.schedule import reload
from policysched.schedule.reload import LONGEST_PAUSE, MAX_RETRIES, PODS_FIRST, POLL
from policysched.schedule.scheduler import Scheduler
from tests.build import pod
from tests.rules.build import filtering, policy
from tests.schedule.parts import refused
from tests.schedule.queue_parts import StandingClock
from tests.schedule.reloading import BAD, GOOD, OPEN, Stand, running, written_back


async def test_the_first_list_is_in_force_before_anything_runs() -> None:
    stand = Stand()
    await stand.reloader.start([policy("a", **GOOD), policy("b", **BAD), policy("c", **OPEN)])
    assert stand.in_force == {"a": 1, "c": 1}
    assert stand.rejected
    assert stand.client.statuses == []


async def test_an_edit_breaks_mends_and_deletes_a_policy() -> None:
    async with running(policy(**OPEN)) as stand:
        assert (stand.rejected, stand.written) == (False, [("p", 1, 1)])
        await stand.settled(policy(generation=2, **GOOD))
        assert (stand.rejected, stand.in_force) == (True, {"p": 2})
        await stand.settled(policy(generation=3, **BAD))
        assert (stand.rejected, stand.in_force) == (True, {"p": 2})
        await stand.settled(policy(generation=4, **OPEN))
        assert (stand.rejected, stand.in_force) == (False, {"p": 4})
        await stand.settled(policy(generation=5, **GOOD), "p")
        assert (stand.rejected, stand.in_force) == (False, {})
        assert stand.written == [("p", 1, 1), ("p", 2, 2), ("p", 3, 2), ("p", 4, 4)]


async def test_statuses_wait_for_pods_for_some_seconds_while_policies_take_force() -> None:
    async with running(policy(**OPEN)) as stand:
        stand.scheduler.queue.add(pod("active", scheduler_name="me"))
        await stand.settled(policy(generation=2, **GOOD))
        await asyncio.sleep(2 * POLL)
        assert (stand.in_force, stand.written) == ({"p": 2}, [("p", 1, 1)])
        stand.clock.at += PODS_FIRST
        await stand.until(lambda: stand.written[1:] == [("p", 2, 2)])
        await stand.settled(policy(generation=3, **OPEN))
        await asyncio.sleep(2 * POLL)
        assert stand.written[-1] == ("p", 2, 2)
        stand.scheduler.queue.delete("default.active")
        await stand.until(lambda: stand.written[-1] == ("p", 3, 3))


async def test_of_edits_that_wait_only_the_newest_counts_and_no_policy_waits_for_all_of_another() -> None:
    async with running(policy("a", **OPEN)) as stand:
        swaps: list[dict[str, int]] = []
        stand.reloader.on_swap = lambda _: swaps.append(stand.in_force)
        edits = [policy("a", generation=number, **(GOOD if number % 2 else BAD)) for number in range(2, 100)]
        await stand.settled(*edits, policy("b", **OPEN), policy("a", generation=100, **GOOD), "c")
        assert swaps == [{"a": 100}, {"a": 100, "b": 1}]
        await stand.settled("a", policy("a", generation=1, uid="another", **OPEN))
        assert (swaps[-1], stand.written[-1]) == ({"a": 1, "b": 1}, ("a", 1, 1))
        await stand.settled(policy("a", generation=2, uid="another", **GOOD), "a")
        assert swaps[-1] == {"b": 1}


async def test_other_policies_stay_as_they_are() -> None:
    async with running(policy("a", **OPEN), policy("b", **OPEN)) as stand:
        before = stand.reloader.store.get(PolicyKey("a"))
        await stand.settled(policy("b", generation=2, **BAD), "c")
        assert stand.reloader.store.get(PolicyKey("a")) is before


async def test_the_status_tells_what_is_wrong_against_the_version_it_is_about() -> None:
    async with running(policy(**BAD)) as stand:
        [(name, version, status)] = stand.client.statuses
        assert (name, version) == ("p", "1")
        assert [one["field"] for one in status["diagnostics"]] == ["spec.filters[0].require"]
        assert status["conditions"][0]["lastTransitionTime"] == "2026-01-01T00:16:40Z"


@pytest.mark.parametrize("spec", [GOOD, BAD])
async def test_a_status_is_written_once(spec: dict[str, Any]) -> None:
    async with running(policy(**spec)) as stand:
        await stand.settled(written_back(stand, spec), written_back(stand, spec))
        assert len(stand.client.statuses) == 1


async def test_a_status_that_someone_changed_is_put_right() -> None:
    async with running(policy(**GOOD)) as stand:
        await stand.settled(policy(status={"activeGeneration": 7}, **GOOD))
        assert stand.written == [("p", 1, 1)] * 2


@pytest.mark.parametrize(("error", "tries"), [(500, 3), (503, 3), (0, 3), (403, 3), (409, 1), (404, 1)])
async def test_a_refused_status_is_tried_again_unless_a_newer_object_brings_its_own(
    monkeypatch: pytest.MonkeyPatch, error: int, tries: int
) -> None:
    monkeypatch.setattr(reload, "RETRY_AFTER", 0.001)
    async with running() as stand:
        stand.client.errors["status"] = [refused(error), refused(error), None]
        await stand.settled(policy(**GOOD))
        await stand.until(lambda: not stand.reloader._unwritten)
        assert 3 - len(stand.client.errors["status"]) == tries
        assert len(stand.written) == (tries == 3)
        assert stand.in_force == {"p": 1}


async def test_a_status_is_given_up_after_some_tries_and_taken_up_with_the_next_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reload, "RETRY_AFTER", 0.001)
    async with running() as stand:
        stand.client.errors["status"] = [refused(500)] * MAX_RETRIES
        await stand.settled(policy(**GOOD))
        await stand.until(lambda: not stand.reloader._unwritten)
        assert (stand.client.errors["status"], stand.written) == ([], [])
        await stand.settled(policy(generation=2, **GOOD))
        assert stand.written == [("p", 2, 2)]


async def test_a_policy_deleted_before_its_status_was_written_is_left_alone() -> None:
    async with running() as stand:
        await stand.settled(policy(**GOOD), "p")
        assert (stand.written, stand.reloader._unwritten) == ([], {})


async def test_a_slow_status_does_not_hold_up_an_edit(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as stand:
        answer = asyncio.Event()

        async def slow(*_: Any) -> None:
            await answer.wait()

        monkeypatch.setattr(stand.client, "set_policy_status", slow)
        await stand.settled(policy(**OPEN))
        await stand.settled(policy(generation=2, **GOOD))
        assert (stand.rejected, stand.in_force) == (True, {"p": 2})
        await stand.settled("p")
        assert stand.in_force == {}
        answer.set()


async def test_a_changed_policy_requeues_what_it_had_rejected() -> None:
    async with running(policy(**GOOD)) as stand:
        stand.scheduler.set_pod(pod(scheduler_name="me"))
        queued = stand.scheduler.queue.pop()
        assert queued is not None
        stand.scheduler.queue.reject(queued, frozenset({"SchedulingPolicy/p"}))
        await stand.settled(policy(generation=2, **BAD))
        assert stand.scheduler.queue.counts().unschedulable == 1
        await stand.settled(policy(generation=3, **OPEN))
        assert stand.scheduler.queue.counts().unschedulable == 0


async def test_a_broken_edit_is_logged_once_with_its_first_error(caplog: pytest.LogCaptureFixture) -> None:
    async with running() as stand:
        await stand.settled(policy(**GOOD))
        broken = policy(generation=2, filters=[{"name": "f", "require": "node.nome"}])
        written = msgspec.structs.replace(broken, status=msgspec.structs.replace(broken.status, observed_generation=2))
        await stand.settled(broken)
        await stand.settled(replace(broken, metadata=replace(broken.metadata, resource_version="8")))
        await stand.settled(written)
    said = [line for line in caplog.messages if "stays in force" in line]
    assert len(said) == 1
    assert (
        'policy "p" generation 2 has 1 error(s), generation 1 stays in force: E0202 spec.filters[0].require' in said[0]
    )


async def test_log_of_a_policy_that_never_compiled_tells_of_no_generation_in_force(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running() as stand:
        await stand.settled(policy(generation=2, **BAD))
    (said,) = (line for line in caplog.messages if "error(s)" in line)
    assert said.startswith('policy "p" generation 2 has 1 error(s), no generation is in force: E0201')


async def test_start_logs_the_policies_in_force(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    stand = Stand()
    given = [policy(name="b", **GOOD), policy(name="a", mode="Disabled", **GOOD), policy(name="c", **BAD)]
    await stand.reloader.start(given)
    assert [line for line in caplog.messages if line.startswith('policy "')][-2:] == [
        'policy "a" generation 1 is accepted; mode Disabled: it has no effect',
        'policy "b" generation 1 is in force',
    ]


async def test_log_states_whether_an_accepted_generation_acts(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    async with running() as stand:
        for number, mode in enumerate(("Enforce", "Shadow", "Disabled"), 1):
            await stand.settled(policy(generation=number, mode=mode, **GOOD))
    assert [line for line in caplog.messages if line.startswith('policy "p"')] == [
        'policy "p" generation 1 is in force',
        'policy "p" generation 2 is accepted; mode Shadow: it does not act',
        'policy "p" generation 3 is accepted; mode Disabled: it has no effect',
    ]


@pytest.mark.parametrize("at_start", [False, True])
async def test_policy_that_compiles_and_cannot_act_leaves_the_others(
    at_start: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    join, failures = Scheduler.join, []

    def failing(scheduler: Scheduler, policies: PolicySet) -> Any:
        if any(one.policy.key == "p" and one.policy.generation == 2 for one in policies.active):
            raise MemoryError
        return join(scheduler, policies)

    async with running(policy("q", **OPEN), policy(**GOOD)) as stand:
        monkeypatch.setattr(Scheduler, "join", failing)
        stand.reloader.on_failure = lambda policy, error: failures.append(f"{policy.key} {error!r}")
        bad = policy(generation=2, **OPEN)
        if at_start:
            await stand.reloader.start([bad])
        else:
            await stand.settled(bad)
        assert stand.in_force == ({"q": 1} if at_start else {"p": 1, "q": 1})
        assert stand.rejected is not at_start
        assert failures == ["p MemoryError()"]
        await stand.settled(policy(generation=3, filters=filtering('node.name != "x"')))
        assert stand.in_force == {"p": 3, "q": 1}


@pytest.mark.parametrize(("kept", "in_force"), [(GOOD, 1), (OPEN, 1), (BAD, None)])
async def test_after_a_restart_a_policy_that_cannot_act_acts_as_its_annotation_keeps(
    kept: Any, in_force: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    join = Scheduler.join

    def failing(scheduler: Scheduler, policies: PolicySet) -> Any:
        if any(one.policy.spec.filters[0].require == "not node.ready" for one in policies.active):
            raise MemoryError
        return join(scheduler, policies)

    monkeypatch.setattr(Scheduler, "join", failing)
    stand = Stand()
    await stand.reloader.start([policy(generation=2, last_good={"generation": 1, "spec": kept}, **OPEN)])
    assert stand.in_force.get("p") == in_force
    assert stand.rejected is (kept is GOOD)


async def test_policies_that_fail_together_and_not_alone_are_tried_again_and_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    join, failures = Scheduler.join, [MemoryError("once")]

    def failing(scheduler: Scheduler, policies: PolicySet) -> Any:
        if failures:
            raise failures.pop()
        return join(scheduler, policies)

    async with running(policy("q", **OPEN)) as stand:
        monkeypatch.setattr(Scheduler, "join", failing)
        await stand.settled(policy(**GOOD))
        assert stand.in_force == {"p": 1, "q": 1}
        assert stand.rejected
    assert caplog.text.count("evaluating policies failed; they are evaluated again in the next cycle") == 1
    assert "MemoryError: once" in caplog.text


async def test_filters_in_force_hold_while_it_is_found_out_which_policy_cannot_act(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    join, held = Scheduler.join, []
    async with running(policy("a", **GOOD), policy("z", **OPEN)) as stand:

        def failing(scheduler: Scheduler, policies: PolicySet) -> Any:
            held.append(stand.rejected)
            if any(one.policy.key == "p" for one in policies.active):
                raise MemoryError
            return join(scheduler, policies)

        monkeypatch.setattr(Scheduler, "join", failing)
        await stand.settled(policy(**OPEN))
        assert stand.in_force == {"a": 1, "z": 1}
        assert held == [True, True]


@pytest.mark.parametrize("others", [{}, {"z": OPEN}])
async def test_filter_in_force_stays_when_it_cannot_act_any_more(
    others: dict[str, Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    join = Scheduler.join

    def failing(scheduler: Scheduler, policies: PolicySet) -> Any:
        if any(one.policy.key == "a" for one in policies.active):
            raise MemoryError
        return join(scheduler, policies)

    async with running(policy("a", **GOOD), *(policy(key, **spec) for key, spec in others.items())) as stand:
        monkeypatch.setattr(Scheduler, "join", failing)
        await stand.settled(policy(**OPEN))
        assert stand.in_force == {"a": 1, "p": 1} | dict.fromkeys(others, 1)
        assert stand.rejected
        await stand.settled(*others, policy(generation=2, filters=filtering('node.name != "x"')))
        assert stand.in_force == {"a": 1, "p": 2}
        assert stand.rejected
    assert "evaluating policies failed" in caplog.text


async def test_status_that_cannot_be_made_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def making(entry: Any, *rest: Any) -> Any:
        if entry.policy.key == "a":
            raise RecursionError
        return make_status(entry, *rest)

    monkeypatch.setattr(reload, "make_status", making)
    async with running() as stand:
        failures: list[str] = []
        stand.reloader.on_failure = lambda policy, error: failures.append(f"{policy.key} {error!r}")
        await stand.settled(policy("a", **GOOD), policy("b", **GOOD))
        assert stand.written == [("b", 1, 1)]
        assert failures == ["a RecursionError()"]


async def test_failure_to_count_what_nodes_have_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(_: object, entry: StoredPolicy) -> Any:
        raise ValueError(entry.policy.key)

    monkeypatch.setattr(CoverageReports, "refresh", failing)
    monkeypatch.setattr(reload, "NEWS_GATHER", 0)
    async with running(policy("a", **OPEN)) as stand:
        stand.reloader.check_soon()
        await stand.settled(policy(**GOOD))
        assert stand.in_force == {"a": 1, "p": 1}
        assert stand.written == [("a", 1, 1), ("p", 1, 1)]
    assert 'policy "a" generation 1 failed' in caplog.text


async def test_what_waits_for_room_takes_force_and_says_so_when_another_policy_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("policysched.rules.policy_set.budget.MAX_UNITS", 2)
    async with running(policy("a", **OPEN), policy("b", **GOOD)) as stand:
        assert stand.in_force == {"a": 1}
        assert stand.written == [("a", 1, 1), ("b", 1, 0)]
        await stand.settled(policy("b", generation=2, **BAD), policy("b", generation=3, **GOOD))
        assert (stand.rejected, stand.in_force) == (False, {"a": 1})
        await stand.settled("a")
        assert (stand.rejected, stand.in_force) == (True, {"b": 3})
        assert stand.written[-1] == ("b", 3, 3)
        assert [one["status"] for one in stand.client.statuses[-1][2]["conditions"]] == ["True", "True", "True"]


async def test_failure_to_take_a_policy_out_of_force_keeps_no_other_waiting(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(policy("a", **OPEN)) as stand:

        def failing(_: str) -> frozenset[str]:
            raise RuntimeError("a bug")

        monkeypatch.setattr(stand.reloader.store, "remove", failing)
        await stand.settled("a", policy("b", **GOOD))
        assert stand.in_force == {"a": 1, "b": 1}
    assert 'removing policy "a" failed' in caplog.text


async def test_what_others_overwrite_again_and_again_is_written_ever_more_slowly() -> None:
    async with running(policy(**GOOD)) as stand:

        async def overwritten(times: int) -> int:
            before = len(stand.written)
            for number in range(times):
                await stand.settled(policy(status={"observedGeneration": 1, "rules": 7 + number}, **GOOD))
            return len(stand.written) - before

        assert await overwritten(20) == MAX_RETRIES - 1
        for pause in (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0):
            stand.clock.at += pause
            assert await overwritten(5) == 1
        await stand.settled(policy(generation=2, **OPEN))
        assert stand.written[-1] == ("p", 2, 2)
        stand.clock.at += 600
        assert await overwritten(3) == 3


def test_what_others_overwrite_for_days_is_still_written_slowly() -> None:
    clock, store = StandingClock(), PolicyStore()
    store.apply(policy(**GOOD))
    entry, repeats = store.get(PolicyKey("p")), reload._Repeats(clock)
    assert entry is not None
    for _ in range(2000):
        repeats.wrote(entry)
        while repeats.must_wait(entry):
            clock.at += LONGEST_PAUSE - 1
    repeats.wrote(entry)
    assert repeats.must_wait(entry)


async def test_installations_that_differ_on_who_has_the_room_do_not_write_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("policysched.rules.policy_set.budget.MAX_UNITS", 2)
    async with running(policy("a", **OPEN), policy("b", **GOOD)) as stand:
        said = {"observedGeneration": 1, "activeGeneration": 1}
        for number in range(3 * MAX_RETRIES):
            await stand.settled(policy("b", status=said | {"rules": number}, **GOOD))
        assert stand.written.count(("b", 1, 0)) == MAX_RETRIES
        await stand.settled(policy("b", generation=2, status=said, **OPEN))
        assert stand.written[-1] == ("b", 2, 0)
