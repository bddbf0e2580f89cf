"""The policy language: texts in, programs over columns of nodes out.

It knows nothing of Kubernetes objects, of files or of the network. What a caller needs to check texts is exported
here, and importing it imports no numpy: who evaluates over columns asks `columns`, `frames`, `reductions` and `flips`.
"""

from policysched.language.checking.cases import compile_cases, compiling_cases
from policysched.language.checking.compile import Compiled, Want, compile_expression
from policysched.language.checking.costs import Cost
from policysched.language.checking.environment import Environment, reserved_names
from policysched.language.checking.policies import (
    CompiledLet,
    check_cost,
    check_name,
    compile_lets,
    each_let,
    policy_cost,
)
from policysched.language.evaluation.interpreter import UNKNOWN, ScalarFrame, interpret, weigh
from policysched.language.ir.fields import FIELDS
from policysched.language.ir.graph import AGGREGATES, PLACED, TALLIES, TIME, Input, Op, Typed
from policysched.language.ir.program import Program
from policysched.language.ir.tree import Span
from policysched.language.ir.types import Gap, Kind, Shape, Type, Unit
from policysched.language.messages.codes import CODES, Code
from policysched.language.messages.diagnostics import Diagnostic, diagnose, render
from policysched.language.syntax.formatting import format_text, format_tree
from policysched.language.syntax.parser import load_grammar, parse


def code_table() -> dict[str, Code]:
    """Return every code with its title, sentences, help and example."""
    return dict(CODES)


__all__ = [
    "AGGREGATES",
    "FIELDS",
    "PLACED",
    "TALLIES",
    "TIME",
    "UNKNOWN",
    "Code",
    "Compiled",
    "CompiledLet",
    "Cost",
    "Diagnostic",
    "Environment",
    "Gap",
    "Input",
    "Kind",
    "Op",
    "Program",
    "ScalarFrame",
    "Shape",
    "Span",
    "Type",
    "Typed",
    "Unit",
    "Want",
    "check_cost",
    "check_name",
    "code_table",
    "compile_cases",
    "compile_expression",
    "compile_lets",
    "compiling_cases",
    "diagnose",
    "each_let",
    "format_text",
    "format_tree",
    "interpret",
    "load_grammar",
    "parse",
    "policy_cost",
    "render",
    "reserved_names",
    "weigh",
]
