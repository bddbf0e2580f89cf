"""A record names the Kubernetes minor that its decisions follow; a replay follows it, or another one on request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from policysched.app.configuration.profiles import NO_PLUGINS, default_profile
from policysched.app.plan.results import Effect
from policysched.app.recording.entries import Begin
from policysched.app.recording.file_format import BlockWriter, encoded, read_entries
from policysched.app.replay.what_if import what_if
from policysched.cli import execute
from policysched.errors import UsageError
from policysched.model.kinds import KINDS
from policysched.model.release import RELEASES
from tests.app.recording.recorded import completed, recording, replayed
from tests.schedule.stand import ME

WITNESS = Path(__file__).parents[2] / "oracle" / "witnesses" / "merges_namespaces.yaml"
"""A pod that fits the only node since 1.37, because its namespaceSelector selects no namespace."""
CONFIGURATION = Begin.__struct_fields__.index("configuration")
"""Place of the configuration in the first entry."""
REFERENCE = Begin.__struct_fields__.index("reference")
"""Place of the minor in the first entry; fields of later versions follow."""


@pytest.fixture
async def record(tmp_path: Path) -> Path:
    """The record of a pod that 1.37 places."""
    case = yaml.safe_load(WITNESS.read_text("utf-8"))
    case["pod"]["spec"]["schedulerName"] = ME
    release = RELEASES["1.37"]
    configuration = completed({"schedulerName": ME}, release)
    async with recording(tmp_path, default_profile(ME, release=release), configuration, release) as stand:
        for one in case["objects"]:
            stand.scheduler.take(KINDS[one["kind"]].decode(one))
        await stand.settled(KINDS["Pod"].decode(case["pod"]))
    [path] = tmp_path.glob("*.record")
    return path


def rewritten(path: Path, change: Any) -> None:
    """Change the first entry of a record."""
    told = [*read_entries(path)]
    change(told[0][1])
    with path.open("wb") as file:
        BlockWriter(file).write([encoded(entry) for entry in told])


def test_replay_follows_the_recorded_minor(record: Path) -> None:
    found = replayed(record)
    assert (found.decisions, found.placed, found.differences) == (1, 1, [])


@pytest.mark.parametrize("told", ["1.36", None], ids=["recorded", "older than the field"])
def test_record_of_another_minor_is_replayed_with_its_rules(record: Path, told: str | None) -> None:
    def change(begin: list[Any]) -> None:
        assert begin[REFERENCE] == "1.37"
        begin[REFERENCE:] = [] if told is None else [told]
        begin[CONFIGURATION] = completed({"schedulerName": ME}, RELEASES["1.36"])

    rewritten(record, change)
    found = replayed(record)
    assert found.placed == 0
    assert "node" in [one.what for one in found.differences]


@pytest.mark.parametrize("told", ["1.35", "1.39", "auto", ""])
def test_record_of_a_minor_that_is_not_known_is_refused(record: Path, told: str) -> None:
    rewritten(record, lambda begin: begin.__setitem__(REFERENCE, told))
    with pytest.raises(UsageError, match=rf'follows Kubernetes "{told}"; known are 1\.36, 1\.37, 1\.38'):
        replayed(record)


def test_replay_shows_what_another_minor_would_decide(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = what_if([record], plugins=NO_PLUGINS, kube_version="1.36")
    assert [one.effect for one in told.effects] == [Effect.UNSCHEDULABLE]
    assert not what_if([record], plugins=NO_PLUGINS, kube_version="1.37").effects
    for minor, code, said in (("1.36", 1, "would get no node"), ("1.37", 0, ""), ("auto", 0, "decisions 1–1 equal")):
        assert execute(["replay", str(record), "--kube-version", minor]) == code
        assert said in capsys.readouterr().out
    assert execute(["replay", str(record), "--kube-version", "1.37.9"]) == 2
    assert "is not one of auto, 1.36, 1.37, 1.38" in capsys.readouterr().err
