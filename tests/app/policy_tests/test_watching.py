"""Tests are run again when what they are made of changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from policysched.app.policy_tests.watching import snapshot, watch

TESTS = "cluster: {files: [../cluster.yaml]}\ntests: [{given: a, expect: {}}]"


def runs_after(folder: Path, changes: list[Callable[[], object]]) -> int:
    """Count the runs while some changes are made, one a pause."""
    (folder / "a").mkdir()
    (folder / "a" / "tests.yaml").write_text(TESTS, "utf-8")
    (folder / "cluster.yaml").write_text("kind: Node", "utf-8")
    counted: list[int] = []
    waiting = iter(changes)

    def pause() -> None:
        change = next(waiting, None)
        if change is None:
            raise KeyboardInterrupt
        change()

    with pytest.raises(KeyboardInterrupt):
        watch([str(folder)], lambda: counted.append(1), pause)
    return len(counted)


def test_every_change_of_a_file_runs_the_tests_again(tmp_path: Path) -> None:
    changes: list[Callable[[], object]] = [
        lambda: None,
        lambda: (tmp_path / "a" / "policy.yaml").write_text("new", "utf-8"),
        lambda: (tmp_path / "cluster.yaml").write_text("kind: Node # changed", "utf-8"),
        lambda: (tmp_path / "a" / "tests.yaml").write_text("- broken: [", "utf-8"),
        lambda: (tmp_path / "a" / "notes.txt").write_text("no file of ours", "utf-8"),
        (tmp_path / "a" / "tests.yaml").unlink,
    ]
    assert runs_after(tmp_path, changes) == 5


def test_what_is_not_there_is_not_watched(tmp_path: Path) -> None:
    assert snapshot([str(tmp_path / "none")]) == {}
