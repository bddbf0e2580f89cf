"""The comparison of two versions, with oracles that are Python functions."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.ladder import classes, programs, sources
from tests.oracle.ladder.answers import Answer, Case, differences
from tests.oracle.ladder.causes import Comparison, fields, without
from tests.oracle.ladder.classes import GENERATORS, Outcome, compare, generated
from tests.oracle.ladder.report import markdown, summarized
from tests.oracle.ladder.summary import Found, Summary, sections, store, stored

FEATURES = """var gates = map[featuregate.Feature]featuregate.VersionedSpecs{
\tGangScheduling: {
\t\t{Version: version.MustParse("1.35"), Default: false, PreRelease: featuregate.Alpha},
\t\t{Version: version.MustParse("1.37"), Default: true, PreRelease: featuregate.Beta},
\t},

\tgenericfeatures.Sharding: {
\t\t{Version: version.MustParse("1.36"), Default: true, PreRelease: featuregate.GA, LockToDefault: true},
\t},
}
"""


def pod(name: str, **spec: Any) -> Case:
    return {"kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [{"name": "c"}], **spec}}


def case(number: int, *images: str) -> Case:
    volumes = {"volumes": [{"name": image, "image": {"reference": image}} for image in images]} if images else {}
    node = {"kind": "Node", "metadata": {"name": f"n{number}"}, "status": {"allocatable": {"pods": "110"}}}
    return {"id": f"c{number}", "objects": [node], "pod": pod("p", **volumes)}


def old(asked: Case) -> Answer:
    nodes = [thing["metadata"]["name"] for thing in asked["objects"] if thing["kind"] == "Node"]
    return {"record": {"scores": {node: {"ImageLocality": 10} for node in nodes}, "total": dict.fromkeys(nodes, 10)}}


def new(asked: Case) -> Answer:
    """Answer as `old`, but with a score for image volumes, and a new plugin's for all nodes."""
    answer = old(asked)
    has_images = any("image" in volume for volume in asked["pod"]["spec"].get("volumes", ()))
    for scores in answer["record"]["scores"].values():
        scores |= {"ImageLocality": 5 if has_images else 10, "VolumeBinding": 0}
    answer["record"]["total"] = dict.fromkeys(answer["record"]["total"], 5 if has_images else 10)
    return answer


def outcome(cases: list[Case]) -> Outcome:
    return compare(Comparison(old, new), [("images", one) for one in cases], lambda _: None)


def test_differences_hide_names_and_numbers_and_leave_out_totals() -> None:
    assert differences(case(1, "i"), old(case(1)), new(case(1, "i"))) == {
        ".record.scores.*.VolumeBinding: added",
        ".record.scores.*.ImageLocality: changed",
    }


def test_equal_answers_have_no_difference() -> None:
    assert differences(case(1), old(case(1)), old(case(1))) == frozenset()


def test_texts_with_other_numbers_only_are_not_quoted() -> None:
    answers = [{"refusals": {"message": f"scheme.go:{line}"}} for line in (1, 2)]
    assert differences({}, *answers) == {".refusals.message: other names or numbers"}


def test_a_difference_of_a_consequence_alone_is_reported() -> None:
    assert differences({}, {"record": {"best": ["a"]}}, {"record": {"best": ["b"]}}) == {
        ".record.best: -a",
        ".record.best: +b",
    }


def test_broken_profiles_have_no_names() -> None:
    assert differences({"config": {"profiles": 5}}, {"refusals": []}, {"refusals": [{"stage": "decode"}]})


def test_lists_are_compared_without_their_order_and_plugins_with_it() -> None:
    assert differences({}, {"reasons": ["a", "b"]}, {"reasons": ["b", "a"]}) == frozenset()
    listed = [{"name": "A", "weight": 1}, {"name": "B", "weight": 1}]
    assert differences({}, {"filter": listed}, {"filter": listed[::-1]}) == {".filter: another order"}
    assert differences({}, {"filter": listed}, {"filter": listed[:1]}) == {".filter: -B"}


def test_causes_are_found_and_every_case_is_explained() -> None:
    cases = [case(number, *(["i"] if number % 4 == 0 else [])) for number in range(40)]
    found = outcome(cases)
    assert (found.asked.total(), len(found.differing), found.unexplained) == (40, 40, [])
    by_difference = {one.difference: one for one in found.classes}
    always = by_difference[".record.scores.*.VolumeBinding: added"]
    images = by_difference[".record.scores.*.ImageLocality: changed"]
    assert always.cause is None
    assert images.cause is not None
    assert images.cause[:3] == ("Pod", "spec", "volumes")
    assert images.share == 1.0
    assert sorted(images.explained) == sorted(f"c{number}" for number in range(0, 40, 4))


def test_witness_is_as_small_as_it_gets() -> None:
    large = case(0, "i", "j")
    large["objects"] += [pod("other", nodeName="n0"), {"kind": "Node", "metadata": {"name": "n9"}, "status": {}}]
    small = Comparison(old, new).witness(large, ".record.scores.*.ImageLocality: changed")
    assert [thing["kind"] for thing in small["objects"]] == ["Node"]
    assert len(small["pod"]["spec"]["volumes"]) == 1


def test_cause_is_the_field_that_fewest_cases_have() -> None:
    witness = case(0, "i")
    witness["pod"]["spec"]["hostNetwork"] = True
    usual = Counter({("Pod", "spec", "volumes"): 10, ("Pod", "spec", "volumes", "image"): 4})
    found = Comparison(old, new).cause(witness, [witness], ".record.scores.*.ImageLocality: changed", usual)
    assert found is not None
    assert found[0] not in {("Pod", "spec", "hostNetwork"), ("Pod", "spec", "volumes")}


def test_fields_are_left_out_of_all_objects_of_a_kind() -> None:
    two = {"objects": [pod("a", nodeName="n", hostNetwork=True)], "pod": pod("b", hostNetwork=True)}
    assert ("placed Pod", "spec", "hostNetwork") in set(fields(two))
    assert without(two, ("Pod", "spec", "hostNetwork")) == {"objects": two["objects"], "pod": pod("b")}


def test_report_lists_counts_causes_gates_and_files() -> None:
    found = outcome([case(number, *(["i"] if number % 4 == 0 else [])) for number in range(8)])
    changes = [sources.FileChange("schedule_one.go", 10, 3)]
    gates = [("GangScheduling", "Alpha off", "Beta on")]
    summary = summarized(("v1.36.5", "v1.37.2"), 7, found, gates, changes)
    text = markdown(summary, found.classes)
    assert "8 cases, seed 7: 8 have another answer." in text
    assert "| `.record.scores.*.VolumeBinding: added` | – | 6 |" in text
    assert "| `.record.scores.*.ImageLocality: changed` | `Pod.spec.volumes" in text
    assert "| GangScheduling | Alpha off | Beta on |" in text
    assert "1 files, +10 -3 lines." in text
    assert "Cases with several of these causes: 0. Cases with another cause: 0." in text


def test_results_are_stored_in_the_order_of_versions(tmp_path: Path) -> None:
    made = [
        Summary("v1.8.0", new, 1, {"pods": 2}, {}, [], 1, ["c1"], [("A", "-", "GA on")], [("a.go", 1, 2)])
        for new in ("v1.10.1", "v1.9.0-beta.1")
    ]
    for one in made:
        store(one, tmp_path)
    assert stored(tmp_path) == made[::-1]


def test_cases_with_several_causes_are_told_from_those_without_a_known_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classes, "MOST_CLASSES", 2)
    cases = [case(number) for number in range(60)]
    for number, one in enumerate(cases):
        places = {"hostNetwork": 3, "hostPID": 4, "hostIPC": 50}
        one["pod"]["spec"] |= {key: True for key, every in places.items() if number % every == 1}

    def answer(asked: Case) -> Answer:
        return old(asked) | {key: True for key in asked["pod"]["spec"] if key.startswith("host")}

    found = compare(Comparison(old, answer), [("hosts", one) for one in cases], lambda _: None)
    assert sorted(one.case["id"] for one in found.several) == ["c13", "c25", "c37", "c49"]
    assert sorted(one.case["id"] for one in found.unexplained) == ["c1", "c51"]


def test_choice_among_equally_good_nodes_is_no_difference() -> None:
    first = {"record": {"preemption": {"best": ["a", "b"], "nominated": "a", "deleted": ["p"], "candidates": {}}}}
    second = {"record": {"preemption": {"best": ["a", "b"], "nominated": "b", "deleted": ["q"], "candidates": {}}}}
    assert differences({}, first, second) == frozenset()
    first["record"]["preemption"]["best"] = second["record"]["preemption"]["best"] = ["a"]
    assert differences({}, first, second) == {
        ".record.preemption.nominated: a -> b",
        ".record.preemption.deleted: -p",
        ".record.preemption.deleted: +q",
    }


def test_list_of_resources_is_one_field() -> None:
    asked = case(1)
    asked["pod"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    found = set(fields(asked))
    assert ("Pod", "spec", "containers", "resources", "requests") in found
    assert ("Pod", "spec", "containers", "resources", "requests", "cpu") not in found


def test_names_of_resources_are_hidden_and_the_word_pods_is_not() -> None:
    asked = case(1)
    asked["objects"][0]["status"]["allocatable"] = {"pods": "1", "example.com/gpu": "1"}
    answers = [{"record": {"reasons": reasons}} for reasons in ([], ["Too many pods", "Insufficient example.com/gpu"])]
    assert differences(asked, *answers) == {".record.reasons: +Too many pods", ".record.reasons: +Insufficient *"}


def test_newer_versions_are_compared_with_the_known_ones_of_their_minor() -> None:
    known = ["v1.36.5", "v1.37.2", "v1.38.0-beta.0"]
    published = ["v1.36.10", "v1.36.9", "v1.37.2", "v1.38.0-alpha.3", "v1.38.0-beta.0", "v1.5.0", "v0.9.0", "v1.37.x"]
    assert programs.steps_to(published, known) == [("v1.36.5", "v1.36.10")]
    later = [*published, "v1.38.0-rc.1", "v1.39.0-alpha.2", "v1.39.0-alpha.10"]
    assert programs.steps_to(later, known)[1:] == [
        ("v1.38.0-beta.0", "v1.38.0-rc.1"),
        ("v1.38.0-beta.0", "v1.39.0-alpha.10"),
    ]
    assert programs.steps_to([*later, "v1.38.0", "v1.39.0"], known)[1:] == [
        ("v1.38.0-beta.0", "v1.38.0"),
        ("v1.38.0-beta.0", "v1.39.0"),
    ]


def test_repeated_difference_is_listed_if_it_explains_cases() -> None:
    found = [Found("a", "–", 0), Found("a", "`x` (50%)", 0), Found("a", "`y` (40%)", 2), Found("b", "–", 0)]
    text = sections(Summary("v1.8.0", "v1.9.0", 1, {"pods": 9}, {"pods": 2}, found, 0, [], [], []), 2)
    rows = ["| `a` | – | 0 |", "| `a` | `x` (50%) | 0 |", "| `a` | `y` (40%) | 2 |", "| `b` | – | 0 |"]
    assert [row in text for row in rows] == [True, False, True, True]


def test_gates_that_the_scheduler_reads_are_found(tmp_path: Path) -> None:
    folder = tmp_path / "pkg/scheduler/queue"
    folder.mkdir(parents=True)
    (folder / "queue.go").write_text("if enabled(features.Fast) && !enabled(genericfeatures.Other) {\n")
    (folder / "queue_test.go").write_text("features.Tested\n")
    assert sources.gates_read(tmp_path, tmp_path / "none") == {"Fast"}


def test_gates_are_those_of_the_minor() -> None:
    before, after = (sources.gates(FEATURES, minor) for minor in ("1.36", "1.37"))
    assert {name: str(gate) for name, gate in before.items()} == {
        "GangScheduling": "Alpha off",
        "Sharding": "GA on, locked",
    }
    assert sources.changed_gates(before, after) == [("GangScheduling", "Alpha off", "Beta on")]
    assert sources.changed_gates({}, before)[1] == ("Sharding", "-", "GA on, locked")


def test_changed_files_are_counted_without_tests(tmp_path: Path) -> None:
    for name, lines in (("old", 1), ("new", 3)):
        folder = tmp_path / name / "pkg/scheduler/queue"
        folder.mkdir(parents=True)
        (folder / "queue.go").write_text("package queue\n" * lines)
        (folder / "queue_test.go").write_text("package queue\n" * lines)
    (tmp_path / "new/pkg/scheduler/added.go").write_text("package scheduler\n" * 5)
    assert sources.changed_files(tmp_path / "old", tmp_path / "new") == [
        sources.FileChange("added.go", 5, 0),
        sources.FileChange("queue/queue.go", 2, 0),
    ]


def test_compile_errors_are_sorted_by_file() -> None:
    text = "cannot build .:\n# oracle\n./b.go:1:2: undefined: x\n./a.go:3:4: not enough arguments\n\thave (int)\n"
    assert programs.by_file(text) == (
        "these files of tests/oracle do not compile:\na.go\n  not enough arguments\nb.go\n  undefined: x"
    )
    assert programs.by_file("no network") == "no network"


def test_oracle_that_ends_is_named_with_its_exit_code(tmp_path: Path) -> None:
    program = tmp_path / "oracle"
    program.write_text("#!/bin/sh\nread line\nexit 3\n")
    program.chmod(0o755)
    with programs.running(program) as ask, pytest.raises(RuntimeError, match="exit code 3"):
        ask({"id": "1"})


def test_answers_come_without_the_cases_id(tmp_path: Path) -> None:
    program = tmp_path / "oracle"
    program.write_text('#!/bin/sh\nwhile read line; do echo \'{"id": "1", "invalid": "no"}\'; done\n')
    program.chmod(0o755)
    with programs.running(program) as ask:
        assert ask({"id": "1"}) == {"invalid": "no"}


def test_every_generator_makes_cases() -> None:
    assert {name for name, _ in generated(1, 1)} == set(GENERATORS)


def test_wrong_version_is_a_usage_error() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.oracle.ladder", "latest"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "'latest' is no version of Kubernetes such as v1.37.2 or v1.39.0-alpha.1, and not 'newest'" in done.stderr
