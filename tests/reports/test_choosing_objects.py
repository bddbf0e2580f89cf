"""Files with several objects: which pod is meant, which objects are there twice, which label is malformed."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Command


def test_a_test_of_a_helm_chart_is_left_out_with_a_note(command: Command) -> None:
    done = command("dry-run", "--cluster", "nodes3.yaml", "--pod", "c05-helm.yaml", "-o", "json")
    assert done.code == 0
    assert done.value["pod"] == "default/web"
    assert "note: pod created from the template of Deployment web" in done.problem
    assert "note: left out Pod/web-test: it is a test of a Helm chart" in done.problem


@pytest.mark.parametrize(
    ("choice", "pod"),
    [("Pod/web-test", "web-test"), ("web-test", "web-test"), ("deployment/web", "web"), ("web", "web")],
)
def test_one_of_several_pods_is_chosen(command: Command, choice: str, pod: str) -> None:
    done = command("dry-run", "--cluster", "nodes3.yaml", "--pod", f"c05-helm.yaml#{choice}", "-o", "json")
    assert (done.code, done.value["pod"]) == (0, f"default/{pod}")


def test_a_choice_that_is_not_in_the_file_has_the_nearest_name(command: Command, tmp_path: Path) -> None:
    done = command("dry-run", "--cluster", "nodes3.yaml", "--pod", "c05-helm.yaml#Deployment/wen")
    assert (done.code, done.problem) == (
        2,
        "error: c05-helm.yaml: no pod or workload Deployment/wen; did you mean `Deployment/web`?\n",
    )
    several = tmp_path / "several#2.yaml"
    pod = "kind: Pod\nmetadata: {name: %s}\nspec: {containers: [{name: c, image: i}]}\n---\n"
    several.write_text(pod % "a" + pod % "b")
    done = command("dry-run", "--cluster", "nodes3.yaml", "--pod", str(several))
    assert done.problem == (
        f"error: {several}: expected one pod or workload, got 2: Pod/a ({several}:1:1), Pod/b ({several}:5:1); "
        f"choose one, for example {several}#Pod/a\n"
    )
    done = command("dry-run", "--cluster", "nodes3.yaml", "--pod", f"{several}#b", "-o", "json")
    assert done.value["pod"] == "default/b"


def test_claims_and_classes_beside_the_pod_are_applied_with_the_pod(command: Command, tmp_path: Path) -> None:
    pod = tmp_path / "pod.yaml"
    volumes = "volumes: [{name: d, persistentVolumeClaim: {claimName: mine}}]"
    claim = Path("c12-defsc.yaml").read_text().rpartition("---\n")[2].replace("name: data", "name: mine")
    containers = "containers: [{name: c, image: i}]"
    pod.write_text(f"{claim}---\nkind: Pod\nmetadata: {{name: db}}\nspec: {{{containers}, {volumes}}}\n")
    done = command("dry-run", "--cluster", "c12-defsc.yaml", "--pod", str(pod), "-o", "json")
    assert done.value["result"] == "Scheduled"


@pytest.mark.parametrize("kind", ["Node", "Pod", "PriorityClass"])
def test_an_object_that_is_there_twice_is_an_error(command: Command, tmp_path: Path, kind: str) -> None:
    cluster = ["c33-dup-nodes.yaml"]
    expected = 'c33-dup-nodes.yaml:11:3: node "n1" is also defined at c33-dup-nodes.yaml:4:3'
    if kind != "Node":
        one, two = tmp_path / "one.yaml", tmp_path / "two.yaml"
        for file in (one, two):
            file.write_text(f"kind: {kind}\nmetadata: {{name: x}}\nspec: {{containers: [{{name: c, image: i}}]}}\n")
        cluster = ["nodes3.yaml", str(one), str(two)]
        name = "default/x" if kind == "Pod" else "x"
        expected = f'{two}:1:1: {kind.lower()} "{name}" is also defined at {one}:1:1'
    flags = [part for name in cluster for part in ("--cluster", name)]
    for arguments in (
        ("dry-run", *flags, "--pod", "c15-pod.yaml"),
        ("why", "web", *flags),
        ("plan", *flags, "--policy", "pol.yaml"),
        *([("check", "pol.yaml", *flags)] if kind == "Node" else []),
    ):
        done = command(*arguments)
        assert (done.code, done.problem) == (2, f"error: {expected}\n")


def test_nodes_of_a_plan_that_are_there_twice_are_an_error(command: Command) -> None:
    done = command("plan", "--cluster", "nodes3.yaml", "--nodes", "c33-dup-nodes.yaml")
    assert (done.code, "is also defined at" in done.problem) == (2, True)


def test_nodes_of_a_test_that_are_there_twice_are_an_error(command: Command, tmp_path: Path) -> None:
    tests = tmp_path / "tests.yaml"
    tests.write_text(
        "policies: []\ncluster:\n  nodes: [{name: a}, {name: a}]\ntests: [{given: x, pod: {}, expect: {best: [a]}}]\n"
    )
    done = command("test", str(tests))
    assert (done.code, f'{tests}:3:22: node "a" is there twice' in done.out + done.problem) == (2, True)


@pytest.mark.parametrize("arguments", [("dry-run", "--pod", "c15-pod.yaml"), ("check", "pol.yaml")])
def test_a_label_that_is_a_number_is_named_with_its_line(command: Command, arguments: tuple[str, ...]) -> None:
    done = command(*arguments, "--cluster", "c22c-manylabels.yaml")
    assert (done.code, done.problem) == (
        2,
        'error: c22c-manylabels.yaml:8:16: node "n1": metadata.labels.gpu-count: expected text, got int: quote it\n',
    )


def test_a_node_selector_that_is_a_boolean_is_named_with_its_line(command: Command, tmp_path: Path) -> None:
    pod = tmp_path / "pod.yaml"
    pod.write_text(
        "kind: Pod\nmetadata: {name: a}\nspec:\n  containers: [{name: c, image: i}]\n"
        '  nodeSelector:\n    a: "1"\n    example.com/b: true\n'
    )
    done = command("dry-run", "--cluster", "nodes3.yaml", "--pod", str(pod))
    assert f"{pod}:7:20: " in done.problem
    assert "spec.nodeSelector.example.com/b: expected text, got bool: quote it" in done.problem
