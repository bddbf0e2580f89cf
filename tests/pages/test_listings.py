"""The tool that writes the pages: what it runs, what it compares, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pages.listings import ListingError, class_of, refreshed, steps
from tests.pages.normal import normal
from tests.pages.shell import Shell, ShellError
from tools.documents.markdown import blocks_of


def page(*blocks: str) -> str:
    return "text\n\n" + "\n".join(f"```{block}```\n" for block in blocks)


def test_a_listing_that_is_wrong_is_written_anew() -> None:
    wrong = page("console\n$ policysched explain 9\nold\n\n$ echo a \\\n  b\nold\n")
    error = 'error: unknown code "9"; run `policysched explain` to list all codes'
    right = page(f"console\n$ policysched explain 9\n{error}\n\n$ echo a \\\n  b\na b\n")
    assert refreshed(wrong) == right
    assert refreshed(right) == right


def test_what_is_never_the_same_twice_stays_as_it_is() -> None:
    command = "$ echo web-4vlq9 10.0.0.7 3m2s 2026-01-01T00:00:00Z\n"
    shown = page(f"console\n{command}web-9wxsj   10.0.0.1   1s   2025-01-01T01:00:00Z\n")
    assert refreshed(shown) == shown


def test_what_kubectl_logs_of_a_watch_that_it_ends_is_no_output() -> None:
    logged = 'I1123 10:42:07.818169     442 reflector.go:664] "Warning: watch ended with error" reflector="..."'
    right = page("console\n$ printf '%s\\n' \"$SAID\" met\nmet\n")
    assert refreshed(page(f"sh run\nSAID='{logged}'\n") + right).endswith(right)


def test_lines_of_drawn_names_are_compared_without_their_order() -> None:
    assert normal("web-4vlq9 n1\nweb-9wxsj n2\nend") == normal("web-2b2b2 n2\nweb-fffff n1\nend")
    assert normal("web-4vlq9 n1\nweb-9wxsj n2") != normal("web-2b2b2 n2\nweb-fffff n2")
    assert normal("a   b ") == normal("a b")
    assert normal("a b") != normal("a c")


def test_commands_find_the_files_of_the_page_as_they_are_written() -> None:
    text = page(
        "yaml file=a.yaml\na: 1\n", "yaml\n# b.yaml\nb: 2\n", "console\n$ cat a.yaml b.yaml; rm a.yaml\n",
        "console\n$ cat a.yaml\n",
    )  # fmt: skip
    shown = [one.text for one in blocks_of(refreshed(text)) if one.kind == "console"]
    assert shown == ["$ cat a.yaml b.yaml; rm a.yaml\na: 1\n# b.yaml\nb: 2\n", "$ cat a.yaml\na: 1\n"]


def test_commands_see_what_those_before_them_left() -> None:
    text = page("sh run\nexport A=7\n(sleep 60; echo late) &\n", "console\n$ echo $A\n")
    assert "$ echo $A\n7\n" in refreshed(text)


def test_commands_of_a_reader_and_programs_must_succeed() -> None:
    with pytest.raises(ListingError, match="no such thing"):
        refreshed(page("sh run\necho no such thing; false\n"))
    with pytest.raises(ZeroDivisionError):
        refreshed(page("python run\n1 / 0\n"))
    with pytest.raises(ListingError, match="not found"):
        refreshed(page("console\n$ no-such-command\n"))
    with pytest.raises(ListingError, match="no command"):
        refreshed(page("console\nno command\n"))


def test_what_is_measured_is_run_on_demand_alone() -> None:
    text = page("console measured=2020-01-01\n$ echo fast\nslow\n", "console\n$ echo a\nb\n")
    assert "$ echo fast\nslow" in refreshed(text)
    again = refreshed(text, measure=True)
    assert "$ echo fast\nfast\n" in again
    assert "$ echo a\nb\n" in again
    assert "2020-01-01" not in again


@pytest.mark.parametrize(
    ("fence", "is_a"),
    [
        ("console", "run"),
        ("sh run", "run"),
        ("python run", "run"),
        ("yaml file=x.yaml", "file"),
        ("yaml", "policy"),
        ("console measured=2026-01-01", "measured"),
        ("sh usage", "usage"),
        ("text drawing", "drawing"),
        ("", None),
        ("sh", None),
        ("json", None),
        ("text", None),
        ("sh run usage", None),
    ],
)
def test_a_block_says_what_it_is(fence: str, is_a: str | None) -> None:
    [block] = blocks_of(page(f"{fence}\nx\n"))
    assert class_of(block) == is_a


def test_a_command_may_go_on_in_the_next_line() -> None:
    [block] = blocks_of(page("console\n$ a \\\n  b\nout\n$ c\n"))
    assert steps(block) == [("$ a \\\n  b\n", "out\n"), ("$ c\n", "")]


def test_a_command_that_does_not_end_is_given_up(tmp_path: Path) -> None:
    with Shell(tmp_path, None, deadline=0.3) as shell:
        assert shell.run("echo a; exit_code() { return 3; }; exit_code") == (3, "a\n")
        with pytest.raises(ShellError, match="no end after"):
            shell.run("sleep 30")
    with Shell(tmp_path, None) as shell, pytest.raises(ShellError, match="ended"):
        shell.run("exit 1")
