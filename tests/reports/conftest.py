from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Command, Done
from tests.cli.conftest import command as elsewhere

__all__ = ["Command", "Done", "elsewhere"]
FOLDER = Path(__file__).parent


@pytest.fixture
def command(elsewhere: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run the command in this process, in the folder of the reports and without a kubeconfig."""
    monkeypatch.chdir(FOLDER)
    return elsewhere
