"""Every folder of examples/ is a policy, a cluster and tests, and the policy does what the tests say.

`pytest tests/examples/test_cases.py -k FOLDER` runs the tests of one folder.
"""

from __future__ import annotations

import pytest

import policysched
from policysched.app.policy_tests.reading import read_tests
from policysched.app.policy_tests.running import LoadedTest, PolicyTestOptions, load_tests, run_test
from policysched.app.policy_tests.suite import RunChoices, run_files
from tests.examples.cases import CLUSTER, EXAMPLES, FOLDERS, PLUGINS, POLICY, TESTS, cases, documents

LOADED = [
    pytest.param(one, id=f"{folder}: {one.written.given}")
    for folder in FOLDERS
    for one in load_tests(read_tests(EXAMPLES / folder / TESTS))
]


@pytest.mark.parametrize("one", LOADED)
def test_a_policy_does_what_its_tests_say(one: LoadedTest) -> None:
    result = run_test(one, PolicyTestOptions())
    assert result.passed, [result.problem, *(difference.lines() for difference in result.differences)]


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_tests_reach_all_of_a_policy_and_notice_every_change_of_it(folder: str) -> None:
    choices = RunChoices(coverage=True, least_coverage=100, mutate=True)
    run = run_files([EXAMPLES / folder / TESTS], PolicyTestOptions(), choices)
    assert [one.missed_places() for one in run.coverage] == [[]]
    assert [one.unnoticed + one.wrong for one in run.mutation] == [[]]
    assert run.passed, run.wrong


def test_every_folder_has_what_it_needs() -> None:
    without = {str(one.relative_to(EXAMPLES)) for one in EXAMPLES.glob("*/*") if one.is_dir()} - {
        *FOLDERS,
        "tour/10-record",
    }
    assert without == PLUGINS, "only what no policy can say is a plugin alone"
    for folder in FOLDERS:
        assert {POLICY, CLUSTER, TESTS} <= {one.name for one in (EXAMPLES / folder).iterdir()}, folder


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_rule_of_a_policy_speaks_in_its_tests(folder: str) -> None:
    [policy] = documents(folder, POLICY)
    tried = [case.expect for case in cases(folder)]
    for rule in policy["spec"].get("filters", ()):
        reasons = [str(one.reason) for expect in tried for one in (expect.members or {}).values()]
        spoken = any(expect.rejected.get(rule["name"]) for expect in tried)
        assert spoken or any(rule["name"] in reason for reason in reasons), rule["name"]
    if "preemption" in policy["spec"]:
        assert any(expect.protected for expect in tried)
        assert any(expect.nominated for expect in tried)
    for rule in policy["spec"].get("scores", ()):
        assert any((expect.scores or {}).get(rule["name"]) for expect in tried), rule["name"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_policy_compiles_without_a_warning(folder: str) -> None:
    assert policysched.check(documents(folder, POLICY)) == []
