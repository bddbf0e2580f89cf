"""Rules about the time decide at every time as rules that were never asked before."""

from __future__ import annotations

import random
from typing import Any

import pytest

from policysched.app.configuration.profiles import default_profile
from policysched.framework import Cluster
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.record import make_record
from tests.build import cluster, node, pod
from tests.rules.build import Spec, filtering, policy_set, scoring

HOUR = 3600.0
NIGHT = 'clock("22:00", "06:00")'
LABELS = {"a": {"zone": "x", "team": "t", "cores": "4"}, "b": {"zone": "x"}, "c": {"zone": "y", "team": "t"}, "d": {}}


def engine(around: Cluster, spec: Spec) -> Engine:
    return Engine(around, policy_set(p=spec).join(default_profile()), random.Random(0))


def said(of: Engine) -> Any:
    record = make_record(of.decide(pod(labels={"team": "t"})))
    return record.get("rejected"), record.get("scores")


@pytest.mark.parametrize(
    "text",
    [
        f"count({NIGHT} and not node.cordoned) > 0",
        f'(count({NIGHT} and node.labels["team"] == "t") by node.labels["zone"]) > 0',
        f'count({NIGHT} and node.labels["team"] == pod.labels["team"]) > 0',
        f'not {NIGHT} or count({NIGHT} and node.labels["team"] == pod.labels["team"]) > 2',
        'max(number(node.labels["cores"]) + hour()) < 12',
        f'{NIGHT} or count({NIGHT} and node.labels["team"] == pod.labels["team"]) < 1',
        f'{NIGHT} or (count({NIGHT} and node.labels["team"] == pod.labels["team"]) by node.labels["zone"]) < 1',
        f"{NIGHT} or node.pods.count({NIGHT} and peer.namespace == pod.namespace) < 1",
        'count(node.allocatable.pods > 100 * min(if(hour() < 12, number(node.labels["cores"]), 0))) > 0',
        f"sum(node.pods.count({NIGHT})) > 0",
        "max(node.age) < 10h and hour() >= 0",
    ],
)
def test_time_in_aggregates_is_the_present(text: str) -> None:
    spec = {"filters": filtering(text), "scores": scoring([f"{text} → 80", "else → 20"])}
    around = cluster(*(node(name, labels=labels) for name, labels in LABELS.items()), pod("x", on="a"))
    live = engine(around, spec)
    for hour in (1, 13, 14, 23, 13, 25):
        around.time.move(hour * HOUR)
        assert said(live) == said(engine(around, spec)), hour
