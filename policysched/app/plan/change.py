"""Reading of a change: the configuration, policies and objects of both sides of a plan."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_field
from typing import Any

from policysched.app.checking.findings import policy_key
from policysched.app.configuration.profiles import configured_profiles, default_profile
from policysched.app.configuration.reading import ReadConfiguration
from policysched.app.dry_run.policies import compiled_policies, try_policies, usable
from policysched.app.object_names import refuse_unknown
from policysched.app.plan.daemons import daemons_of, without_daemons_of
from policysched.app.plan.reading import ClusterObjects, read_objects, scaled
from policysched.app.plugins.discovery import find_plugins
from policysched.errors import UsageError
from policysched.framework.profile import Profile
from policysched.framework.registry import PluginRegistry
from policysched.model.policy import KIND, PolicyKey
from policysched.model.release import Release
from policysched.reading.documents import of_kind
from policysched.rules.compile.policy import CompiledPolicy
from policysched.rules.policy_set.store import PolicyStore

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SideInputs:
    """The profiles, policies and objects of one side of a plan: without or with the change."""

    objects: ClusterObjects
    profiles: Callable[[], Mapping[str, Profile]]
    """Function that creates the profiles, by scheduler name, without policies."""
    policies: Sequence[CompiledPolicy]


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """A planned change as read from the inputs, with the inputs of both sides."""

    before: SideInputs
    after: SideInputs
    notes: Sequence[str]
    """Notes about policies without effect on the side without the change."""

    @property
    def keeps_objects(self) -> bool:
        """Whether both sides have the same nodes and pods."""
        return self.before.objects is self.after.objects

    @property
    def is_of_policies_alone(self) -> bool:
        """Whether the sides differ only in policies, so that they decide equally about pods without these policies."""
        return self.keeps_objects and self.after.profiles is self.before.profiles

    def differing(self) -> set[PolicyKey]:
        """Return the policies that differ between the sides."""
        before, after = ({one.key: one.spec for one in side.policies} for side in (self.before, self.after))
        return {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}


def changed_objects(
    read: ClusterObjects, nodes: Iterable[Object], without: Collection[str], replicas: Mapping[str, int]
) -> ClusterObjects:
    """Return the objects with the change applied; the same object if nothing changes.

    Args:
        read: The objects without the change.
        nodes: Nodes to add or replace.
        without: Names of nodes to delete, with the pods of their DaemonSets.
        replicas: New numbers of pods of workloads.

    Raises:
        UsageError: a node cannot be read, an object is not a node, or a name does not exist.
    """
    coming = read_objects(nodes, read.release)
    if coming.left_out:
        raise UsageError(coming.left_out[0])
    if coming.pods or coming.others or coming.policies:
        raise UsageError("--nodes: expected only Node objects")
    refuse_unknown("node", without, read.nodes, "the cluster")
    if not (coming.nodes or without or replicas):
        return read
    kept = {name: node for name, node in {**read.nodes, **coming.nodes}.items() if name not in without}
    pods = without_daemons_of(read.pods, without)
    deleted = read.pods.keys() - pods.keys()
    for workload, count in replicas.items():
        pods = scaled(pods, workload, count)
    created = daemons_of(read.pods, [node for name, node in kept.items() if name not in read.nodes])
    return replace_field(
        read, nodes=kept, pods={**pods, **created}, created=frozenset(created), deleted=frozenset(deleted)
    )


def changed_policies(store: PolicyStore, policies: Iterable[Object], without: Collection[str]) -> list[CompiledPolicy]:
    """Change the policies of a store; return the policies that are in force then.

    Args:
        store: The policies without the change; the change is made there.
        policies: SchedulingPolicy objects to add or replace.
        without: Names of policies to delete.

    Raises:
        UsageError: a policy of the change does not compile or exceeds the cost limit, or a deleted one does not exist.
    """
    coming = [of_kind(one, KIND) for one in policies]
    refuse_unknown("policy", without, [*store.listed(), *map(policy_key, coming)], "the cluster")
    tried = try_policies(store, (one for one in coming if policy_key(one) not in without), without)
    return usable(compiled_policies(store, tried), tried)


def profiles_of(
    config: ReadConfiguration | None, names: Collection[str], plugins: PluginRegistry | None, release: Release
) -> dict[str, Profile]:
    """Return new profiles for scheduler names from a configuration, by default with the default plugins.

    A profile belongs to one cluster, because plugins keep state of the cluster.
    """
    if config is None:
        return {name: default_profile(name, release=release) for name in names}
    profiles = configured_profiles(config, find_plugins().registry if plugins is None else plugins)
    return {name: profile for name, profile in profiles.items() if name in names}
