"""`parse`: from text to syntax tree, by a parser that is imported with the first text, and its library with it.

They take as long to import as a tenth of the engine does, and a scheduler without policies never needs them.
"""

from __future__ import annotations

from typing import TypeAlias

from policysched.language.ir.tree import Case, Expr
from policysched.language.messages.diagnostics import Diagnostic

Parsed: TypeAlias = Expr | Case | Diagnostic


def parse(text: str, start: str = "expr") -> Parsed:
    """Parse a text.

    Args:
        text: The text of one field, or of one case.
        start: `expr` or `case`.

    Returns:
        The tree, or the first error.
    """
    from policysched.language.syntax import parser  # noqa: PLC0415 - see above

    return parser.parse(text, start)


def load_grammar() -> None:
    """Make the parser and read the messages now, so that nobody waits for them at the first text."""
    from policysched.language.syntax import parser  # noqa: PLC0415 - see above

    parser.load_grammar()
