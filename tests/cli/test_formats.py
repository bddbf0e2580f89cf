from __future__ import annotations

import json
from collections.abc import Callable

import pytest
import yaml

from policysched.cli.formats import OutputFormat, markdown_table, say_value, workflow_command

VALUE = {"name": "a\u202eb", "list": [1, 2.5, None], "text": "yes"}


@pytest.mark.parametrize(("output", "read"), [(OutputFormat.JSON, json.loads), (OutputFormat.YAML, yaml.safe_load)])
def test_a_value_is_read_as_it_was_written(
    capsys: pytest.CaptureFixture[str], output: OutputFormat, read: Callable[[str], object]
) -> None:
    say_value(VALUE, output)
    written = capsys.readouterr().out
    assert "\u202e" not in written
    assert read(written) == VALUE


def test_a_table_in_markdown_has_texts_and_no_markup() -> None:
    table = markdown_table(["node", "why"], [["n|1", "<b>*x*</b>\n`"]])
    assert table.splitlines() == ["| node | why |", "| --- | --- |", r"| n\|1 | \<b\>\*x\*\</b\>\\n\` |"]


def test_a_workflow_command_escapes_what_would_end_its_parts() -> None:
    made = workflow_command("error", "one\n100%", {"file": "a:b,c.yaml", "line": 3})
    assert made == "::error file=a%3Ab%2Cc.yaml,line=3::one%0A100%25"
    assert workflow_command("notice", "all is well") == "::notice::all is well"
