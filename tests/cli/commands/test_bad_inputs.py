"""Files that cannot be used: one clear error and exit code 2 by every command, and nothing on stdout."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from policysched.model.decode import ObjectError
from tests.app.dry_runs import node, policy, requiring
from tests.app.plan.test_plan import KEEP, ours
from tests.app.why.test_why import bound
from tests.cli.conftest import Command, Write
from tools.documents.markdown import ROOT

RECORD = ROOT / "examples" / "tour" / "10-record" / "day.record"
GOOD = yaml.dump_all(ours([node("n1"), node("n2"), bound("a", "n1", 1)]))
BROKEN = yaml.dump(policy("broken", **requiring("node.nam")))
BAD = {
    "syntax.yaml": ("a: [", "not valid YAML"),
    "cut.json": ('{"kind": "List", "items": [{"kind": "Node"', "not valid JSON"),
    "list.yaml": ("- 3", "expected an object, got a list"),
    "empty.yaml": ("", "no objects"),
    "binary.yaml": ("\0\1", "not a text file"),
    "kindless.yaml": ("{a: 1}", "object has no kind"),
    "tests.yaml": ("- {given: a, expect: {}}", "this is a test file"),
}
ON_CLUSTERS = {
    "plan": ("plan", "--policy", "keep.yaml", "--cluster"),
    "why": ("why", "a", "--cluster"),
    "record": ("record", "-o", "out.yaml", "--cluster"),
}


@pytest.fixture
def files(write: Write) -> None:
    write("good.yaml", GOOD)
    write("keep.yaml", yaml.dump(KEEP))
    write("broken.yaml", BROKEN)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("ask", ON_CLUSTERS.values(), ids=ON_CLUSTERS)
def test_cluster_that_cannot_be_read(command: Command, write: Write, ask: tuple[str, ...], name: str) -> None:
    text, problem = BAD[name]
    write(name, text)
    done = command(*ask, name)
    assert (done.code, done.out) == (2, "")
    assert done.problem.startswith(f"error: {name}")
    assert problem in done.problem
    assert done.problem.count("\n") == 1
    missing = command(*ask, "nope.yaml")
    assert (missing.code, missing.problem) == (2, "error: nope.yaml: no such file\n")


@pytest.mark.parametrize("name", [*BAD, "nope.record"])
def test_what_is_no_record(command: Command, write: Write, name: str) -> None:
    if name in BAD:
        write(name, BAD[name][0])
    done = command("replay", name)
    assert (done.code, done.out) == (2, "")
    said = "not a policysched record" if name in BAD else "nope.record: no such file"
    if name == "empty.yaml":
        said = "empty.yaml: file is incomplete"
    assert said in done.problem
    assert done.problem.count("\n") == 1


@pytest.mark.parametrize("name", [one for one in BAD if one not in {"tests.yaml", "kindless.yaml"}])
def test_files_of_tests_that_cannot_be_read(command: Command, write: Write, name: str) -> None:
    write(name, BAD[name][0])
    done = command("test", name)
    assert done.code == 2
    assert done.problem.startswith(f"error: {name}")
    assert done.out == "0 passed, 1 problem in 1 file\n"


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    "ask",
    [("plan", "--cluster", "good.yaml"), ("replay", str(RECORD))],
    ids=["plan", "replay"],
)
def test_policy_that_does_not_compile_is_shown_with_its_text(command: Command, ask: tuple[str, ...]) -> None:
    done = command(*ask, "--policy", "broken.yaml")
    assert (done.code, done.out) == (2, "")
    assert "^^^" in done.problem
    assert done.problem.splitlines()[-1].startswith("error: ")
    assert done.problem.splitlines()[-1].endswith("not compile")


@pytest.mark.usefixtures("files")
def test_policy_in_force_that_does_not_compile_is_a_note(command: Command, write: Write) -> None:
    write("both.yaml", f"{GOOD}\n---\n{BROKEN}")
    done = command("plan", "--cluster", "both.yaml", "--policy", "keep.yaml")
    assert done.code == 1
    assert "note: policy broken has no effect today: " in done.problem
    done = command("why", "a", "--cluster", "both.yaml")
    assert done.code == 1
    assert "broken" in done.problem


@pytest.mark.usefixtures("files")
def test_pods_and_nodes_that_are_not_there_name_the_nearest(command: Command) -> None:
    done = command("why", "team-b/a", "--cluster", "good.yaml")
    assert (done.code, done.problem) == (
        2, "error: pod team-b/a is not in the cluster, which has 1 pod; did you mean `default/a`?\n"
    )  # fmt: skip
    done = command("why", "a", "n11", "--cluster", "good.yaml")
    assert (done.code, done.out) == (2, "")
    assert "did you mean `n1`?" in done.problem


def test_half_broken_objects_are_a_named_remainder_of_a_plan(command: Command, write: Write) -> None:
    broken = bound("bad", "n1")
    broken["spec"]["containers"] = [{"name": "c", "resources": {"requests": {"cpu": "x"}}}]
    nodes = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n9"}, "status": {"allocatable": {"cpu": "x"}}}]
    write("half.yaml", yaml.dump_all(ours([node("n1"), bound("a", "n1", 1), broken, *nodes])))
    write("keep.yaml", yaml.dump(KEEP))
    done = command("plan", "--cluster", "half.yaml", "--policy", "keep.yaml")
    assert done.code == 1
    told = done.out.partition("Objects left out")[2]
    assert "n9" in told
    assert "bad" in told
    done = command("why", "a", "--cluster", "half.yaml")
    assert (done.code, done.out, done.problem.count("\n")) == (2, "", 1)
    assert done.problem.startswith("error: half.yaml:")


def test_record_that_is_cut_or_given_twice_names_the_remainder(command: Command, tmp_path: Path) -> None:
    data = RECORD.read_bytes()
    cut = tmp_path / "cut.record"
    cut.write_bytes(data[:-20])
    done = command("replay", str(cut))
    assert done.code in {0, 2}
    assert "cut.record: file is incomplete: it ends inside a block" in done.out + done.problem
    other = tmp_path / "other.record"
    other.write_bytes(data.replace(b"policysched record 1\n", b"policysched record 99\n", 1))
    done = command("replay", str(other))
    assert (done.code, done.out) == (2, "")
    assert "unsupported record version 99; expected 1" in done.problem
    done = command("replay", str(RECORD), str(RECORD))
    assert done.code == 0
    assert "day.record starts with decision 1, which is already replayed" in done.out
    assert "-12" not in done.out


def test_record_of_before_an_annotation_was_read_by_default_is_replayed_with_policies(
    command: Command, write: Write
) -> None:
    write("keep.yaml", yaml.dump(KEEP))
    assert command("replay", str(RECORD), "--policy", "keep.yaml").code == 1
    write("reads.yaml", yaml.dump(policy("reads", **requiring('pod.annotations["x"] == "y"'))))
    done = command("replay", str(RECORD), "--policy", "reads.yaml")
    assert (done.code, done.problem) == (
        2, "error: policies read annotations that are not in the record: x\n"
    )  # fmt: skip


def test_policy_of_another_shape_is_left_out_and_named(command: Command, write: Write) -> None:
    shapeless = {**policy("shapeless"), "spec": 3}
    write("odd.yaml", f"{GOOD}\n---\n{yaml.dump(shapeless)}")
    write("keep.yaml", yaml.dump(KEEP))
    done = command("plan", "--cluster", "odd.yaml", "--policy", "keep.yaml")
    assert done.code == 1
    assert done.problem.startswith("error[E0001]: expected an object, got a whole number\n")
    assert "shapeless" in done.out.partition("Objects left out")[2]
    done = command("record", "--cluster", "odd.yaml", "-o", "out.yaml")
    assert done.code == 1
    assert done.problem.startswith("left out: ")
    assert "shapeless" in done.problem
    assert command("plan", "--cluster", "out.yaml", "--policy", "keep.yaml").code == 1


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("ask", "code"),
    [
        (("dry-run", "--pod", "pod.yaml", "--cluster"), 0),
        (("plan", "--policy", "keep.yaml", "--cluster"), 2),
        (("why", "a", "--cluster"), 2),
        (("record", "-o", "out.yaml", "--cluster"), 1),
    ],
)
def test_objects_that_a_live_cluster_has_and_that_are_left_out_are_named(
    command: Command, write: Write, monkeypatch: pytest.MonkeyPatch, ask: tuple[str, ...], code: int
) -> None:
    async def read_cluster(*_: object, left_out: Callable[[ObjectError], None], **more: object) -> list[Any]:
        left_out(ObjectError("ResourceClaim", "default/a\n", "not valid JSON"))
        return [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}]

    monkeypatch.setattr("policysched.app.dry_run.live_cluster.read_cluster", read_cluster)
    write("pod.yaml", "kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n")
    done = command(*ask, "live")
    assert done.code == code
    assert done.problem.startswith('left out: resource claim "default/a\\n": not valid JSON\n')


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    "ask",
    [("plan", "--cluster", "good.yaml", "--policy"), ("check",), ("why", "a", "--cluster", "good.yaml", "--policy")],
)
def test_policy_with_what_is_no_json_is_refused_with_its_place(
    command: Command, write: Write, ask: tuple[str, ...]
) -> None:
    head = "apiVersion: policysched.io/v1beta1\nkind: SchedulingPolicy\nmetadata: {name: p}\n"
    write("bytes.yaml", f"{head}spec:\n  filters:\n  - name: !!binary //4=\n    require: node.ready\n")
    done = command(*ask, "bytes.yaml")
    assert done.code == 2
    assert done.problem == "error: bytes.yaml:6:11: not valid YAML: value is not valid in JSON: !!binary\n"
    write("dates.yaml", f"{head}spec:\n  filters:\n  - {{name: !!timestamp 2026-01-01, require: node.ready}}\n")
    assert command("check", "dates.yaml").code == 0


@pytest.mark.usefixtures("files")
def test_record_that_is_interrupted_leaves_no_file(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr("policysched.cli.commands.decisions.record._encoded", interrupted)
    before = {*tmp_path.iterdir()}
    assert command("record", "--cluster", "good.yaml", "-o", "out.yaml").code == 130
    assert {*tmp_path.iterdir()} == before
