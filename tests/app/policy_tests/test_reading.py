"""Files of tests: their shape, their places, and the JSON schema for editors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from policysched.app.policy_tests import reading
from policysched.app.policy_tests.file_format import json_schema
from policysched.app.policy_tests.reading import find_files, read_tests, take_tests
from policysched.app.policy_tests.running import load_tests
from policysched.errors import UsageError
from tests.app.policy_tests.folders import write_tests
from tools.documents.markdown import ROOT

ONE = "- {given: a, expect: {best: []}}"
BAD = [
    ("3", "1:1: expected an object, got a whole number"),
    ("- expect: {best: []}", "1:3: object missing required field `given`"),
    ("- {given: a}", "1:3: test has neither `expect` nor `steps`"),
    (f"{ONE}\n- {{given: a, expct: {{best: []}}}}", "2:14: unknown field `expct`; did you mean `expect`?"),
    ("tests:\n- {given: a, expect: {reject: {}}}", "2:23: unknown field `reject`; did you mean `rejected`?"),
    ("- {given: a, pod: {label: {a: b}}, expect: {}}", "1:20: unknown field `label`; did you mean `labels`?"),
    ("- {given: a, expect: {best: [1]}}", "1:30: expected a text, got a whole number"),
    (
        "- {given: a, expect: {rules: {big: {keeps: []}}}}",
        "1:30: unknown field `keeps`; did you mean `kept`?",
    ),
    ("test: []", "1:1: unknown field `test`; did you mean `tests`?"),
    ("- {given: a, steps: [{pod: {}}]}", "1:3: no step has `expect`"),
    ("- {given: a, pod: {}, steps: [{expect: {}}]}", "1:19: move `pod` into a step; a test with `steps` has none"),
    ("- {given: a, steps: [{expect: {}}]}", "1:22: step with `expect` needs `pod`, `group` or `again`"),
    (
        "- {given: a, steps: [{pod: {}, again: b, expect: {}}]}",
        "1:22: step has both `pod` and `again`; use one of them",
    ),
    ("- given: a\n---\n- given: b", " expected one YAML document, got 2"),
    ("- {given: a, expect: {}", "2:1: not valid YAML: did not find expected ',' or '}'"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_what_is_wrong_with_a_file_is_told_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "tests.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(UsageError) as caught:
        read_tests(path)
    assert str(caught.value) == f"{path}:{message}"


BROKEN = [
    ("cluster: none.yaml\ntests: [{given: a, expect: {}}]", "1:10: {folder}/none.yaml: no such file"),
    ("policies: [none.yaml]\ntests: [{given: a, expect: {}}]", "1:12: {folder}/none.yaml: no such file"),
    ("config: none.yaml\ntests: [{given: a, expect: {}}]", "1:9: {folder}/none.yaml: no such file"),
    (
        "cluster: {nodes: [{name: a, taints: [b]}]}\ntests: [{given: a, expect: {}}]",
        '1:38: expected a taint as key=value:NoSchedule, got "b"',
    ),
    (
        "cluster: {objects: [{kind: 3}]}\ntests: [{given: a, expect: {}}]",
        "1:21: expected an object with a kind and metadata",
    ),
    (
        "cluster: {nodes: [{name: a, count: 100000}],\n pods: [{name: b, count: 100000}, {name: c, count: 100000}]}\n"
        "tests: [{given: a, expect: {}}]",
        "2:35: cluster is too large for a test",
    ),
    ("cluster: {pods: [{labels: {}}]}\ntests: [{given: a, expect: {}}]", "1:18: pod has no name"),
]


@pytest.mark.parametrize(("text", "message"), BROKEN)
def test_what_a_file_names_has_to_be_there(tmp_path: Path, text: str, message: str) -> None:
    path = write_tests(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        load_tests(read_tests(path))
    assert str(caught.value) == f"{path}:{message.replace('{folder}', str(tmp_path))}"


def test_a_policy_that_does_not_compile_breaks_its_file(tmp_path: Path) -> None:
    path = write_tests(tmp_path, ONE, "filters: [{name: a, require: node.nme == 1}]")
    with pytest.raises(UsageError, match=r"policy\.yaml:\d+:\d+: E0202: `node` has no field `nme`"):
        load_tests(read_tests(path))


def test_a_folder_stands_for_the_files_under_it_that_are_named_like_tests(tmp_path: Path) -> None:
    for name in ("tests.yaml", "a/gpu-tests.yml", "a/b.tests.yaml", "a/contests.yaml", "a/tests.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(ONE, "utf-8")
    found = find_files([str(tmp_path), str(tmp_path / "tests.yaml")])
    assert [str(one.relative_to(tmp_path)) for one in found] == ["a/b.tests.yaml", "a/gpu-tests.yml", "tests.yaml"]
    (tmp_path / "none").mkdir()
    with pytest.raises(UsageError, match=r"no tests\.yaml or "):
        find_files([str(tmp_path / "none")])


def test_a_value_is_taken_as_a_file_is_and_its_faults_are_named_by_path() -> None:
    assert take_tests([{"given": "a", "expect": {"best": []}}]).written.tests[0].given == "a"
    with pytest.raises(UsageError, match=r"tests: \[0\]\.expect\.bst: unknown field `bst`; did you mean `best`"):
        take_tests([{"given": "a", "expect": {"bst": []}}])


def test_the_shipped_schema_is_that_of_the_loader() -> None:
    shipped = Path(str(reading.__file__)).with_name("tests.schema.json")
    assert json.loads(shipped.read_text("utf-8")) == json_schema(), "policysched test --schema writes it anew"


def test_the_page_names_every_field() -> None:
    page = (ROOT / "docs" / "write" / "testing.md").read_text("utf-8")
    fields = {name for one in json_schema()["$defs"].values() for name in one["properties"]}
    assert {name for name in fields if f"`{name}`" not in page and f"`{name}: " not in page} - {
        "contains",
        "equals",
    } == set()
    assert "{contains: " in page
    assert "{equals: " in page
