"""What is wrong with a requirement, as the API server and kube-scheduler say it."""

from __future__ import annotations

import pytest

from policysched.model.objects import LabelSelector, Requirement
from policysched.model.selection.name_validation import (
    invalid,
    is_label_value,
    is_qualified_name,
    key_faults,
    requirement_fault,
    value_faults,
)
from policysched.model.selection.selectors import SelectorError, compile_selector, requirement

NAME = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
DNS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


@pytest.mark.parametrize(
    ("key", "faults"),
    [
        ("app", []),
        ("example.com/app", []),
        ("not a key", [f"name part {NAME}"]),
        ("", ["name part must be non-empty", f"name part {NAME}"]),
        ("/app", ["prefix part must be non-empty"]),
        ("A.b/app", [f"prefix part {DNS}"]),
        ("x" * 64, ["name part must be no more than 63 bytes"]),
        (f"{'x' * 254}/a", ["prefix part must be no more than 253 bytes"]),
        (
            "a/b/c",
            [f"a valid label key {NAME} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"],
        ),
    ],
)
def test_faults_of_a_key_are_those_of_the_api_server(key: str, faults: list[str]) -> None:
    assert key_faults(key) == faults
    assert is_qualified_name(key) == (not faults)


@pytest.mark.parametrize(
    ("value", "faults"),
    [
        ("", []),
        ("a-b_c.D", []),
        ("{{.bad-value.}}", [VALUE]),
        ("x" * 64, ["must be no more than 63 bytes"]),
        ("-" + "x" * 63, ["must be no more than 63 bytes", VALUE]),
    ],
)
def test_faults_of_a_value_are_those_of_the_api_server(value: str, faults: list[str]) -> None:
    assert value_faults(value) == faults
    assert is_label_value(value) == (not faults)


@pytest.mark.parametrize(
    ("one", "message"),
    [
        (Requirement(key="a", operator="In", values=("x", "y z")), f'values[1][a]: Invalid value: "y z": {VALUE}'),
        (
            Requirement(key="a", operator="NotIn"),
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            Requirement(key="a", operator="Exists", values=("x", "y")),
            'values: Invalid value: ["x","y"]: values set must be empty for exists and does not exist',
        ),
        (
            Requirement(key="-", operator="In", values=("+",)),
            f'[key: Invalid value: "-": name part {NAME}, values[0][-]: Invalid value: "+": {VALUE}]',
        ),
        (Requirement(key="a", operator="Like", values=("x",)), '"Like" is not a valid label selector operator'),
        (Requirement(key="a", operator="Gt", values=("1",)), '"Gt" is not a valid label selector operator'),
    ],
)
def test_a_label_selector_is_refused_in_the_api_servers_words(one: Requirement, message: str) -> None:
    with pytest.raises(SelectorError) as refused:
        compile_selector(LabelSelector(match_expressions=(one,)))
    assert str(refused.value) == message


def test_a_label_among_matchlabels_is_refused_in_the_same_words() -> None:
    with pytest.raises(SelectorError) as refused:
        compile_selector(LabelSelector(match_labels={"a": "ä"}))
    assert str(refused.value) == f'values[0][a]: Invalid value: "ä": {VALUE}'


def test_a_comparison_names_each_value_that_is_no_integer() -> None:
    with pytest.raises(SelectorError) as refused:
        requirement(Requirement(key="a", operator="Gt", values=("1", "x")))
    assert str(refused.value) == (
        "[values: Invalid value: [\"1\",\"x\"]: for 'Gt', 'Lt' operators, exactly one value is required, "
        "values[1]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer]"
    )


def test_a_requirement_without_faults_has_no_text() -> None:
    assert requirement_fault("a", ("b",), ()) == ""
    assert requirement_fault("a", (), [invalid("values", (), "none")]) == "values: Invalid value: null: none"
