"""Scores of a few rows that changed are those of all rows to the last bit, in which the order of additions tells.

And of many rules no more is worked out at once than there is room for.
"""

from __future__ import annotations

import gc
import random
import tracemalloc

import pytest

from policysched.app.configuration.profiles import default_profile
from policysched.framework import Codes, Rows
from policysched.language.evaluation.columns import Batch
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.rules.results.matrix import FilterMatrix
from policysched.rules.results.rule_rows import FilterStack
from policysched.rules.shared_values import context
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.record import make_record
from tests.build import cluster, node, pod
from tests.rules.build import Spec, compiled, filtering, policy_set, scoring

MEANS = (("58.6", "50.8", "90.1", 67), ("30.3", "12.1", "82.1", 42))
"""Values whose mean is a whole number and a half, but for what is lost when they are added in another order."""


def specs(own: str) -> dict[str, Spec]:
    """Policies of one, three and two rules of which every, no or the middle one reads the pod."""
    rules = [scoring(f'number(node.labels["v{place}"])', f"s{place}") for place in range(3)]
    for place in map(int, own):
        rules[place] = scoring(f'number(node.labels["v{place}"]) + if(pod.priority > 5, 1, 0)', f"s{place}")
    return {
        "a": {"scores": rules[0]},
        "b": {"scores": [rule for one in rules for rule in one]},
        "c": {"scores": [*rules[0], *rules[1]]},
    }


@pytest.mark.parametrize("own", ["", "1", "012"])
def test_means_are_taken_in_the_order_of_rules_however_many_rows_changed(own: str) -> None:
    around = cluster(*(node(f"n{index}") for index in range(300)))
    live, new = (Engine(around, policy_set(**specs(own)).join(default_profile()), random.Random(0)) for _ in range(2))
    live.decide(pod())
    for index, values in enumerate(MEANS):
        around.set_node(node(f"n{index}", labels={f"v{place}": str(value) for place, value in enumerate(values)}))
    for engine in (live, new):
        scores = make_record(engine.decide(pod()))["scores"]
        assert [scores[f"n{index}"]["SchedulingPolicy/b"] for index in range(2)] == [one[-1] for one in MEANS]
        assert [scores["n0"][f"SchedulingPolicy/{name}"] for name in "ac"] == [59, 55]


def heavy(number: int, own: str) -> Spec:
    """A policy that takes about a hundred columns to be worked out, and lacks something on some rows."""
    lets = [("a0", f"node.free.cpu / {number + 1}m + ({own})")]
    lets += [(f"a{n}", f"a{n - 1} * 1.5 + {n}") for n in range(1, 50)]
    value = 'a49 + number(node.labels["v"])'
    return {
        "let": [{"name": name, "value": text} for name, text in lets],
        "filters": [
            {"name": "f", "require": f"{value} > {number}"},
            {"name": "g", "require": f"max({value}) by node.labels['w'] > 1".replace("'", '"')},
        ],
        "scores": [*scoring(f"clamp({value}, 0, 90)"), *scoring(f"clamp({value} - 1, 0, 80)", "t")],
    }


@pytest.mark.parametrize("own", ["0", "pod.priority"])
def test_many_rules_take_no_more_memory_at_once_than_there_is_room_for(
    own: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = 300
    labels = [{"v": str(index), "w": str(index % 3)} if index % 7 else {} for index in range(rows)]
    around = cluster(*(node(f"n{index}", labels=labels[index]) for index in range(rows)))
    policies = policy_set(**{f"p{number}": heavy(number, own) for number in range(8)})
    records, peaks = [], []
    for kept in (context.MOST_KEPT, 1 << 17):
        monkeypatch.setattr(context, "MOST_KEPT", kept)
        engine = Engine(around, policies.join(default_profile()), random.Random(0))
        tracemalloc.start()
        decision = engine.decide(pod())
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        records.append(make_record(decision))
    assert records[0] == records[1]
    assert peaks[1] < peaks[0] / 2, peaks


def test_what_evaluates_rules_of_earlier_generations_is_gone() -> None:
    around = cluster(*(node(f"n{index}", labels={"a": "1"}) for index in range(3)))
    engine, active = Engine(around, default_profile(), random.Random(0)), PolicySet.of([])

    def alive() -> int:
        gc.collect()
        return sum(isinstance(one, FilterStack | Batch) for one in gc.get_objects())

    before = alive()
    for edit in range(10):
        rules = filtering(f'node.labels["a"] != pod.labels["q"] and node.labels["a"] != "{edit}x"')
        active = PolicySet.of([compiled("p", generation=edit + 1, filters=rules)], active)
        engine.use(active.join(default_profile()))
        for value in "12":
            around.set_node(node("n1", labels={"a": f"{edit}{value}"}))
            engine.decide(pod("x", labels={"q": "1"}))
        assert before < alive() <= before + 8


def test_all_policies_are_worked_out_once_however_much_they_make_of_the_pod_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[Rows] = []
    evaluate = FilterMatrix.evaluate

    def counted(matrix: FilterMatrix, rows: Rows) -> Codes:
        calls.append(rows)
        return evaluate(matrix, rows)

    monkeypatch.setattr(FilterMatrix, "evaluate", counted)
    monkeypatch.setattr(context, "MOST_KEPT", 1 << 17)
    rules = [f"node.free.cpu >= pod.requests.cpu * {n}.5 - 9 * pod.requests.cpu" for n in range(160)]
    specs = {
        f"p{number}": {"filters": [rule for n in range(20) for rule in filtering(rules[20 * number + n], f"f{n}")]}
        for number in range(8)
    }
    around = cluster(*(node(f"n{index}") for index in range(100)))
    Engine(around, policy_set(**specs).join(default_profile()), random.Random(0)).decide(pod(requests={"cpu": "1m"}))
    assert calls == [slice(0, 100)]
