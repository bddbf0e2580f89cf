"""The configuration file of a running process: which changes of it take force, and what of the process they concern."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from policysched.app.configuration.profiles import NO_PLUGINS
from policysched.app.running import configuration_file
from policysched.app.running.configuration_file import ConfigurationFile, NotNowError, Reloaded, ReloadResult, warnings
from policysched.errors import UsageError
from policysched.reading.files import read_bytes
from tests.app.configuration.test_reading import HEAD

POLL = 0.005
RESULTS = "policysched_configuration_reloads_total"


class Watched:
    """A file that is watched, and what takes force of it."""

    def __init__(self, path: Path, *profiles: Any, **fields: Any) -> None:
        self.path = path
        self.write(*profiles, **fields)
        self.registry = CollectorRegistry()
        self.file = ConfigurationFile(path, NO_PLUGINS, self.registry)
        self.used: list[Reloaded] = []

    def write(self, *profiles: Any, **fields: Any) -> None:
        self.path.write_text(yaml.safe_dump({**HEAD, "profiles": list(profiles), **fields}), "utf-8")

    async def changed(self, *profiles: Any, **fields: Any) -> Reloaded:
        """Change the file and wait until something of it takes force."""
        self.write(*profiles, **fields)
        count = len(self.used)
        await self.until(lambda: len(self.used) > count)
        return self.used[-1]

    async def until(self, holds: Any) -> None:
        async def use(reloaded: Reloaded) -> int:
            self.used.append(reloaded)
            return 3

        watching = asyncio.create_task(self.file.watch(use, POLL))
        try:
            async with asyncio.timeout(20):
                while not holds():
                    await asyncio.sleep(POLL)
                await asyncio.sleep(POLL)
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    def count(self, result: str) -> float:
        value = self.registry.get_sample_value(RESULTS, {"result": result})
        assert value is not None
        return value


def profile(name: str = "a", **more: Any) -> dict[str, Any]:
    return {"schedulerName": name, **more}


def without(*names: str, point: str = "multiPoint") -> dict[str, Any]:
    return {"plugins": {point: {"disabled": [{"name": name} for name in names]}}}


def arguments(name: str, **args: Any) -> dict[str, Any]:
    return {"pluginConfig": [{"name": name, "args": args}]}


def test_every_result_has_a_series_before_the_first_change(tmp_path: Path) -> None:
    watched = Watched(tmp_path / "c.yaml", profile())
    assert {one.value: watched.count(one.value) for one in ReloadResult} == dict.fromkeys(ReloadResult, 0.0)


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ({}, without("TaintToleration"), {"TaintToleration"}),
        ({}, without("NodePorts", point="filter"), {"NodePorts"}),
        (without("NodePorts"), {}, set()),
        ({}, arguments("NodeResourcesFit", ignoredResources=["a.io/b"]), {"NodeResourcesFit"}),
        ({}, arguments("NodeResourcesFit", scoringStrategy={"type": "LeastAllocated"}), set()),
        ({}, {"plugins": {"score": {"enabled": [{"name": "NodeAffinity", "weight": 9}]}}}, {"NodeAffinity"}),
        ({}, without("SchedulingPolicy", point="filter"), {"SchedulingPolicy"}),
        ({}, {"percentageOfNodesToScore": 50}, set()),
    ],
)
async def test_change_of_a_profile_names_the_plugins_that_are_others_now(
    tmp_path: Path, before: dict[str, Any], after: dict[str, Any], changed: set[str]
) -> None:
    watched = Watched(tmp_path / "c.yaml", profile("a", **before), profile("b"))
    reloaded = await watched.changed(profile("a", **after), profile("b"), podMaxBackoffSeconds=30)
    assert reloaded.changed == changed
    assert set(reloaded.profiles) <= {"a"}
    assert reloaded.backoff.maximum == 30.0
    assert watched.file.completed.pod_max_backoff_seconds == 30
    assert watched.count("used") == 1


async def test_profile_that_says_the_same_is_not_made_anew(tmp_path: Path) -> None:
    watched = Watched(tmp_path / "c.yaml", profile("a"), profile("b"))
    reloaded = await watched.changed(profile("a", **without("NodeName")), profile("b"))
    assert list(reloaded.profiles) == ["a"]
    assert "NodeName" not in reloaded.profiles["a"].plugin_names
    again = await watched.changed(profile("a"), profile("b"))
    assert "NodeName" in again.profiles["a"].plugin_names
    assert not again.changed


@pytest.mark.parametrize(
    ("profiles", "fields", "said"),
    [
        ([profile("a"), profile("b")], {}, "profiles: cannot be added, removed or reordered"),
        ([profile("b")], {}, "profiles: cannot be added, removed or reordered"),
        ([profile("a")], {"clientConnection": {"qps": 7}}, "clientConnection: cannot change while the process runs"),
        (
            [profile("a")],
            {"leaderElection": {"leaderElect": False}},
            "leaderElection: cannot change while the process runs",
        ),
        ([profile("a")], {"parallelism": 3}, "parallelism: cannot change while the process runs"),
        (
            [profile("a", plugins={"queueSort": {"enabled": [{"name": "PrioritySort"}]}})],
            {},
            "profiles[0].plugins.queueSort: cannot change while the process runs",
        ),
        (
            [profile("a", **arguments("PrioritySort", a=1))],
            {},
            "profiles[0].plugins.queueSort: cannot change while the process runs",
        ),
    ],
)
async def test_other_changes_need_a_restart(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, profiles: list[Any], fields: dict[str, Any], said: str
) -> None:
    watched = Watched(tmp_path / "c.yaml", profile("a"))
    before = watched.file.completed
    watched.write(*profiles, **fields)
    await watched.until(lambda: watched.count("needs_restart"))
    assert (watched.used, watched.file.completed) == ([], before)
    assert said in caplog.text
    assert "the previous configuration stays active" in caplog.text


async def test_file_that_is_not_valid_is_refused_once_and_a_later_one_is_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    watched = Watched(tmp_path / "c.yaml", profile("a"))
    watched.write(profile("a"), podInitialBackoffSeconds=0)
    await watched.until(lambda: watched.count("invalid"))
    assert "podInitialBackoffSeconds: 0 is not greater than 0" in caplog.text
    await watched.changed(profile("a", **without("NodeName")))
    assert (watched.count("invalid"), watched.count("used")) == (1, 1)


async def test_file_that_cannot_be_read_is_said_once_and_leaves_all_as_it_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    watched = Watched(tmp_path / "c.yaml", profile("a"))
    watched.path.unlink()
    said = "cannot read the configuration file, the configuration stays as it is"
    await watched.until(lambda: said in caplog.text)
    await watched.until(lambda: True)
    await watched.changed(profile("a", **without("NodeName")))
    assert sum(said in one for one in caplog.messages) <= 2, "each watch says it once"


@pytest.mark.parametrize("error", [NotNowError("nodes are not listed"), RuntimeError("broken")])
async def test_a_reload_that_fails_leaves_what_was_there_and_is_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr("policysched.app.running.configuration_file.TRY_AGAIN", POLL)
    watched = Watched(tmp_path / "c.yaml", profile("a"))
    before, asked = watched.file.completed, 0

    async def fail_twice(_: Reloaded) -> int:
        nonlocal asked
        asked += 1
        if asked <= 2:
            assert watched.file.completed == before
            raise error
        return 0

    watched.write(profile("a", **without("NodeName")))
    watching = asyncio.create_task(watched.file.watch(fail_twice, POLL))
    async with asyncio.timeout(20):
        while not watched.count("used"):
            await asyncio.sleep(POLL)
    watching.cancel()
    assert (watched.count("failed"), asked) == (2, 3)
    assert watched.file.completed != before
    assert str(error) in caplog.text


async def test_a_reload_that_is_refused_waits_for_another_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("policysched.app.running.configuration_file.TRY_AGAIN", 0.0)
    watched = Watched(tmp_path / "c.yaml", profile("a"))
    looks = 0
    real = read_bytes

    def read(name: str) -> bytes:
        nonlocal looks
        looks += 1
        return real(name)

    monkeypatch.setattr(configuration_file, "read_bytes", read)
    watched.write(profile("a"), parallelism=0)
    await watched.until(lambda: looks > 5)
    assert watched.count("invalid") == 1


def test_start_with_several_objects_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(f"{yaml.safe_dump(HEAD)}---\n{yaml.safe_dump(HEAD)}", "utf-8")
    with pytest.raises(UsageError, match="expected one KubeSchedulerConfiguration, got several objects"):
        ConfigurationFile(path, NO_PLUGINS, CollectorRegistry())


def test_what_has_no_effect_or_is_likely_a_mistake_is_said(tmp_path: Path) -> None:
    def said(*profiles: Any, **fields: Any) -> list[str]:
        completed = Watched(tmp_path / "c.yaml", *profiles, **fields).file.completed
        return [one.split(":")[0] for one in warnings(completed)]

    off = {"leaderElect": False}
    assert said() == []
    assert said(profile("a")) == ["leaderElection.resourceName"]
    assert said(profile("a"), profile("default-scheduler")) == []
    assert said(profile("a"), leaderElection={"resourceName": "a"}) == []
    assert said(profile("a"), leaderElection=off) == []
    assert said(delayCacheUntilActive=True) == []
    assert said(leaderElection=off, delayCacheUntilActive=True) == ["delayCacheUntilActive"]
