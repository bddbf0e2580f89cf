"""Commands name the policies whose last good generation decides because the newest has errors."""

from __future__ import annotations

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


def test_a_policy_that_is_replaced_or_deleted_has_no_note(command: Command) -> None:
    done = command("plan", *CLUSTER, "--cluster", POD, "--without-policy", "only-ssd")
    assert (done.code, "decides" in done.problem) == (1, False)


def test_python_returns_the_note() -> None:
    objects = [FOLDER / name for name in ("nodes3.yaml", "m7-last-good.yaml")]
    web = FOLDER / POD
    assert TEXT in policysched.dry_run(objects, web).notes
    assert TEXT in policysched.why([*objects, web], "web").notes
    assert TEXT in policysched.plan([*objects, web], without_nodes="n1").notes
