"""A recorded life replays bit for bit; `POLICYSCHED_DECISIONS=5000` records as many decisions as that."""

from __future__ import annotations

import asyncio
import errno
import io
import json
import logging
import os
import shutil
import stat
import subprocess
import sys
import threading
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from policysched.app.configuration.profiles import NO_PLUGINS
from policysched.app.recording import recorder, writer
from policysched.app.recording.entries import RecordedOutcome
from policysched.app.recording.file_format import END, HEAD, BlockWriter, encoded, read_entries
from policysched.app.replay import replay
from policysched.app.replay.what_if import what_if
from policysched.errors import UsageError
from policysched.rules.policy_set.policy_set import PolicySet
from tests.app.dry_runs import policy, requiring
from tests.app.recording.recorded import RecordedLife, recorded, replayed
from tests.schedule.life_policies import policies

DECISIONS = int(os.environ.get("POLICYSCHED_DECISIONS", "100"))
FEW = 60


@pytest.fixture
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "SMALLEST_LIMIT", 1)


def decisions_of(path: Path) -> list[int]:
    return [entry[1][0] for entry in read_entries(path) if entry[0] == "decided"]


EXAMPLE = Path(__file__).parents[3] / "examples" / "tour" / "10-record" / "day.record"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("file", '--record: "{folder}/file" is a file; name a folder'),
        ("file/inside", '--record: "{folder}/file" is a file; name a folder'),
        ("x" * 300, '--record: cannot use "{folder}/' + "x" * 300 + '": file name too long'),
    ],
)
def test_record_needs_a_folder(name: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError) as caught:
        writer.RecordWriter(tmp_path / name, 1 << 20)
    assert str(caught.value) == why.format(folder=tmp_path)


def test_record_of_another_machine_replays_without_a_difference() -> None:
    found = replayed(EXAMPLE)
    assert (found.differences, found.remainder, found.exit_code) == ([], [], 0), "python -m tests.app.recording"
    assert (found.decisions, found.searches) == (12, 3)


@pytest.mark.parametrize("seed", [1, 2])
async def test_recorded_life_replays_without_a_difference(tmp_path: Path, seed: int) -> None:
    life = await recorded(tmp_path, DECISIONS, seed)
    found = replayed(tmp_path)
    assert [one.to_dict() for one in found.differences] == []
    assert (found.first, found.last, found.decisions) == (1, life.recorder.decisions, life.recorder.decisions)
    assert found.summary == f"decisions 1–{found.last:,} equal"
    assert (found.exit_code, found.placed > DECISIONS // 20, found.searches > 0) == (0, True, True)


@pytest.mark.usefixtures("small_files")
async def test_each_file_replays_alone_and_the_oldest_go(tmp_path: Path) -> None:
    def goes_on(_: RecordedLife) -> bool:
        numbers = [one.name.partition("-")[0] for one in tmp_path.iterdir()]
        return not numbers or "00000001" in numbers

    life = await recorded(tmp_path, FEW, limit=60_000, goes_on=goes_on)
    files = sorted(tmp_path.iterdir())
    assert len(files) > 2
    assert int(files[0].name.partition("-")[0]) > 1, "no file was deleted"
    assert sum(one.stat().st_size for one in files) <= 60_000
    assert {stat.S_IMODE(one.stat().st_mode) for one in files} == {0o600}
    counted = 0
    for one in files:
        found = replayed(one)
        assert (found.differences, found.remainder) == ([], [])
        counted += found.decisions
    whole = replayed(tmp_path)
    assert (whole.decisions, whole.last, whole.remainder) == (counted, life.recorder.decisions, [])


async def test_decision_that_comes_out_otherwise_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await recorded(tmp_path, FEW)

    def other(decision: Any) -> RecordedOutcome:
        made = recorder.outcome_of(decision)
        return RecordedOutcome("n99", made.nominated, made.feasible, made.ties, made.text, made.digest)

    monkeypatch.setattr(replay, "outcome_of", other)
    found = replayed(tmp_path)
    assert found.exit_code == 1
    assert len(found.differences) == found.decisions
    assert (found.differences[0].what, found.differences[0].replayed) == ("node", "n99")


async def test_what_nobody_reads_is_not_in_the_file(tmp_path: Path) -> None:
    await recorded(tmp_path, DECISIONS)
    held = repr([list(read_entries(path)) for path in tmp_path.iterdir()])
    assert "hunter2" not in held
    assert "disks" in held, "an annotation that a policy reads is missing"


async def test_new_file_keeps_the_annotations_of_the_policies_in_force(tmp_path: Path) -> None:
    life = RecordedLife(1, tmp_path)
    kept = life.recorder._annotations
    for chosen in policies():
        life.scheduler.use_policies(PolicySet.of(chosen), frozenset())
    assert "disks" in (life.recorder._annotations or ())
    life.scheduler.use_policies(PolicySet(), frozenset())
    life.recorder._snapshot("the file before was full")
    assert life.recorder._annotations == kept
    await asyncio.to_thread(life.recorder.close)


async def test_file_that_was_cut_names_what_was_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "BLOCK", 5_000)
    life = await recorded(tmp_path, DECISIONS, edits=False)
    [path] = tmp_path.iterdir()
    data = path.read_bytes()
    for cut in (len(data) - 1, len(data) * 2 // 3):
        path.write_bytes(data[:cut])
        found = replayed(path)
        assert found.differences == []
        assert (found.last < life.recorder.decisions) is (cut < len(data) - 1)
        assert found.summary.startswith(f"decisions 1–{found.last:,} equal; ")
        assert found.summary.endswith("file is incomplete: it ends inside a block")
        assert found.exit_code == 0


async def test_file_that_was_altered_is_used_up_to_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "BLOCK", 1000)
    await recorded(tmp_path, 5, edits=False)
    [path] = tmp_path.iterdir()
    data = path.read_bytes()
    for place in range(len(data) - 80, len(data), 7):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        found = replayed(path)
        assert (found.differences, found.damaged, found.exit_code) == ([], True, 2)
        assert "is corrupted" in found.summary


@pytest.mark.parametrize("data", [b"", HEAD[:9]])
def test_file_that_a_power_failure_left_empty_keeps_no_other_file_from_being_replayed(
    tmp_path: Path, data: bytes
) -> None:
    shutil.copy(EXAMPLE, tmp_path / "1.record")
    (tmp_path / "2.record").write_bytes(data)
    found = replayed(tmp_path)
    whole = replayed(EXAMPLE)
    assert (found.decisions, found.differences, found.exit_code) == (whole.decisions, [], 0)
    assert found.remainder == [f"{tmp_path}/2.record: file is incomplete: it ends before the first block"]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "file is incomplete: it ends before the first block"),
        (HEAD[:9], "file is incomplete: it ends before the first block"),
        (b"kind: List\n", "not a policysched record"),
        (b"policysched record 2\n", "unsupported record version 2; expected 1"),
        (HEAD % 1, "file is incomplete: no end marker"),
        (HEAD % 1 + b"abc", "it ends inside a block"),
    ],
)
def test_file_that_is_no_record_is_refused(tmp_path: Path, data: bytes, problem: str) -> None:
    path = tmp_path / "a.record"
    path.write_bytes(data)
    with pytest.raises(UsageError, match=problem):
        replayed(path)


@pytest.mark.parametrize(
    "entry",
    [
        ["decided", 3],
        ["begin", {}],
        ["take", ["Secret", {}]],
        ["take", [1, {"name": "x"}, {}]],
        ["allocated", [1, {"name": "x"}, {}]],
        ["placed", 0],
        ["unknown"],
    ],
)
def test_entry_that_is_malformed_is_an_error(tmp_path: Path, entry: list[Any]) -> None:
    path = tmp_path / "a.record"
    with path.open("wb") as file:
        BlockWriter(file).write([encoded(entry), encoded([END, 0])])
    with pytest.raises(UsageError, match="invalid entry after decision 0"):
        replayed(path)


def test_entry_that_is_nested_too_deep_is_an_error(tmp_path: Path) -> None:
    path, deep = tmp_path / "a.record", b"\x91" * 200_000 + b"\xc0"
    with path.open("wb") as file:
        BlockWriter(file).write([len(deep).to_bytes(4) + deep, encoded([END, 0])])
    with pytest.raises(UsageError, match="cannot read block 1"):
        replayed(path)


@pytest.mark.parametrize(
    "item",
    [b"\x80", b"\xa2ab", b"\xde\x00\x00", b"\xd4\x01a", b"\xf0"],
    ids=["map", "text", "map16", "ext", "negative"],
)
def test_entry_that_would_take_very_much_memory_is_an_error(tmp_path: Path, item: bytes) -> None:
    path, count = tmp_path / "a.record", 56_000_000 if len(item) == 1 else 46_000_000
    bomb = b"\xdd" + count.to_bytes(4) + item * count
    with path.open("xb") as file:
        BlockWriter(file).write([len(bomb).to_bytes(4) + bomb, encoded([END, 0])])
    assert path.stat().st_size < 1_000_000
    tracemalloc.start()
    try:
        with pytest.raises(UsageError, match="block 1: entry is too large"):
            replayed(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10 * len(bomb)


def test_a_disk_that_hangs_keeps_no_more_waiting_than_came_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lets_go, write = threading.Event(), BlockWriter.write

    def held(self: BlockWriter, entries: list[bytes]) -> None:
        lets_go.wait()
        write(self, entries)

    monkeypatch.setattr(BlockWriter, "write", held)
    monkeypatch.setattr(writer, "LONGEST_WAIT", 0.05)
    made = writer.RecordWriter(tmp_path, 1 << 20)
    try:
        made.put("begin", lambda: ["begin"])
        made.put("taken", lambda: ["taken"])
        made.put("taken", lambda: ["taken"])
        time.sleep(0.1)
        made.put("taken", lambda: ["taken"])
        assert made.lost == 1
        assert not made.needs_snapshot
    finally:
        lets_go.set()
        made.close()


async def test_what_was_given_up_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, lets_go = BlockWriter.write, threading.Event()

    def held(self: BlockWriter, entries: list[bytes]) -> None:
        lets_go.wait()
        write(self, entries)

    def goes_on(life: RecordedLife) -> bool:
        if life.writer.lost:
            lets_go.set()
        return not lets_go.is_set() or life.writer.lost > 0

    monkeypatch.setattr(BlockWriter, "write", held)
    monkeypatch.setattr(writer, "MOST_WAITING", 40)
    monkeypatch.setattr(writer, "WAIT", 0.01)
    life = await recorded(tmp_path, FEW, goes_on=goes_on)
    found = replayed(tmp_path)
    assert found.differences == []
    assert found.decisions < life.recorder.decisions
    assert any("dropped" in one for one in found.remainder)


async def test_full_disk_does_not_stop_scheduling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = BlockWriter.write
    failed: list[list[bytes]] = []

    def full(self: BlockWriter, entries: list[bytes]) -> None:
        if not failed and any(b"decided" in one for one in entries):
            failed.append(entries)
            raise OSError(28, "No space left on device")
        write(self, entries)

    monkeypatch.setattr(BlockWriter, "write", full)
    monkeypatch.setattr(writer, "RETRY", 0.0)
    monkeypatch.setattr(writer, "WAIT", 0.01)
    life = await recorded(tmp_path, FEW, goes_on=lambda life: not failed or life.writer.lost > 0)
    assert len(list(tmp_path.iterdir())) >= 2
    found = replayed(tmp_path)
    assert found.differences == []
    assert (found.last, found.decisions < found.last) == (life.recorder.decisions, True)
    assert any("incomplete after decision" in one or "ends before its end" in one for one in found.remainder)


class SmallDisk:
    """A disk with so much room that takes a part of what does not fit, as disks do, and then nothing."""

    def __init__(self, room: int) -> None:
        self.room, self.refused = room, 0

    def open(self, handle: int, mode: str, *, buffering: int) -> io.FileIO:
        assert buffering == 0
        disk = self

        class File(io.FileIO):
            def write(self, data: Any) -> int:
                if not disk.room:
                    disk.refused += 1
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                written = super().write(memoryview(data)[: disk.room])
                disk.room -= written
                return written

            def truncate(self, size: int | None = None) -> int:
                before = self.tell()
                left = super().truncate(size)
                disk.room += before - left
                return left

        return File(handle, mode)


@pytest.mark.parametrize("room", [3_000, 20_000])
async def test_record_that_fills_its_disk_stays_readable_and_goes_on_once_there_is_room(
    room: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk, fdopen = SmallDisk(room), os.fdopen
    monkeypatch.setattr(
        os, "fdopen", lambda *given, **more: (disk.open if more.get("buffering") == 0 else fdopen)(*given, **more)
    )
    monkeypatch.setattr(writer, "RETRY", 0.02)
    monkeypatch.setattr(writer, "WAIT", 0.01)
    caplog.set_level(logging.INFO, writer.__name__)

    def lines() -> list[str]:
        return [one.getMessage() for one in caplog.records if one.name == writer.__name__]

    def goes_on(life: RecordedLife) -> bool:
        assert life.recorder.decisions < 5000, "recording does not continue"
        if disk.refused >= 3:
            disk.room = 1 << 30
        said = lines()
        return disk.room < 1 << 20 or life.writer.lost > 0 or not said or "continues in" not in said[-1]

    life = await recorded(tmp_path, FEW, goes_on=goes_on)
    paused = f"record: {tmp_path}: No space left on device; recording is paused until the record is "
    # a cut file leaves room: recording may go on and stop again
    assert all(one.startswith(paused) for one in lines()[::2])
    assert all(one.startswith(f"record: recording continues in {tmp_path}") for one in lines()[1::2])
    assert len(lines()) % 2 == 0
    found = replayed(tmp_path)
    assert found.differences == []
    assert found.last == life.recorder.decisions
    assert all(begins(path) for path in tmp_path.iterdir())
    if room > 10_000:  # a snapshot took less
        assert any("file is incomplete: no end marker" in one for one in found.remainder)


def begins(path: Path) -> bool:
    return bool(next(iter(read_entries(path)))[0] == "begin")


async def test_other_policies_would_have_moved_pods(tmp_path: Path) -> None:
    await recorded(tmp_path, FEW)
    nowhere = what_if([tmp_path], policies=[policy("none", **requiring("false"))], plugins=NO_PLUGINS)
    placed = {one.pod for one in nowhere.effects}
    assert placed
    assert {str(one.effect) for one in nowhere.effects} == {"unschedulable"}
    same = what_if([tmp_path], policies=[policy("all", **requiring("true"))], plugins=NO_PLUGINS)
    assert same.effects == ()
    with pytest.raises(UsageError, match="policies read annotations that are not in the record: secret"):
        what_if([tmp_path], policies=[policy("x", **requiring('pod.annotations["secret"] == "a"'))], plugins=NO_PLUGINS)
    with pytest.raises(UsageError, match='no policy "never" in the record'):
        what_if([tmp_path], without_policies=["never"], plugins=NO_PLUGINS)


def rewritten(folder: Path, entries: list[list[Any]]) -> Path:
    """Write a record of these entries."""
    path = folder / "1.record"
    with path.open("wb") as file:
        BlockWriter(file).write([encoded(one) for one in entries])
    return path


def test_decision_of_no_profile_is_a_difference_and_others_are_compared(tmp_path: Path) -> None:
    entries = list(read_entries(EXAMPLE))
    decided = [one for one in entries if one[0] == "decided"]
    decided[0][1][1] = "nobody"
    found = replayed(rewritten(tmp_path, entries))
    assert [one.replayed for one in found.differences] == ['no profile "nobody" in the record']
    assert (found.decisions, found.exit_code) == (len(decided), 1)


def test_decision_that_fails_with_a_change_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise RuntimeError("ill")

    monkeypatch.setattr("policysched.app.replay.what_if.landing_of", failing)
    told = what_if([EXAMPLE], policies=[policy("off", **requiring("false"))], plugins=NO_PLUGINS)
    assert any(
        one.startswith("decisions that fail with the change: 12, first: 1 for pod ") and one.endswith("('ill')")
        for one in told.notes
    )


def test_folder_of_a_record_may_hold_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "0.record")
    (tmp_path / "2.record").mkdir()
    rewritten(tmp_path, list(read_entries(EXAMPLE)))
    assert replayed(tmp_path).exit_code == 0
    with pytest.raises(UsageError, match="name too long"):
        replayed(tmp_path / ("x" * 5000))


async def test_decision_that_cannot_be_recorded_is_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, outcome_of = [], recorder.outcome_of

    def failing(decision: Any) -> RecordedOutcome:
        made.append(decision.row)
        if len(made) == 20:
            raise RuntimeError("ill")
        return outcome_of(decision)

    monkeypatch.setattr(recorder, "outcome_of", failing)
    life = await recorded(tmp_path, DECISIONS, edits=False, goes_on=lambda life: life.writer.lost > 0)
    monkeypatch.undo()
    found = replayed(tmp_path)
    assert (found.differences, found.last) == ([], life.recorder.decisions)
    assert found.decisions < found.last
    assert any("incomplete after decision 19" in one for one in found.remainder)


async def test_another_process_elsewhere_replays_without_a_difference(tmp_path: Path) -> None:
    """Neither the order of sets, nor the folder, nor what this process has learned is part of a record."""
    life = await recorded(tmp_path / "record", DECISIONS)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    call = "import sys; from policysched.cli import execute; sys.exit(execute(sys.argv[1:]))"
    program = [sys.executable, "-c", call, "replay", str(tmp_path / "record"), "-o", "json"]
    for seed in ("0", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(EXAMPLE.parents[2])}
        done = await asyncio.to_thread(
            subprocess.run, program, cwd=elsewhere, env=environment, capture_output=True, text=True
        )
        told = json.loads(done.stdout)
        assert (done.returncode, told["differences"], told["remainder"]) == (0, [], [])
        assert told["last"] == life.recorder.decisions


def test_replay_that_is_interrupted_tells_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = replay._Comparing._decide

    def interrupted(self: Any, told: Any) -> None:
        if told.number == 7:
            raise KeyboardInterrupt
        looked(self, told)

    monkeypatch.setattr(replay._Comparing, "_decide", interrupted)
    found = replayed(EXAMPLE)
    assert (found.decisions, found.interrupted) == (6, True)
    assert found.summary == "decisions 1–6 equal; interrupted"


def test_replay_with_a_policy_that_is_interrupted_tells_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def tell(done: int) -> None:
        seen.append(done)
        raise KeyboardInterrupt

    monkeypatch.setattr("policysched.app.replay.what_if.TELL_EVERY", 5)
    told = what_if([EXAMPLE], policies=[policy("off", **requiring("false"))], plugins=NO_PLUGINS, progress=tell)
    assert (seen, told.interrupted) == ([5], True)
    assert told.changes
    assert told.summary.endswith("; interrupted")


def test_each_start_of_the_scheduler_is_a_run_and_no_repeat(tmp_path: Path) -> None:
    runs = [tmp_path / f"{number}.record" for number in range(1, 4)]
    for path in runs:
        shutil.copy(EXAMPLE, path)
    found = replayed(tmp_path)
    assert (found.summary, found.remainder, found.exit_code) == ("36 decisions in 3 runs equal", [], 0)
    assert found.to_dict()["runs"] == 3
    assert what_if([tmp_path], policies=[policy("all", **requiring("true"))], plugins=NO_PLUGINS).notes == ()


def test_differences_name_their_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = RecordedOutcome("n99", nominated=False, feasible=1, ties=1, text="", digest=b"")
    for number in (1, 2):
        shutil.copy(EXAMPLE, tmp_path / f"{number}.record")
    monkeypatch.setattr(replay, "outcome_of", lambda _: other)
    found = replayed(tmp_path)
    assert {(one.run, one.number) for one in found.differences} == {(run, n) for run in (1, 2) for n in range(1, 13)}
    assert found.summary.startswith("24 decisions in 2 runs: 24 of 24 differ")
    assert [one["run"] for one in found.to_dict()["differences"]] == [one.run for one in found.differences]
