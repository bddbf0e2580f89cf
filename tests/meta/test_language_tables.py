"""Tables of the language reference agree with the tables of the code."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest

from policysched.app.checking.schema import CODE as SHAPE_CODE
from policysched.app.checking.schema import policy_schema
from policysched.language import FIELDS, code_table
from policysched.language.checking.estimates import MAX_NODE_OPERATIONS, MAX_POD_OPERATIONS
from policysched.language.functions import FUNCTIONS
from policysched.language.functions.values import MAX_NESTING
from policysched.language.ir.graph import MAX_PARTS, MAX_TEXT
from policysched.language.ir.types import FACTORS, SECONDS
from policysched.language.syntax.parser import MAX_CHARACTERS, MAX_DEPTH, MAX_TOKENS
from policysched.language.syntax.terminals import OPERATORS, TERMINALS
from policysched.rules.compile.compiler import MAX_CHARACTERS as MAX_TOGETHER
from policysched.rules.compile.compiler import MAX_LETS, MAX_METRICS, MAX_REQUIREMENTS, MAX_RULES, MAX_VALUES
from policysched.rules.policy_set.budget import MAX_POLICIES, MAX_QUERIES, MAX_UNITS
from policysched.rules.policy_status.status import MAX_DIAGNOSTICS
from tools.documents.markdown import LANGUAGE, ROOT, codes, section, table
from tools.reference import functions
from tools.reference.functions import form, written

SPEC: dict[str, Any] = policy_schema()["properties"]["spec"]["properties"]
SCORE: dict[str, Any] = SPEC["scores"]["items"]["properties"]
FILTER: dict[str, Any] = SPEC["filters"]["items"]["properties"]


@pytest.mark.parametrize("names", FIELDS)
def test_every_field_has_a_help_text(names: tuple[str, ...]) -> None:
    assert FIELDS[names].help
    assert f"| `{written(names, FIELDS[names])}` | {FIELDS[names].type} |" in functions.page()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_written_with_its_number_of_arguments(name: str) -> None:
    function = FUNCTIONS[name]
    must, may = re.sub(r"\[[^]]*\]", "", function.form), "[" in function.form
    needed = [argument for argument in must.split(", ") if argument]
    open_end = needed[-1:] == ["…"]
    assert open_end == (function.most is None)
    assert len(needed) - open_end == function.least
    if function.most is not None:
        assert function.most - function.least == may
    assert function.help
    assert f"{name}(" in function.example
    assert f"| `{form(name, function)}` |" in functions.page()


def test_operators_are_those_of_the_grammar() -> None:
    written = {operator for row in table(LANGUAGE, "Operators") for operator in codes(row[0])}
    known = {TERMINALS[name].strip("`") for name in (*OPERATORS, "NOT_SIGN")}
    assert written == known | {"not in"}


def test_units_are_those_of_the_language() -> None:
    written = {unit for row in table(LANGUAGE, "Units and literals") for unit in codes(row[0]) if unit.isalpha()}
    assert written - {"true", "false"} == {*FACTORS, *SECONDS} - {"", "%", "m"}


def _emitted() -> set[str]:
    """The codes that the code of the package names."""
    found = set()
    for path in (ROOT / "policysched").rglob("*.py"):
        found |= set(re.findall(r'"([EW]\d{4})"', path.read_text("utf-8")))
    return found


def test_codes_in_use_are_all_in_the_table() -> None:
    assert _emitted() <= {*code_table(), SHAPE_CODE}


def test_codes_of_the_table_are_in_use() -> None:
    assert set(code_table()) - _emitted() == set()


def test_the_code_of_misshapen_objects_is_described() -> None:
    assert SHAPE_CODE not in code_table()
    assert SHAPE_CODE in section(LANGUAGE, "Messages")


def test_limits_are_those_of_the_code_and_of_the_resource() -> None:
    written = {row[0]: int(row[1]) for row in table(LANGUAGE, "Limits")}
    assert written == {
        "characters of an expression": MAX_CHARACTERS,
        "tokens of an expression": MAX_TOKENS,
        "levels of nesting": MAX_DEPTH,
        "levels of nested aggregates": MAX_NESTING,
        "characters of all expressions of a policy": MAX_TOGETHER,
        "filters and scores of a policy": MAX_RULES,
        "requirements in both selectors": MAX_REQUIREMENTS,
        "values in both selectors": MAX_VALUES,
        "`let` names": MAX_LETS,
        "metrics of a policy": MAX_METRICS,
        "cases of a score": SCORE["cases"]["maxItems"],
        "operations per node": MAX_NODE_OPERATIONS,
        "operations per placed pod": MAX_POD_OPERATIONS,
        "units of enforced policies per scheduler name": MAX_UNITS,
        "policies in force, including Shadow": MAX_POLICIES,
        "different metric queries": MAX_QUERIES,
        "characters of a message": FILTER["message"]["maxLength"],
        "characters of a name": FILTER["name"]["maxLength"],
        "diagnostics in the status": MAX_DIAGNOSTICS,
        "characters of a string that `concat` makes": MAX_TEXT,
        "characters of a string that `glob`, `number` and `version` read": MAX_TEXT,
        "parts of a string that `split` divides": MAX_PARTS,
    }
    assert SPEC["let"]["maxItems"] == MAX_LETS
    assert SPEC["metrics"]["maxItems"] == MAX_METRICS


def test_reasons_of_conditions_are_those_that_the_status_gives() -> None:
    tree = ast.parse((ROOT / "policysched" / "rules" / "policy_status" / "status.py").read_text("utf-8"))
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    reasons = [code for row in table(LANGUAGE, "Status") for code in codes(row[1])]
    # The mode of a policy in force is the reason, so those two words stand nowhere else.
    assert set(reasons) - {"Enforce", "Shadow"} <= texts
    ends = ("Error", "Compiled", "Generation", "Disabled")
    given = {
        text for text in texts if isinstance(text, str) and text.endswith(ends) and text.isalpha() and text[0].isupper()
    }
    assert given <= set(reasons)
