"""One build of a release's files for all tests of a process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.release.building import build
from tools.release.checking import check_versions
from tools.release.tracked import ROOT


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the files of a release."""
    folder = tmp_path_factory.mktemp("release")
    build(folder, check_versions(ROOT))
    return folder
