from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import unescape

import pytest
import yaml
from markdown_it import MarkdownIt

from policysched.cli.flags.formats import OutputFormat
from policysched.cli.formats import markdown_table, markdown_text, print_value, workflow_command

VALUE = {"name": "a\u202eb", "list": [1, 2.5, None], "text": "yes"}


@pytest.mark.parametrize(("output", "read"), [(OutputFormat.JSON, json.loads), (OutputFormat.YAML, yaml.safe_load)])
def test_a_value_is_read_as_it_was_written(
    capsys: pytest.CaptureFixture[str], output: OutputFormat, read: Callable[[str], object]
) -> None:
    print_value(VALUE, output)
    written = capsys.readouterr().out
    assert "\u202e" not in written
    assert read(written) == VALUE


def test_a_table_in_markdown_has_texts_and_no_markup() -> None:
    table = markdown_table(["node", "why"], [["n|1", "<b>*x*</b>\n`"]])
    assert table.splitlines() == ["| node | why |", "| --- | --- |", r"| n\|1 | \<b\>\*x\*\</b\>\\n\` |"]


@pytest.mark.parametrize(
    "text",
    [
        "a&#x202e;b&#x200b;c &lt;b&gt; &amp;",
        "~~gone~~ *x* _y_ `z` [a](b) ![a](b) <b>c</b> | \\ $x$",
        "https://example.com/x www.example.com :smile: 12:30:45",
    ],
)
def test_texts_are_rendered_as_they_are(text: str) -> None:
    render = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    rendered = render.render(markdown_table(["a"], [[text]]))
    cells = re.findall(r"<td>(.*)</td>", rendered.replace("<!-- -->", ""))
    assert [unescape(one) for one in cells] == [text]
    assert set(re.findall(r"</?(\w+)", rendered)) == {"table", "thead", "tbody", "tr", "th", "td"}


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("@team/owners #12 a@b.c", "@<!-- -->team/owners #<!-- -->12 a@<!-- -->b.c"),
        ("https://a www.a.b", r"https\://a www\.a.b"),
        (":smile: mailto:a 12:30 x:y", r"\:smile: mailto\:a 12:30 x:y"),
        ("tests.yaml:4:3 tests.yaml:100:3", r"tests.yaml:4:3 tests.yaml\:100:3"),
    ],
)
def test_texts_are_no_links_and_call_nobody(text: str, written: str) -> None:
    assert markdown_text(text) == written


def test_a_workflow_command_escapes_what_would_end_its_parts() -> None:
    made = workflow_command("error", "one\n100%", {"file": "a:b,c.yaml", "line": 3})
    assert made == "::error file=a%3Ab%2Cc.yaml,line=3::one%0A100%25"
    assert workflow_command("notice", "all is well") == "::notice::all is well"
