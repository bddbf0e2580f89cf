"""The warning about API servers of another minor version than the scheduler's."""

from __future__ import annotations

import pytest

from policysched.app.running.versions import KUBERNETES, log_skew
from tests.controlplane.releases import chosen


@pytest.mark.parametrize("version", ["v1.35.9", "v1.37.0-alpha.1", "v2.36.2", "v1.3.6", "v1.28.4-eks-4fe1b3c"])
def test_other_minor_version_is_logged(version: str, caplog: pytest.LogCaptureFixture) -> None:
    log_skew(version)
    assert caplog.messages == [f"the API server has version {version}; policysched is tested with {KUBERNETES} only"]


@pytest.mark.parametrize("version", [KUBERNETES, "v1.36.0+k3s1", "v1.36.9-gke.1", "", "main"])
def test_same_version_is_not(version: str, caplog: pytest.LogCaptureFixture) -> None:
    log_skew(version)
    assert caplog.messages == []


def test_version_is_that_of_the_programs_that_tests_compare_with() -> None:
    assert chosen().version == KUBERNETES
