from __future__ import annotations

import errno
import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import Mock

import pytest
import yaml

from policysched.app.recording import file_format
from tests.app.dry_runs import node, policy, requiring
from tests.app.plan.test_plan import ours
from tests.app.recording.test_replay import EXAMPLE
from tests.app.why.test_why import bound
from tests.cli.conftest import Command, Write

POD = bound("a", "n1", 1)
POD["metadata"]["annotations"] = {"password": "hunter2", "team": "a"}
POD["spec"]["containers"][0]["env"] = [{"name": "TOKEN", "value": "hunter3"}]
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "aHVudGVyNA=="}}
TEAM = policy("team", **requiring('pod.annotations["team"] == "a"'))
CLUSTER = ours([node("n1"), node("n2"), POD, SECRET, TEAM])


def test_replay_exits_by_what_it_found(command: Command, write: Write, tmp_path: Path) -> None:
    done = command("replay", str(EXAMPLE))
    assert (done.code, done.problem) == (0, "")
    assert done.out.startswith("decisions 1–12 equal\n")
    told = json.loads(command("replay", str(EXAMPLE), "-o", "json").out)
    assert (told["equal"], told["decisions"]) == (True, 12)
    assert command("replay", str(EXAMPLE), "-o", "markdown").out.startswith("**decisions 1–12 equal**")
    cut = tmp_path / "cut.record"
    cut.write_bytes(EXAMPLE.read_bytes()[:-50])
    assert command("replay", str(cut)).code in {0, 2}
    write("none.yaml", "kind: List\n")
    done = command("replay", "none.yaml")
    assert (done.code, done.out) == (2, "")
    assert "none.yaml: not a policysched record" in done.problem


def test_record_that_cannot_be_read_any_further_is_named(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_format, "_read_block", Mock(side_effect=OSError(errno.EIO, os.strerror(errno.EIO))))
    done = command("replay", str(EXAMPLE))
    assert (done.code, done.out) == (2, "")
    assert done.problem == f"error: {EXAMPLE}: input/output error\n"


def test_replay_with_a_policy_exits_as_plan_does(command: Command, write: Write) -> None:
    write("none.yaml", yaml.dump(policy("none", **requiring('node.labels["disk"] == "tape"'))))
    done = command("replay", str(EXAMPLE), "--policy", "none.yaml")
    assert done.code == 1
    assert "would get no node" in done.out
    write("all.yaml", yaml.dump(policy("all", **requiring("true"))))
    assert command("replay", str(EXAMPLE), "--policy", "all.yaml").code == 0
    done = command("replay", str(EXAMPLE), "--without-policy", "never")
    assert (done.code, done.problem) == (2, 'error: no policy "never" in the record\n')


@pytest.mark.parametrize("name", ["taken.yaml", "taken.json"])
def test_record_writes_what_other_commands_read(command: Command, write: Write, name: str) -> None:
    write("cluster.yaml", yaml.dump_all(CLUSTER))
    done = command("record", "--cluster", "cluster.yaml", "-o", name)
    assert (done.code, done.out) == (0, "")
    text = Path(name).read_text("utf-8")
    assert "hunter" not in text
    assert "Secret" not in text
    assert stat.S_IMODE(Path(name).stat().st_mode) == 0o600
    for asked in (("why", "a", "--cluster"), ("plan", "--without-policy", "team", "--cluster")):
        assert command(*asked, name).out == command(*asked, "cluster.yaml").out


MODEL = policy("model", **requiring('node.annotations["gpu"] == "A100"'))
LACKS = "error: policies read annotations that are not in the recorded cluster: "


@pytest.mark.parametrize("name", ["taken.yaml", "taken.json"])
def test_record_keeps_the_annotations_of_given_policies(command: Command, write: Write, name: str) -> None:
    annotated = node("n2")
    annotated["metadata"]["annotations"] = {"gpu": "A100", "secret": "hunter2"}
    write("cluster.yaml", yaml.dump_all([*ours([node("n1"), annotated, POD]), TEAM]))
    write("model.yaml", yaml.dump(MODEL))
    write("pod.yaml", yaml.dump(bound("new", "", 1)))
    cases = [{"given": "a pod", "pod": {"annotations": {"team": "a"}}, "expect": {"rejected": {"model/r": ["n1"]}}}]
    write("tests.yaml", yaml.dump({"policies": ["model.yaml"], "cluster": name, "tests": cases}))
    asked: tuple[tuple[str, ...], ...] = (
        ("plan", "--cluster", name, "--policy", "model.yaml"),
        ("why", "a", "--cluster", name, "--policy", "model.yaml"),
        ("dry-run", "--cluster", name, "--policy", "model.yaml", "--pod", "pod.yaml"),
        ("test", "tests.yaml"),
    )
    assert command("record", "--cluster", "cluster.yaml", "-o", name).code == 0
    for one in asked:
        done = command(*one)
        assert done.code in {1, 2}
        assert "annotations that are not in the recorded cluster: gpu; record" in f"{done.problem}{done.out}"
    done = command("record", "--cluster", name, "--policy", "model.yaml", "-o", "again.yaml")
    assert (done.code, done.problem.startswith(f"{LACKS}gpu; record")) == (2, True)
    done = command("record", "--cluster", "cluster.yaml", "--policy", "model.yaml", "-o", name)
    assert (done.code, done.problem) == (0, f"4 objects written to {name}\n")
    text = Path(name).read_text("utf-8")
    assert ("hunter" not in text, "name: model" not in text) == (True, True)
    codes = [command(*one).code for one in asked]
    assert codes == [1, 0, 0, 0]


def test_annotation_of_the_pod_to_schedule_need_not_be_in_the_recorded_cluster(command: Command, write: Write) -> None:
    write("cluster.yaml", yaml.dump_all(ours([node("n1"), POD])))
    write("team.yaml", yaml.dump(TEAM))
    write("pod.yaml", yaml.dump({**bound("new", "", 1), "metadata": {"name": "new", "annotations": {"team": "a"}}}))
    assert command("record", "--cluster", "cluster.yaml", "-o", "taken.yaml").code == 0
    change = ("--cluster", "taken.yaml", "--policy", "team.yaml")
    assert command("dry-run", *change, "--pod", "pod.yaml").code == 0
    for asked in ("why", "a"), ("plan",):
        done = command(*asked, *change)
        assert (done.code, done.problem.startswith(f"{LACKS}team; record")) == (2, True)


def test_record_refuses_a_policy_that_does_not_compile(command: Command, write: Write) -> None:
    write("cluster.yaml", yaml.dump_all(CLUSTER))
    write("broken.yaml", yaml.dump(policy("broken", **requiring("node.labels["))))
    done = command("record", "--cluster", "cluster.yaml", "--policy", "broken.yaml", "-o", "taken.yaml")
    assert (done.code, "policy broken does not compile" in done.problem) == (2, True)
    assert not Path("taken.yaml").exists()


def test_record_says_what_it_leaves_out(command: Command, write: Write) -> None:
    broken = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "bad"}, "spec": 3}
    write("cluster.yaml", yaml.dump_all([*CLUSTER, broken]))
    done = command("record", "--cluster", "cluster.yaml", "-o", "taken.yaml")
    assert done.code == 1
    assert "left out: " in done.problem
    done = command("record", "--cluster", "cluster.yaml", "-o", "no/such/folder.yaml")
    assert (done.code, "--output no/such/folder.yaml" in done.problem) == (2, True)


def test_what_is_no_file_takes_a_snapshot_and_stays(command: Command, write: Write) -> None:
    write("cluster.yaml", yaml.dump_all(CLUSTER))
    write("kept.yaml", "old")
    Path("link.yaml").symlink_to("kept.yaml")
    assert command("record", "--cluster", "cluster.yaml", "-o", "link.yaml").code == 0
    assert Path("link.yaml").is_symlink()
    assert "kind: Node" in Path("kept.yaml").read_text("utf-8")
    os.mkfifo("pipe.yaml")
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(Path("pipe.yaml").read_text, "utf-8")
        assert command("record", "--cluster", "cluster.yaml", "-o", "pipe.yaml").code == 0
        assert "kind: Node" in read.result(10)
    assert Path("pipe.yaml").is_fifo()
