"""No frequent operation needs over 10 % more function calls than its stored baseline."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import calls


@pytest.mark.parametrize("operation", calls.OPERATIONS)
def test_calls_of_an_operation_are_those_of_the_baseline(operation: str) -> None:
    counted = calls.OPERATIONS[operation]()
    assert counted <= calls.ALLOWED * calls.baseline()[operation], "`python -m bench.calls --write` stores new numbers"


def test_the_baseline_is_stored_and_a_larger_number_of_calls_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    counted = iter([100.0, 109.0, 111.0])
    monkeypatch.setattr(calls, "BASELINE", tmp_path / "calls.json")
    monkeypatch.setattr(calls, "OPERATIONS", {"work": lambda: next(counted)})
    assert [calls.main(arguments) for arguments in (["--write"], [], [])] == [0, 0, 1]
    assert calls.baseline() == {"work": 100.0}
    assert "1.11" in capsys.readouterr().out
