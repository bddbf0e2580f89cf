"""Read a change: what is in force on each side of a plan, made of the same objects, read once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace as replace_field
from typing import Any

from policysched.app.configuration.profiles import configured_profiles, default_profile
from policysched.app.configuration.reading import ConfigurationInput, load_configuration
from policysched.app.dry_run.dry_run import compile_policies, decode_policies
from policysched.app.plan.reading import ClusterObjects, read_objects, scaled
from policysched.app.plugins.discovery import find_plugins
from policysched.errors import UsageError
from policysched.framework.profile import Profile
from policysched.framework.registry import PluginRegistry
from policysched.late_dataclass import dataclass
from policysched.model.policy import PolicyKey
from policysched.rules.compile.policy import CompiledPolicy

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class InForce:
    """What decides about which objects on one side."""

    objects: ClusterObjects
    profiles: Callable[[], Mapping[str, Profile]]
    """Makes the plugins by scheduler name, without policies."""
    policies: Sequence[CompiledPolicy]


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """A change, as it was read."""

    before: InForce
    after: InForce
    notes: Sequence[str]
    """What of the side without the change does nothing."""

    @property
    def keeps_objects(self) -> bool:
        """Whether both sides have the same nodes and pods."""
        return self.before.objects is self.after.objects

    @property
    def is_of_policies_alone(self) -> bool:
        """Whether pods that no changed policy speaks for are decided about alike."""
        return self.keeps_objects and self.after.profiles is self.before.profiles

    def differing(self) -> set[PolicyKey]:
        """Return which policies are not the same on both sides."""
        before, after = ({one.key: one.spec for one in side.policies} for side in (self.before, self.after))
        return {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}


def changed_objects(
    read: ClusterObjects, nodes: Iterable[Object], without: Collection[str], replicas: Mapping[str, int]
) -> ClusterObjects:
    """Return the objects with the change; the same ones where they do not change.

    Args:
        read: The objects without it.
        nodes: Nodes that are new, or replace those of their names.
        without: The names of nodes that go.
        replicas: How many pods workloads would have.

    Raises:
        UsageError: a node cannot be read, something else is no node, or a name is not there.
    """
    coming = read_objects(nodes)
    if coming.left_out:
        raise UsageError(coming.left_out[0])
    if coming.pods or coming.others or coming.policies:
        raise UsageError("--nodes: expected nodes alone")
    _refuse_unknown("node", without, read.nodes)
    if not (coming.nodes or without or replicas):
        return read
    kept = {name: node for name, node in {**read.nodes, **coming.nodes}.items() if name not in without}
    pods = read.pods
    for workload, count in replicas.items():
        pods = scaled(pods, workload, count)
    return replace_field(read, nodes=kept, pods=pods)


def standing_policies(policies: Iterable[Object]) -> tuple[list[CompiledPolicy], list[str]]:
    """Compile policies as they are in force; name those that do nothing."""
    compiled, _, failed = compile_policies(decode_policies(policies, ()))
    return compiled, [f"policy {key} does nothing today: {why}" for key, why in sorted(failed.items())]


def coming_policies(
    standing: Sequence[CompiledPolicy], policies: Iterable[Object], without: Collection[str]
) -> list[CompiledPolicy]:
    """Return the policies with the change.

    Args:
        standing: Those without it.
        policies: SchedulingPolicy objects that are new, or replace those of their names.
        without: The names of policies that go.

    Raises:
        UsageError: a policy of the change does not compile, or one that is to go is not there.
    """
    tried, _, failed = compile_policies(decode_policies((), policies))
    for key, why in sorted(failed.items()):
        raise UsageError(f"policy {key} cannot be used: {why}")
    _refuse_unknown("policy", without, (one.key for one in (*standing, *tried)))
    replaced = {one.key for one in tried}
    kept = (one for one in standing if one.key not in replaced)
    return [one for one in (*kept, *tried) if one.key not in without]


def profiles_of(
    config: ConfigurationInput | None, scheduler_name: str, plugins: PluginRegistry | None
) -> dict[str, Profile]:
    """Make the profiles of a configuration; without one the default plugins under a scheduler name.

    Those of one cluster are not for another: what plugins keep is kept of one.
    """
    if config is None:
        return {scheduler_name: default_profile(scheduler_name)}
    return configured_profiles(load_configuration(config), find_plugins().registry if plugins is None else plugins)


def _refuse_unknown(kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    there = set(known)
    for name in names:
        if name not in there:
            raise UsageError(f"{kind} {name} is not in the cluster")
