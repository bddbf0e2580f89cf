from __future__ import annotations

import gc
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from policysched.language.ir import graph
from policysched.model.policy import Policy, PolicyKey, decode_policy, decode_watched_policy
from policysched.rules.compile.compiler import compile_policy
from policysched.rules.policy_set.budget import PolicyBudget
from policysched.rules.policy_set.store import PolicyStore
from policysched.rules.policy_status.status import MAX_DIAGNOSTICS, differs, make_status
from tests.rules.build import Spec, filtering, policy, scoring

GOOD: Spec = {"filters": filtering("node.ready")}
BETTER: Spec = {"filters": filtering("node.cordoned")}
BAD: Spec = {"filters": filtering("nod.ready")}
WORSE: Spec = {"filters": filtering("1 +")}
NOW, LATER = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)


def apply(store: PolicyStore, given: Policy) -> bool:
    return bool(store.apply(given))


def active(store: PolicyStore, name: str = "p") -> int | None:
    entry = store.get(PolicyKey(name))
    assert entry is not None
    return entry.active.generation if entry.active else None


def generations(*specs: Spec) -> list[Policy]:
    return [policy(generation=number, **spec) for number, spec in enumerate(specs, 1)]


@pytest.mark.parametrize(
    ("specs", "changes", "in_force"),
    [
        ((GOOD,), [True], 1),
        ((GOOD, BETTER), [True, True], 2),
        ((GOOD, BAD), [True, False], 1),
        ((GOOD, BAD, WORSE), [True, False, False], 1),
        ((GOOD, BAD, BETTER), [True, False, True], 3),
        ((GOOD, BAD, GOOD), [True, False, True], 3),
        ((BAD,), [False], None),
        ((BAD, GOOD), [False, True], 2),
        ((GOOD, GOOD), [True, True], 2),
    ],
)
def test_the_last_good_generation_stays_in_force(specs: tuple[Spec, ...], changes: list[bool], in_force: Any) -> None:
    store = PolicyStore()
    assert [apply(store, one) for one in generations(*specs)] == changes
    assert active(store) == in_force
    assert len(store.policy_set().active) == (in_force is not None)


REMEMBERED = {"generation": 3, "spec": GOOD}
CLAIMED = {"activeGeneration": 3, "activeSpec": GOOD}


@pytest.mark.parametrize(
    ("spec", "kept", "in_force"),
    [
        (BAD, REMEMBERED, 3),
        (BETTER, REMEMBERED, 5),
        (BAD, {"generation": 3, "spec": WORSE}, None),
        (BAD, {"generation": 3, "spec": {"filters": "nonsense"}}, None),
        (BAD, REMEMBERED | {"generation": 6}, None),
        (BAD, REMEMBERED | {"uid": "another"}, None),
        (BAD, None, None),
    ],
)
def test_after_a_restart_a_broken_policy_acts_as_its_annotation_keeps(
    spec: Spec, kept: Spec | None, in_force: Any
) -> None:
    store = PolicyStore()
    assert apply(store, policy(generation=5, last_good=kept, **spec)) is (in_force is not None)
    assert active(store) == in_force
    entry = store.get(PolicyKey("p"))
    assert entry is not None
    assert bool(entry.refused) is (in_force is None and kept is not None)


def test_compiler_that_fails_at_an_annotation_leaves_the_policy_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(given: Policy, *kept: Any, **_: Any) -> Any:
        if kept:
            raise RecursionError
        return compile_policy(given)

    monkeypatch.setattr("policysched.rules.policy_set.store.compile_policy", failing)
    failures: list[Exception] = []
    store = PolicyStore(lambda _, error: failures.append(error))
    store.change([policy(generation=5, last_good=REMEMBERED, **BAD), policy("q", **GOOD)])
    assert (active(store), active(store, "q")) == (None, 1)
    assert [type(error) for error in failures] == [RecursionError]


def unreadable(generation: int, last_good: Spec | None = None) -> Policy:
    """A policy as a later release may write it: with a mode that is not known here."""
    metadata = msgspec.to_builtins(policy(generation=generation, last_good=last_good).metadata)
    return decode_watched_policy({"metadata": metadata, "spec": BETTER | {"mode": "Audit"}})


@pytest.mark.parametrize(("kept", "in_force"), [(REMEMBERED, 3), (None, None)])
def test_after_a_restart_a_policy_that_cannot_be_read_acts_as_its_annotation_keeps(
    kept: Spec | None, in_force: int | None
) -> None:
    store = PolicyStore()
    assert apply(store, unreadable(5, kept)) is (in_force is not None)
    assert active(store) == in_force
    entry = store.get(PolicyKey("p"))
    assert entry is not None
    status = make_status(entry, "me", NOW)
    assert [(one["code"], one["field"]) for one in status["diagnostics"]] == [("E0001", "spec.mode")]
    assert (status["conditions"][0]["status"], status["conditions"][0]["reason"]) == ("False", "ShapeError")


def test_a_policy_that_cannot_be_read_any_more_leaves_the_last_good_generation_in_force() -> None:
    store = PolicyStore()
    assert [apply(store, one) for one in (policy(generation=1), unreadable(2), unreadable(3))] == [True, False, False]
    assert active(store) == 1
    assert apply(store, policy(generation=4))
    assert active(store) == 4


@pytest.mark.parametrize("kept", [None, {"generation": 3, "spec": WORSE}])
@pytest.mark.parametrize("status", [CLAIMED, CLAIMED | {"activeGeneration": 9}, {"activeSpec": GOOD}])
def test_what_a_status_tells_is_never_in_force(kept: Spec | None, status: Spec) -> None:
    store = PolicyStore()
    assert not apply(store, policy(generation=5, status=status, last_good=kept, **BAD))
    entry = store.get(PolicyKey("p"))
    assert entry is not None
    assert entry.active is None
    assert "is ignored" in entry.refused
    made = make_status(entry, "me", NOW)["conditions"][1]
    assert (made["status"], made["reason"], made["message"]) == ("False", "NotTrusted", entry.refused)
    assert not apply(store, policy(generation=6, status=status, last_good=kept, **BAD))
    assert apply(store, policy(generation=7, **GOOD))
    mended = store.get(PolicyKey("p"))
    assert mended is not None
    assert mended.refused == ""


def test_policy_at_which_the_compiler_fails_keeps_its_last_good_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any, **named: Any) -> Any:
        raise RecursionError("deep")

    failures: list[str] = []
    store = PolicyStore(lambda policy, error: failures.append(f"{policy.key} {error!r}"))
    apply(store, policy(**GOOD))
    monkeypatch.setattr("policysched.rules.policy_set.store.compile_policy", failing)
    assert not apply(store, policy(generation=2, **BETTER))
    assert active(store) == 1
    assert failures == ["p RecursionError('deep')"]
    entry = store.get(PolicyKey("p"))
    assert entry is not None
    assert [(one.field, one.message) for one in entry.result.diagnostics] == [
        ("spec", "internal error while compiling: RecursionError; see the log of the scheduler")
    ]


def test_memory_counts_more_than_the_annotation() -> None:
    store = PolicyStore()
    apply(store, policy(generation=4, **BETTER))
    apply(store, policy(generation=5, last_good=REMEMBERED, **BAD))
    assert active(store) == 4


def test_an_object_made_anew_under_its_name_starts_anew() -> None:
    store = PolicyStore()
    apply(store, policy(**GOOD))
    assert apply(store, policy(uid="another", **BAD))
    assert active(store) is None
    assert apply(store, policy(uid="a third", **BETTER))


def test_a_status_of_its_own_changes_nothing_in_force() -> None:
    store = PolicyStore()
    apply(store, policy(**GOOD))
    before = store.get(PolicyKey("p"))
    assert before is not None
    assert not apply(store, policy(status=CLAIMED, **GOOD))
    after = store.get(PolicyKey("p"))
    assert after is not None
    assert after.active is before.active
    assert after.policy.status.active_generation == 3


def test_the_echo_of_a_write_asks_no_other_policy_for_room(monkeypatch: pytest.MonkeyPatch) -> None:
    store = PolicyStore()
    apply(store, policy(**GOOD))
    asked: list[object] = []
    monkeypatch.setattr(PolicyBudget, "take", lambda *given: asked.append(given))
    assert not apply(store, policy(status=CLAIMED, **GOOD))
    assert not asked
    assert apply(store, policy(generation=2, **GOOD | {"weight": 7}))
    assert asked


def test_removing_tells_whether_something_was_in_force() -> None:
    store = PolicyStore()
    apply(store, policy("good", **GOOD))
    apply(store, policy("bad", **BAD))
    assert store.listed() == {"good", "bad"}
    assert [bool(store.remove(PolicyKey(name))) for name in ("good", "bad", "good")] == [True, False, False]
    assert store.policy_set().active == ()


# Status


def status_of(*given: Policy, instance: str = "ns/me", now: datetime = NOW) -> dict[str, Any]:
    store = PolicyStore()
    for one in given:
        apply(store, one)
    entry = store.get(PolicyKey("p"))
    assert entry is not None
    return make_status(entry, instance, now)


def conditions(status: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    shown = ("Compiled", "Active")
    return [
        (one["type"], one["status"], one["reason"], one["message"])
        for one in status["conditions"]
        if one["type"] in shown
    ]


GOOD_ONE = "generation 1 is in force"
SHADOWED = "generation 1 is accepted; mode Shadow: it does not act"
ONE_ERROR = "1 error, 0 warnings"


@pytest.mark.parametrize(
    ("specs", "compiled", "acts", "generation"),
    [
        ((GOOD,), ("True", "Compiled", "0 errors, 0 warnings"), ("True", "Enforce", GOOD_ONE), 1),
        (({**GOOD, "mode": "Shadow"},), ("True", "Compiled", "0 errors, 0 warnings"), ("True", "Shadow", SHADOWED), 1),
        (
            ({**GOOD, "mode": "Disabled"},),
            ("True", "Compiled", "0 errors, 0 warnings"),
            ("False", "Disabled", "mode is Disabled"),
            1,
        ),
        (
            ({"filters": filtering('number(node.labels["a"]) > 1')},),
            ("True", "Compiled", "0 errors, 1 warning"),
            ("True", "Enforce", GOOD_ONE),
            1,
        ),
        (
            (GOOD, BAD),
            ("False", "NameError", ONE_ERROR),
            ("True", "LastGoodGeneration", "generation 1 stays in force"),
            1,
        ),
        (
            (WORSE,),
            ("False", "SyntaxError", ONE_ERROR),
            ("False", "NeverCompiled", "no generation of this policy compiles"),
            0,
        ),
    ],
)
def test_conditions_say_what_became_of_the_newest_and_what_is_in_force(
    specs: tuple[Spec, ...], compiled: tuple[str, ...], acts: tuple[str, ...], generation: int
) -> None:
    status = status_of(*generations(*specs))
    assert conditions(status) == [("Compiled", *compiled), ("Active", *acts)]
    assert status["observedGeneration"] == len(specs)
    assert status.get("activeGeneration", 0) == generation
    assert status["instances"] == [{"name": "ns/me", "activeGeneration": generation}]


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (filtering("node.ready >"), "SyntaxError"),
        (filtering("nod"), "NameError"),
        (filtering("node.name"), "TypeError"),
        (filtering("node.ready", when="node.ready"), "ScopeError"),
        (filtering("normalize(node.free.pods) > 1"), "RuleError"),
        ([rule for number in range(65) for rule in filtering("node.ready", f"r{number}")], "CostError"),
    ],
)
def test_the_reason_is_that_of_the_first_error(spec: list[Spec], reason: str) -> None:
    assert conditions(status_of(policy(filters=spec)))[0][2] == reason


def test_the_spec_in_force_can_be_read_back() -> None:
    spec: Spec = {**GOOD, "priority": 3, "podSelector": {"matchLabels": {"a": "b"}}}
    status = status_of(*generations(spec, BAD))
    remembered = decode_policy({"metadata": {"name": "p"}, "spec": status["activeSpec"]})
    assert remembered.spec == policy(**spec).spec


def test_diagnostics_say_where_and_what() -> None:
    [one] = status_of(policy(filters=filtering('node.labels["cores"] > 10')))["diagnostics"]
    assert one == {
        "severity": "error",
        "code": "E0301",
        "field": "spec.filters[0].require",
        "line": 1,
        "column": 1,
        "endColumn": 26,
        "message": "cannot compare string with number",
        "help": "labels are strings; convert them with number(...)",
    }


def test_at_most_50_diagnostics_are_told_and_all_are_counted() -> None:
    status = status_of(policy(filters=[rule for number in range(60) for rule in filtering("nod", f"r{number}")]))
    assert len(status["diagnostics"]) == MAX_DIAGNOSTICS == 50
    assert conditions(status)[0][3] == "60 errors, 0 warnings"


OTHERS = [{"name": "ns/zoe", "activeGeneration": 4}, {"name": "ns/amy", "activeGeneration": 2}]


def test_each_installation_writes_its_own_entry_alone() -> None:
    seen = {"instances": [*OTHERS, {"name": "ns/me", "activeGeneration": 1}]}
    status = status_of(policy(generation=7, status=seen, **GOOD))
    assert status["instances"] == [OTHERS[1], {"name": "ns/me", "activeGeneration": 7}, OTHERS[0]]


def stored(given: Policy, status: dict[str, Any], spec: Spec, generation: int) -> Policy:
    """The object as the server has it after a status was written."""
    return policy(given.key, generation=generation, status=status, **spec)


def test_times_move_where_a_condition_does() -> None:
    first = status_of(policy(**GOOD))
    broken = stored(policy(), first, BAD, 2)
    store = PolicyStore()
    apply(store, policy(**GOOD))
    apply(store, broken)
    entry = store.get(PolicyKey("p"))
    assert entry is not None
    second = make_status(entry, "ns/me", LATER)
    assert [(one["status"], one["lastTransitionTime"]) for one in second["conditions"]] == [
        ("False", "2026-01-02T00:00:00Z"),
        ("True", "2026-01-01T00:00:00Z"),
        ("False", "2026-01-02T00:00:00Z"),
        ("True", "2026-01-02T00:00:00Z"),
    ]
    assert {one["observedGeneration"] for one in second["conditions"]} == {2}


@pytest.mark.parametrize("spec", [GOOD, BAD, {**GOOD, "mode": "Disabled"}, {"scores": scoring(1)}, {}])
def test_a_status_that_was_written_does_not_differ(spec: Spec) -> None:
    written = status_of(policy(**spec))
    assert differs(policy(**spec), written)
    again = stored(policy(), msgspec.json.decode(msgspec.json.encode(written)), spec, 1)
    assert not differs(again, status_of(again, now=LATER))
    assert differs(again, status_of(again, instance="ns/other"))
    newer = stored(policy(), written, spec, 2)
    assert differs(newer, status_of(newer))


def test_a_spec_that_means_the_same_takes_force_under_its_new_generation() -> None:
    store = PolicyStore()
    assert apply(store, policy(generation=1, **GOOD))
    assert apply(store, policy(generation=2, **GOOD))
    entry = store.get(PolicyKey("p"))
    assert entry is not None
    assert entry.active is not None
    assert (entry.active.generation, entry.active) == (2, entry.result.policy)
    assert not apply(store, policy(generation=2, **GOOD))


def test_nothing_compiled_is_kept_of_a_policy_that_is_refused() -> None:
    store, others = PolicyStore(), set(graph._NODES.values())
    wide = [
        {
            "name": f"w{one}",
            "value": " and ".join(f'has(node.labels["only{one}x{label}"])' for label in range(60)),
        }
        for one in range(8)
    ]
    costly: Spec = {"let": wide, "filters": filtering(" or ".join(one["name"] for one in wide))}
    apply(store, policy(**costly))
    entry = store.get(PolicyKey("p"))
    assert entry is not None
    assert [one.code for one in entry.result.diagnostics] == ["E0601"]
    gc.collect()
    assert set(graph._NODES.values()) <= others


def test_who_waits_for_what_another_edit_gives_back_has_it_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The edit takes more units and fewer queries: it comes after what waits, and makes room for it."""
    monkeypatch.setattr("policysched.rules.policy_set.budget.MAX_QUERIES", 1)
    asking: Spec = {"metrics": [{"name": "load", "query": "a"}], "filters": filtering("(metrics.load ?? 0) < 5")}
    other: Spec = {"metrics": [{"name": "load", "query": "b"}], "filters": filtering("(metrics.load ?? 0) < 5")}
    more: Spec = {"filters": filtering(" or ".join(f"node.free.cpu >= {number}" for number in range(1, 9)))}
    store = PolicyStore()
    assert apply(store, policy("first", since="2026-01-02T00:00:00Z", **asking))
    assert not apply(store, policy("second", since="2026-01-01T00:00:00Z", **other))
    assert apply(store, policy("first", generation=2, since="2026-01-02T00:00:00Z", **more))
    assert (active(store, "first"), active(store, "second")) == (2, 1)
