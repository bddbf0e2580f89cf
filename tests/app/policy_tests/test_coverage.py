"""Coverage tells which parts of a policy tests reach, and leaves decisions as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from policysched.app.policy_tests.coverage import PolicyCoverage, percent
from policysched.app.policy_tests.running import PolicyTestOptions
from policysched.app.policy_tests.suite import PolicyTestRun, RunChoices, run_files
from tests.app.policy_tests.folders import write_tests


def covered(folder: Path, spec: str, tests: str, least: float = 0.0) -> PolicyTestRun:
    """Run tests of a policy with coverage."""
    path = write_tests(folder, tests, spec)
    return run_files([path], PolicyTestOptions(), RunChoices(coverage=True, least_coverage=least))


def missed(folder: Path, spec: str, tests: str) -> list[str]:
    """Return what tests do not reach of the policy `policy`."""
    run = covered(folder, spec, f"cluster: {{nodes: [{{name: n1, labels: {{x: a}}}}]}}\ntests:\n{tests}")
    assert not run.problems
    [one] = run.coverage
    return [statement.removeprefix("policy: spec.") for statement, _ in one.missed_places()]


ANY = "- {given: a, expect: {result: Scheduled}}"
NONE = "- {given: a, expect: {rejected: {a: ['*']}, result: Unschedulable}}"
LABEL = 'node.labels["x"]'
CASES = [
    (f"filters: [{{name: a, require: '{LABEL} == \"a\"'}}]", ANY, [
        f'filters[0].require: {LABEL} == "a" never false', f"filters[0].require: {LABEL} never missing",
    ]),
    ("filters: [{name: a, require: 'node.name == \"n2\" or not node.cordoned'}]", ANY, [
        'filters[0].require: node.name == "n2" or not node.cordoned never false',
        'filters[0].require: node.name == "n2" never true', "filters[0].require: node.cordoned never true",
    ]),
    ("filters: [{name: a, require: 'any(pod.images, item == \"a:1\") or max([1, 2], item) > pod.priority'}]", ANY, [
        'filters[0].require: any(pod.images, item == "a:1") or max([1, 2], item) > pod.priority never false',
        'filters[0].require: any(pod.images, item == "a:1") never true',
        "filters[0].require: max([1, 2], item) > pod.priority never false",
    ]),
    ("filters: [{name: a, require: 'node.conditions[\"Ready\"] == \"True\"'}]", ANY, [
        'filters[0].require: node.conditions["Ready"] == "True" never false',
        'filters[0].require: node.conditions["Ready"] never missing',
    ]),
    ("appliesTo: pod.priority > 5\nfilters: [{name: a, require: node.ready}]", ANY, [
        "appliesTo: pod.priority > 5 never true", "filters[0].require: node.ready never true",
        "filters[0].require: node.ready never false",
    ]),
    ("filters: [{name: a, when: 'has(pod.labels[\"y\"])', require: node.ready}]", ANY, [
        'filters[0].when: has(pod.labels["y"]) never true', 'filters[0].when: pod.labels["y"] never present',
        "filters[0].require: node.ready never true", "filters[0].require: node.ready never false",
    ]),
    ("scores: [{name: s, cases: ['node.name == \"n2\" → 3', 'node.ready → 5', else → 7]}]", ANY, [
        'scores[0].cases[0]: node.name == "n2" never taken', 'scores[0].cases[0]: node.name == "n2" never true',
        "scores[0].cases[1]: node.ready never false", "scores[0].cases[2]: else never taken",
    ]),
    (f"scores: [{{name: s, cases: ['number({LABEL}) > 3 → 3', else → 1, missing → 7]}}]", ANY, [
        f"scores[0].cases[0]: number({LABEL}) > 3 never taken", f"scores[0].cases[0]: number({LABEL}) > 3 never true",
        f"scores[0].cases[0]: number({LABEL}) > 3 never false", f"scores[0].cases[0]: {LABEL} never missing",
        "scores[0].cases[1]: else never taken",
    ]),
    ("let: [{name: many, value: 'node.pods.count(peer.labels[\"p\"] == \"q\")'}]\n"
     "filters: [{name: a, require: many < 3}]", ANY, [
        'let[0].value: peer.labels["p"] == "q" never true', 'let[0].value: peer.labels["p"] == "q" never false',
        'let[0].value: peer.labels["p"] never present', 'let[0].value: peer.labels["p"] never missing',
        "filters[0].require: many < 3 never false",
    ]),
    ("scores: [{name: s, value: node.free.cpu / node.allocatable.cpu * 100}]", NONE.replace("{a: ['*']}", "{}"), [
        "scores[0].value: node.free.cpu / node.allocatable.cpu * 100 never evaluated",
    ]),
    ("filters: [{name: a, require: 'count(node.labels[\"x\"] == \"a\") < 5'}]", ANY, [
        'filters[0].require: count(node.labels["x"] == "a") < 5 never false',
        'filters[0].require: node.labels["x"] == "a" never false', 'filters[0].require: node.labels["x"] never missing',
    ]),
    ("metrics: [{name: load, query: load}]\nfilters: [{name: a, require: metrics.load < 1}]", NONE, [
        "filters[0].require: metrics.load < 1 never true", "filters[0].require: metrics.load < 1 never false",
        "filters[0].require: metrics.load never present",
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "tests", "statements"), CASES)
def test_what_no_test_reaches_is_told(tmp_path: Path, spec: str, tests: str, statements: list[str]) -> None:
    if "value: node.free" in spec:
        tests = "- {given: a, pod: {requests: {cpu: 99}}, expect: {result: Unschedulable}}"
    assert missed(tmp_path, spec, tests) == statements


RACKS = "cluster: {nodes: [{name: 'a*', count: 2, labels: {rack: a}}, {name: b1, labels: {rack: b}}]}"
GANG = "- {given: a, group: {minCount: 2, pods: [{count: 2, requests: {cpu: 3}}]}, expect: {}}"
BY_RACK = "placement:\n  topologyKey: rack\n"
PLACEMENT_CASES = [
    ("  filters: [{name: f, require: placement.size > 1}]", GANG, []),
    ("  filters: [{name: f, require: placement.size > 0}]", GANG, [
        "placement.filters[0].require: placement.size > 0 never false",
    ]),
    ("  filters: [{name: f, when: group.size > 5, require: placement.size > 1}]", GANG, [
        "placement.filters[0].when: group.size > 5 never true",
        "placement.filters[0].require: placement.size > 1 never true",
        "placement.filters[0].require: placement.size > 1 never false",
    ]),
    ("  filters: [{name: f, require: 'placement.name == \"a\" and placement.nodes.all(node.ready)'}]", GANG, [
        "placement.filters[0].require: placement.nodes.all(node.ready) never false",
        "placement.filters[0].require: node.ready never false",
    ]),
    ("  scores: [{name: s, value: 'placement.nodes.sum(node.free.cpu) / 1000m'}]", GANG, []),
    ("  filters: [{name: f, require: placement.size > 5}]\n  scores: [{name: s, value: placement.size}]", GANG, [
        "placement.filters[0].require: placement.size > 5 never true",
        "placement.scores[0].value: placement.size never evaluated",
    ]),
    ("  scores: [{name: s, cases: ['placement.size > 1 → 3', 'placement.size > 7 → 5', else → 7]}]", GANG, [
        "placement.scores[0].cases[0]: placement.size > 1 never false",
        "placement.scores[0].cases[1]: placement.size > 7 never taken",
        "placement.scores[0].cases[1]: placement.size > 7 never true",
        "placement.scores[0].cases[1]: placement.size > 7 never false",
        "placement.scores[0].cases[2]: else never taken",
    ]),
    ("  filters: [{name: f, require: placement.size > 1}]", ANY, [
        "placement.filters[0].require: placement.size > 1 never true",
        "placement.filters[0].require: placement.size > 1 never false",
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("rules", "tests", "statements"), PLACEMENT_CASES)
def test_placement_rules_are_reached_by_the_placements_of_groups(
    tmp_path: Path, rules: str, tests: str, statements: list[str]
) -> None:
    run = covered(tmp_path, f"{BY_RACK}{rules}", f"{RACKS}\ntests:\n{tests}")
    assert not run.problems
    assert [one.removeprefix("policy: spec.") for one, _ in run.coverage[0].missed_places()] == statements


def test_placement_rules_without_a_key_are_reached_on_all_nodes(tmp_path: Path) -> None:
    run = covered(
        tmp_path, "placement: {filters: [{name: f, require: placement.size == 3}]}", f"{RACKS}\ntests:\n{GANG}"
    )
    [(statement, _)] = run.coverage[0].missed_places()
    assert statement.endswith("placement.size == 3 never false")


def test_a_condition_on_victims_is_reached_by_preemption(tmp_path: Path) -> None:
    spec = 'preemption: {require: \'victim.labels["keep"] != "yes"\'}'
    cluster = "cluster: {nodes: [{name: n1, allocatable: {cpu: 1}}], pods: [{name: low, node: n1, requests: {cpu: 1}}]}"
    test = "- {given: a, pod: {priority: 9, requests: {cpu: 1}}, expect: {nominated: {n1: [default/low]}}}"
    run = covered(tmp_path, spec, f"{cluster}\ntests:\n{test}")
    assert run.passed
    assert [one.rpartition(" ")[2] for one, _ in run.coverage[0].missed_places()] == ["false", "present"]


def test_marks_stand_under_the_text_of_the_policy(tmp_path: Path) -> None:
    spec = 'filters:\n- name: a\n  require: |-\n    node.ready or\n    node.name == "n2"\n'
    run = covered(tmp_path, spec, f"cluster: {{nodes: [{{name: n1}}]}}\ntests:\n{ANY}")
    assert run.coverage[0].lines()[1:] == [
        "  spec.filters[0].require", "    node.ready or", "    ^^^^^^^^^^ never false", "    ^^^^^^^^^^^^^ never false",
        '    node.name == "n2"', "    ^^^^^^^^^^^^^^^^^ never true",
    ]  # fmt: skip
    said = run.to_dict()["policies"][0]
    assert (said["covered"], said["total"], said["percent"]) == (3, 6, 50.0)
    assert {"begin": 0, "end": 10, "text": "node.ready", "side": "false", "covered": False} in said["texts"][0]["parts"]


def test_too_little_coverage_fails_a_run(tmp_path: Path) -> None:
    tests = f"cluster: {{nodes: [{{name: n1}}]}}\ntests:\n{ANY}"
    assert covered(tmp_path, "filters: [{name: a, require: node.ready}]", tests, 50).exit_code == 0
    assert covered(tmp_path, "filters: [{name: a, require: node.ready}]", tests, 51).exit_code == 1


def test_an_explained_part_does_not_count_and_a_wrong_explanation_fails(tmp_path: Path) -> None:
    tests = f"cluster: {{nodes: [{{name: n1}}]}}\ntests:\n{ANY}\nunreached:\n- {{part: '%s', reason: all are}}\n"
    spec = "filters: [{name: a, require: node.ready}]"
    run = covered(tmp_path, spec, tests % "policy: spec.filters[0].require: node.ready never false", 100)
    assert (run.exit_code, run.coverage[0].total) == (0, 1)
    run = covered(tmp_path, spec, tests % "policy: spec.filters[0].require: node.ready never true")
    assert (run.exit_code, len(run.wrong)) == (1, 1)


def test_a_share_is_whole_only_where_nothing_is_left() -> None:
    assert [percent(*one) for one in ((0, 0), (1, 3), (9999, 10000), (3, 3))] == [100.0, 33.3, 99.9, 100.0]


def test_coverage_changes_no_decision(tmp_path: Path) -> None:
    path = write_tests(tmp_path, f"cluster: {{nodes: [{{name: 'n*', count: 5}}]}}\ntests:\n{ANY}")
    plain, observed = (
        run_files([path], PolicyTestOptions(), RunChoices(coverage=coverage)) for coverage in (False, True)
    )
    assert plain.results[0].records == observed.results[0].records
    assert plain.coverage == []
    assert isinstance(observed.coverage[0], PolicyCoverage)
