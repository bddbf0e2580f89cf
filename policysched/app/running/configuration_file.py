"""The configuration file of a running process: reading, and the reload of changes.

The file is compared by its content, so it may be edited, replaced or be a symbolic link, as in a ConfigMap. Plugins,
weights, arguments and backoff of existing profiles take effect between two cycles. Any other change requires a restart;
then nothing of the new file takes effect, so that exactly one version is always in use.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Final

from msgspec.structs import fields, replace
from prometheus_client import CollectorRegistry, Counter

from policysched.app.configuration.election import NO_FLAGS, ElectionFlags, election_warnings, with_flags
from policysched.app.configuration.model import (
    ALL,
    POLICIES,
    Configuration,
    ExtenderConfig,
    ProfileConfig,
)
from policysched.app.configuration.profiles import configured_profiles
from policysched.app.configuration.reading import ReadConfiguration, load_configuration
from policysched.errors import PolicyschedError, UsageError
from policysched.extenders.settings import shown_url
from policysched.framework.extender import EXTENDER
from policysched.framework.profile import Profile
from policysched.framework.registry import PluginRegistry
from policysched.model.release import Release
from policysched.model.release_choice import AUTO, first_accepted
from policysched.plugins.arguments import Fault
from policysched.reading.documents import read
from policysched.reading.files import as_text, read_bytes
from policysched.schedule.queue.subqueues import Backoff

log = logging.getLogger(__name__)
POLL: Final = 1.0
"""Interval between two reads of the configuration file. Units: seconds."""
RELOADED: Final = frozenset({"profiles", "extenders", "pod_initial_backoff_seconds", "pod_max_backoff_seconds"})
"""Fields of the configuration whose changes apply while the process runs."""
TRY_AGAIN: Final = 60.0
"""Interval of retries for a change that could not take effect for a temporary reason. Units: seconds."""
NOT_YET: Final = (
    "the changed configuration cannot be applied yet, the previous configuration stays active; retrying every minute"
)
RESTART: Final = "cannot change while the process runs; restart it to apply the change"


class ReloadResult(StrEnum):
    """Result of a reload after a change of the configuration file, as a label value of a metric."""

    USED = "used"
    INVALID = "invalid"
    NEEDS_RESTART = "needs_restart"
    FAILED = "failed"
    """The change could not take effect yet and is retried."""


class NotNowError(PolicyschedError):
    """A valid configuration that cannot take effect yet, because objects that it needs are not listed yet."""


@dataclass(frozen=True, slots=True)
class Reloaded:
    """A changed configuration file, with the profiles to replace."""

    profiles: Mapping[str, Profile]
    """The changed profiles."""
    changed: frozenset[str]
    """Plugins that were changed in, or removed from, the changed profiles."""
    backoff: Backoff
    configuration: Configuration
    """The whole changed configuration."""

    @property
    def concerns_policies(self) -> bool:
        """Whether the extension points of policies changed."""
        return POLICIES in self.changed


Use = Callable[[Reloaded], Awaitable[int]]
"""Function that puts a changed configuration in force and returns the number of pods to retry."""


class ConfigurationFile:
    """A configuration file, read at the start and whenever its content changes.

    Args:
        path: Path of the file.
        plugins: Out-of-tree plugins that the file can enable.
        registry: Registry of the counter.
        election: Leader election flags, which override the file.
        data: Content of the file; None to read it now.
        kube_version: The Kubernetes minor whose kube-scheduler reads the file. `auto` is the first minor that accepts
            the file, until `follow` names one.

    Raises:
        UsageError: The file is invalid; the text has all errors.
    """

    def __init__(
        self,
        path: Path,
        plugins: PluginRegistry,
        registry: CollectorRegistry,
        election: ElectionFlags = NO_FLAGS,
        data: bytes | None = None,
        kube_version: str = AUTO,
    ) -> None:
        self._path, self._plugins, self._election = path, plugins, election
        self._data = read_bytes(str(path)) if data is None else data
        self._read, self.profiles = first_accepted(kube_version, self._read_as)
        self._counter = Counter(
            "policysched_configuration_reloads",
            "Changes of the configuration file while the process runs, by result.",
            ["result"],
            registry=registry,
        )
        for one in ReloadResult:
            self._counter.labels(one.value)  # without an initial 0, a series that begins at 1 shows no increase
        self._problem = ""

    def _read_as(self, release: Release) -> tuple[ReadConfiguration, dict[str, Profile]]:
        read = self._load(self._data, release)
        return read, configured_profiles(read, self._plugins)

    def follow(self, release: Release) -> None:
        """Read the configuration file with the rules of a release's kube-scheduler, now and at later changes.

        Raises:
            UsageError: this kube-scheduler rejects the file.
        """
        if release is not self._read.release:
            self._read, self.profiles = self._read_as(release)

    @property
    def completed(self) -> Configuration:
        """The configuration in force, with defaults."""
        return self._read.completed

    @property
    def backoff(self) -> Backoff:
        """Backoff of pods between attempts."""
        return _backoff(self.completed)

    def log_warnings(self) -> None:
        """Log settings that have no effect, or are probably a mistake."""
        for warning in warnings(self.completed):
            log.warning("configuration: %s", warning)

    async def watch(self, use: Use, poll: float = POLL) -> None:
        """Put the file in force whenever its content changes, until cancelled."""
        clock, again = asyncio.get_running_loop().time, math.inf
        while True:
            await asyncio.sleep(poll)
            try:
                data = await asyncio.to_thread(read_bytes, str(self._path))
            except UsageError as error:
                self._log_problem(f"cannot read the configuration file, the configuration stays as it is: {error}")
                continue
            self._problem = ""
            if data != self._data or clock() >= again:
                self._data = data
                result = await self._take(data, use)
                again = clock() + TRY_AGAIN if result is ReloadResult.FAILED else math.inf

    async def _take(self, data: bytes, use: Use) -> ReloadResult:
        try:
            result = await self._put_in_force(await asyncio.to_thread(self._load, data, self._read.release), use)
        except UsageError as error:
            result = ReloadResult.INVALID
            log.warning("the changed configuration is rejected, the previous configuration stays active: %s", error)
        except NotNowError as error:
            result = ReloadResult.FAILED
            log.warning("%s: %s", NOT_YET, error)
        except Exception:  # an exception here would end the process
            result = ReloadResult.FAILED
            log.exception("%s", NOT_YET)
        self._counter.labels(result.value).inc()
        return result

    async def _put_in_force(self, found: ReadConfiguration, use: Use) -> ReloadResult:
        faults = list(_restart_faults(self.completed, found.completed))
        if faults:
            why = found.error(faults)
            log.warning("the changed configuration is rejected, the previous configuration stays active: %s", why)
            return ReloadResult.NEEDS_RESTART
        reloaded = self._reloaded(found)
        moved = await use(reloaded)
        self._read = found
        names = ", ".join(reloaded.profiles) or "none"
        log.info("the changed configuration is active; changed profiles: %s; retried pods: %d", names, moved)
        return ReloadResult.USED

    def _load(self, data: bytes, release: Release) -> ReadConfiguration:
        name = str(self._path)
        documents = read(as_text(data, name), name)
        if len(documents) > 1:
            raise UsageError(f"{documents[1].where}: expected one KubeSchedulerConfiguration, got several objects")
        return load_configuration(documents[0], partial(with_flags, flags=self._election), release)

    def _reloaded(self, found: ReadConfiguration) -> Reloaded:
        """Create the profiles that changed; create all profiles if the extenders changed."""
        before = {one.scheduler_name: one for one in self.completed.profiles}
        extended = found.completed.extenders != self.completed.extenders
        same = {one.scheduler_name or "" for one in found.completed.profiles if before.get(one.scheduler_name) == one}
        made = configured_profiles(found, self._plugins, keep=() if extended else same)
        pairs = ((before[one.scheduler_name], one) for one in found.completed.profiles)
        changed = frozenset().union(*(changed_plugins(old, new) for old, new in pairs))
        if extended:
            changed |= {EXTENDER}
        return Reloaded(made, changed, _backoff(found.completed), found.completed)

    def _log_problem(self, problem: str) -> None:
        if problem != self._problem:
            log.error("%s", problem)
        self._problem = problem


def changed_plugins(old: ProfileConfig, new: ProfileConfig) -> frozenset[str]:
    """Return the plugins of a profile whose extension points or arguments changed, or that were removed."""
    return frozenset(name for name in old.plugins.enabled_anywhere if _part(old, name) != _part(new, name))


def _part(profile: ProfileConfig, name: str) -> tuple[Any, ...]:
    """Return all settings of a profile that concern one plugin."""
    places = (
        (any(one.name == name for one in own.enabled), own.disables(name) or own.disables(ALL))
        for own in profile.plugins.by_point().values()
    )
    return profile.arguments.get(name), *places


def _restart_faults(old: Configuration, new: Configuration) -> Iterator[Fault]:
    for field in fields(Configuration):
        if field.name not in RELOADED and getattr(old, field.name) != getattr(new, field.name):
            yield field.encode_name, RESTART
    if [one.scheduler_name for one in old.profiles] != [one.scheduler_name for one in new.profiles]:
        yield "profiles", "cannot be added, removed or reordered while the process runs; restart it to apply the change"
    elif _sorting(old) != _sorting(new):
        yield "profiles[0].plugins.queueSort", RESTART


def _sorting(configuration: Configuration) -> Any:
    """Return the QueueSort settings of the first profile, which are the same in all profiles."""
    first = configuration.profiles[0]
    sorters = first.plugins.queue_sort
    named = [one.name for one in sorters.enabled] or ["PrioritySort"]
    return sorters, [first.arguments.get(name) for name in named]


def without_secrets(configuration: Configuration) -> Configuration:
    """Return a configuration without passwords in extenders' URLs and without private keys, for display."""
    return replace(configuration, extenders=tuple(map(_without_secrets, configuration.extenders)))


def _without_secrets(extender: ExtenderConfig) -> ExtenderConfig:
    tls = extender.tls_config
    return replace(
        extender,
        url_prefix=shown_url(extender.url_prefix),
        tls_config=None if tls is None else replace(tls, key_data=b""),
    )


def _backoff(configuration: Configuration) -> Backoff:
    return Backoff(float(configuration.pod_initial_backoff_seconds), float(configuration.pod_max_backoff_seconds))


def warnings(configuration: Configuration) -> Iterator[str]:
    """Yield warnings about settings that have no effect, or are probably a mistake."""
    election = configuration.leader_election
    yield from election_warnings(election, [one.scheduler_name or "" for one in configuration.profiles])
    if configuration.delay_cache_until_active and not election.leader_elect:
        yield "delayCacheUntilActive: has no effect without leader election"
