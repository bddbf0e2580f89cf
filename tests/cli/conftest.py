from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from policysched.cli import execute

Write = Callable[[str, str], str]


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    problem: str

    @property
    def value(self) -> Any:
        """What the command printed with `-o json`."""
        return json.loads(self.out)


Command = Callable[..., Done]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Run the command in this process, in a folder of its own and without a kubeconfig."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str) -> Done:
        code = execute(arguments)
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file of the command's folder and give its name."""

    def written(name: str, text: str) -> str:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return name

    return written
