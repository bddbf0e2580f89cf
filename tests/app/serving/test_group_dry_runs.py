"""POST /dry-run of pod groups: the record of the command, from the live state, which stays as it is."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
import yaml

import policysched
from policysched.app.configuration.profiles import default_profile
from policysched.app.running.extenders import RunningExtenders
from policysched.app.running.port_dry_runs import LiveDryRuns
from policysched.app.serving.dry_run.pod_requests import DryRunRequest, Options, read_pods
from policysched.app.serving.dry_run.record_answers import shortened
from policysched.app.serving.refused import RefusedError
from policysched.model.defaults import priority_classes
from policysched.model.kinds import PODS, fill, kind_of
from policysched.model.release import DEFAULT, Release
from policysched.schedule.reload import Reloader
from policysched.schedule.scheduler import Scheduler
from policysched.state.cluster import Cluster
from tests.app.dry_runs import Object, node, pod
from tests.app.why.test_pod_groups import group, members, on
from tests.groups import GATED
from tests.schedule.parts import FakeClient
from tests.schedule.queue_parts import StandingClock

ME = "policysched"


class Live:
    """A scheduler with pod groups that was told of objects, and dry-runs over it."""

    def __init__(self, *objects: Object) -> None:
        client, clock = FakeClient(), StandingClock()
        self.scheduler = Scheduler(
            {ME: default_profile(ME, release=GATED)}, client, clock, random.Random(0), cluster=Cluster(release=GATED)
        )
        reloader = Reloader(self.scheduler, client, clock, "here")
        self.decide = LiveDryRuns(self.scheduler, reloader, RunningExtenders(None), lambda: "", lambda: True).decide
        classes = priority_classes(objects)
        for raw in objects:
            kind = kind_of(raw)
            assert kind is not None
            filled = fill(raw, classes)
            filled["metadata"].setdefault("uid", f"uid-{filled['metadata']['name']}")
            if kind is PODS:
                filled["spec"].setdefault("schedulerName", ME)
                filled["spec"]["schedulerName"] = ME
            self.scheduler.take(kind.decode(filled))

    async def records(self, *objects: Object, **options: Any) -> list[dict[str, Any]]:
        return [(await self.decide(one)).record for one in asked(*objects, **options).pods]


def asked(*objects: Object, release: Release = GATED, **options: Any) -> DryRunRequest:
    body = yaml.safe_dump_all(objects).encode()
    return read_pods(body, Options(**options), release)


@pytest.mark.parametrize("least", [2, 4, 5])
async def test_record_is_that_of_the_command(least: int) -> None:
    cluster, pods = [node("n1"), node("n2"), group(least)], members(5)
    [record] = await Live(*cluster).records(*pods, seed=1)
    assert record == policysched.dry_run_group(cluster, pods, seed=1).to_dict()


async def test_pending_pods_of_the_group_are_decided_too() -> None:
    live = Live(node("n1"), group(3), *members(2, 1))
    [record] = await live.records(members(3, 1)[2], seed=1)
    assert [one["pod"] for one in record["members"]] == [f"default/train-{number}" for number in range(3)]
    assert record["result"] == "Scheduled"


async def test_a_pod_of_the_same_name_replaces_the_pending_one() -> None:
    live = Live(node("n1"), group(2), *members(2, 3))
    [record] = await live.records(members(1, 1)[0], seed=1)
    assert (record["result"], len(record["members"])) == ("Scheduled", 2)


async def test_a_group_of_the_body_is_decided_before_it_exists() -> None:
    live = Live(node("n1"))
    [record] = await live.records(group(2), *members(2, 1), seed=1)
    assert record["result"] == "Scheduled"
    assert live.scheduler.cluster.pod_groups is not None
    assert len(live.scheduler.cluster.pod_groups) == 0


async def test_a_group_of_the_body_replaces_that_of_the_cluster_for_the_decision() -> None:
    live = Live(node("n1"), group(9), *members(2, 1))
    [record] = await live.records(group(2), members(1, 1)[0], seed=1)
    assert (record["minCount"], record["result"]) == (2, "Scheduled")
    groups = live.scheduler.cluster.pod_groups
    assert groups is not None
    state = groups.get("default/train")
    assert state is not None
    assert state.group is not None
    assert (state.group.min_count, sorted(state.unscheduled)) == (9, ["uid-train-0", "uid-train-1"])


async def test_the_live_state_stays_as_it_is() -> None:
    low = on(pod("low", 3, priority=-1), "n1")
    live = Live(node("n1"), node("n2"), low, group(4), *members(2))
    cluster = live.scheduler.cluster
    before, counts = {key: one.row for key, one in cluster.pods.by_id.items()}, live.scheduler.queue.counts()
    first, again = [await live.records(*members(4)[2:], seed=1) for _ in range(2)]
    assert first == again
    assert first[0]["victims"] == ["default/low"]
    assert {key: one.row for key, one in cluster.pods.by_id.items()} == before
    assert not cluster.nominations
    assert live.scheduler.queue.counts() == counts


async def test_pods_of_several_groups_and_pods_alone_have_records_of_their_own() -> None:
    other = pod("o", 1, schedulingGroup={"podGroupName": "other"})
    live = Live(node("n1"), group(1), {**group(1), "metadata": {"name": "other", "namespace": "default"}})
    records = await live.records(members(2, 1)[0], pod("web"), other, members(2, 1)[1])
    assert [one.get("podGroup", one.get("pod")) for one in records] == ["default/train", "default/web", "default/other"]
    assert len(records[0]["members"]) == 2


async def test_unknown_groups_and_placed_pods_are_refused() -> None:
    live = Live(node("n1"), on(members(1, 1)[0], "n1"))
    with pytest.raises(RefusedError, match='pod group "default/train" is not among the objects'):
        await live.records(members(2, 1)[1])
    with pytest.raises(RefusedError, match='"default/train-0" is already on node "n1"'):
        await live.records(group(1), members(1, 1)[0])


def test_without_the_gate_pods_are_decided_one_by_one() -> None:
    assert len(asked(*members(3), release=DEFAULT).pods) == 3
    with pytest.raises(RefusedError, match="expected a Pod, got a PodGroup"):
        asked(group(1), release=DEFAULT)


def test_bodies_are_limited() -> None:
    assert len(asked(*members(64)).pods) == 1
    with pytest.raises(RefusedError, match="17 pods, more than the limit of 16 per request"):
        asked(*(pod(f"p{number}") for number in range(17)))
    with pytest.raises(RefusedError, match="more than the limit"):
        asked(*members(300))
    with pytest.raises(RefusedError, match="a PodGroup without pods"):
        asked(group(1))
    with pytest.raises(RefusedError, match="name different schedulers"):
        asked(members(1)[0], {**members(2, schedulerName="other")[1]})


def test_a_malformed_group_has_its_place() -> None:
    with pytest.raises(RefusedError, match="body"):
        asked(group("many"), *members(1))  # type: ignore[arg-type]


async def test_only_some_nodes_of_members_are_reported() -> None:
    [record] = await Live(node("n1"), node("n2"), group(1)).records(*members(1, 9))
    [one] = shortened(json.loads(json.dumps(record)), {"n2"}, None)["members"]
    assert list(one["decision"]["rejected"]) == ["n2"]
    assert one["decision"]["leftOut"] == {"rejected": 1}
