"""Each field of the table of releases that affects decisions has a case on which two kube-schedulers differ.

A witness is a YAML file `witnesses/<field>.yaml` or `witnesses/<field>-<more>.yaml` with a case: `objects`, `pod` and,
if needed, `config`. Differences that are no decision have their witnesses in the tests that `ELSEWHERE` names.
"""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from policysched.model import release as table
from policysched.model.release import RELEASES, Release
from tests.controlplane.releases import RELEASES as BUILT

from .compare import differences
from .judge import ours
from .oracle import Oracle

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

pytestmark = pytest.mark.oracle

FOLDER = Path(__file__).parent / "witnesses"
FILES = sorted(FOLDER.glob("*.yaml"))
MINORS = ("1.36", "1.37")
"""The minors that are compared; the oracle of a preview is not built for every test run."""
CONFIG: Mapping[str, Any] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"plugins": {"score": {"disabled": [{"name": "VolumeBinding"}]}}}],
}
"""The configuration of cases without one: VolumeBinding, which scores every pod from 1.37 on, scores none."""
ELSEWHERE: Mapping[str, str] = dict.fromkeys(
    ("no_claims_are_reported", "preempted_node_is_reported", "budgets_stop_at_violation"),
    "tests/oracle/test_preemption_releases.py",
) | dict.fromkeys(
    ("configuration_fields", "points_without_arguments", "has_deferred_pod_scheduling"),
    "tests/app/configuration/test_release_differences.py",
)
"""Tests of the fields that affect no decision: the file, by field."""


@pytest.fixture(scope="module")
def oracles() -> Iterator[dict[str, Oracle]]:
    with Oracle(BUILT["1.36"]) as old, Oracle(BUILT["1.37"]) as new:
        yield {"1.36": old, "1.37": new}


def field_of(file: Path) -> str:
    return file.stem.partition("-")[0]


def read(file: Path) -> dict[str, Any]:
    case: dict[str, Any] = yaml.safe_load(file.read_text("utf-8"))
    return {"id": file.stem, "config": CONFIG, **case}


def differing(old: Release, new: Release) -> set[str]:
    named = {one.name for one in fields(Release)} - {"version", "is_preview"}
    return {name for name in named if getattr(old, name) != getattr(new, name)}


def test_every_difference_has_a_witness() -> None:
    known = {field_of(file) for file in FILES} | set(ELSEWHERE)
    assert differing(RELEASES["1.36"], RELEASES["1.37"]) - known == set()
    assert known <= {one.name for one in fields(Release)}
    assert [one for one in ELSEWHERE.values() if not (Path(__file__).parents[2] / one).exists()] == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_two_releases_differ_and_ours_equals_each(file: Path, oracles: dict[str, Oracle]) -> None:
    case = read(file)
    theirs = {minor: oracles[minor].decide(case) for minor in MINORS}
    assert differences(theirs["1.36"], theirs["1.37"])
    assert {minor: differences(ours(case, minor), theirs[minor]) for minor in MINORS} == {"1.36": [], "1.37": []}


@pytest.mark.parametrize("field", sorted({field_of(file) for file in FILES}))
def test_a_field_of_the_release_before_fails_exactly_its_witnesses(
    field: str, oracles: dict[str, Oracle], monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = RELEASES["1.36"], RELEASES["1.37"]
    monkeypatch.setitem(table.RELEASES, "1.37", replace(new, **{field: getattr(old, field)}))
    failing = set()
    for file in FILES:
        case = read(file)
        if differences(ours(case, "1.37"), oracles["1.37"].decide(case)):
            failing.add(field_of(file))
    assert failing == {field}
