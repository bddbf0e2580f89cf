"""Steps of a test have one cluster, which is left as a scheduler leaves it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.policy_tests.folders import results

SPEC = "filters: [{name: two, require: node.pods.count(true) < 2}]"
NODES = "cluster: {nodes: [{name: n-*, count: 2, allocatable: {cpu: 2}, labels: {zone: 'z*'}}]}\n"


def check(folder: Path, steps: str, spec: str = SPEC) -> None:
    """Run one test of some steps, which has to pass."""
    [found] = results(folder, f"{NODES}tests:\n- given: steps\n  steps:\n{steps}", spec)
    assert found.passed, (found.problem, found.differences)


def test_a_pod_that_was_placed_is_on_its_node(tmp_path: Path) -> None:
    check(
        tmp_path,
        """\
  - pod: {name: a, nodeSelector: {zone: z1}}
    expect: {selected: n-1}
  - pod: {name: b, nodeSelector: {zone: z1}}
    expect: {selected: n-1}
  - pod: {name: c}
    expect: {rejected: {two: [n-1]}, selected: n-2}
  - remove: {pods: [a]}
    pod: {name: d, nodeSelector: {zone: z2}}
    expect: {result: Scheduled}
  - remove: {nodes: [n-1]}
    pod: {name: e}
    expect: {rejected: {two: [n-2]}, result: Unschedulable}
  - add: {nodes: [{name: n-3}]}
    again: e
    expect: {rejected: {two: [n-2]}, selected: n-3}
""",
    )


def test_victims_are_gone_and_the_pod_is_nominated(tmp_path: Path) -> None:
    check(
        tmp_path,
        """\
  - add: {pods: [{name: low-*, count: 1, node: n-1, requests: {cpu: 2}}, {name: low-b, node: n-2, requests: {cpu: 1}}]}
    pod: {name: high, priority: 10, requests: {cpu: 2}, nodeSelector: {zone: z1}}
    expect: {best: [], nominated: {n-1: [default/low-1]}}
  - again: default/high
    expect: {selected: n-1}
""",
    )


def test_a_policy_is_edited_in_between_and_a_broken_edit_changes_nothing(tmp_path: Path) -> None:
    check(
        tmp_path,
        """\
  - edit: {policy: policy, spec: {filters: [{name: last, require: 'node.name == "n-2"'}]}}
    pod: {}
    expect: {rejected: {last: [n-1]}, selected: n-2}
  - edit: {policy: policy, spec: {filters: [{name: last, require: node.nme}]}}
    pod: {}
    expect: {rejected: {last: [n-1]}}
  - edit: {policy: policy, spec: {mode: Disabled}}
    pod: {}
    expect: {notApplied: {policy: mode is Disabled}}
  - edit: {policy: policy, delete: true}
    pod: {}
    expect: {result: Scheduled}
""",
    )


def test_time_passes_and_metrics_change(tmp_path: Path) -> None:
    spec = (
        "metrics: [{name: load, query: load}]\n"
        "filters: [{name: cool, require: metrics.load < 1}, {name: old, require: node.age >= 5min}]"
    )
    steps = """\
  - add: {nodes: [{name: n-1, created: '2026-01-01T00:00:00Z'}, {name: n-2, created: '2026-01-01T00:00:00Z'}]}
    metrics: {load: {n-1: 2, n-2: 0.5}}
    pod: {}
    expect: {rejected: {cool: [n-1], old: ['*']}}
  - wait: 5min
    metrics: {load: {n-1: 0.5, n-2: null}}
    pod: {}
    expect: {rules: {cool: {kept: [n-1]}}, selected: n-1}
"""
    check(tmp_path, steps, spec)


WRONG = [
    ("{remove: {nodes: [n-9]}, pod: {}, expect: {}}", "8:23: no node `n-9`; did you mean `n-2`?"),
    ("{remove: {pods: [a]}, pod: {}, expect: {}}", "8:22: no pod `a`"),
    ("{edit: {policy: polic}, pod: {}, expect: {}}", "8:21: no policy `polic`; did you mean `policy`?"),
    ("{wait: soon, pod: {}, expect: {}}", '8:12: expected a duration such as 30s, 5min or 2h, got "soon"'),
    ("{again: a, expect: {}}", "8:13: no pending pod `a`"),
    ("{pod: {file: none.yaml}, expect: {}}", "8:18: {folder}/none.yaml: no such file"),
    ("{pod: {file: pod.yaml, name: b}, expect: {}}", '8:34: {folder}/pod.yaml: no object "b"'),
    ("{pod: {file: pod.yaml, image: b}, expect: {}}", "8:35: field cannot be set together with `file`"),
]


@pytest.mark.parametrize(("step", "problem"), WRONG)
def test_a_step_about_nothing_is_an_error_with_its_place(tmp_path: Path, step: str, problem: str) -> None:
    (tmp_path / "pod.yaml").write_text("{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {}}", "utf-8")
    text = f"{NODES}\n\n\ntests:\n- given: steps\n  steps:\n  - {step}\n"
    [found] = results(tmp_path, text, SPEC)
    assert found.problem == f"{tmp_path}/tests.yaml:{problem.replace('{folder}', str(tmp_path))}"


def test_a_time_that_is_none_is_an_error_with_its_place(tmp_path: Path) -> None:
    [found] = results(tmp_path, f"{NODES}tests:\n- {{given: a, now: later, expect: {{}}}}\n", SPEC)
    assert found.problem == f'{tmp_path}/tests.yaml:3:19: expected a time such as 2026-01-05T23:00:00Z, got "later"'


def test_tests_of_a_file_choose_their_own_cluster_policies_and_seed(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text("{apiVersion: v1, kind: Node, metadata: {name: other}}", "utf-8")
    text = """\
    - {given: default, expect: {best: []}}
    - {given: short, cluster: {files: [cluster.yaml], nodes: [{name: a}]}, expect: {best: [a]}}
    - {given: none, policies: [], cluster: {nodes: [{name: b-*, count: 3}]}, seed: 5, expect: {ties: 3, best: ['b-*']}}
    """
    found = results(tmp_path, text, SPEC)
    assert [(one.problem, one.differences) for one in found] == [("", ())] * 3


def test_a_run_repeats_itself(tmp_path: Path) -> None:
    text = "- {given: a, cluster: {nodes: [{name: b-*, count: 9}]}, expect: {ties: 9}}"
    first, second = (results(tmp_path, text, SPEC)[0].records for _ in range(2))
    assert first == second


def test_conditions_of_nodes_are_stated_by_type(tmp_path: Path) -> None:
    spec = 'filters: [{name: disk, require: \'node.conditions["DiskPressure"] != "True" and node.ready\'}]'
    check(
        tmp_path,
        """\
  - add: {nodes: [{name: full, conditions: {DiskPressure: "True"}}, {name: down, conditions: {Ready: Unknown}}]}
    pod: {name: a}
    expect: {rejected: {disk: [full, down]}, result: Scheduled}
""",
        spec,
    )
