"""Commands name the policies whose last good generation decides because the newest has errors."""

from __future__ import annotations

import re

import pytest

import policysched

from .conftest import FOLDER, Command

CLUSTER = ("--cluster", "nodes3.yaml", "--cluster", "m7-last-good.yaml")
POD = "c15-pod.yaml"
TEXT = "policy only-ssd: generation 4 has errors; generation 3 decides"


@pytest.mark.parametrize(
    "ask",
    [
        ("dry-run", *CLUSTER, "--pod", POD),
        ("why", "web", *CLUSTER, "--cluster", POD),
        ("plan", *CLUSTER, "--cluster", POD, "--without-policy", "valid"),
    ],
)
def test_the_generation_that_decides_is_named(command: Command, ask: tuple[str, ...]) -> None:
    problems = command(*ask).problem.splitlines()
    assert problems.count(f"note: {TEXT}") == 1
    assert not [one for one in problems if "decides" in one and TEXT not in one]


@pytest.mark.parametrize("change", [("--without-policy", "only-ssd"), ("--policy", "m7-edit.yaml")])
def test_a_plan_names_the_generation_that_decides_without_the_change(command: Command, change: tuple[str, str]) -> None:
    done = command("plan", *CLUSTER, "--cluster", POD, *change)
    assert done.code == 1
    assert done.problem.splitlines().count(f"note: {TEXT}") == 1


def test_an_edit_that_is_used_has_no_note(command: Command) -> None:
    done = command("dry-run", *CLUSTER, "--pod", POD, "--policy", "m7-edit.yaml")
    assert "decides" not in done.problem


@pytest.mark.parametrize("ask", [("dry-run", "--pod", POD), ("why", "web", "--cluster", POD)])
@pytest.mark.parametrize(("cluster", "generation"), [("m7-last-good.yaml", 3), ("m7-valid.yaml", 2)])
def test_an_edit_with_errors_is_a_note_and_the_policy_of_the_cluster_applies(
    command: Command, ask: tuple[str, ...], cluster: str, generation: int
) -> None:
    done = command(*ask, "--cluster", "nodes3.yaml", "--cluster", cluster, "--policy", "m7-broken-edit.yaml")
    notes = [one for one in done.problem.splitlines() if one.startswith("note: policy only-ssd")]
    assert notes == [
        "note: policy only-ssd: the edit is not used because it does not compile: unknown name `nod` "
        f"(E0201, spec.filters[0].require); generation {generation} decides"
    ]
    assert "policy only-ssd/ssd" in done.out
    assert not re.search(r"^only-ssd +it does not compile", done.out, re.MULTILINE)


def test_python_returns_the_note_about_an_edit_with_errors() -> None:
    objects = [FOLDER / name for name in ("nodes3.yaml", "m7-valid.yaml")]
    edit = FOLDER / "m7-broken-edit.yaml"
    report = policysched.dry_run(objects, FOLDER / POD, edit)
    notes = [one for one in report.notes if "the edit is not used" in one]
    assert (len(notes), notes[0].endswith("; generation 2 decides"), report.not_applied) == (1, True, {})
    assert notes[0] in policysched.why([*objects, FOLDER / POD], "web", policies=edit).notes


def test_python_returns_the_note() -> None:
    objects = [FOLDER / name for name in ("nodes3.yaml", "m7-last-good.yaml")]
    web = FOLDER / POD
    assert TEXT in policysched.dry_run(objects, web).notes
    assert TEXT in policysched.why([*objects, web], "web").notes
    assert TEXT in policysched.plan([*objects, web], without_nodes="n1").notes
