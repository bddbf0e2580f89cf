"""`policysched explain`: prints the meaning of an error code, its reason and its correction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.text import Text

from policysched.cli.formats import TableFormat, say_document
from policysched.cli.options import ListOutput
from policysched.cli.output import console, finding_text

if TYPE_CHECKING:
    from policysched.app.checking.explain import Explained

PROSE_WIDTH: Final = 100
"""Largest width of prose, also on a wider terminal. Units: columns."""


def _complete(incomplete: str) -> list[tuple[str, str]]:
    from policysched.app.checking.explain import explain_all  # noqa: PLC0415 - not needed for --help

    listed = [(one.code.lower() if incomplete.islower() else one.code, one.title) for one in explain_all()]
    return [(code, title) for code, title in listed if code.startswith(incomplete)]


def explain(
    code: Annotated[
        str | None,
        typer.Argument(
            metavar="CODE", help="Code, such as E0301, e301 or 301; default: list all codes.", autocompletion=_complete
        ),
    ] = None,
    output: ListOutput = TableFormat.TABLE,
) -> int:
    """Explain an error or warning code.

    Prints the meaning, the reason, an example and its correction.

    Example: `policysched explain E0301`

    Exit codes: 0 success; 2 unknown code.
    """
    from policysched.app.checking.explain import explain as look_up  # noqa: PLC0415 - not needed for --help
    from policysched.app.checking.explain import explain_all  # noqa: PLC0415

    if code is not None:
        found = look_up(code)
        if output.is_value:
            say_document("ErrorCode", found.to_dict(), output)
        else:
            _print(found)
    elif output.is_value:
        listed = [{"code": one.code, "severity": one.severity, "title": one.title} for one in explain_all()]
        say_document("ErrorCode", listed, output)
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
    from policysched.app.checking.explain import shortened  # noqa: PLC0415 - not needed for --help

    yield "Example", _yaml(shortened(one.example))
    if one.nodes:
        yield "On these nodes", _yaml(one.nodes)
    for said in one.says():
        yield f"Reports this {one.severity}", _indented(finding_text(said))
    yield "Write instead", _yaml(one.fix)


def _head(code: str, title: str, style: str, title_style: str = "") -> Text:
    return Text.assemble((code, style), "  ", _marked(title, title_style))


def _marked(prose: str, style: str = "") -> Text:
    """Color the parts of prose in backquotes."""
    text = Text(prose, style)
    text.highlight_regex(r"`[^`]+`", "cyan")
    return text


def _yaml(text: str) -> Text:
    shown = Text(text.rstrip("\n"))
    shown.highlight_regex(r"(?m)^[- {]*\w+(?=:)", "blue")
    return _indented(shown)


def _indented(text: Text) -> Text:
    return Text("\n").join(Text("  ") + line for line in text.split("\n"))
