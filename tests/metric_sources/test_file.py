"""Metrics from a file: watched by content, kept while it is broken, told what is wrong with it."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
from pathlib import Path

import pytest

from policysched.errors import UsageError
from policysched.framework import MetricKey, Sample
from policysched.metric_sources.file import FileSource
from tests.metric_sources.fake_prometheus import Held
from tests.metric_sources.following import LOAD, Counted, running, wanting

OTHER = MetricKey("other", "node")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "metrics.yaml"
    made.write_text("load: {n1: 1}")
    return made


def source(
    path: Path, counted: Counted | None = None, *, interval: float = 60.0, clock: Held | None = None
) -> FileSource:
    counters = (counted or Counted()).counters
    return FileSource(path, clock or Held(), counters, interval=interval, poll=0.02)


def test_a_file_that_cannot_be_used_from_the_start_is_a_usage_error(path: Path) -> None:
    for text in ("load: 3", "load: ["):
        path.write_text(text)
        with pytest.raises(UsageError, match=r"metrics\.yaml"):
            source(path)
    with pytest.raises(UsageError, match="is a directory"):
        source(path.parent)


@pytest.mark.parametrize("place", ["later.yaml", "folder/later.yaml"])
async def test_a_file_that_does_not_exist_yet_is_awaited(
    tmp_path: Path, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "policysched")
    path = tmp_path / place
    feed = source(path, interval=0.02)
    feed.follow(wanting(LOAD))
    async with running(feed) as kept:
        await feed.settled()
        assert kept.answers[LOAD].samples is None
        missing = f"{path} cannot be read: no such file or directory"
        assert kept.problem() == missing
        await kept.reaches(4)
        path.parent.mkdir(exist_ok=True)
        path.write_text("load: {n1: 1}")
        while not kept.values():
            await asyncio.sleep(0.01)
        assert (kept.values(), kept.problem()) == ({"n1": 1.0}, "")
    assert caplog.messages == [f"metrics: {missing} (metrics file)", f"metrics: resolved: {missing}"]


@pytest.mark.parametrize("numbers", ["{n1: .nan}", "{n1: .nan, n2: .inf, n3: -.inf}"])
async def test_numbers_that_are_all_nan_or_infinite_are_a_problem(path: Path, numbers: str) -> None:
    path.write_text(f"load: {numbers}")
    feed = source(path)
    feed.follow(wanting(LOAD))
    async with running(feed) as kept:
        await feed.settled()
        assert (kept.values(), kept.problem()) == ({}, f"{path}: load: no value is a finite number")
        path.write_text("load: {n1: .nan, n2: 3}")
        await kept.reaches(2)
        assert (kept.values(), kept.problem()) == ({"n2": 3.0}, "")


async def test_numbers_of_no_node_of_the_cluster_are_a_problem(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "policysched")
    path.write_text("load: {ip-10-0-1-17: 0.5}")
    feed = source(path, interval=0.02)
    feed.follow(wanting(LOAD))
    async with running(feed, ["n1"]) as kept:
        await feed.settled()
        await kept.reaches(3)
        problem = f'{path}: load: no node of this cluster has a value; the values are for names such as "ip-10-0-1-17"'
        assert kept.problem() == problem
    assert caplog.messages == [f"metrics: {problem} ({LOAD.query})"]


async def test_its_numbers_hold_now(path: Path) -> None:
    clock, counted = Held(), Counted()
    feed = source(path, counted, clock=clock)
    feed.follow(wanting(LOAD, OTHER))
    async with running(feed) as kept:
        await feed.settled()
        assert kept.answers[LOAD].samples == {"n1": Sample(1.0, clock.at)}
        assert kept.values(OTHER) == {}
        assert kept.problem(OTHER) == f'{path} has no values for "other"'
    assert counted.outcomes() == {"answered": 1}


async def test_its_numbers_stay_young_while_it_can_be_read(path: Path) -> None:
    clock = Held()
    feed = source(path, interval=0.05, clock=clock)
    feed.follow(wanting(LOAD))
    async with running(feed) as kept:
        await kept.reaches(1)
        clock.at += 100
        await kept.reaches(3)
        assert kept.answers[LOAD].samples == {"n1": Sample(1.0, clock.at)}


async def test_an_edit_counts_at_once(path: Path) -> None:
    feed = source(path)
    feed.follow(wanting(LOAD))
    async with running(feed) as kept:
        await kept.reaches(1)
        path.write_text("load: {n1: 2, n2: 3}")
        await kept.reaches(2)
        assert kept.values() == {"n1": 2.0, "n2": 3.0}


async def test_a_link_that_moves_counts_as_an_edit(path: Path) -> None:
    link, moved = path.with_name("link"), path.with_name("moved.yaml")
    link.symlink_to(path)
    moved.write_text("load: {n1: 9}")
    feed = source(link)
    feed.follow(wanting(LOAD))
    async with running(feed) as kept:
        await kept.reaches(1)
        second = path.with_name("second")
        second.symlink_to(moved)
        second.rename(link)
        await kept.reaches(2)
        assert kept.values() == {"n1": 9.0}


async def test_what_did_not_change_is_not_told_again(path: Path) -> None:
    feed = source(path)
    feed.follow(wanting(LOAD))
    async with running(feed) as kept:
        await kept.reaches(1)
        path.write_text(path.read_text())
        await asyncio.sleep(0.15)
        assert len(kept.all) == 1


async def test_what_is_followed_already_is_not_told_again(path: Path) -> None:
    path.write_text("load: {n1: 1}\nother: {n1: 5}\np/other: {n1: 6}")
    feed = source(path)
    feed.follow(wanting(LOAD))
    async with running(feed) as kept:
        await feed.settled()
        feed.follow(wanting(LOAD))
        feed.follow({**wanting(LOAD), OTHER: frozenset(("other",))})
        await feed.settled()
        assert [one.key for one in kept.all] == [LOAD, OTHER]
        assert kept.values(OTHER) == {"n1": 5.0}
        feed.follow(wanting(LOAD, OTHER))
        await feed.settled()
        assert [one.key for one in kept.all] == [LOAD, OTHER, OTHER]
        assert kept.values(OTHER) == {"n1": 6.0}
        feed.follow(wanting(OTHER))
        feed.follow(wanting(LOAD, OTHER))
        await feed.settled()
        assert [one.key for one in kept.all] == [LOAD, OTHER, OTHER, LOAD]


async def test_the_loop_has_its_turn_after_each_metric(path: Path) -> None:
    keys = [MetricKey(f"m{number}", "node") for number in range(100)]
    path.write_text("\n".join(f"{key.query}: {{n1: 1}}" for key in keys))
    feed = source(path)
    feed.follow(wanting(*keys))
    async with running(feed) as kept:
        await kept.reaches(1)
        seen = [len(kept.all)]
        while seen[-1] < len(keys):
            await asyncio.sleep(0)
            seen.append(len(kept.all))
        assert max(after - before for before, after in itertools.pairwise(seen)) <= 1
        feed.follow(wanting(*keys[:50], OTHER))  # what nobody wants any more is not told
        path.write_text("\n".join(f"{key.query}: {{n1: 2}}" for key in keys))
        await kept.reaches(110)
        feed.follow(wanting(OTHER))
        await feed.settled()
        await asyncio.sleep(0.1)
        assert len(kept.all) < 130
        assert kept.all[-1].key == OTHER


async def test_what_is_followed_later_is_looked_up_at_once(path: Path) -> None:
    path.write_text("load: {n1: 1}\nother: {n1: 5}")
    feed = source(path)
    async with running(feed) as kept:
        await feed.settled()
        feed.follow(wanting(OTHER))
        await feed.settled()
        assert set(kept.answers) == {OTHER}
        assert kept.values(OTHER) == {"n1": 5.0}


async def test_a_pipe_in_place_of_the_file_is_a_problem_and_not_waited_for(path: Path) -> None:
    feed = source(path)
    feed.follow(wanting(LOAD))
    async with running(feed) as kept:
        await kept.reaches(1)
        path.unlink()
        os.mkfifo(path)
        await kept.reaches(2)
        assert kept.problem() == f"{path} cannot be followed: it is not a regular file"


async def test_a_broken_file_gives_no_answer_until_it_is_right(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "policysched")
    counted = Counted()
    feed = source(path, counted)
    feed.follow(wanting(LOAD))
    async with running(feed) as kept:
        await kept.reaches(1)
        path.write_text("load: {n1: 3")
        await kept.reaches(2)
        assert kept.values() is None
        assert "not valid YAML" in kept.problem()
        await asyncio.sleep(0.1)
        path.unlink()
        await kept.reaches(3)
        assert kept.problem() == f"{path} cannot be read: no such file or directory"
        path.write_text("load: {n1: 4}")
        await kept.reaches(4)
        assert (kept.values(), kept.problem()) == ({"n1": 4.0}, "")
    assert counted.outcomes() == {"answered": 2, "malformed": 2}
    told = [record.levelname for record in caplog.records if record.name.startswith("policysched.metric_sources")]
    assert told == ["WARNING", "INFO", "WARNING", "INFO"]


async def test_a_file_that_comes_back_as_it_was_counts(path: Path) -> None:
    feed = source(path)
    feed.follow(wanting(LOAD))
    async with running(feed) as kept:
        await kept.reaches(1)
        path.rename(path.with_name("away"))
        await kept.reaches(2)
        path.with_name("away").rename(path)
        await kept.reaches(3)
        assert (kept.values(), kept.problem()) == ({"n1": 1.0}, "")
