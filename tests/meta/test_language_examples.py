"""The examples of the guide and of the language reference work as they say."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from policysched.app.checking.check import check
from policysched.framework import Cluster
from policysched.language import UNKNOWN, Environment, Want, code_table, compile_expression, interpret
from policysched.language.functions.signatures import Phase
from policysched.model.policy import API_VERSION, KIND, decode_policy
from policysched.rules.compile.compiler import compile_policy
from policysched.rules.policy_set.store import StoredPolicy
from policysched.rules.policy_status.status import differs, make_status
from tests.build import cluster, node, pod
from tests.language.frames import TableFrame
from tests.pages.listings import class_of
from tests.pages.making import WHOLE as WHOLE_PAGES
from tests.plugins.ask import scored
from tests.rules.build import one_policy
from tools.documents.markdown import DOCUMENTS, LANGUAGE, ROOT, Block, blocks, codes, shown, table, tables
from tools.reference import functions

GUIDE = ROOT / "docs" / "write" / "language.md"
POLICIES = [block for block in blocks(GUIDE) if class_of(block) == "policy"]
EXAMPLES = [
    text
    for page in (LANGUAGE, functions.PAGE)
    for rows in tables(page)
    for row in rows
    if "example" in row
    for text in codes(row["example"])
]
"""The expressions of all columns called `example`."""
OTHERS = [
    (shown(path), block)
    for path in DOCUMENTS
    for block in blocks(path)
    if path not in {GUIDE, *WHOLE_PAGES} and class_of(block) == "policy"
]
"""Those of other documents. Files that commands of a page use may be wrong: what is said of them is shown there."""


def _policy(block: Block) -> dict[str, Any]:
    """A whole policy of a block, which may be the inside of a spec."""
    found = yaml.safe_load(block.text)
    if "kind" in found:
        return dict(found)
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "shown"}, "spec": found}


@pytest.mark.parametrize("block", POLICIES, ids=lambda block: f"line-{block.line}")
def test_every_policy_of_the_guide_compiles_without_a_warning(block: Block) -> None:
    assert check([_policy(block)]) == []


@pytest.mark.parametrize(("place", "block"), OTHERS)
def test_every_policy_of_other_documents_compiles_without_a_warning(place: str, block: Block) -> None:
    assert check([_policy(block)]) == [], place


def test_examples_are_found() -> None:
    assert len(EXAMPLES) > 30
    assert len(POLICIES) > 5
    assert OTHERS


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_example_of_a_table_compiles(text: str) -> None:
    compiled = compile_expression(text, Environment("placement" if "placement." in text else "let"))
    assert (compiled.diagnostics, compiled.program is not None) == ((), True)


@pytest.mark.parametrize(("expression", "result"), table(LANGUAGE, "Missing values"))
def test_a_missing_value_gives_what_the_table_says(expression: str, result: str) -> None:
    [text] = codes(expression)
    program = compile_expression(text, Environment("let")).program
    assert program is not None
    value = interpret(program, TableFrame([{"node.free.memory": 1024}], peers=[{"row": 0}]).at(0))
    said = {"unknown": UNKNOWN, "missing": None, "true": True, "false": False, '`"none"`': "none", "`0`": 0.0}
    assert said[result] == value


def test_the_status_that_is_shown_is_the_one_that_is_written() -> None:
    [block] = [one for one in POLICIES if "\nstatus:" in one.text]
    policy = decode_policy(_policy(block))
    result = compile_policy(policy)
    status = make_status(
        StoredPolicy(policy, result, result.policy), "kube-system/policysched", datetime(2025, 1, 1, tzinfo=UTC)
    )
    assert not differs(policy, status)


def test_the_score_that_is_worked_out_is_the_one_that_is_given() -> None:
    [block] = [one for one in POLICIES if "piworknode001" in one.text]
    policy = compile_policy(decode_policy(_policy(block))).policy
    assert policy is not None
    nodes = cluster(node("piworknode001"), node("other"), pod("placed", on="piworknode001", requests={"cpu": "2"}))
    assert scored(one_policy(policy), pod(scheduler_name="sample-scheduler"), nodes) == {
        "piworknode001": 83,
        "other": 17,
    }


def test_reasons_of_rejections_are_those_that_are_shown() -> None:
    lines = [line for line in GUIDE.read_text("utf-8").splitlines() if line.startswith("- `policy ")]
    model = {
        "name": "allowed-model",
        "require": 'number(node.labels["gpu-model"]) > 1',
        "message": "GPU model not allowed",
    }
    share = {"name": "share", "require": "node.free.cpu / pod.requests.cpu > 2"}
    nodes = cluster(node("a", labels={"gpu-model": "1"}), node("b"))
    found = [*reasons("gpu-models", model, nodes), *reasons("room", share, nodes)]
    assert [codes(line)[0] for line in lines] == list(dict.fromkeys(found))


def reasons(policy: str, rule: dict[str, str], around: Cluster) -> list[str]:
    """Return the reasons of a filter of a policy on each node."""
    made = compile_policy(decode_policy({"metadata": {"name": policy}, "spec": {"filters": [rule]}})).policy
    assert made is not None
    plugin = one_policy(made)
    state: Any = plugin.prepare_filter(pod(), around)
    answers = (plugin.reason(state, int(code)).reasons for code in plugin.filter(state, slice(0, 2)))
    return [reason for one in answers for reason in one]


@pytest.mark.parametrize("row", table(GUIDE, "Read errors"), ids=lambda row: str(row[0]))
def test_common_mistakes_get_the_error_that_is_shown(row: list[str]) -> None:
    code = row[2].partition("]")[0].removeprefix("[")
    assert code in code_table()
    for mistake in codes(row[0]):
        phase: Phase = "score" if "score" in row[0] else "filter"
        want = Want.NUMBER if phase == "score" else Want.CONDITION
        assert [one.code for one in compile_expression(mistake, Environment(phase), want).diagnostics] == [code]
