"""`policysched example`: lists the examples in the package, or writes the files of an example into a folder."""

from __future__ import annotations

from pathlib import Path

from policysched.app.examples import example_table, find_example, list_examples, write_example
from policysched.cli.flags.formats import TableFormat
from policysched.cli.flags.policies import ExampleFlags
from policysched.cli.formats import print_document
from policysched.cli.output import print_text
from policysched.cli.rich_output import print_parts
from policysched.errors import UsageError


def complete(incomplete: str) -> list[tuple[str, str]]:
    """Return the examples whose names start with a text, as names and descriptions for shell completion."""
    return [(one.name, one.description) for one in list_examples() if one.name.startswith(incomplete)]


def example(flags: ExampleFlags) -> int:
    """List the examples or write one of them into a folder; return the exit code."""
    output = flags.output
    if flags.name is None:
        if flags.force:
            raise UsageError("--force needs NAME")
        if output.is_value:
            print_document("Example", [one.to_dict() for one in list_examples()], output)
        else:
            print_parts([example_table(list_examples())], wide=output is TableFormat.WIDE)
        return 0
    found = find_example(flags.name)
    target = flags.folder or Path(found.short_name)
    write_example(found, target, overwrite=flags.force)
    if output.is_value:
        print_document("Example", {**found.to_dict(), "folder": str(target)}, output)
    else:
        print_text(f"{target}: {', '.join(found.files)}")
    return 0
