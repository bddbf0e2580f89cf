"""The last good generation in a policy's annotation: when it is written, and which applies if it is not writable."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from policysched.framework import ApiError
from policysched.model.policy import LAST_GOOD
from policysched.schedule import reload
from tests.rules.build import policy
from tests.schedule.parts import refused
from tests.schedule.reloading import BAD, GOOD, OPEN, running


async def test_what_is_in_force_is_kept_in_the_annotation_before_the_status_tells_of_it() -> None:
    async with running(policy(**GOOD)) as stand:
        ((name, version, annotations),) = stand.client.annotated
        assert (name, version, list(annotations)) == ("p", "1", [LAST_GOOD])
        kept = policy(generation=2, stored=annotations, **BAD)
        await stand.settled(kept)
        assert stand.in_force == {"p": 1}
        assert len(stand.client.annotated) == 1
        assert stand.written == [("p", 1, 1), ("p", 2, 1)]
    async with running(kept) as again:
        assert again.in_force == {"p": 1}
        assert again.rejected
        assert again.client.annotated == []


async def test_annotation_that_others_change_is_written_anew() -> None:
    async with running(policy(**GOOD)) as stand:
        other = {"generation": 1, "spec": OPEN}
        await stand.settled(policy(last_good=other, **GOOD))
        assert stand.client.annotated[0] == stand.client.annotated[1]
        assert stand.in_force == {"p": 1}


async def test_status_is_written_against_the_version_that_the_annotation_made() -> None:
    async with running() as stand:
        stand.client.annotation_makes = "7"
        await stand.settled(policy(**GOOD))
        assert [version for _, version, _ in stand.client.statuses] == ["7"]
        ours = policy(stored=stand.client.annotated[0][2], **GOOD)
        await stand.settled(replace(ours, metadata=replace(ours.metadata, resource_version="7")))
        assert len(stand.client.statuses) == 1, "the version in between is nothing to write about"


@pytest.mark.parametrize(("error", "tries"), [(refused(403), 1), (refused(0), 2), (refused(503), 2)])
async def test_annotation_that_cannot_be_written_is_said_once_and_holds_up_nothing(
    error: ApiError, tries: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reload, "RETRY_AFTER", 0.001)
    async with running() as stand:
        stand.client.errors["annotation"] = [error, error]
        await stand.settled(policy("a", **GOOD), policy("b", **GOOD))
        await stand.until(lambda: len(stand.client.statuses) >= 2)
        assert stand.in_force == {"a": 1, "b": 1}
        await stand.until(lambda: tries == 1 or len(stand.client.annotated) == 2)
    assert caplog.text.count("cannot store the generation in force; a restart may lose it") == 1


def active_message(status: dict[str, Any]) -> str:
    [message] = [one["message"] for one in status["conditions"] if one["type"] == "Active"]
    return str(message)


TAKEN = {"kubectl.kubernetes.io/last-applied-configuration": "x" * 262_000}


async def test_generation_for_which_the_annotations_have_no_room_is_named_in_the_log_and_the_status(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running(policy("a", stored=TAKEN, **GOOD), policy("b", stored=TAKEN, **GOOD)) as stand:
        assert stand.client.annotated == []
        reason = "a restart may lose it: the annotations of the policy would exceed 262,144 bytes"
        for _, _, status in stand.client.statuses:
            assert active_message(status) == f"generation 1 is in force; {reason}"
        for name in ("a", "b"):
            assert caplog.text.count(f'policy "{name}": cannot store the generation in force; {reason}') == 1
        await stand.settled(policy("a", **GOOD))
        assert [name for name, _, _ in stand.client.annotated] == ["a"]
        assert active_message(stand.client.statuses[-1][2]) == "generation 1 is in force"


async def test_refused_annotation_is_named_in_the_status() -> None:
    async with running() as stand:
        stand.client.errors["annotation"] = [refused(403)]
        await stand.settled(policy(**GOOD))
        [(_, _, status)] = stand.client.statuses
        assert active_message(status) == (
            "generation 1 is in force; "
            "a restart may lose it: cannot write the annotation policysched.io/last-good (Reason)"
        )


async def test_annotation_that_another_compressor_wrote_is_left_alone() -> None:
    async with running(policy(last_good={"generation": 1, "spec": GOOD}, **GOOD)) as stand:
        assert stand.client.annotated == []


async def test_annotation_beside_what_others_wrote_leaves_the_status_to_the_newer_object() -> None:
    async with running() as stand:
        stand.client.annotation_makes = ""
        await stand.settled(policy(**GOOD))
        assert (len(stand.client.annotated), stand.client.statuses) == (1, [])
        newer = policy(stored=stand.client.annotated[0][2], **GOOD)
        await stand.settled(replace(newer, metadata=replace(newer.metadata, resource_version="7")))
        assert [version for _, version, _ in stand.client.statuses] == ["7"]


async def test_annotation_that_moved_on_brings_its_own_turn() -> None:
    async with running() as stand:
        stand.client.errors["annotation"] = [refused(409)]
        await stand.settled(policy(**GOOD))
        assert (stand.client.annotated, stand.client.statuses) == ([], [])
        assert stand.in_force == {"p": 1}


async def test_claims_of_a_status_are_said_and_change_nothing(caplog: pytest.LogCaptureFixture) -> None:
    claim = {"activeGeneration": 9, "activeSpec": OPEN}
    spec = policy("r", status={"activeSpec": OPEN}, **BAD)
    async with running(policy(status=claim, **GOOD), policy("q", status=claim, **BAD), spec) as stand:
        assert stand.in_force == {"p": 1}
        statuses = {name: status for name, _, status in stand.client.statuses}
        assert statuses["p"]["activeGeneration"] == 1
        assert "activeSpec" not in statuses["q"]
        assert statuses["q"]["conditions"][1]["reason"] == "NotTrusted"
    assert 'policy "p": its status states active generation 9, but its newest generation is 1' in caplog.text
    assert 'policy "q": generation 9 in the status is ignored' in caplog.text
    assert 'policy "r": the specification in the status is ignored' in caplog.text
