"""The tables of docs/reference/language.md say what the code's tables say."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest

from policysched.app.checking.schema import CODE as SHAPE_CODE
from policysched.app.checking.schema import policy_schema
from policysched.language import FIELDS, Gap, code_table
from policysched.language.checking.estimates import MAX_NODE_OPERATIONS, MAX_POD_OPERATIONS
from policysched.language.functions import FUNCTIONS
from policysched.language.functions.values import MAX_NESTING
from policysched.language.ir.graph import AGGREGATES, MAX_PARTS, MAX_TEXT
from policysched.language.ir.types import FACTORS, SECONDS, InputField
from policysched.language.syntax.errors import OPERATORS, TERMINALS
from policysched.language.syntax.parser import MAX_CHARACTERS, MAX_DEPTH, MAX_TOKENS
from policysched.model.policy import MetricQuery, PolicySpec, PolicyStatus
from policysched.rules.compile.compiler import MAX_CHARACTERS as MAX_TOGETHER
from policysched.rules.compile.compiler import MAX_LETS, MAX_METRICS, MAX_REQUIREMENTS, MAX_RULES, MAX_VALUES
from policysched.rules.policy_set.budget import MAX_POLICIES, MAX_QUERIES, MAX_UNITS
from policysched.rules.policy_status.status import MAX_DIAGNOSTICS
from tests.meta.markdown import LANGUAGE, ROOT, codes, section, table

LONGEST_EXAMPLE = 60
SPEC: dict[str, Any] = policy_schema()["properties"]["spec"]["properties"]
SCORE: dict[str, Any] = SPEC["scores"]["items"]["properties"]
FILTER: dict[str, Any] = SPEC["filters"]["items"]["properties"]


def _written(names: tuple[str, ...], field: InputField) -> str:
    return ".".join(names) + ('["k"]' if field.keyed else '("k")' if field.called else "")


def test_names_are_those_of_the_language_with_type_and_gap() -> None:
    rows = [(name, row[1], row[2]) for row in table(LANGUAGE, "Names") for name in codes(row[0])]
    known = [
        (_written(names, field), str(field.type), "yes" if field.type.gap is Gap.INPUT else "no")
        for names, field in FIELDS.items()
    ]
    assert sorted(rows) == sorted(known)


def test_functions_are_those_of_the_language_in_its_words() -> None:
    rows = {row[0].strip("`").removesuffix(" [by key]"): row[1] for row in table(LANGUAGE, "Functions")}
    assert rows == {f"{name}({function.form})": function.help for name, function in FUNCTIONS.items()}


@pytest.mark.parametrize("row", table(LANGUAGE, "Functions"), ids=lambda row: str(row[0]))
def test_a_function_is_written_with_its_number_of_arguments(row: list[str]) -> None:
    name, _, rest = row[0].strip("`").partition("(")
    arguments, _, by = rest.partition(")")
    assert (by == " [by key]") == (name in AGGREGATES)
    must, _, may = arguments.partition("[")
    needed = [argument for argument in must.split(", ") if argument]
    function = FUNCTIONS[name]
    open_end = needed[-1:] == ["…"]
    assert open_end == (function.most is None)
    assert len(needed) - open_end == function.least
    if function.most is not None:
        assert function.most - function.least == bool(may)
    assert f"{name}(" in row[2]


def test_operators_are_those_of_the_grammar() -> None:
    written = {operator for row in table(LANGUAGE, "Operators") for operator in codes(row[0])}
    known = {TERMINALS[name].strip("`") for name in (*OPERATORS, "NOT_SIGN")}
    assert written == known | {"not in"}


def test_units_are_those_of_the_language() -> None:
    written = {unit for row in table(LANGUAGE, "Units and literals") for unit in codes(row[0]) if unit.isalpha()}
    assert written - {"true", "false"} == {*FACTORS, *SECONDS} - {"", "%", "m"}


def test_codes_are_those_of_the_language_with_title_and_example() -> None:
    rows = [tuple(row) for row in table(LANGUAGE, "Messages")]
    known = []
    for code, entry in code_table().items():
        lines = entry.text.splitlines() if len(entry.text) <= LONGEST_EXAMPLE else []
        known.append((code, entry.title, ", ".join(f"`{line.strip()}`" for line in lines)))
    assert rows == known


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
        "words and signs of an expression": MAX_TOKENS,
        "levels of nesting": MAX_DEPTH,
        "aggregates in each other": MAX_NESTING,
        "characters of all expressions of a policy": MAX_TOGETHER,
        "filters and scores of a policy": MAX_RULES,
        "requirements in `podSelector` and `namespaceSelector` together": MAX_REQUIREMENTS,
        "values in these": MAX_VALUES,
        "lines of `let`": MAX_LETS,
        "metrics of a policy": MAX_METRICS,
        "cases of a score": SCORE["cases"]["maxItems"],
        "operations once a node": MAX_NODE_OPERATIONS,
        "operations once a placed pod": MAX_POD_OPERATIONS,
        "units of all enforced policies for a scheduler name together": MAX_UNITS,
        "policies in force": MAX_POLICIES,
        "different queries of metrics that they ask": MAX_QUERIES,
        "characters of a message": FILTER["message"]["maxLength"],
        "characters of a name": FILTER["name"]["maxLength"],
        "diagnostics in the status": MAX_DIAGNOSTICS,
        "characters of a string that `concat` makes": MAX_TEXT,
        "characters of a string that `glob`, `number` and `version` read": MAX_TEXT,
        "parts of a string that `split` divides": MAX_PARTS,
    }
    assert SPEC["let"]["maxItems"] == MAX_LETS
    assert SPEC["metrics"]["maxItems"] == MAX_METRICS


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


@pytest.mark.parametrize(
    ("title", "fields"),
    [
        ("The object", [_camel(name) for name in PolicySpec.__struct_fields__]),
        ("Filters", list(FILTER)),
        ("Scores", list(SCORE)),
        ("Metrics", [_camel(name) for name in MetricQuery.__struct_fields__]),
        ("Status", [_camel(name) for name in PolicyStatus.__struct_fields__]),
    ],
)
def test_fields_of_the_object_are_all_described(title: str, fields: list[str]) -> None:
    described = {name for row in table(LANGUAGE, title) for name in codes(row[0])}
    assert described - {"Compiled", "Active"} == set(fields)


def test_reasons_of_conditions_are_those_that_the_status_gives() -> None:
    tree = ast.parse((ROOT / "policysched" / "rules" / "policy_status" / "status.py").read_text("utf-8"))
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    reasons = [code for row in table(LANGUAGE, "Status") if "reason" in row[1] for code in codes(row[1])]
    # The mode of a policy in force is the reason, so those two words stand nowhere else.
    assert set(reasons) - {"Enforce", "Shadow"} <= texts
    ends = ("Error", "Compiled", "Generation", "Disabled")
    given = {
        text for text in texts if isinstance(text, str) and text.endswith(ends) and text.isalpha() and text[0].isupper()
    }
    assert given <= set(reasons)
