"""A few seconds of the day are played to a real scheduler, and what they came to is told."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bench import day, start

SIZES = ("--nodes", "100", "--pods", "50000", "--policies", "2", "--speed", "40")


def test_pods_of_some_minutes_are_bound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    day.main([*SIZES, "--hours", "0.02", "--results", str(tmp_path), "--name", "short"])
    found = msgspec.json.decode((tmp_path / "short.json").read_bytes())
    [hour] = found["hours"]
    assert (found["nodes"], found["policies"], hour["until"]) == (100, 2, 72.0)
    assert hour["reports"] == 720
    assert hour["bound"] > 0 and hour["pod_events"] >= 2 * hour["bound"]
    assert 0 < hour["own"]["p50"] <= hour["own"]["worst"]
    assert hour["latency"]["p50"] > 0 and hour["mib"] > 10
    assert "0.0 hours, 720 node events" in capsys.readouterr().out


def test_a_watch_begins_with_what_it_missed() -> None:
    stream = day.Stream()
    stream.tell(b"ADDED", b'{"metadata":{"resourceVersion":"RV"}}')
    assert stream.version == int(start.VERSION) + 1
    assert [line for _, line in stream._events] == [
        b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"1001"}}}\n'
    ]
