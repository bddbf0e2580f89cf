"""`GroupExplainer`: why a pod group does not fit, and changes that would place the group, each confirmed by a cycle.

The changes are undone before the next one is tried.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from msgspec.structs import replace as with_fields

from policysched.app.amounts import counted
from policysched.app.dry_run.dry_run import Simulation
from policysched.app.dry_run.group import with_answers
from policysched.app.why.obstacles import find_conditions
from policysched.app.why.repairs import grouped
from policysched.app.why.results import GroupExplanation, GroupRepair, Repair, RepairKind
from policysched.app.why.variants import VariantEvaluator
from policysched.framework import RowNumbers
from policysched.model.decode import decode_node
from policysched.model.defaults import fill_node
from policysched.model.objects import Pod, PodGroup
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.groups.dry_run import DecidedGroup, GroupDryRun, MostMembers, creation_key, with_min_count
from policysched.schedule.groups.extender_answers import ExtenderAnswers
from policysched.schedule.groups.record import RESULTS
from policysched.schedule.observer import AttemptResult
from policysched.state.placed.pods import pod_id

Object = Mapping[str, Any]
MOST_NODES: Final = 64
"""Largest number of additional nodes in a repair."""
MOST_SHAPES: Final = 8
"""Largest number of kinds of nodes for which repairs with additional nodes are tried."""
MOST_NODE_REPAIRS: Final = 2
"""Largest number of repairs with additional nodes."""
MOST_OF_MEMBER: Final = 12
"""Largest number of repairs of one member that are tried for the group."""
NAMED: Final = 3
"""Largest number of pods whose names a line of the explanation contains."""
_NO_REPAIRS: Final = "fixes for the pod group are not tried: the configuration has extenders"
_HOSTNAME: Final = "kubernetes.io/hostname"


class GroupExplainer:
    """Explains the decision about a pod group; the group's pods are the pods of a simulation.

    Args:
        simulation: The cluster with the group, its members without a node, and policies.
        seed: Seed of the draws among equally good nodes.
    """

    def __init__(self, simulation: Simulation, seed: int | None) -> None:
        self._simulation = simulation
        self._seed = random.getrandbits(32) if seed is None else seed
        self._variants = VariantEvaluator(simulation, self._seed)
        self._identities = [pod_id(pod) for pod in simulation.pods]
        self._engine = self._variants.engine
        """The engine, with the configured extenders."""
        self._answers: ExtenderAnswers | None = None
        """The answers of the configured extenders; None without extenders."""
        self._most = MostMembers(None, ())
        """The largest number of members that fit at the same time, with their placement."""
        self._decided = with_answers(simulation, self._seed, self._decide)
        self._group: PodGroup = self._decided.group

    def _decide(self, engine: Engine, _rng: random.Random, answers: ExtenderAnswers | None) -> DecidedGroup:
        """Decide about the group and its first pod, so that the extenders' answers about both are known afterwards."""
        self._engine, self._answers = engine, answers
        decided = self._dry_run().decide()
        if decided.outcome is not None:
            chosen = decided.outcome.decision.chosen
            found = MostMembers(None if chosen is None else chosen.placement, decided.outcome.decision.members)
            self._most = self._dry_run().most() if decided.result is AttemptResult.UNSCHEDULABLE else found
        with self.with_earlier_members(self._simulation.pod):
            self.decide_member()
        return decided

    def decide_member(self) -> Decision:
        """Decide about the first pod; call this inside the context `with_earlier_members`."""
        evaluation = self._engine.find(self._simulation.pod, rows=self.rows)
        if self._answers is None:
            return self._engine.choose(evaluation)
        answered = self._answers.applied(self._simulation.pod, evaluation)
        return answered if isinstance(answered, Decision) else self._engine.choose(answered)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about the explanation."""
        return () if self._answers is None else (_NO_REPAIRS,)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the search for repairs."""
        return self._variants.interrupted

    @contextmanager
    def with_earlier_members(self, pod: Pod) -> Iterator[None]:
        """Inside this context, the members that the group's cycle evaluates before a pod are assumed on their nodes."""
        with self._dry_run().with_earlier_members(pod_id(pod), self._most.placement):
            yield

    @property
    def rows(self) -> RowNumbers | None:
        """Indexes (rows) of the nodes in the placement on which the most members fit; None for all nodes."""
        placement = self._most.placement
        return None if placement is None else placement.limit(self._variants.cluster)

    def explanation(self) -> GroupExplanation:
        """Return the explanation of the group."""
        decided, group = self._decided, self._group
        tried = decided.outcome is not None
        searched = decided.result is AttemptResult.UNSCHEDULABLE and self._answers is None
        repairs = self._variants.until_interrupted(self._repairs()) if searched else ()
        return GroupExplanation(
            group=group.key,
            result=RESULTS[decided.result],
            summary=self._summary(),
            message=decided.message,
            min_count=group.min_count,
            placed=decided.placed,
            pods=len(decided.members),
            fitting=self._most.count if tried else None,
            placement=self._most.name,
            repairs=tuple(repairs),
        )

    def _summary(self) -> str:
        decided, of = self._decided, f"pod group {self._group.key}"
        pods, had = len(decided.members), f", and {decided.placed} had nodes before" if decided.placed else ""
        if decided.result is AttemptResult.ERROR:
            return f"{of}: scheduling failed: {decided.message}"
        if decided.result is AttemptResult.SCHEDULED:
            return f"{of} fits: {len(decided.nodes)} of {counted(pods, 'pod')} get nodes{had}"
        if decided.outcome is None:
            return f"{of} waits: {counted(pods + decided.placed, 'pod')}, minCount is {self._group.min_count}"
        where = f" in {self._most.name}" if self._most.name else ""
        fit = f"{self._most.count} of {counted(pods, 'pod')} fit at the same time{where}{had}"
        return f"{of} does not fit: {fit}, minCount is {self._group.min_count}{self._first_failure()}"

    def _first_failure(self) -> str:
        """Return the pod and the reason of the first member that fits no node, as the end of a sentence."""
        failed = self._most.failed
        if failed is None or failed.failure is None:
            return ""
        return f"; {failed.queued.pod.key}: {failed.failure.message}"

    def _repairs(self) -> Iterator[GroupRepair]:
        """Yield the repairs with which the group fits, each confirmed by the group's cycle."""
        existing = len(self._decided.members) + self._decided.placed
        if self._decided.outcome is None:
            yield from self._smaller_minimum(existing)
            yield from self._more_pods(self._group.min_count - existing)
            return
        yield from self._evictions()
        fit = self._most.count + self._decided.placed
        yield from self._smaller_minimum(fit)
        yield from self._more_nodes(max(1, self._group.min_count - fit))
        if self._most.failed is not None:
            yield from self._of_member(self._most.failed.queued.identity)

    def _smaller_minimum(self, count: int) -> Iterator[GroupRepair]:
        least = self._group.min_count
        if not 0 < count < least:
            return
        with self._changed_group(with_min_count(self._group, count)):
            placed = self._tried()
        if placed:
            yield GroupRepair(RepairKind.GROUP, f"minCount {count} instead of {least}", placed)

    @contextmanager
    def _changed_group(self, group: PodGroup) -> Iterator[None]:
        """Inside this context, replace the PodGroup object in the cluster."""
        self._variants.cluster.take(group)
        try:
            yield
        finally:
            self._variants.cluster.take(self._group)

    def _more_pods(self, count: int) -> Iterator[GroupRepair]:
        pod = self._simulation.pods[-1]
        names = (f"{pod.metadata.name}-new-{number}" for number in range(1, count + 1))
        new = [with_fields(pod, metadata=with_fields(pod.metadata, name=name, uid="")) for name in names]
        placed = self._tried([*self._simulation.pods, *new]) if 0 < count <= MOST_NODES else 0
        if placed:
            yield GroupRepair(RepairKind.POD, f"{counted(count, 'more pod')} like {pod.key}", placed)

    def _more_nodes(self, most: int) -> Iterator[GroupRepair]:
        found = []
        for node in self._shapes():
            needed = self._nodes_needed(node, min(most, MOST_NODES))
            if needed is not None:
                found.append((*needed, node["metadata"]["name"]))
        for count, placed, name in sorted(found, key=lambda one: one[0])[:MOST_NODE_REPAIRS]:
            yield GroupRepair(RepairKind.NODE, f"{counted(count, 'more node')} like {name}", placed)

    def _nodes_needed(self, node: Object, most: int) -> tuple[int, int] | None:
        """Return the smallest number of additional nodes with which the group fits, and the number of placed pods."""
        placed = self._with_nodes(node, most)
        if not placed:
            return None
        low, high = 1, most
        while low < high:
            middle = (low + high) // 2
            now = self._with_nodes(node, middle)
            if now:
                high, placed = middle, now
            else:
                low = middle + 1
        return high, placed

    def _with_nodes(self, node: Object, count: int) -> int:
        """Return the number of members that get nodes if copies of a node are added; 0 if the group does not fit."""
        cluster = self._variants.cluster
        new = [decode_node(fill_node(_copied(node, number))) for number in range(1, count + 1)]
        for one in new:
            cluster.set_node(one)
        try:
            return self._tried()
        finally:
            for one in new:
                cluster.remove_node(one.metadata.name)

    def _shapes(self) -> Iterable[Object]:
        """Return one node of each kind: first the kinds of nodes that members get, then the most frequent kinds.

        If the group has to be in one placement, the nodes are those of the placement on which the most members fit.
        """
        rows, cluster = self.rows, self._variants.cluster
        nodes = self._variants.nodes
        if rows is not None:
            inside = {cluster.nodes.names[row] for row in rows.tolist()}
            nodes = {name: node for name, node in nodes.items() if name in inside}
        used = {one.placement.assumed.node for one in self._most.members if one.placement is not None}
        kinds: dict[str, list[str]] = {}
        for name in sorted(nodes, key=lambda name: (name not in used, name)):
            kinds.setdefault(_kind(nodes[name]), []).append(name)
        ordered = sorted(kinds.values(), key=lambda names: (names[0] not in used, -len(names)))
        return [nodes[names[0]] for names in ordered[:MOST_SHAPES]]

    def _evictions(self) -> Iterator[GroupRepair]:
        victims = self._decided.victims
        if not victims:
            return
        with self._variants.pods_removed(victims):
            placed = self._tried()
        if placed:
            names = ", ".join(one.key for one in victims[:NAMED])
            more = f" and {len(victims) - NAMED} more" if len(victims) > NAMED else ""
            text = f"preemption evicts {counted(len(victims), 'pod')}: {names}{more}"
            yield GroupRepair(RepairKind.VICTIMS, text, placed)

    def _of_member(self, identity: str) -> Iterator[GroupRepair]:
        """Yield the repairs of one member with which the whole group fits, found with the earlier members on nodes."""
        place = self._identities.index(identity)
        raw, pod = self._simulation.raws[place], self._simulation.pods[place]
        own = VariantEvaluator(replace(self._simulation, raws=[raw], pods=[pod]), self._seed)
        own.rows = self.rows
        with self._dry_run().with_earlier_members(identity, self._most.placement):
            found = grouped(own, raw, find_conditions(own, raw, own.engine.decide(pod, rows=own.rows)))
        seen = set()
        for repair in [one for group in found.groups for one in group.repairs][:MOST_OF_MEMBER]:
            text, placed = self._applied(repair, place)
            if placed and text not in seen:
                seen.add(text)
                yield GroupRepair(repair.change, text, placed)

    def _applied(self, repair: Repair, place: int) -> tuple[str, int]:
        """Apply a repair of a member's pod to all members with its spec; return the text and the members with nodes."""
        if repair.change is RepairKind.NODE:
            with self._variants.node_changed(repair.made["node"]):
                return repair.text, self._tried()
        pods, alike = list(self._simulation.pods), self._alike(place) if repair.edits else []
        for one in alike:
            raw = self._simulation.raws[one]
            for edit in repair.edits:
                raw = edit(raw)
            pods[one] = self._variants.pod(raw)
        whose = "in all pods" if len(alike) == len(pods) else f"in {counted(len(alike), 'pod')}"
        text = f"{repair.text} ({whose})" if alike else repair.text
        rules = frozenset(repair.made.get("rules", ()))
        return text, self._tried(pods, self._variants.without(rules) if rules else None)

    def _alike(self, place: int) -> Sequence[int]:
        """Return the indexes of the members whose specs are equal to the spec of one member."""
        spec = self._simulation.pods[place].spec
        return [other for other, pod in enumerate(self._simulation.pods) if pod.spec == spec]

    def _tried(self, pods: Sequence[Pod] | None = None, engine: Engine | None = None) -> int:
        """Run the group's cycle; return the number of members that get nodes, 0 if the group does not fit."""
        decided = self._dry_run(pods, engine).decide()
        return len(decided.nodes) if decided.result is AttemptResult.SCHEDULED else 0

    def _dry_run(self, pods: Sequence[Pod] | None = None, engine: Engine | None = None) -> GroupDryRun:
        rng = random.Random(self._seed)  # noqa: S311 - a draw among equals, no secret
        wanted = sorted(pods or self._simulation.pods, key=creation_key)
        engine, stated, answers = engine or self._engine, self._simulation.stated, self._answers
        return GroupDryRun(engine, wanted, rng, None, stated, answers=answers)


def placed_group(group: PodGroup, members: Sequence[Object]) -> GroupExplanation:
    """Return the explanation of the pod group to which a placed pod belongs.

    Args:
        group: The group.
        members: All its pods.
    """
    placed, count, least = sum(bool(pod["spec"].get("nodeName")) for pod in members), len(members), group.min_count
    text = f"pod group {group.key}: {placed} of {counted(count, 'pod')} have nodes, minCount is {least}"
    return GroupExplanation(
        group=group.key, result="", summary=text, min_count=least, placed=placed, pods=count - placed
    )


def _copied(node: Object, number: int) -> Object:
    """Return a new node with the spec and the labels of a node."""
    metadata = node["metadata"]
    name = f"{metadata['name']}-new-{number}"
    labels = dict(metadata.get("labels") or {})
    if _HOSTNAME in labels:
        labels[_HOSTNAME] = name
    kept = {key: value for key, value in metadata.items() if key not in ("uid", "resourceVersion")}
    return {**node, "metadata": {**kept, "name": name, "labels": labels}}


def _kind(node: Object) -> str:
    """Return a text that is equal for nodes with equal taints and allocatable amounts."""
    spec, status = node.get("spec") or {}, node.get("status") or {}
    return repr((sorted((status.get("allocatable") or {}).items()), spec.get("taints"), spec.get("unschedulable")))
