"""`policysched fmt`: rewrite the expressions of policies in canonical form."""

from __future__ import annotations

from typing import Final

from policysched.app.rewriting.formatting import format_files
from policysched.cli.commands.policies.rewriting import Rewriting, Words
from policysched.cli.flags.policies import FmtFlags
from policysched.reading.files import STDIN

WORDS: Final = Words("reformat", "reformatted", "expression", "expressions", ("is formatted", "are formatted"))


def fmt(flags: FmtFlags) -> int:
    """Format files and print a summary; return the exit code."""
    notes: list[str] = []
    err = flags.diff or STDIN in flags.files
    rewriting = Rewriting(WORDS, flags.check, flags.diff, prints=False, err=err)
    return rewriting.run(format_files(flags.files, notes), notes)
