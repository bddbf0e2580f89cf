"""The policy language: compiles expressions into programs, which are evaluated over columns of nodes.

An expression passes `syntax`, `checking` (with `functions`) and `evaluation`; all use `ir` and `messages`. This package
exports the checks and imports no NumPy; to evaluate programs, import `evaluation`. All packages above may import this
package; it imports none of them.
"""

from policysched.language.checking.compile import (
    Compiled,
    CompiledLet,
    Want,
    check_cost,
    check_name,
    compile_cases,
    compile_expression,
    each_let,
    policy_cost,
    reserved_names,
)
from policysched.language.checking.estimates import Cost
from policysched.language.evaluation.scalar import UNKNOWN, ScalarFrame, interpret, weigh
from policysched.language.functions.signatures import Environment
from policysched.language.ir.graph import AGGREGATES, PLACED, POD_AGGREGATES, TIME, Input, Op, Program, Typed
from policysched.language.ir.tree import Span
from policysched.language.ir.types import FIELDS, Gap, Kind, Shape, Type, Unit
from policysched.language.messages.diagnostics import Diagnostic, Message, diagnose, message_table, render
from policysched.language.syntax.formatting import format_text, format_tree
from policysched.language.syntax.parser import load_grammar, parse


def code_table() -> dict[str, Message]:
    """Return the messages that the language itself reports, by code.

    `message_table` also has messages about objects.
    """
    return {code: message for code, message in message_table().items() if message.message}


__all__ = [
    "AGGREGATES", "FIELDS", "PLACED", "POD_AGGREGATES", "TIME", "UNKNOWN", "Compiled", "CompiledLet", "Cost",
    "Diagnostic", "Environment", "Gap", "Input", "Kind", "Message", "Op", "Program", "ScalarFrame", "Shape", "Span",
    "Type", "Typed", "Unit", "Want", "check_cost", "check_name", "code_table", "compile_cases",
    "compile_expression", "diagnose", "each_let", "format_text", "format_tree", "interpret", "load_grammar",
    "message_table", "parse", "policy_cost", "render", "reserved_names", "weigh",
]  # fmt: skip
