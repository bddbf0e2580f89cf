"""The alerts, as promtool checks them: each is valid, and fires when it should."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.metric_sources.program import binary
from tools.documents.markdown import ROOT, anchors

ALERTS = ROOT / "deploy" / "monitoring" / "alerts.yaml"
CASES = Path(__file__).with_name("alerts_test.yaml")


def rules() -> list[dict[str, Any]]:
    """The alerts."""
    groups = yaml.safe_load(ALERTS.read_text("utf-8"))["spec"]["groups"]
    return [rule for group in groups for rule in group["rules"]]


def promtool(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [str(binary("promtool")), *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The rules as a Prometheus without the operator reads them, beside their tests."""
    spec = yaml.safe_load(ALERTS.read_text("utf-8"))["spec"]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(spec))
    (tmp_path / CASES.name).write_text(CASES.read_text("utf-8"))
    return tmp_path


def test_alerts_are_valid_and_fire(folder: Path) -> None:
    checked = promtool(folder, "check", "rules", "rules.yaml")
    assert checked.returncode == 0, checked.stderr
    tested = promtool(folder, "test", "rules", CASES.name)
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_every_alert_is_made_to_fire() -> None:
    cases = yaml.safe_load(CASES.read_text("utf-8"))["tests"]
    fired = [one["alertname"] for case in cases for one in case["alert_rule_test"] if one["exp_alerts"]]
    assert sorted(fired) == sorted(rule["alert"] for rule in rules())


def test_a_misspelt_name_is_found(folder: Path) -> None:
    path = folder / "rules.yaml"
    path.write_text(path.read_text("utf-8").replace("policysched_policy_state", "policysched_policy_states"))
    assert promtool(folder, "test", "rules", CASES.name).returncode != 0


def test_every_alert_says_what_it_means_and_how_bad_it_is() -> None:
    for rule in rules():
        assert rule["alert"].startswith("Policysched")
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert {"summary", "description", "runbook_url"} == rule["annotations"].keys()


def test_every_alert_leads_to_its_section() -> None:
    page = ROOT / "docs" / "run" / "troubleshoot.md"
    headings = anchors(page)
    for rule in rules():
        address, _, anchor = rule["annotations"]["runbook_url"].partition("#")
        assert address == f"https://github.com/policysched/policysched/blob/main/{page.relative_to(ROOT)}"
        assert anchor in headings, rule["alert"]
