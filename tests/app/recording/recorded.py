"""Schedulers that are recorded: one that a test drives, and a random life with preemptions and edits of policies."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace as replace_field
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from policysched.app.configuration.printing import to_dict
from policysched.app.configuration.profiles import NO_PLUGINS, default_profile
from policysched.app.configuration.reading import load_configuration
from policysched.app.recording.recorder import Recorder
from policysched.app.recording.writer import RecordWriter
from policysched.app.replay.replay import replay
from policysched.app.replay.results import Replayed
from policysched.framework import plugin_name
from policysched.framework.profile import Profile
from policysched.model.objects import Pod
from policysched.model.policy import PolicyKey
from policysched.model.release import DEFAULT, Release
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.scheduler import Scheduler
from tests.schedule.life_policies import policies
from tests.schedule.soak import ME, Gatekeeper, Soak, some_turns
from tests.schedule.stand import Stand

LIMIT = 64 * 1024 * 1024


def completed(profile: dict[str, Any], release: Release = DEFAULT, **fields: Any) -> dict[str, Any]:
    """The configuration as a process has it recorded."""
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return to_dict(load_configuration({**head, "profiles": [profile], **fields}, release=release).completed)


@asynccontextmanager
async def recording(
    folder: Path, profile: Profile, configuration: dict[str, Any], release: Release = DEFAULT
) -> AsyncIterator[Stand]:
    """Record a scheduler of one profile, without nodes and pods at the start."""
    stand, profiles = Stand(), {profile.scheduler_name: profile}
    recorder = Recorder(RecordWriter(folder, LIMIT), configuration, profiles, release)
    recorder.rng.seed(1)
    client: Any = stand.client
    stand.scheduler = Scheduler(profiles, client, stand.clock, recorder.rng, (recorder,), cluster=recorder.cluster)
    binder = stand.scheduler._binder
    binder.handle = replace_field(binder.handle, pause=some_turns)
    stand.task = asyncio.create_task(stand.scheduler.run())
    await stand.settle()
    try:
        yield stand
    finally:
        stand.task.cancel()
        await asyncio.wait((stand.task,))
        await asyncio.to_thread(recorder.close)


class RecordedLife(Soak):
    """A scheduler with a recorder, and the events that it hears."""

    def __init__(self, seed: int, folder: Path, limit: int = LIMIT, *, edits: bool = True) -> None:
        super().__init__(seed)
        profile = replace_field(default_profile(ME), permits=(Gatekeeper(),))
        self.writer = RecordWriter(folder, limit)
        self.recorder = recorder = Recorder(self.writer, completed({"schedulerName": ME}), {ME: profile})
        recorder.rng.seed(seed)
        client: Any = self.server
        self.scheduler = Scheduler(
            {ME: profile}, client, self.clock, recorder.rng, (recorder,), cluster=recorder.cluster
        )
        binder = self.scheduler._binder
        binder.handle = replace_field(binder.handle, pause=some_turns)
        self._in_force: frozenset[PolicyKey] = frozenset()
        if edits:
            self._acts[self.edit_policies] = 3
        self._chance = random.Random(seed)

    def edit_policies(self) -> None:
        """Other policies take force."""
        chosen = PolicySet.of(self._chance.choice(policies()))
        names = frozenset(one.policy.key for one in chosen.active)
        self.scheduler.use_policies(chosen, frozenset(plugin_name(one) for one in names | self._in_force))
        self._in_force = names

    def make(self, name: str) -> Pod:
        """Make a pod with an annotation that no policy reads, and one that some do."""
        made = super().make(name)
        annotations = {"password": "hunter2", "disks": self.rng.choice(("x", "x|y"))}
        return replace(made, metadata=replace(made.metadata, annotations=annotations))


async def recorded(
    folder: Path,
    decisions: int,
    seed: int = 1,
    limit: int = LIMIT,
    *,
    edits: bool = True,
    goes_on: Callable[[RecordedLife], bool] = lambda _: False,
) -> RecordedLife:
    """Record so many decisions at least, and more while something is so."""
    life = RecordedLife(seed, folder, limit, edits=edits)
    while life.recorder.decisions < decisions or goes_on(life):
        await life.run(50)
    await life.end()
    await asyncio.to_thread(life.recorder.close)
    return life


def replayed(*files: Path) -> Replayed:
    """Replay files."""
    return replay(files, plugins=NO_PLUGINS)
