"""The table of fields in docs/write/plan.md has what a plan prints as JSON, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import policysched
from policysched.app.plan.results import Effect
from tests.app.dry_runs import node, pod, policy, requiring
from tests.app.plan.test_plan import KEEP, SSD, ours
from tests.app.why.test_pod_groups import group, members
from tests.app.why.test_why import bound
from tools.documents.markdown import ROOT

PAGE = ROOT / "docs" / "write" / "plan.md"
NAME = re.compile(r"`([^`]+)`")
MAPPINGS = {"counts", "nodes[].over"}
"""Whose fields are names of the cluster or effects."""


def fields(value: Any, path: str = "") -> Iterator[str]:
    """The paths of all fields of a value."""
    if isinstance(value, list):
        for one in value:
            yield from fields(one, f"{path}[]")
    elif isinstance(value, dict):
        for key, one in value.items():
            name = f"{path}.{key}".lstrip(".")
            yield name
            if name not in MAPPINGS:
                yield from fields(one, name)


def test_page_documents_every_field_of_a_plan_and_no_other() -> None:
    text = PAGE.read_text("utf-8").partition("## As JSON")[2].partition("\n## ")[0]
    documented = {name for line in text.splitlines() for name in NAME.findall(line.partition("|")[2].partition("|")[0])}
    large = {**node("large"), "status": {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "110"}}}
    twins = [node("t1", labels=SSD), node("t2", labels=SSD)]
    pods = [bound(f"p{number}", "large", "2") for number in range(9)]
    gang = [group(9), *members(2)]
    found = policysched.plan(ours([large, *twins, *pods, pod("wait", 9), pod("huge", 99), *gang]), policies=[KEEP])
    printed = set(fields(found.to_dict()))
    assert printed == documented


def test_page_names_every_effect() -> None:
    text = PAGE.read_text("utf-8")
    line = next(one for one in text.splitlines() if one.startswith("| `effects[].effect`"))
    assert set(re.findall(r"`(\w+)`", line.partition("|")[2].partition("|")[2])) == {str(one) for one in Effect}


def test_page_says_which_forms_list_every_pod() -> None:
    assert "`-o json` and `-o yaml` list every pod" in PAGE.read_text("utf-8")
    found = policysched.plan(
        ours([node("n1"), *(bound(f"p{number}", "n1") for number in range(30))]),
        policies=[policy("off", **requiring("false"))],
    )
    assert len(found.to_dict()["effects"]) == 30
