"""What conditions say of warnings about nodes, and of a last good generation without a number."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from policysched.language.messages.diagnostics import Diagnostic
from policysched.model.policy import PolicyInput, PolicyInstance, decode_policy
from policysched.rules.compile.compiler import compile_policy
from policysched.rules.policy_set.store import StoredPolicy
from policysched.rules.policy_status.input_presence import Coverage
from policysched.rules.policy_status.status import ABOUT_NODES, MOST_OF_OTHERS, differs, make_status
from tests.rules.build import filtering, policy

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ABSENT = Coverage(
    warnings=(Diagnostic("warning", ABOUT_NODES, "on no node", 1, 1, 2, None, "spec.filters[0].require"),)
)


def _entry(generation: int = 1, broken: bool = False) -> StoredPolicy:
    good = policy(filters=filtering("node.ready"), generation=generation)
    compiled = compile_policy(good)
    newest = policy(filters=filtering("nod.ready"), generation=2) if broken else good
    return StoredPolicy(newest, compile_policy(newest) if broken else compiled, compiled.policy)


def _messages(status: dict[str, Any]) -> list[str]:
    return [one["message"] for one in status["conditions"]]


def test_warnings_about_nodes_are_counted() -> None:
    assert _messages(make_status(_entry(), "a", NOW, ABSENT))[0] == "0 errors, 1 warning"
    assert _messages(make_status(_entry(), "a", NOW))[0] == "0 errors, 0 warnings"


def test_a_count_of_warnings_about_nodes_alone_is_not_worth_writing() -> None:
    entry = _entry()
    written = make_status(entry, "a", NOW, ABSENT)
    raw = {
        "metadata": {"name": "p", "generation": 1},
        "spec": msgspec.to_builtins(entry.policy.spec),
        "status": written,
    }
    again = StoredPolicy(decode_policy(raw), entry.result, entry.active)
    assert not differs(again.policy, make_status(again, "a", NOW))
    assert differs(again.policy, make_status(again, "a", NOW), about_nodes=True)


def test_an_earlier_generation_without_a_number_is_not_called_generation_0() -> None:
    assert _messages(make_status(_entry(7, broken=True), "a", NOW))[1] == "generation 7 stays in force"
    assert _messages(make_status(_entry(0, broken=True), "a", NOW))[1] == "an earlier generation stays in force"


@pytest.mark.parametrize(("length", "kept"), [(1000, True), (MOST_OF_OTHERS, False)])
def test_entries_of_others_are_written_back_unless_they_are_long(length: int, kept: bool) -> None:
    entry = _entry()
    other = PolicyInstance(name="b", inputs=[PolicyInput(name="x" * length)])
    written = replace(entry.policy, status=replace(entry.policy.status, instances=[other]))
    status = make_status(StoredPolicy(written, entry.result, entry.active), "a", NOW)
    assert [one["name"] for one in status["instances"]] == (["a", "b"] if kept else ["a"])
