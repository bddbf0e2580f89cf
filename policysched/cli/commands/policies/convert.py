"""`policysched convert`: write policies in another API version."""

from __future__ import annotations

from functools import partial
from typing import Final

from policysched.app.rewriting.conversion import convert_source, converted, version_named
from policysched.app.rewriting.files import rewrite_files
from policysched.cli.commands.policies.rewriting import Rewriting, Words
from policysched.cli.flags.formats import TextFormat
from policysched.cli.flags.policies import ConvertFlags
from policysched.cli.formats import print_value
from policysched.cli.output import print_text
from policysched.errors import UsageError
from policysched.reading.files import STDIN
from policysched.reading.loading import load

WORDS: Final = Words("convert", "converted", "API version", "API versions", ("unchanged", "unchanged"))


def convert(flags: ConvertFlags) -> int:
    """Convert files and print a summary; return the exit code."""
    version = version_named(flags.output_version)
    _refuse_combinations(flags)
    if flags.output is not None:
        return _print_objects(flags.files, version, flags.output)
    printing = not (flags.write or flags.check or flags.diff)
    notes: list[str] = []
    files = rewrite_files(flags.files, partial(convert_source, version=version), notes)
    err = flags.diff or printing or STDIN in flags.files
    rewriting = Rewriting(WORDS, flags.check, flags.diff, prints=printing, err=err)
    return rewriting.run(files, notes)


def _refuse_combinations(flags: ConvertFlags) -> None:
    """Raise an error if the user combines flags of `convert` that exclude each other, such as --check and --diff.

    Raises:
        UsageError: two flags exclude each other.
    """
    given = {
        "--write": flags.write,
        "--check": flags.check,
        "--diff": flags.diff,
        "--output": flags.output is not None,
    }
    named = [name for name, is_given in given.items() if is_given]
    if len(named) > 1:
        raise UsageError(f"{named[0]} and {named[1]} cannot be combined")
    if flags.write and STDIN in flags.files:
        raise UsageError("--write cannot be used with standard input; without it, the result is printed")


def _print_objects(files: list[str], version: str, output: TextFormat) -> int:
    notes: list[str] = []
    objects = converted(load(files, notes), version)
    for note in notes:
        print_text(f"note: {note}", stderr=True)
    print_value(objects[0] if len(objects) == 1 else {"apiVersion": "v1", "kind": "List", "items": objects}, output)
    return 0
