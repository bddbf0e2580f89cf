"""Each field of the table of releases that affects decisions has a case on which two kube-schedulers differ.

A witness is a YAML file `witnesses/<field>.yaml` or `witnesses/<field>-<more>.yaml` with a case: `objects`, `pod` and,
if needed, `config`. If `<more>` begins with a minor, the witness is one of the change that came with this minor.
Differences that no single case shows have their witnesses in the tests that `ELSEWHERE` names.

The oracle of a preview is not built for every test run: POLICYSCHED_KUBE=1.38 compares its witnesses too.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from policysched.model import release as table
from policysched.model.release import RELEASES, Release
from tests.controlplane.releases import RELEASES as BUILT
from tests.controlplane.releases import chosen

from .compare import differences
from .devices.comparison import differences as device_differences
from .devices.ours import ours as ours_with_claims
from .judge import ours
from .oracle import Oracle

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

pytestmark = pytest.mark.oracle

FOLDER = Path(__file__).parent / "witnesses"
FILES = sorted(FOLDER.glob("*.yaml"))
MINORS = [minor for minor, release in BUILT.items() if not release.is_preview or release is chosen()]
"""The minors that are compared."""
CONFIG: Mapping[str, Any] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"plugins": {"score": {"disabled": [{"name": "VolumeBinding"}]}}}],
}
"""The configuration of cases without one: VolumeBinding, which scores every pod from 1.37 on, scores none."""
SHOWN_ALSO_BY: Mapping[str, frozenset[str]] = {"qualifies_capacities": frozenset({"capacity_errors_fail"})}
"""By field, other fields whose witnesses it changes too: errors about capacities state their qualified names."""
ELSEWHERE: Mapping[str, str] = {
    "budgets_stop_at_violation": "tests/oracle/test_preemption_releases.py",
    "capacities_are_fractional": "tests/devices/test_allocator_releases.py",
    "configuration_fields": "tests/app/configuration/test_release_differences.py",
    "counts_claims_by_owner": "tests/app/test_metrics_of_releases.py",
    "empty_budget_selects_all": "tests/oracle/test_preemption_releases.py",
    "evicts_first_unstarted": "tests/oracle/test_preemption_releases.py",
    "extenders_add_victims": "tests/plugins/test_preemption_extenders.py",
    "empty_topology_is_domain": "tests/plugins/test_pod_group_placements.py",
    "entity_label": "tests/app/test_metrics_of_releases.py",
    "gangs_wait_at_permit": "tests/schedule/groups/test_permit_of_gangs.py",
    "group_generation_is_renewed": "tests/schedule/groups/test_conditions.py",
    "has_deferred_pod_scheduling": "tests/app/configuration/test_release_differences.py",
    "help_names_profiles": "tests/app/test_metrics_of_releases.py",
    "hides_preemption_durations": "tests/app/test_metrics_of_releases.py",
    "lack_of_victims_is_final": "tests/schedule/groups/test_cycle.py",
    "members_rank_as_groups": "tests/plugins/test_victim_groups.py",
    "preemption_policy_comes_first": "tests/schedule/groups/test_group_preemption.py",
    "preemption_ranks_nodes": "tests/schedule/groups/test_group_preemption.py",
    "group_preemption_clears_nominations": "tests/schedule/groups/test_group_preemption.py",
    "latencies_are_beta": "tests/app/test_metrics_of_releases.py",
    "messages_name_pod_group": "tests/plugins/test_gang_scheduling.py",
    "no_deallocation_is_reported": "tests/oracle/test_preemption_releases.py",
    "one_placement_generator": "tests/app/configuration/test_release_differences.py",
    "own_update_event": "tests/app/test_metrics_of_releases.py",
    "pending_pod_event": "tests/app/test_metrics_of_releases.py",
    "placement_search_ends_early": "tests/schedule/groups/test_placements.py",
    "points_without_arguments": "tests/app/configuration/test_release_differences.py",
    "preempted_node_is_reported": "tests/oracle/test_preemption_releases.py",
    "preemption_reserves": "tests/app/configuration/test_release_differences.py",
    "shrinking_node_wakes": "tests/plugins/node_resources/test_fit.py",
    "taint_updates_wake_all": "tests/schedule/test_queue_hints.py",
    "unbound_victim_retries": "tests/recorder/test_written_scripts.py",
    "uid_breaks_ties": "tests/oracle/test_preemption_releases.py",
    "validates_placement_points": "tests/app/configuration/test_release_differences.py",
}
"""Tests of the differences that no single case shows: of queue, metrics, texts, configuration, preemption, previews."""


@pytest.fixture(scope="module")
def oracles() -> Iterator[dict[str, Oracle]]:
    with ExitStack() as stack:
        yield {minor: stack.enter_context(Oracle(BUILT[minor])) for minor in MINORS}


def field_of(file: Path) -> str:
    return file.stem.partition("-")[0]


def read(file: Path) -> dict[str, Any]:
    case: dict[str, Any] = yaml.safe_load(file.read_text("utf-8"))
    return {"id": file.stem, "config": CONFIG, **case}


def fails(case: dict[str, Any], minor: str, theirs: dict[str, Any]) -> list[str]:
    """The differences of our record from kube-scheduler's; for pods with claims, errors and allocations too."""
    if "resourceClaims" in case["pod"]["spec"]:
        return device_differences(ours_with_claims(case, RELEASES[minor]), theirs)
    return differences(ours(case, minor), theirs)


def differing(old: str, new: str) -> set[str]:
    """The fields in which two minors differ."""
    named = {one.name for one in fields(Release)} - {
        "version",
        "is_preview",
        "generic_workload",
        "topology_aware",
        "workload_claims",
    }
    return {name for name in named if getattr(RELEASES[old], name) != getattr(RELEASES[new], name)}


def concerns(file: Path, old: str, new: str) -> bool:
    """Return whether a file is a witness of the difference between two successive minors."""
    more = file.stem.partition("-")[2]
    stated = next((minor for minor in RELEASES if more.startswith(minor)), new)
    return stated == new and field_of(file) in differing(old, new)


STEPS = [(old, new, file) for old, new in pairwise(MINORS) for file in FILES if concerns(file, old, new)]
"""The witnesses, each with two successive minors that differ about it."""


def test_every_difference_has_a_witness() -> None:
    known = {field_of(file) for file in FILES} | set(ELSEWHERE)
    assert set().union(*(differing(old, new) for old, new in pairwise(RELEASES))) - known == set()
    assert known <= {one.name for one in fields(Release)}
    tests = [Path(__file__).parents[2] / one for one in ELSEWHERE.values()]
    assert [one for one in tests if not (one.name.startswith("test_") and one.exists())] == []


@pytest.mark.parametrize(("old", "new", "file"), STEPS, ids=lambda part: getattr(part, "stem", part))
def test_two_releases_differ_and_ours_equals_each(old: str, new: str, file: Path, oracles: dict[str, Oracle]) -> None:
    case = read(file)
    theirs = {minor: oracles[minor].decide(case) for minor in (old, new)}
    assert device_differences(theirs[old], theirs[new])
    assert {minor: fails(case, minor, theirs[minor]) for minor in theirs} == {old: [], new: []}


@pytest.mark.parametrize(("old", "new", "field"), sorted({(old, new, field_of(file)) for old, new, file in STEPS}))
def test_a_field_of_the_release_before_fails_exactly_its_witnesses(
    old: str, new: str, field: str, oracles: dict[str, Oracle], monkeypatch: pytest.MonkeyPatch
) -> None:
    turned_back: dict[str, Any] = {field: getattr(RELEASES[old], field)}
    monkeypatch.setitem(table.RELEASES, new, replace(RELEASES[new], **turned_back))
    failing = set()
    for case in map(read, FILES):
        if fails(case, new, oracles[new].decide(case)):
            failing.add(case["id"].partition("-")[0])
    assert failing - SHOWN_ALSO_BY.get(field, frozenset()) == {field}
