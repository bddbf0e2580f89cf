"""Kubernetes' own table of cases for the plugin is read as it was played."""

from __future__ import annotations

import pytest

from tests.controlplane.golang import BuildError
from tests.controlplane.releases import RELEASES, compared

from .tables import CALLS, TableCase, table, with_calls

pytestmark = pytest.mark.oracle

CASES = {"1.36": 86, "1.37": 94}
"""How many cases there are, by minor."""


@pytest.fixture(scope="module", params=compared())
def minor(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def cases(minor: str) -> dict[str, TableCase]:
    return {case.name: case for case in table(RELEASES[minor])}


def test_table_is_whole(minor: str, cases: dict[str, TableCase]) -> None:
    assert len(cases) == CASES[minor]
    assert all(case.steps for case in cases.values())
    points = {step["point"].split("/")[0] for case in cases.values() for step in case.steps}
    assert points >= {
        "PreEnqueue",
        "prefilter",
        "filter",
        "score",
        "normalizeScore",
        "reserve",
        "prebind",
        "postfilter",
    }


def test_table_has_answers_and_what_they_left(cases: dict[str, TableCase]) -> None:
    steps = {step["point"]: step for step in cases["with-resources"].steps}
    assert steps["filter/worker"]["code"] == "Success"
    [in_flight] = steps["reserve"]["inFlight"]
    assert in_flight["status"]["allocation"]["devices"]["results"]
    [written] = steps["prebind"]["claims"]
    assert written["status"]["reservedFor"][0]["name"] == "my-pod"


def test_test_of_another_version_is_refused() -> None:
    with pytest.raises(BuildError, match="0 places instead of 1"):
        with_calls("".join(old * count for old, _, count in CALLS[1:]))
