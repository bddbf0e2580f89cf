"""Which policies tools see as ready, in progress or failed: kstatus and the health check for Argo CD."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import lupa.lua51
import pytest
import yaml
from msgspec.structs import replace

from policysched.model.policy import Policy, UnreadablePolicy
from policysched.rules.policy_set import budget
from policysched.rules.policy_set.store import PolicyStore
from policysched.rules.policy_status.status import make_status
from tests.rules.build import filtering, policy
from tests.rules.policy_status.kstatus import Object, kstatus
from tools.documents.markdown import ROOT

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GOOD: dict[str, Any] = {"filters": filtering("node.ready")}
BAD: dict[str, Any] = {"filters": [*filtering('node.labels["a"] > 10'), *filtering("nod.ready", "b")]}
ERROR = "E0301 spec.filters[0].require: cannot compare string with number (and 1 more error)"
CHECK = yaml.safe_load((ROOT / "deploy" / "argocd" / "argocd-cm.yaml").read_text("utf-8"))["data"][
    "resource.customizations.health.policysched.io_SchedulingPolicy"
]


def argo_health(obj: Object) -> tuple[str, str]:
    """Run the health check as Argo CD does, with the object as a table."""
    lua = lupa.lua51.LuaRuntime()
    lua.globals().obj = lua.table_from(obj, recursive=True)
    found = lua.execute(CHECK)
    return found.status, found.message


def written(*given: Policy) -> Object:
    """Apply the generations of a policy; return the object with its status as the API server has it."""
    store = PolicyStore()
    for one in given:
        store.apply(one)
    entry = store.get(given[-1].key)
    assert entry is not None
    status = make_status(entry, "ns/me", NOW)
    return {"metadata": {"name": "p", "generation": entry.policy.metadata.generation}, "status": status}


def condition(obj: Object, kind: str) -> tuple[str, str, str] | None:
    found = [one for one in obj["status"]["conditions"] if one["type"] == kind]
    return (found[0]["status"], found[0]["reason"], found[0]["message"]) if found else None


@pytest.mark.parametrize("mode", ["Enforce", "Shadow", "Disabled"])
def test_policy_whose_newest_generation_is_used_is_ready_in_every_mode(mode: str) -> None:
    found = written(policy(**BAD), policy(generation=2, mode=mode, **GOOD))
    message = {
        "Enforce": "generation 2 is in force",
        "Shadow": "generation 2 is accepted; mode Shadow: it does not act",
        "Disabled": "mode is Disabled",
    }[mode]
    assert condition(found, "Ready") == ("True", mode, message)
    assert condition(found, "Stalled") is None
    assert (kstatus(found), argo_health(found)) == ("Current", ("Healthy", message))


@pytest.mark.parametrize("before", [[], [policy(**GOOD)]], ids=["new", "edited"])
def test_policy_with_an_error_has_failed_and_names_the_first_error(before: list[Policy]) -> None:
    found = written(*before, policy(generation=2, **BAD))
    assert condition(found, "Ready") == ("False", "TypeError", ERROR)
    assert condition(found, "Stalled") == ("True", "TypeError", ERROR)
    assert (kstatus(found), argo_health(found)) == ("Failed", ("Degraded", ERROR))


def test_an_earlier_generation_in_mode_shadow_is_not_called_in_force() -> None:
    found = written(policy(mode="Shadow", **GOOD), policy(generation=2, **BAD))
    message = "generation 1 stays accepted; mode Shadow: it does not act"
    assert condition(found, "Active") == ("True", "LastGoodGeneration", message)


def test_policy_that_cannot_be_read_has_failed() -> None:
    metadata = replace(policy().metadata, generation=2)
    found = written(policy(**GOOD), UnreadablePolicy(metadata, field="spec.filters", reason="expected array, got int"))
    assert condition(found, "Stalled") == ("True", "ShapeError", "E0001 spec.filters: expected array, got int")
    assert kstatus(found) == "Failed"


def test_policy_for_which_there_is_no_room_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "MAX_POLICIES", 0)
    found = written(policy(**GOOD))
    assert condition(found, "Stalled") == (
        "True",
        "CostError",
        "E0601 spec: the limit of 0 policies in force is reached",
    )
    assert kstatus(found) == "Failed"


def test_policy_that_no_scheduler_has_read_yet_is_in_progress() -> None:
    known = written(policy(**GOOD))
    new: Object = {"metadata": {"name": "p", "generation": 1}, "status": {"observedGeneration": -1}}
    newer = {**known, "metadata": {"name": "p", "generation": 2}}
    for one in (new, newer):
        assert (kstatus(one), argo_health(one)) == ("InProgress", ("Progressing", "waiting for the scheduler"))
    assert argo_health({"metadata": {"name": "p", "generation": 1}})[0] == "Progressing"


def test_conditions_name_the_generation_that_they_are_about() -> None:
    for generations in ([policy(generation=7, **GOOD)], [policy(generation=7, **BAD)]):
        status = written(*generations)["status"]
        assert {one["observedGeneration"] for one in status["conditions"]} == {7} == {status["observedGeneration"]}


def test_error_that_users_write_is_one_line_in_the_condition() -> None:
    found = written(policy(filters=filtering('node.labels["a\n\x1b"] > 10 and no\u202e')))
    stalled = condition(found, "Stalled")
    assert stalled is not None
    assert stalled[2].isprintable()
