"""Scheduling of every pod of a cluster on both sides of a plan, without and with the change, and comparison.

A running pod is removed alone and scheduled as if it were new; the next pod finds the cluster unchanged. Pending pods
are scheduled in queue order, each assumed on its node, with preemption. Among equally good nodes, a pod lands on its
current one, or on that of the other side, because a tie is no difference.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replace_field
from functools import cached_property
from typing import Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from policysched.app.plan.causes import NO_ROOM, POLICY, Room, cause, rejecting
from policysched.app.plan.landing import Landing, effect_of, landing_of
from policysched.app.plan.reading import ClusterObjects, ReadPod, workload_of
from policysched.app.plan.results import Effect, PodEffect
from policysched.framework.profile import Profile
from policysched.model.objects import Pod
from policysched.model.objects.meta import seconds_of
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.cycle.decision import Decision, drawn
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.evaluation import Evaluation
from policysched.schedule.cycle.post_filter import at_once, post_filtered
from policysched.schedule.groups.dry_run import Draw, GroupDryRun
from policysched.schedule.observer import AttemptResult
from policysched.schedule.queue.queued_pod import QueuedPod
from policysched.state.cluster import Cluster
from policysched.state.placed.pods import pod_id

PROGRESS_EVERY: Final = 256
"""Number of running pods between two reports of progress."""
Keys = tuple[Hashable, Hashable]
"""Keys of a class of equal pods on both sides of a plan: without and with the change."""
Progress = Callable[[int, int], None]
"""Callback that receives the number of evaluated pods and the number of all pods."""


class ClusterSide:
    """The cluster without or with the change, with its engines.

    Args:
        objects: Objects of the cluster.
        profiles: The plugins by scheduler name, without policies.
        policies: Policies in force.
        cluster: The cluster built from these objects.
        seed: Seed of the draw among equally good nodes, the same for each pod.
    """

    def __init__(
        self, objects: ClusterObjects, profiles: Mapping[str, Profile], policies: PolicySet, cluster: Cluster, seed: int
    ) -> None:
        self.objects, self.profiles, self.policies, self._seed = objects, profiles, policies, seed
        self.cluster = cluster
        rng = random.Random(seed)  # noqa: S311 - a draw among equals, no secret
        self.engines = {name: Engine(self.cluster, policies.join(profile), rng) for name, profile in profiles.items()}
        self.victims: dict[str, str] = {}
        """Pods evicted for other pods, with their nodes."""
        self.room: dict[str, frozenset[str]] = {}
        """Plugins that rejected each preempting pod on its node before the preemption, by pod."""
        self.protecting: tuple[str, ...] = ()
        """Policies that protected victims when preemption last failed for a pod."""
        self.acting: set[str] = set()
        """Policies that reject a node, or prefer a node, for at least one pod."""
        self.groups: dict[str, str] = {}
        """The decided pod groups, each with the reason why the group does not fit; empty if the group fits."""
        self.failed: dict[str, str] = {}
        """Pods whose scheduling failed, with the plugin's error."""
        self._recorded_keys: set[Hashable] = set()
        self._unplaced: dict[Hashable, tuple[Landing, tuple[str, ...]]] = {}

    def engine(self, pod: Pod) -> Engine | None:
        """Return the engine of a pod's profile; None if another scheduler handles the pod."""
        return self.engines.get(pod.spec.scheduler_name)

    def key(self, pod: Pod) -> Hashable:
        """Return a key that is equal for pods that scheduling would not distinguish if they were pending."""
        return self._engine(pod).classes.key(pod)

    def group_of(self, pod: Pod) -> str:
        """Return the key of the pod group with which a pod is scheduled; empty if the pod is scheduled alone."""
        groups = self.cluster.pod_groups
        state = None if groups is None else groups.of_pod(pod)
        return "" if state is None or state.group is None else state.key

    def landing(self, pod: Pod, key: Hashable, *prefer: str) -> tuple[Landing, Decision]:
        """Return the Landing (node or reason) of a pod that is not placed on this side, and the decision.

        Args:
            pod: The pod.
            key: The key of its class.
            prefer: Preferred nodes among equally good ones, in order.
        """
        engine = self._engine(pod)
        decision = engine.decide(pod, key)
        self._record_acting(key, decision.evaluation)
        return self._landing(decision, *prefer), decision

    def queued(self, one: ReadPod, without_change: Landing | None, removes: frozenset[str] = frozenset()) -> Landing:
        """Schedule a pending pod, with preemption, and assume it on its node; return the node, or why there is none.

        Args:
            one: The pod.
            without_change: Its landing without the change; None for the side without the change.
            removes: Rejections that preemption without the change removes on the node of that landing.
        """
        pod, engine = as_waiting(one.pod), self._engine(one.pod)
        self.cluster.nominations.discard(pod_id(pod))
        key = engine.classes.key(pod)
        position = self.cluster.journal.position, self.cluster.nominations.stamp
        unplaced_key: Hashable = (key, position, pod.spec.priority, pod.spec.scheduler_name)
        landing, self.protecting = self._unplaced.get(unplaced_key, (None, ()))
        decision = engine.decide(pod, key)
        if landing is None:
            self._record_acting(key, decision.evaluation)
            if decision.row < 0 and not decision.failed and self._make_room(engine, decision):
                decision = engine.decide(pod)
            landing = self._landing(decision, "" if without_change is None else without_change.node)
        if not landing.node:
            self._unplaced[unplaced_key] = landing, self.protecting
        if without_change is not None and landing.node != without_change.node:
            room = Room(removes, self.protecting) if removes else NO_ROOM
            landing = replace_field(landing, by=cause(decision, without_change.node, landing.node, room=room))
        if landing.node:
            self.cluster.assume(pod, self.cluster.nodes.row_of[landing.node], one.resources)
        return landing

    def queued_group(self, members: Sequence[ReadPod], without_change: Mapping[str, Landing]) -> dict[str, Landing]:
        """Schedule the pending pods of a pod group together and assume each on its node; return node or reason by pod.

        Args:
            members: The pods.
            without_change: Landings without the change, by pod; their nodes are preferred among equally good ones.
        """
        pods, engine = [as_waiting(one.pod) for one in members], self._engine(members[0].pod)
        for pod in pods:
            self.cluster.nominations.discard(pod_id(pod))
        rng = self._rng(pods[0])
        draw = self._draw(without_change, rng)
        decided = GroupDryRun(engine, pods, rng, draw).decide()
        if decided.victims:
            self._evict(decided.victims)
            decided = GroupDryRun(engine, pods, rng, draw).decide()
        fits = decided.result is AttemptResult.SCHEDULED
        self.groups[decided.group.key] = "" if fits else decided.message or "error"
        nodes, landings = decided.nodes if fits else {}, {}
        for one, pod in zip(members, pods, strict=True):
            node = nodes.get(pod_id(pod), "")
            landings[pod.key] = Landing(node, reason="" if node else decided.message)
            if node:
                self.cluster.assume(pod, self.cluster.nodes.row_of[node], one.resources)
        return landings

    def _draw(self, without_change: Mapping[str, Landing], rng: random.Random) -> Draw:
        """Return a function that chooses among equally good nodes, by preference the pod's node without the change."""
        rows = {key: self.cluster.nodes.row_of.get(one.node, -1) for key, one in without_change.items()}

        def draw(member: QueuedPod, decision: Decision) -> Decision:
            row = rows.get(member.pod.key, -1)
            if row < 0 or not (decision.tied == row).any():
                return drawn(decision, rng)
            decision.row = row
            return decision

        return draw

    def _evict(self, victims: Iterable[Pod]) -> None:
        """Remove the victims of a preemption for a pod group from the cluster."""
        for victim in victims:
            placed = self.cluster.pods.by_id[pod_id(victim)]
            self.victims[victim.key] = self.cluster.nodes.names[placed.row]
            self.cluster.remove_pod(pod_id(victim))

    def order(self, pods: Iterable[ReadPod]) -> list[ReadPod]:
        """Sort pods in queue order."""

        def key(one: ReadPod) -> tuple[object, ...]:
            queued_at = seconds_of(one.pod.metadata.creation_timestamp)
            sort = self._engine(one.pod).profile.queue_sort
            return (sort.key(one.pod, float("inf") if queued_at is None else queued_at), one.pod.key)

        return sorted(pods, key=key)

    def _engine(self, pod: Pod) -> Engine:
        return self.engines[pod.spec.scheduler_name]

    def _make_room(self, engine: Engine, decision: Decision) -> bool:
        """Run preemption after a failed decision and remove the victims from the cluster; return whether any exist."""
        outcome = at_once(post_filtered(engine, decision, self._rng(decision.pod)))
        self.protecting = () if outcome is None else tuple(sorted(outcome.rejectors))
        if outcome is None or not outcome.succeeded or not outcome.nominated_node:
            return False
        row = self.cluster.nodes.row_of[outcome.nominated_node]
        self.room[decision.pod.key] = rejecting(decision, row)
        for victim in outcome.victims:
            self.victims[victim.key] = outcome.nominated_node
            self.cluster.remove_pod(pod_id(victim))
        return True

    def _landing(self, decision: Decision, *prefer: str) -> Landing:
        found = landing_of(decision, *prefer)
        if decision.failed:
            self.failed[decision.pod.key] = found.reason
        if found.ties <= 1 or found.node in prefer:
            return found
        place = self._rng(decision.pod).randrange(found.ties)
        by_name = np.sort(self._places[decision.tied])
        return replace_field(found, node=self._names[by_name[place]])

    @cached_property
    def _names(self) -> list[str]:
        """Sorted names of the nodes; nodes do not change while a side is evaluated."""
        return sorted(self.cluster.nodes.names)

    @cached_property
    def _places(self) -> NDArray[np.intp]:
        """Place of each node in the alphabetical order of names, by the node's index (row). Shapes: (N,)."""
        places = {name: place for place, name in enumerate(self._names)}
        return np.array([places[name] for name in self.cluster.nodes.names], np.intp)

    def _rng(self, pod: Pod) -> random.Random:
        return random.Random(f"{self._seed}/{pod.key}")  # noqa: S311 - as above

    def _record_acting(self, key: Hashable, evaluation: Evaluation) -> None:
        """Record which policies affect a pod; done once for each class of equal pods."""
        if key in self._recorded_keys or evaluation.rejection is not None:
            return
        self._recorded_keys.add(key)
        self.acting |= {one.plugin.name for one in evaluation.filter_parts()}
        feasible = evaluation.feasible()
        if evaluation.feasible_count > 1:
            for one in evaluation.score_parts():
                if one.plugin.name.startswith(POLICY) and one.plugin.name not in self.acting:
                    final = one.final(feasible)[feasible]
                    self.acting |= {one.plugin.name} if final.min() != final.max() else set()


def as_waiting(pod: Pod) -> Pod:
    """Return a placed pod as a pending pod, without its node."""
    if not pod.spec.node_name:
        return pod
    return replace(pod, spec=replace(pod.spec, node_name=""), status=type(pod.status)())


@dataclass(slots=True)
class SideComparison:
    """Evaluates all pods on both sides, and collects the effects of the change."""

    before: ClusterSide
    after: ClusterSide
    affected_keys: Callable[[Pod], Keys | None]
    """Function that returns the keys of a pod's class of equal pods on both sides; None if decisions cannot differ."""
    make_after: Callable[[], ClusterSide]
    """Function that creates the side with the change, on a separate cluster: the sides place pods differently."""
    progress: Progress = lambda _done, _all: None
    effects: list[PodEffect] = field(default_factory=list)
    pods: int = 0
    others: int = 0
    gated: int = 0
    stranded: int = 0
    """Number of pods on nodes that exist on neither side."""
    unseen: int = 0
    evaluated: list[Pod] = field(default_factory=list)
    """The evaluated pods, as pending pods."""
    decided: int = 0
    """Number of pods, outside of pod groups, that were scheduled on both sides, because the change can affect them."""
    unplaced: Counter[str] = field(default_factory=Counter)
    """Number of the decided pods that fit no node on either side, by the reason without the change."""

    def run(self) -> None:
        """Evaluate all pods; an interruption keeps the results so far."""
        running, waiting = self._sorted()
        both = {**self.before.objects.pods, **self.after.objects.pods}
        self.evaluated += [as_waiting(two.pod) for _, two in running]
        self.evaluated += [as_waiting(both[key].pod) for key in waiting]
        everything = len(running) + len(waiting)
        try:
            for number, (one, two) in enumerate(running):
                self._running(one, two)
                self.pods = number + 1
                if not number % PROGRESS_EVERY:
                    self.progress(number, everything)
            self._waiting(waiting)
            self.pods += len(waiting)
        except KeyboardInterrupt:
            self.unseen = everything - self.pods

    def _sorted(self) -> tuple[list[tuple[ReadPod, ReadPod]], list[str]]:
        """Split the pods into pods that run on the same node on both sides, and pods that are pending on a side."""
        running, waiting = [], []
        before, after = self.before.objects, self.after.objects
        with_nodes = after.created | after.deleted
        for key in [one for one in {**before.pods, **after.pods} if one not in with_nodes]:
            one, two = before.pods.get(key), after.pods.get(key)
            some = one or two
            if some is None or not self._is_decided(some):
                continue
            place = some.pod.spec.node_name
            if one is not None and two is not None and place in before.nodes and place in after.nodes:
                running.append((one, two))
            elif place and place not in before.nodes and place not in after.nodes:
                self.stranded += 1
            else:
                waiting.append(key)
        # pods of one class in sequence, so that the evaluation of the class needs few updates
        running.sort(key=lambda pair: (pair[0].pod.spec.scheduler_name, workload_of(pair[0].pod), pair[0].pod.key))
        return running, waiting

    def _is_decided(self, one: ReadPod) -> bool:
        pod = one.pod
        ours = self.before.engine(pod) is not None and self.after.engine(pod) is not None
        if not ours or one.is_static or one.has_ended:
            self.others += 1
            return False
        if pod.spec.scheduling_gates and not pod.spec.node_name:
            self.gated += 1
            return False
        return True

    def _running(self, one: ReadPod, two: ReadPod) -> None:
        pod = as_waiting(two.pod)
        keys = self.affected_keys(pod)
        if keys is None:
            return
        identity = pod_id(one.pod)
        clusters = {id(side.cluster): side.cluster for side in (self.before, self.after)}.values()
        for cluster in clusters:
            cluster.remove_pod(identity)
        try:
            before, old = self.before.landing(pod, keys[0], one.pod.spec.node_name)
            after, new = self.after.landing(pod, keys[1], before.node, one.pod.spec.node_name)
            if before.node != after.node:
                after = replace_field(after, by=cause(new, before.node, after.node, old))
        finally:
            for cluster in clusters:
                cluster.set_pod(one.pod, one.resources)
        self._compare(two.pod, before, after, runs=True)

    def _waiting(self, keys: list[str]) -> None:
        """Schedule the pending pods on both sides; on a tie, a pod gets the same node with the change as without."""
        both = [self.before.objects.pods, self.after.objects.pods]
        pods = [pods[key].pod for key in keys for pods in both if key in pods]
        if all(self.affected_keys(pod) is None for pod in pods):
            return
        if self.after.cluster is self.before.cluster:
            acting, self.after = self.after.acting, self.make_after()
            self.after.acting |= acting
        before = dict(self._landings(self.before, keys, {}, {}))
        after = dict(self._landings(self.after, keys, before, self.before.room))
        for key in keys:
            some = both[1].get(key) or both[0][key]
            if key not in after:
                self._add_effect(some.pod, Effect.REMOVED, before[key], Landing(""))
            elif key not in before:
                self._add_effect(some.pod, Effect.ADDED, Landing(""), after[key])
            else:
                self._compare(some.pod, before[key], after[key])
        self._victims()

    def _landings(
        self,
        side: ClusterSide,
        keys: list[str],
        without_change: Mapping[str, Landing],
        room: Mapping[str, frozenset[str]],
    ) -> Iterator[tuple[str, Landing]]:
        there = {key: side.objects.pods[key] for key in keys if key in side.objects.pods}
        settled = {key: one for key, one in there.items() if one.pod.spec.node_name in side.objects.nodes}
        for key, one in settled.items():
            yield key, Landing(one.pod.spec.node_name)
        waiting = side.order(one for key, one in there.items() if key not in settled)
        members: dict[str, list[ReadPod]] = {}
        for one in waiting:
            members.setdefault(side.group_of(one.pod), []).append(one)
        for one in waiting:
            group = side.group_of(one.pod)
            if not group:
                yield one.pod.key, side.queued(one, without_change.get(one.pod.key), room.get(one.pod.key, frozenset()))
            elif one is members[group][0]:
                yield from side.queued_group(members[group], without_change).items()

    def _victims(self) -> None:
        before, after = self.before.victims, self.after.victims
        for effect, ours, theirs in ((Effect.PREEMPTED, after, before), (Effect.SPARED, before, after)):
            for key in ours.keys() - theirs.keys():
                pods = self.after.objects.pods if key in self.after.objects.pods else self.before.objects.pods
                gone, stays = Landing(""), Landing(ours[key])
                both = (stays, gone) if effect is Effect.PREEMPTED else (gone, stays)
                self._add_effect(pods[key].pod, effect, *both)

    def _compare(self, pod: Pod, before: Landing, after: Landing, *, runs: bool = False) -> None:
        effect = effect_of(before.node, after.node, pod.spec.node_name if runs else "")
        if runs or not self.before.group_of(pod):
            has_failed = pod.key in self.before.failed or pod.key in self.after.failed
            self.decided += 1
            self.unplaced[before.reason] += not (before.node or after.node or has_failed)
        if effect is not None:
            self._add_effect(pod, effect, before, after, runs=runs)

    def _add_effect(self, pod: Pod, effect: Effect, before: Landing, after: Landing, *, runs: bool = False) -> None:
        place, named = pod.spec.node_name or "", workload_of(pod)
        nodes = before.node, after.node
        self.effects.append(PodEffect(pod.key, named, effect, *nodes, after.ties, after.reason, place, runs, after.by))
