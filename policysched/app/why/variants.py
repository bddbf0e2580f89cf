"""Evaluation of variants of a pod, a node, policies or weights by the engine; the cluster is restored afterwards."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace as replace_field
from functools import cached_property
from typing import Any, Final, TypeVar

import numpy as np
from msgspec.structs import replace

from policysched.app.dry_run.dry_run import Simulation
from policysched.framework import SKIP, Codes, FilterPlugin, Mask, Narrow, RowNumbers, Status, plugin_name
from policysched.framework.profile import Profile
from policysched.model.decode import decode_node, decode_pod
from policysched.model.defaults import fill_node, fill_pod
from policysched.model.objects import Pod
from policysched.rules.compile.policy import CompiledPolicy
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.cycle.engine import Engine
from policysched.state.placed.pods import pod_id

T = TypeVar("T")
Object = Mapping[str, Any]
Reason = Callable[[int], tuple[str, ...]]
"""Function that converts a plugin's reason code into the texts of its reasons."""
NOTHING: Final[frozenset[str]] = frozenset()


class VariantEvaluator:
    """Evaluates edited pods, nodes, policies and weights of one simulation; edits of its cluster are undone.

    Args:
        simulation: The cluster, the pod, profile and policies.
        seed: Seed of the draw among equally good nodes.
    """

    def __init__(self, simulation: Simulation, seed: int | None = None) -> None:
        self.simulation = simulation
        self.cluster = simulation.cluster
        self.engine, self.rng = simulation.engine(seed)
        self.rows: RowNumbers | None = None
        """Indexes of the nodes to which a placement limits the pod; None for all nodes."""
        self.interrupted = False
        """Whether Ctrl-C ended the evaluation; results so far are reported."""

    def until_interrupted(self, found: Iterable[T]) -> Iterator[T]:
        """Yield the results of an iterator until Ctrl-C ends the evaluation."""
        if self.interrupted:
            return
        try:
            yield from found
        except KeyboardInterrupt:
            self.interrupted = True

    @property
    def present(self) -> Mask:
        """For each index (row) of the cluster: whether it is the index of a node that the pod can use. Shapes: (N,)."""
        present: Mask = self.cluster.nodes.present.data[: self.size]
        return present if self.rows is None else present & np.isin(np.arange(self.size), self.rows)

    @property
    def size(self) -> int:
        """Length of the cluster's arrays over nodes, including unused indexes (rows)."""
        return self.cluster.nodes.size

    @cached_property
    def nodes(self) -> Mapping[str, Object]:
        """Nodes as given to the simulation, by name."""
        return {one["metadata"]["name"]: one for one in self.simulation.objects if one["kind"] == "Node"}

    def pod(self, raw: Object) -> Pod:
        """Decode an edited pod."""
        pod = decode_pod(fill_pod(raw, self.simulation.classes, self.cluster.release))
        return replace(pod, spec=replace(pod.spec, scheduler_name=self.simulation.profile.scheduler_name))

    def feasible(self, pod: Pod, without_rules: Collection[str] = NOTHING) -> Mask:
        """Return for each node whether a pod fits, optionally without some rules of policies.

        Shapes: (N,).
        """
        engine = self.without(without_rules) if without_rules else self.engine
        found = engine.find(pod, rows=self.rows)
        if found.rejection is not None or found.filter_failure is not None:
            none: Mask = np.zeros(self.size, np.bool_)
            return none
        return found.feasible()

    @contextmanager
    def node_changed(self, raw: Object) -> Iterator[int]:
        """Replace a node inside this context; yield the node's index (row)."""
        node = decode_node(fill_node(raw))
        row = self.cluster.nodes.row_of[node.metadata.name]
        before = self.cluster.nodes.nodes[row]
        self.cluster.set_node(node)
        try:
            yield row
        finally:
            if before is not None:
                self.cluster.set_node(before)

    @contextmanager
    def pods_removed(self, pods: Iterable[Pod]) -> Iterator[None]:
        """Remove pods from the cluster inside this context."""
        removed = [one for pod in pods if (one := self.cluster.pods.by_id.get(pod_id(pod))) is not None]
        for one in removed:
            self.cluster.remove_pod(pod_id(one.pod))
        try:
            yield
        finally:
            for one in removed:
                self.cluster.set_pod(one.pod)

    def with_weight(self, plugin: str, weight: int) -> Engine:
        """Return an engine in which a plugin or policy has another weight; weight 0 removes its scores."""
        profile = self.simulation.profile
        changed = ((one, weight if one.name == plugin else own) for one, own in profile.scores)
        scores = tuple((one, own) for one, own in changed if own)
        policies = (_with_weight(one.policy, plugin, weight) for one in self.simulation.policies.active)
        return self._engine(PolicySet.of(policies), replace_field(profile, scores=scores))

    def filter_codes(self, plugin: FilterPlugin[Any], pod: Pod) -> tuple[Codes, Reason]:
        """Return a filter's reason codes for a pod on all nodes, and the function that converts a code into reasons.

        Shapes: (N,).
        """
        state: Any = plugin.prepare_filter(pod, self.cluster)
        everywhere: Codes = np.zeros(self.size, np.int32)
        if state is SKIP:
            return everywhere, lambda _: ()
        if isinstance(state, Status):
            status = state
            return everywhere + np.int32(1), lambda _: status.reasons
        if isinstance(state, Narrow):
            state = state.state
        return plugin.filter(state, slice(0, self.size)), lambda code: plugin.reason(state, code).reasons

    def without(self, rules: Collection[str]) -> Engine:
        """Return an engine without some rules of policies, named `policy/rule`."""
        policies = (_without_filters(one.policy, rules) for one in self.simulation.policies.active)
        return self._engine(PolicySet.of(policies), self.simulation.profile)

    def _engine(self, policies: PolicySet, profile: Profile) -> Engine:
        return Engine(self.cluster, policies.join(profile), self.rng)


def _with_weight(policy: CompiledPolicy, plugin: str, weight: int) -> CompiledPolicy:
    """Return a policy, with another weight if the plugin name is the name of the policy."""
    if plugin_name(policy.key) != plugin:
        return policy
    return replace_field(policy, spec=replace(policy.spec, weight=weight))


def _without_filters(policy: CompiledPolicy, rules: Collection[str]) -> CompiledPolicy:
    """Return a policy without some filters."""
    kept = tuple(rule for rule in policy.filters if f"{policy.key}/{rule.name}" not in rules)
    return policy if len(kept) == len(policy.filters) else replace_field(policy, filters=kept)
