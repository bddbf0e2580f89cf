"""What a record holds beside pods and nodes, and what it says it cannot hold."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from policysched.app.configuration.profiles import NO_PLUGINS, configured_profiles, default_profile
from policysched.app.configuration.reading import load_configuration
from policysched.app.recording.file_format import read_entries
from policysched.app.recording.recorded_cluster import (
    RecordedAssumable,
    RecordedCluster,
    RecordedMetrics,
    RecordedNominations,
)
from policysched.app.replay.replay import replay
from policysched.app.replay.replayed_state import _CHANGES
from policysched.app.replay.what_if import what_if
from policysched.errors import UsageError
from policysched.framework import unschedulable
from policysched.framework.profile import Profile
from policysched.framework.registry import PluginRegistry
from policysched.model.objects import Pod
from policysched.state.cluster import Cluster
from policysched.state.nominated.nominations import Nominations
from policysched.state.tables.metrics import Metrics
from policysched.state.volumes.storage import Assumable
from tests.app.dry_runs import policy, requiring
from tests.app.recording.recorded import completed, recording, replayed
from tests.build import node, pod
from tests.e2e.waiting import until_true
from tests.plugins.stored import ZONE, claim, claiming, storage_class, volume
from tests.schedule.out_of_tree import Scripted
from tests.schedule.soak import ME
from tests.schedule.stand import Stand
from tests.schedule.test_with_extenders import FakeExtender, extended

NODES = [node(name, labels={ZONE: name}) for name in ("n1", "n2", "n3")]
PLUGIN = {"schedulerName": ME, "plugins": {"multiPoint": {"enabled": [{"name": "X"}]}}}
EXTENDER = {"urlPrefix": "http://one", "filterVerb": "filter"}


def kinds(folder: Path) -> list[str]:
    return [entry[0] for path in sorted(folder.iterdir()) for entry in read_entries(path)]


async def begun(stand: Stand, *objects: Any) -> None:
    for one in (*NODES, *objects):
        stand.scheduler.take(one)
    await stand.settle()


async def test_decisions_of_extenders_are_counted_and_not_replayed(tmp_path: Path) -> None:
    def is_interested(of: Pod) -> bool:
        return of.metadata.name == "far"

    profile = extended(FakeExtender(passes=frozenset({"n2"}), interested=is_interested))
    async with recording(tmp_path, profile, completed({"schedulerName": ME}, extenders=[EXTENDER])) as stand:
        await begun(stand)
        for name in ("a", "far", "b"):
            await stand.settled(pod(name, requests={"cpu": 1}))
        assert stand.bound["far"] == "n2"
    found = replayed(tmp_path)
    assert (found.differences, found.decisions, found.extended, found.exit_code) == ([], 2, 1, 0)
    assert found.summary == "2 of decisions 1–3 equal; 1 not replayed because extenders were called"
    told = what_if([tmp_path], policies=[policy("none", **requiring("false"))], plugins=NO_PLUGINS)
    assert {one.pod for one in told.effects} == {"default/a", "default/b"}
    assert told.notes == ("1 of 3 decisions left out because extenders were called",)


def registered(plugin: Any) -> PluginRegistry:
    made = PluginRegistry()
    made.register("X", lambda _args, _handle: plugin)
    return made


def with_plugin(plugin: Any) -> Profile:
    return configured_profiles(load_configuration(completed(PLUGIN)), registered(plugin))[ME]


async def test_out_of_tree_plugins_are_asked_again(tmp_path: Path) -> None:
    plugin = Scripted(filter={"n3": unschedulable("no")}, score={"n1": 0, "n2": 100, "n3": 0})
    async with recording(tmp_path, with_plugin(plugin), completed(PLUGIN)) as stand:
        await begun(stand)
        await stand.settled(pod("a"))
        await until_true(lambda: stand.bound == {"a": "n2"})
    found = replay([tmp_path], plugins=registered(plugin))
    assert (found.differences, found.decisions, found.to_dict()["outOfTreePlugins"]) == ([], 1, ["X"])
    assert found.summary == "decisions 1–1 equal"
    other = replay([tmp_path], plugins=registered(Scripted(score={"n1": 100, "n2": 0, "n3": 0})))
    assert {one.what for one in other.differences} == {"node", "feasible", "totals"}
    assert other.summary.endswith("external data of out-of-tree plugins is not recorded: X")
    with pytest.raises(UsageError, match=r"recorded configuration cannot be used: .*X"):
        replayed(tmp_path)


async def test_changes_that_fail_are_counted_and_the_first_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with recording(tmp_path, default_profile(ME), completed({"schedulerName": ME})) as stand:
        await begun(stand)
        await stand.settled(pod("a"))
        stand.scheduler.drop(NODES[0])
    whole = replayed(tmp_path)
    assert (whole.failures, whole.to_dict()["failedChanges"]) == ([], 0)

    def failing(_cluster: Cluster, _obj: list[Any]) -> None:
        raise KeyError("n1")

    monkeypatch.setitem(_CHANGES, "drop", failing)
    found = replayed(tmp_path)
    assert (found.differences, found.exit_code, found.to_dict()["failedChanges"]) == ([], 0, 1)
    said = "failed cluster changes: 1, first: drop: KeyError('n1')"
    assert found.summary == f"decisions 1–1 equal; {said}"
    told = what_if([tmp_path], policies=[policy("all", **requiring("true"))], plugins=NO_PLUGINS)
    assert told.notes == (said,)


async def test_volumes_that_pods_have_taken_are_recorded(tmp_path: Path) -> None:
    stored: list[Any] = [storage_class("static", provisioner="kubernetes.io/no-provisioner")]
    stored += [volume(f"v{number}", nodes={ZONE: [f"n{number}"]}, of="static") for number in (1, 2)]
    stored += [claim(f"c{number}", of="static") for number in (1, 2, 3)]
    async with recording(tmp_path, default_profile(ME), completed({"schedulerName": ME})) as stand:
        stand.scheduler.last_words = 0.01
        await begun(stand, *stored)
        await stand.settled(*(claiming(f"p{number}", f"c{number}") for number in (1, 2, 3)))
        recorder: Any = stand.scheduler.cluster
        assert len(recorder.reserved()) == 2
        for _ in range(4):
            await stand.pass_time(400)
    assert {"reserve", "unreserve"} <= {*kinds(tmp_path)}
    found = replayed(tmp_path)
    assert ([one.to_dict() for one in found.differences], found.decisions > 3) == ([], True)


def public(of: type) -> set[str]:
    return {name for name, made in inspect.getmembers(of, inspect.isfunction) if not name.startswith("_")}


@pytest.mark.parametrize(
    ("recorded", "plain", "unrecorded"),
    [
        (RecordedCluster, Cluster, {"is_assumed", "is_elsewhere", "follow_details", "take_away", "put_back"}),
        (
            RecordedNominations,
            Nominations,
            {"get", "named", "rows", "on_node", "yielded_to", "measured", "repelling_of"},
        ),
        (RecordedMetrics, Metrics, {"column", "store"}),
        (RecordedAssumable, Assumable, {"put", "drop", "get", "stored", "all_stored"}),
    ],
)
def test_every_change_of_the_state_is_recorded(recorded: type, plain: type, unrecorded: set[str]) -> None:
    """Whoever adds a way to change the state has it recorded, or names it here.

    A named method reads, is called by another one, or is undone within a simulation.
    """
    kinds = ("namespace", "workload", "pod_group", "budget", "stored")
    through_take = {f"{verb}_{kind}" for verb in ("set", "remove") for kind in kinds}
    own = {name for name in public(plain) if name in vars(recorded)}
    assert public(plain) - own == unrecorded | (through_take if plain is Cluster else set())
