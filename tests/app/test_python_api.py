"""The functions of `policysched` take objects alike and return results with attributes that type checkers know."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import policysched
from tools.documents.markdown import ROOT

Object = dict[str, Any]
NODES: list[Object] = [
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"disk": disk}},
        "status": {"allocatable": {"cpu": "4", "pods": "110"}},
    }
    for name, disk in (("n1", "hdd"), ("n2", "ssd"))
]
SPEC = {"containers": [{"name": "c", "image": "app", "resources": {"requests": {"cpu": "1"}}}]}
WEB: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}}
WEB["spec"] = {**SPEC, "schedulerName": "policysched", "nodeName": "n1"}
NEW: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "new"}, "spec": SPEC}
POLICY: Object = {
    "apiVersion": "policysched.io/v1beta1",
    "kind": "SchedulingPolicy",
    "metadata": {"name": "fast"},
    "spec": {"filters": [{"name": "ssd", "require": 'node.labels["disk"] == "ssd"'}]},
}
WRONG: Object = {**POLICY, "spec": {"filters": [{"name": "ssd", "require": 'node.labels["cores"] > 10'}]}}
CLUSTER = [*NODES, WEB]
CONFIG = (
    "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    "profiles: [{schedulerName: policysched}]\n"
)


def _file(folder: Path, name: str, objects: list[Object]) -> Path:
    path = folder / name
    path.write_text(yaml.safe_dump_all(objects), "utf-8")
    return path


def _in_folder(objects: list[Object], folder: Path) -> Path:
    (folder / "in").mkdir(exist_ok=True)
    return _file(folder / "in", "objects.yaml", objects).parent


FORMS: dict[str, Callable[[list[Object], Path], Any]] = {
    "list": lambda objects, _: objects,
    "iterator": lambda objects, _: iter(objects),
    "List": lambda objects, _: [{"apiVersion": "v1", "kind": "List", "items": objects}],
    "one List": lambda objects, _: {"apiVersion": "v1", "kind": "List", "items": objects},
    "YAML text": lambda objects, _: yaml.safe_dump_all(objects),
    "JSON text": lambda objects, _: json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}),
    "file": lambda objects, folder: _file(folder, "objects.yaml", objects),
    "file name": lambda objects, folder: str(_file(folder, "objects.yaml", objects)),
    "folder": _in_folder,
    "list of files": lambda objects, folder: [_file(folder, f"{n}.yaml", [one]) for n, one in enumerate(objects)],
}


@pytest.mark.parametrize("form", FORMS)
def test_objects_are_taken_in_every_form(form: str, tmp_path: Path) -> None:
    def given(objects: list[Object] = CLUSTER) -> Any:
        return FORMS[form](objects, tmp_path)

    assert policysched.dry_run(given(), NEW, POLICY).selected == "n2"
    assert policysched.why(given(), "web", policies=POLICY).selected == "n2"
    assert policysched.plan(given(), policies=POLICY).effects[0].after == "n2"
    third = {**NODES[1], "metadata": {"name": "n3", "labels": {"disk": "ssd"}}}
    made = policysched.plan(CLUSTER, nodes=given([third]), without_nodes="n2", policies=POLICY)
    assert made.effects[0].after == "n3"


@pytest.mark.parametrize("form", [*sorted({*FORMS} - {"List", "one List", "JSON text"}), "dict"])
def test_policies_are_taken_in_every_form(form: str, tmp_path: Path) -> None:
    def given(policy: Object = POLICY) -> Any:
        return policy if form == "dict" else FORMS[form]([policy], tmp_path)

    assert policysched.check(given()) == []
    assert policysched.dry_run(CLUSTER, NEW, given()).selected == "n2"
    assert policysched.why(CLUSTER, "web", policies=given()).selected == "n2"
    assert policysched.plan(CLUSTER, policies=given()).effects[0].after == "n2"
    [found] = policysched.check(given(WRONG))
    assert (found.code, found.field, found.policy) == ("E0301", "spec.filters[0].require", "fast")


def test_one_name_is_taken_in_place_of_a_list() -> None:
    assert policysched.plan([*CLUSTER, POLICY], without_policies="fast").pods == 1
    assert policysched.plan(CLUSTER, without_nodes="n1").effects[0].after == "n2"


def test_pod_and_configuration_are_taken_as_text_and_file(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(CONFIG, "utf-8")
    for config in (CONFIG, yaml.safe_load(CONFIG), file, str(file)):
        assert policysched.dry_run(NODES, NEW, config=config).result == "Scheduled"
    for pod in (NEW, yaml.safe_dump(NEW), _file(tmp_path, "pod.yaml", [NEW])):
        assert policysched.dry_run(NODES, pod).pod == "default/new"


@pytest.mark.parametrize(
    ("objects", "pod", "policies", "why"),
    [
        ("nothing.yaml", NEW, (), "nothing.yaml: no such file"),
        (CLUSTER, yaml.safe_dump_all([NEW, WEB]), (), "pod must be one object, got 2"),
        (CLUSTER, NEW, yaml.safe_dump(NEW), "expected a SchedulingPolicy, got a Pod"),
        (CLUSTER, NEW, 5, "policies must be an object, a path, or a list of them, got int"),
        (yaml.safe_dump_all([*NODES, NODES[0]]), NEW, (), 'node "n1" is also defined at <text>:1:1'),
    ],
)
def test_input_that_cannot_be_used_is_named(objects: Any, pod: Any, policies: Any, why: str) -> None:
    with pytest.raises(policysched.UsageError) as caught:
        policysched.dry_run(objects, pod, policies)
    assert why in str(caught.value)


def test_check_reads_files_as_the_command_does(tmp_path: Path) -> None:
    path = _file(tmp_path, "all.yaml", [NODES[0], WRONG])
    [found] = policysched.check(path)
    assert (found.file, found.severity, found.is_error) == (str(path), "error", True)
    assert found.to_dict()["fileLine"] > 5
    assert (found.line, found.column, found.end_column) == (1, 1, 26)
    assert found.help == "labels are strings; convert them with number(...)"
    with pytest.raises(policysched.UsageError, match="no SchedulingPolicy found"):
        policysched.check(_file(tmp_path, "none.yaml", NODES))


def test_results_have_the_same_attributes() -> None:
    report = policysched.dry_run(CLUSTER, NEW, POLICY)
    explanation = policysched.why(CLUSTER, "web", policies=POLICY)
    plan = policysched.plan(CLUSTER, policies=POLICY)
    for one in (report, explanation):
        assert (one.selected, one.best, list(one.total)) == ("n2", ("n2",), ["n2"])
        assert sum(one.scores["n2"].values()) == one.total["n2"]
        assert one.scheduler_name == "policysched"
        assert one.diagnostics == ()
    assert (report.pod, explanation.pod) == ("default/new", "default/web")
    assert report.summary == "pod default/new would go to n2"
    assert report.rejected["n1"]["reasons"] == ['policy fast/ssd: node.labels["disk"] == "ssd"']
    assert [type(one.to_dict()) for one in (report, explanation, plan)] == [dict] * 3
    for each in (report, explanation, plan):
        assert each.summary
        assert isinstance(each.notes, tuple)


def test_report_of_a_pod_that_fits_no_node() -> None:
    report = policysched.dry_run(NODES[:1], NEW, POLICY)
    assert (report.result, report.selected, report.best, report.scores) == ("Unschedulable", "", (), {})
    assert report.summary.startswith("pod default/new fits no node: 0/1 nodes are available: ")
    assert policysched.dry_run(NODES, NEW, WRONG).not_applied["fast"]


def test_names_are_exported_and_imported_at_first_use() -> None:
    assert set(policysched.__all__) <= set(dir(policysched))
    for name in policysched.__all__:
        assert getattr(policysched, name)
    program = "import sys, policysched; print([one for one in sys.modules if one.startswith('policysched.')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


RIGHT = """
from pathlib import Path

from policysched import Explanation, Finding, Plan, Report, UsageError, check, dry_run, plan, why


def first(objects: list[dict[str, object]], pod: dict[str, object]) -> Report:
    try:
        return dry_run(objects, pod, policies=Path("policies"), config="config.yaml", seed=0)
    except UsageError as error:
        raise SystemExit(str(error)) from error


report: Report = first([], {})
points: int = report.scores["n1"]["ImageLocality"] + report.total["n1"]
node: str = report.selected
findings: list[Finding] = check({"kind": "SchedulingPolicy"})
codes: list[str] = [one.code for one in findings if one.is_error]
planned: Plan = plan("cluster.yaml", policies=[Path("a.yaml"), {"kind": "SchedulingPolicy"}], without_nodes="n1")
moves: dict[str, str] = {one.pod: one.after for one in planned.effects}
told: Explanation = why(Path("cluster.yaml"), "web")
sentences: list[str] = [report.summary, planned.summary, told.summary, *told.notes, *report.notes, *planned.notes]
"""
WRONG_PROGRAM = """
from policysched import check, dry_run
from policysched.plugin import CycleState, FilterMethods, NodeInfo, Pod, ScoreMethods, Status

dry_run([], {}).selcted
dry_run([], 5)
check({})[0]["code"]


class Mine(FilterMethods, ScoreMethods):
    def filter(self, state: CycleState, node: NodeInfo) -> Status | None:
        return None

    def socre(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return 1


Mine()
"""


def test_type_checker_knows_the_api(tmp_path: Path) -> None:
    (tmp_path / "right.py").write_text(RIGHT, "utf-8")
    (tmp_path / "wrong.py").write_text(WRONG_PROGRAM, "utf-8")
    mypy = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-pretty", "right.py", "wrong.py"]
    done = subprocess.run(mypy, cwd=tmp_path, env={"MYPYPATH": str(ROOT)}, capture_output=True, text=True, check=False)
    errors = [line.split(": ", 2) for line in done.stdout.splitlines() if ": error: " in line]
    assert [place for place, _, _ in errors] == [f"wrong.py:{line}" for line in (5, 6, 7, 11, 18)], done.stdout
