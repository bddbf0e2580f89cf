from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Command, Write

HEAD = "apiVersion: policysched.io/v1alpha1\nkind: SchedulingPolicy\nmetadata: {name: p}\nspec:\n  filters:\n"
GOOD = HEAD + '  - {name: a, require: node.zone == "a"}\n'
BAD = HEAD + "  - name: a\n    require: node.zone = 5\n"
WARNED = HEAD + '  - name: a\n    require: number(node.labels["x"]) > 5\n'


@pytest.mark.parametrize(
    ("text", "code", "summary"),
    [
        (GOOD, 0, "1 policy: 0 errors, 0 warnings"),
        (BAD, 1, "1 policy: 1 error, 0 warnings"),
        (WARNED, 0, "1 policy: 0 errors, 1 warning"),
        (f"{GOOD}---\n{BAD}---\nkind: Pod\n", 1, "2 policies: 1 error, 0 warnings"),
    ],
)
def test_check_ends_with_a_summary_and_its_code(
    command: Command, write: Write, text: str, code: int, summary: str
) -> None:
    done = command("check", write("p.yaml", text))
    assert (done.code, done.out.splitlines()[-1], done.problem) == (code, summary, "")


def test_check_shows_the_mistake_in_its_line(command: Command, write: Write) -> None:
    done = command("check", write("p.yaml", BAD))
    assert done.out == (
        "error[E0101]: `=` is not an operator\n"
        "  --> p.yaml:7:24\n"
        "   |\n"
        " 7 |     require: node.zone = 5\n"
        "   |                        ^\n"
        "   = in p spec.filters[0].require:1:11\n"
        "   = help: write `==` to compare\n"
        "\n"
        "1 policy: 1 error, 0 warnings\n"
    )


def test_check_prints_json(command: Command, write: Write) -> None:
    done = command("check", write("p.yaml", BAD), write("good.yaml", GOOD), "-o", "json")
    assert done.code == 1
    (found,) = json.loads(done.out)
    assert (found["file"], found["fileLine"], found["fileColumn"], found["code"]) == ("p.yaml", 7, 24, "E0101")


def test_check_prints_an_empty_list_where_nothing_is_wrong(command: Command, write: Write) -> None:
    done = command("check", write("p.yaml", GOOD), "-o", "json")
    assert (done.code, json.loads(done.out)) == (0, [])


def test_check_reads_folders(command: Command, write: Write) -> None:
    write("a.yaml", GOOD)
    write("b.yml", BAD)
    assert command("check", ".").code == 1
