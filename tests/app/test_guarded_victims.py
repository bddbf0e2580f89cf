"""`spec.preemption` where users meet it: in `check`, `fmt`, dry-runs and statuses."""

from __future__ import annotations

from datetime import UTC, datetime
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from policysched.app.checking.check import check
from policysched.app.dry_run.dry_run import dry_run
from policysched.app.dry_run.tables import decision_parts
from policysched.app.rewriting.formatting import format_source
from policysched.rules.compile.compiler import compile_policy
from policysched.rules.policy_set.store import StoredPolicy
from policysched.rules.policy_status.status import make_status
from tests.rules.build import policy

NODE = {
    "kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1"},
    "status": {"allocatable": {"cpu": 4, "memory": "8Gi", "pods": 110}},
}  # fmt: skip


def placed(name: str, created: str, cpu: int) -> dict[str, Any]:
    return {
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {"name": name, "creationTimestamp": created},
        "spec": {
            "nodeName": "n1", "priority": 0, "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}],
        },
    }  # fmt: skip


WEB = {
    "kind": "Pod", "apiVersion": "v1", "metadata": {"name": "web"},
    "spec": {"priority": 1000, "containers": [{"name": "c", "resources": {"requests": {"cpu": 4}}}]},
}  # fmt: skip


def keep(**preemption: Any) -> dict[str, Any]:
    return {
        "apiVersion": "policysched.io/v1beta1", "kind": "SchedulingPolicy", "metadata": {"name": "keep"},
        "spec": {"preemption": preemption},
    }  # fmt: skip


def test_dry_run_says_who_is_protected_and_why_nobody_makes_room() -> None:
    objects = [NODE, placed("build", "2026-01-01T06:00:00Z", 3), placed("young", "2026-01-01T11:50:00Z", 1)]
    report = dry_run(objects, WEB, [keep(require="victim.age < 1h")], now="2026-01-01T12:00:00Z")
    record = report.record
    assert "policy keep/preemption: victim.age < 1h" in record["preemption"]["message"]
    assert record["rules"]["keep"]["preemption"] == {"default/build": "victim.age is 6h"}
    assert "notApplied" not in record
    shown = StringIO()
    console = Console(width=200, file=shown)
    for part in decision_parts(record):
        console.print(part)
    assert "protects default/build (victim.age is 6h)" in shown.getvalue()
    assert "Protected from preemption" in shown.getvalue()
    why = "policy keep/preemption: victim.age < 1h (victim.age is 6h)"
    assert record["preemption"]["protected"] == {"n1": {"default/build": why}}


def test_dry_run_says_which_pods_a_guard_is_not_for() -> None:
    policies = [keep(require="victim.age < 1h") | {"spec": {"podSelector": {"matchLabels": {"a": "b"}},
                                                          "preemption": {"require": "victim.age < 1h"}}}]  # fmt: skip
    record = dry_run([NODE], WEB, policies, now="2026-01-01T12:00:00Z").record
    assert record["notApplied"] == {"keep": "podSelector does not match the pod's labels"}


@pytest.mark.parametrize(
    ("spec", "code", "field"),
    [
        ({"preemption": {"require": "victim.runs < 1h"}}, "E0202", "spec.preemption.require"),
        ({"preemption": {"require": "victim.age"}}, "E0302", "spec.preemption.require"),
        ({"preemption": {}}, "E0001", "spec.preemption.require"),
        ({"preemption": {"require": "victim.age < 1h", "when": "true"}}, "E0001", "spec.preemption.when"),
        ({"filters": [{"name": "a", "require": "victim.age < 1h"}]}, "E0209", "spec.filters[0].require"),
        ({"let": [{"name": "a", "value": "victim.age"}]}, "E0209", "spec.let[0].value"),
    ],
)
def test_check_names_what_is_wrong_with_it(spec: dict[str, Any], code: str, field: str) -> None:
    found = check([keep() | {"spec": spec}])
    assert (found[0].code, found[0].field) == (code, field)


def test_check_finds_nothing_wrong_with_a_policy_of_a_guard_alone() -> None:
    assert check([keep(require="victim.age < 1h", message="it runs")]) == []


def test_fmt_writes_it_in_canonical_form() -> None:
    text = (
        "apiVersion: policysched.io/v1beta1\nkind: SchedulingPolicy\nmetadata: {name: keep}\n"
        "spec:\n  preemption:\n    require: victim.age<1h\n"
    )
    assert format_source(text, "p.yaml").text.endswith("require: victim.age < 1h\n")


def test_status_tells_the_spec_in_force() -> None:
    wrong = policy("keep", generation=2, preemption={"require": "victim.age <"})
    last = policy("keep", generation=1, preemption={"require": "victim.age < 1h"})
    active = compile_policy(last).policy
    entry = StoredPolicy(wrong, compile_policy(wrong), active)
    status = make_status(entry, "me", datetime(2026, 1, 1, tzinfo=UTC))
    assert status["activeGeneration"] == 1
    assert status["activeSpec"]["preemption"] == {"require": "victim.age < 1h"}
    assert status["diagnostics"][0]["field"] == "spec.preemption.require"


def test_guard_counts_as_a_rule_and_a_let_serves_it() -> None:
    spec: dict[str, Any] = {"let": [{"name": "short", "value": "1h"}], "preemption": {"require": "victim.age < short"}}
    kept = policy("keep", **spec)
    made = compile_policy(kept)
    assert made.diagnostics == ()
    assert make_status(StoredPolicy(kept, made, made.policy), "me", datetime(2026, 1, 1, tzinfo=UTC))["rules"] == 1
