from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from policysched.cli import execute

FOLDER = Path(__file__).parent


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
    """Run the command in this process, in the folder of the reports and without a kubeconfig."""
    monkeypatch.chdir(FOLDER)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str) -> Done:
        code = execute(arguments)
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run
