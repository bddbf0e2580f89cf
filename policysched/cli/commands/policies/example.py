"""`policysched example`: lists the examples in the package, or writes the files of one into a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from policysched.cli.formats import TableFormat, say_document
from policysched.cli.options import ListOutput
from policysched.cli.output import print_parts, say
from policysched.errors import UsageError


def _complete(incomplete: str) -> list[tuple[str, str]]:
    from policysched.app.examples import list_examples  # noqa: PLC0415 - not needed for --help

    return [(one.name, one.description) for one in list_examples() if one.name.startswith(incomplete)]


def example(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Name of an example, such as tutorial or gpu-models; default: list all.",
            autocompletion=_complete,
        ),
    ] = None,
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="Folder for the files; default: the name of the example.")
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Write into a folder that is not empty; overwrite files of the same name."),
    ] = False,
    output: ListOutput = TableFormat.TABLE,
) -> int:
    """List the examples that ship with policysched, or write the files of one into a folder.

    Exit codes: 0 listed or written; 2 unknown example, or the folder cannot be used.
    """
    from policysched.app.examples import example_table, find_example, list_examples, write_example  # noqa: PLC0415 - as above

    if name is None:
        if force:
            raise UsageError("--force needs NAME")
        if output.is_value:
            say_document("Example", [one.to_dict() for one in list_examples()], output)
        else:
            print_parts([example_table(list_examples())], wide=output is TableFormat.WIDE)
        return 0
    found = find_example(name)
    target = folder or Path(found.short_name)
    write_example(found, target, overwrite=force)
    if output.is_value:
        say_document("Example", {**found.to_dict(), "folder": str(target)}, output)
    else:
        say(f"{target}: {', '.join(found.files)}")
    return 0
