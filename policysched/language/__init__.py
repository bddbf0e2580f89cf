"""The policy language: texts in, programs over columns of nodes out.

It knows nothing of Kubernetes objects, of files or of the network. What a caller needs to check texts is exported
here, and importing it imports no numpy: who evaluates over columns asks `columns`, `frames`, `reductions` and `flips`.
"""

from policysched.language.cases import compile_cases, compiling_cases
from policysched.language.codes import CODES, Code
from policysched.language.compile import Compiled, Want, compile_expression
from policysched.language.costs import Cost
from policysched.language.diagnostics import Diagnostic, diagnose, render
from policysched.language.environment import Environment, reserved_names
from policysched.language.format import format_text, format_tree
from policysched.language.interpret import UNKNOWN, ScalarFrame, interpret, weigh
from policysched.language.names import FIELDS
from policysched.language.parse import load_grammar, parse
from policysched.language.policies import CompiledLet, check_cost, check_name, compile_lets, each_let, policy_cost
from policysched.language.program import Program
from policysched.language.syntax import Span
from policysched.language.typed import AGGREGATES, PLACED, TALLIES, TIME, Input, Op, Typed
from policysched.language.types import Gap, Kind, Shape, Type, Unit


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
