"""Several flags of a command can name the standard input: it is read once."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from .conftest import FOLDER, Command

CLUSTER, POLICY, POD = ((FOLDER / name).read_text("utf-8") for name in ("nodes3.yaml", "pol.yaml", "c15-pod.yaml"))


@pytest.mark.parametrize(
    ("texts", "ask"),
    [
        ((POLICY, POD), ("dry-run", "--cluster", "nodes3.yaml", "--policy", "-", "--pod", "-")),
        ((CLUSTER, POD), ("dry-run", "--cluster", "-", "--pod", "-")),
        ((CLUSTER, POD, POLICY), ("plan", "--cluster", "-", "--policy", "-")),
        ((CLUSTER, POD, POLICY), ("why", "web", "--cluster", "-", "--policy", "-")),
    ],
)
def test_standard_input_answers_as_the_file_does(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, texts: tuple[str, ...], ask: tuple[str, ...]
) -> None:
    text = "\n---\n".join(texts)
    file = tmp_path / "all.yaml"
    file.write_text(text, "utf-8")
    expected = command(*(str(file) if one == "-" else one for one in ask))
    for _ in range(2):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        done = command(*ask)
        assert (done.code, done.out) == (expected.code, expected.out)
        assert "no objects" not in done.problem
    assert expected.code in (0, 1)
