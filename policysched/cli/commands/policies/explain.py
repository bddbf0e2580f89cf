"""`policysched explain`: the meaning, reason and correction of an error code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.text import Text

from policysched.app.checking.explain import Explained, explain_all, shortened
from policysched.app.checking.explain import explain as look_up
from policysched.cli.flags.policies import ExplainFlags
from policysched.cli.formats import print_document
from policysched.cli.rich_output import console, finding_text

PROSE_WIDTH: Final = 100
"""Largest width of prose on a wide terminal. Units: columns."""


def complete(incomplete: str) -> list[tuple[str, str]]:
    """Return the error codes that start with a text, with their titles, for shell completion."""
    listed = [(one.code.lower() if incomplete.islower() else one.code, one.title) for one in explain_all()]
    return [(code, title) for code, title in listed if code.startswith(incomplete)]


def explain(flags: ExplainFlags) -> int:
    """Print the explanation of a code, or list the codes; return the exit code."""
    output = flags.output
    if flags.code is not None:
        found = look_up(flags.code)
        if output.is_value:
            print_document("ErrorCode", found.to_dict(), output)
        else:
            _print(found)
    elif output.is_value:
        listed = [{"code": one.code, "severity": one.severity, "title": one.title} for one in explain_all()]
        print_document("ErrorCode", listed, output)
    else:
        _list(explain_all())
    return 0


def _list(codes: list[Explained]) -> None:
    out = console()
    for one in codes:
        out.print(_head(one.code, one.title, "red" if one.severity == "error" else "yellow"), soft_wrap=True)


def _print(one: Explained) -> None:
    out = console()
    out.print(_head(one.code, one.title, "bold red" if one.severity == "error" else "bold yellow", "bold"))
    for paragraph in (one.meaning, one.reason):
        out.print()
        out.print(_marked(paragraph), width=min(out.width, PROSE_WIDTH))
    for title, part in _parts(one):
        out.print(Text(f"\n{title}", "bold"))
        out.print(part, soft_wrap=True)


def _parts(one: Explained) -> Iterator[tuple[str, Text]]:
    yield "Example", _yaml(shortened(one.example))
    if one.nodes:
        yield "On these nodes", _yaml(one.nodes)
    for said in one.says():
        yield f"Reports this {one.severity}", _indented(finding_text(said))
    yield "Write instead", _yaml(one.fix)


def _head(code: str, title: str, style: str, title_style: str = "") -> Text:
    return Text.assemble((code, style), "  ", _marked(title, title_style))


def _marked(prose: str, style: str = "") -> Text:
    """Color the parts of prose between backquotes."""
    text = Text(prose, style)
    text.highlight_regex(r"`[^`]+`", "cyan")
    return text


def _yaml(text: str) -> Text:
    shown = Text(text.rstrip("\n"))
    shown.highlight_regex(r"(?m)^[- {]*\w+(?=:)", "blue")
    return _indented(shown)


def _indented(text: Text) -> Text:
    return Text("\n").join(Text("  ") + line for line in text.split("\n"))
