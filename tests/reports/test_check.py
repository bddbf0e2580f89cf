"""`check --cluster` notes policies that select no pod of the files."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Command
from .test_plan import FILTER, POLICY


@pytest.mark.parametrize(
    ("spec", "note"),
    [
        ("podSelector: {matchLabels: {app: x}}, " + FILTER % "b", "no pod matches podSelector (2 pods in --cluster)"),
        ("schedulerNames: [policysched], " + FILTER % "b", "no pod matches schedulerNames (2 pods in --cluster)"),
        ("schedulerNames: [default-scheduler], " + FILTER % "b", ""),
        ("podSelector: {matchExpressions: [{key: app, operator: DoesNotExist}]}, " + FILTER % "b", ""),
    ],
)
def test_a_policy_that_selects_no_pod_is_noted(command: Command, tmp_path: Path, spec: str, note: str) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY % spec)
    done = command("check", str(tmp_path / "policy.yaml"), "--cluster", "c21b-plan-default.yaml")
    assert (done.code, done.problem) == (0, f"note: policy own: {note}\n" if note else "")
    assert command("check", str(tmp_path / "policy.yaml"), "--cluster", "nodes3.yaml").problem == ""
