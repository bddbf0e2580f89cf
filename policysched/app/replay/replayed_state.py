"""The cluster and engines of a record at one of its decisions: `ReplayedState`.

The state begins with a snapshot and applies entries with the same methods that the scheduler called.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final

import msgspec

from policysched.app.configuration.profiles import configured_profiles
from policysched.app.configuration.reading import load_configuration
from policysched.app.dry_run.policies import compiled_policies, started
from policysched.app.recording import entries
from policysched.app.recording.entries import Begin
from policysched.errors import UsageError
from policysched.framework import MetricKey
from policysched.framework.profile import Profile
from policysched.framework.registry import PluginRegistry
from policysched.model.objects import PersistentVolume, Pod
from policysched.model.policy import Policy
from policysched.model.release import RELEASES, Release, with_pod_groups
from policysched.model.release_choice import AUTO, release_named
from policysched.rules.compile.policy import CompiledPolicy
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.cycle.engine import Engine
from policysched.state.cluster import Cluster
from policysched.state.volumes.storage import Assumable

log = logging.getLogger(__name__)
Draws = list[float | int]


class ReplayedRandom(random.Random):
    """A random source that returns the recorded random numbers, then new ones."""

    def __init__(self) -> None:
        super().__init__(0)
        self._draws: Draws = []

    def use(self, draws: Iterable[float | int]) -> None:
        """Set the random numbers that are returned next."""
        self._draws = [*draws]

    def random(self) -> float:
        """Return the next number from 0 to below 1."""
        return float(self._draws.pop(0)) if self._draws else super().random()

    def getrandbits(self, k: int, /) -> int:
        """Return the next integer of `k` bits."""
        return int(self._draws.pop(0)) if self._draws else super().getrandbits(k)


def compiled(policies: Iterable[Policy]) -> list[CompiledPolicy]:
    """Compile recorded policies that were in force.

    Raises:
        UsageError: a policy does not compile here.
    """
    store = started({one.key: one for one in policies}.values())
    made = compiled_policies(store, store.listed())
    for key, why in sorted(made.failed.items()):
        raise UsageError(f"recorded policy {key} does not compile: {why}")
    return made.compiled


class ReplayedState:
    """The cluster, the policies and the engines at one position of a record.

    Args:
        plugins: Out-of-tree plugins that the configuration can enable.
        kube_version: The Kubernetes minor whose kube-scheduler decides; `auto` is the recorded one.
    """

    def __init__(self, plugins: PluginRegistry, kube_version: str = AUTO) -> None:
        release_named(kube_version)  # an unknown minor is an error before a file is read
        self._plugins, self._kube_version = plugins, kube_version
        self.rng = ReplayedRandom()
        self.cluster = Cluster()
        self._recorded_release = self.cluster.release
        self.policies: list[CompiledPolicy] = []
        self.annotations: list[str] | None = None
        self.engines: dict[str, Engine] = {}
        self._configuration: dict[str, Any] = {}
        self._profiles: Mapping[str, Profile] = {}
        self._last: Pod | None = None

    def begin(self, given: Begin) -> None:
        """Replace the state by a snapshot.

        Raises:
            UsageError: the record follows a Kubernetes minor that is not known, or it cannot be used as in `swap`.
        """
        release = self._release_of(given)
        self._recorded_release = _with_gates(RELEASES.get(given.reference, release), given.gates)
        self.cluster = made = Cluster(release=release)
        _lay_out(made, given.rows)
        made.time.move(given.seconds)
        for obj in given.objects:
            made.take(entries.read_object(obj))
        _take_reserved(made, given)
        for pod, row in given.pods:
            read = entries.read_pod(pod)
            if row >= 0:
                made.assume(read, row)
            else:
                made.set_pod(read)
        for pod in given.waiting:
            _await(made, pod)
        for pod, node in given.nominations:
            made.nominations.set(entries.read_pod(pod), node)
        for answer in given.answers:
            made.metrics.take(entries.read_answer(answer))
        self.annotations = given.annotations
        self.engines, self._profiles = {}, {}  # plugins keep state of one cluster
        self.swap(given.configuration, given.policies)

    def _release_of(self, given: Begin) -> Release:
        """Return the release that decides, with the feature gates of the record."""
        if self._kube_version == AUTO and given.reference not in RELEASES:
            raise UsageError(f'the record follows Kubernetes "{given.reference}"; known are {", ".join(RELEASES)}')
        release = RELEASES[given.reference] if self._kube_version == AUTO else release_named(self._kube_version)
        return _with_gates(release, given.gates)

    def swap(self, configuration: dict[str, Any], policies: list[Any]) -> None:
        """Put a configuration and policies in force.

        Raises:
            UsageError: the configuration enables unknown plugins, or a policy does not compile.
        """
        if configuration != self._configuration or not self._profiles:
            try:
                self._profiles = self._profiles_of(configuration)
            except UsageError as error:
                raise UsageError(f"recorded configuration cannot be used: {error}") from error
            self._configuration = configuration
        self.policies = compiled(entries.read_policies(policies))
        joined = PolicySet.of(self.policies)
        for name, profile in self._profiles.items():
            own = self.engines.get(name)
            if own is None:
                self.engines[name] = Engine(self.cluster, joined.join(profile), self.rng)
            else:
                own.use(joined.join(profile))

    def _profiles_of(self, configuration: dict[str, Any]) -> Mapping[str, Profile]:
        """Return the profiles of a recorded configuration, whose plugins follow the release of the replay."""
        release, recorded = self.cluster.release, self._recorded_release
        newer = release if recorded.skew(release.version) > 0 else recorded
        without = {key: value for key, value in configuration.items() if key != "extenders"}
        read = replace(load_configuration(without, release=newer), release=release)
        return configured_profiles(read, self._plugins)

    @property
    def profiles(self) -> Mapping[str, Profile]:
        """Profiles in force, without policies."""
        return self._profiles

    def decided_about(self, pod: Pod) -> None:
        """Set the pod of the last decision."""
        self._last = pod

    def change(self, name: str, given: list[Any]) -> Exception | None:
        """Apply a recorded change; return the exception if the change fails, as it may have failed in the scheduler."""
        act = _CHANGES.get(name)
        if act is None:
            raise msgspec.ValidationError(f"unknown entry {name}")
        if name == entries.PLACED:
            given = [self._last, *given]
        try:
            act(self.cluster, *given)
        except msgspec.ValidationError:
            raise
        except Exception as error:
            log.debug("%s fails, as it did when it was recorded: the scheduler went on", name, exc_info=True)
            return error
        return None


def _with_gates(release: Release, gates: Sequence[str]) -> Release:
    """Return a release with the feature gates of a record, if the release can have them.

    Args:
        release: The release.
        gates: Names of fields of the release.
    """
    if not gates or with_pod_groups(release) is None:
        return release
    known = {one.name for one in fields(release)}
    values: dict[str, Any] = {name: True for name in gates if name in known}
    return replace(release, **values)


def _lay_out(made: Cluster, rows: list[str]) -> None:
    """Give nodes their recorded indexes (rows), because draws among equally good nodes depend on the indexes."""
    free = [made.nodes.row_for(name or f"\0{row}") for row, name in enumerate(rows)]
    for row in free:
        if not rows[row]:
            made.nodes.release(row)


def _take_reserved(made: Cluster, given: Begin) -> None:
    """Restore reservations that the watch had not confirmed."""
    for obj in given.reserved:
        _reserve(made, obj)
    for obj in given.assumed_claims:
        _assume_claim(made, obj)
    for obj in given.claims_in_flight:
        _allocate(made, obj)


def _take(cluster: Cluster, given: list[Any]) -> None:
    cluster.take(entries.read_object(given))


def _drop(cluster: Cluster, given: list[Any]) -> None:
    cluster.drop(entries.read_object(given))


def _assume(cluster: Cluster, pod: Any, row: int) -> None:
    cluster.assume(entries.read_pod(pod), row)


def _place(cluster: Cluster, pod: Pod | None, row: int) -> None:
    if pod is None:
        raise msgspec.ValidationError("pod is placed before the first decision")
    cluster.assume(pod, row)


def _reserve(cluster: Cluster, given: list[Any]) -> None:
    obj = entries.read_object(given)
    _assumable(cluster, obj).assume(obj)


def _unreserve(cluster: Cluster, given: list[Any]) -> None:
    obj = entries.read_object(given)
    _assumable(cluster, obj).restore(obj)


def _assume_claim(cluster: Cluster, given: list[Any]) -> None:
    cluster.resource_claims.assume(entries.read_claim(given))


def _allocate(cluster: Cluster, given: list[Any]) -> None:
    cluster.resource_claims.begin(entries.read_claim(given))


def _assumable(cluster: Cluster, obj: Any) -> Assumable[Any]:
    return cluster.storage.volumes if isinstance(obj, PersistentVolume) else cluster.storage.claims


def _await(cluster: Cluster, pod: Any) -> None:
    if cluster.pod_groups is not None:
        cluster.pod_groups.await_pod(entries.read_pod(pod))


def _leave(cluster: Cluster, identity: str) -> None:
    if cluster.pod_groups is not None:
        cluster.pod_groups.remove(identity)


def _nominate(cluster: Cluster, pod: Any, node: str) -> None:
    cluster.nominations.set(entries.read_pod(pod), node)


def _renominate(cluster: Cluster, pod: Any) -> None:
    cluster.nominations.update(entries.read_pod(pod))


_CHANGES: Final[Mapping[str, Callable[..., Any]]] = {
    "take": _take,
    "drop": _drop,
    "remove_node": Cluster.remove_node,
    "remove_pod": Cluster.remove_pod,
    "assume": _assume,
    entries.PLACED: _place,
    entries.WAITING: _await,
    entries.LEFT: _leave,
    "forget": Cluster.forget,
    "reserve": _reserve,
    "unreserve": _unreserve,
    entries.ASSUMED: _assume_claim,
    entries.RESTORED: lambda cluster, key: cluster.resource_claims.restore(key),
    entries.ALLOCATED: _allocate,
    entries.RELEASED: lambda cluster, uid: cluster.resource_claims.end(uid),
    "nominate": _nominate,
    "renominate": _renominate,
    "denominate": lambda cluster, identity: cluster.nominations.discard(identity),
    entries.SHARED: lambda cluster, begins: cluster.resource_claims.share(begins=begins),
    "answer": lambda cluster, given: cluster.metrics.take(entries.read_answer(given)),
    "keep": lambda cluster, keys: cluster.metrics.keep({MetricKey(*one) for one in keys}),
    entries.TIME: lambda cluster, seconds: cluster.time.move(seconds),
}
