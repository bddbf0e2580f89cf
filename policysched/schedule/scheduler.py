"""`Scheduler`: applies changes to the cluster, swaps policies and profiles, and runs attempts of pending pods.

Everything runs in one event loop. A cycle is synchronous, so the cluster does not change during it. After `TURN`
seconds of cycles, the loop runs other tasks and applies the changes that arrived. All requests go through the `Client`.

Source: pkg/scheduler/scheduler.go, eventhandlers.go.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from policysched.framework import (
    Action,
    Change,
    Client,
    Clock,
    MetricAnswer,
    Resource,
)
from policysched.framework.out_of_tree.watch import PluginWatch
from policysched.framework.profile import Profile
from policysched.model.kinds import FINISHED
from policysched.model.objects import Node, Pod, PodGroup
from policysched.model.pod_requirements import pod_priority
from policysched.model.release import Release
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.attempts import TURN, Attempts
from policysched.schedule.binding import Binder
from policysched.schedule.cluster_changes import NOTHING, ClusterChanges
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.node_templates import TemplateEvaluator
from policysched.schedule.cycle.record import Record
from policysched.schedule.groups.attempts import GroupAttempts
from policysched.schedule.live_dry_run import dry_run, dry_run_group
from policysched.schedule.observer import LOG_LINES, Observers, notify
from policysched.schedule.queue.group_queue import GroupQueue
from policysched.schedule.queue.hints import Interests, label
from policysched.schedule.queue.queue import Queue, Waiter
from policysched.schedule.queue.queued_pod import QueuedPod
from policysched.schedule.queue.queued_pod_group import QueuedPodGroup
from policysched.schedule.shadow_guards import ShadowGuards
from policysched.schedule.timing import Timing
from policysched.state.cluster import Cluster
from policysched.state.cluster_events import departure
from policysched.state.nominated.columns import Nomination
from policysched.state.placed.pods import pod_id
from policysched.state.pod_groups import PodGroups

log = logging.getLogger(__name__)
AFTER_FAILURE = 1.0
"""Pause after an error of the scheduler that no single pod caused. Units: seconds."""
PENDING_ADDED: Final = Change(Resource.PENDING_POD, Action.ADD)
PENDING_UPDATED: Final = Change(Resource.PENDING_POD, Action.UPDATE_OTHER)
PENDING_DELETED: Final = Change(Resource.PENDING_POD, Action.DELETE)
LAST_WORDS: Final = 10.0
"""Default time for which bindings may continue at a shutdown. Units: seconds."""


class Scheduler:
    """Schedules the pods of its profiles in a cluster.

    Args:
        profiles: The profiles by name.
        client: Writes to the API server.
        clock: The time.
        rng: Random generator that chooses among equally good nodes.
        observers: Receive the decisions.
        timing: Records durations; None if no durations are recorded.
        cluster: The cluster; a new one by default.
    """

    last_words: float = LAST_WORDS
    """Time for which bindings may continue after the last cycle at a shutdown. Units: seconds."""

    def __init__(  # noqa: PLR0913, PLR0917 - dependencies are passed in
        self,
        profiles: Mapping[str, Profile],
        client: Client,
        clock: Clock,
        rng: random.Random,
        observers: Observers = LOG_LINES,
        timing: Timing | None = None,
        cluster: Cluster | None = None,
    ) -> None:
        self.cluster = Cluster() if cluster is None else cluster
        self._timing = timing
        self._profiles = dict(profiles)
        self._clock = clock
        self._engines = {name: Engine(self.cluster, profile, rng, timing) for name, profile in profiles.items()}
        sort = next(iter(profiles.values())).queue_sort
        self._observers = observers
        queue = Queue if self.cluster.pod_groups is None else GroupQueue
        self.queue = queue(clock, sort, self.cluster, profiles=_interests(self._profiles, self.cluster.release))
        self.queue.measure_with(timing)
        if observers:
            self.queue.report_to(partial(_notify_queued, observers))
        self._waiter = Waiter(self.queue, clock)
        self._changes = ClusterChanges(self.cluster, self.queue, clock)
        self._binder = Binder(self.cluster, self.queue, client, clock, self._changes.publish, observers)
        self._binder.timing = timing
        self.attempts = Attempts(
            self.cluster,
            self.queue,
            self._profiles,
            self._engines,
            self._binder,
            self._changes,
            client,
            clock,
            rng,
            observers,
            timing,
        )
        self.group_attempts = self._grouped(client)
        self.shadows: ShadowGuards = self.attempts.shadows
        self._connect_plugins()

    def _grouped(self, client: Client) -> GroupAttempts | None:
        """Return the object that runs attempts of pod groups; None if the cluster has no pod groups."""
        groups, queue = self.cluster.pod_groups, self.queue
        if groups is None or not isinstance(queue, GroupQueue):
            return None
        return GroupAttempts(
            self.attempts,
            self.cluster,
            groups,
            queue,
            self._profiles,
            self._binder,
            self._changes,
            client,
            self._clock,
            self._observers,
        )

    def use_policies(self, policies: PolicySet, changed: frozenset[str]) -> int:
        """Replace the policies in force between two cycles, and requeue the pods that changed policies rejected.

        Args:
            policies: The new set.
            changed: Plugin names of the policies that were changed or removed.

        Returns:
            How many pods were requeued.
        """
        active = _join(policies, self._profiles)
        return self._put_in_force(active, policies, changed, "SchedulingPolicyUpdate")

    def use_profiles(self, profiles: Mapping[str, Profile], policies: PolicySet, changed: frozenset[str]) -> int:
        """Replace the profiles of the given names; profiles of other names stay unchanged.

        Args:
            profiles: The new profiles, with the same QueueSort plugin.
            policies: The policies in force.
            changed: Names of the plugins that were changed or removed; the pods that they rejected are requeued.

        Returns:
            How many pods were requeued.
        """
        active = _join(policies, profiles)
        for name, profile in profiles.items():
            profile.take_over(self._profiles[name])
        self._profiles.update(profiles)
        self._connect_plugins()
        return self._put_in_force(active, policies, changed, "ConfigurationUpdate")

    def join(self, policies: PolicySet) -> dict[str, Profile]:
        """Return copies of the profiles with given policies, and evaluate the rules once; nothing is put in force."""
        return {name: policies.join(profile, self.cluster) for name, profile in self._profiles.items()}

    def _put_in_force(
        self, active: Mapping[str, Profile], policies: PolicySet, changed: frozenset[str], event: str
    ) -> int:
        self.queue.profiles = {**self.queue.profiles, **_interests(active, self.cluster.release)}
        for name, profile in active.items():
            self._engines[name].use(profile)
        if self._observers:
            notify(self._observers, lambda one: one.on_swap(active, policies))
        return self.queue.move_rejected_by(changed, event)

    def _connect_plugins(self) -> None:
        for profile in self._profiles.values():
            if profile.handle is not None:
                profile.handle.connect(self.cluster, self._binder.handle)

    async def dry_run(self, pod: Pod, policies: PolicySet, rng: random.Random) -> Record:
        """Decide about a pod without placing the pod; return the decision record.

        Args:
            pod: A pod of one of the profiles.
            policies: The policies in force.
            rng: Random generator that chooses among equally good nodes.

        Raises:
            UsageError: A pod of its name is on a node.
        """
        engine = self._engines[pod.spec.scheduler_name].beside(rng)
        return await dry_run(engine, pod, policies, rng, self._changes.update_time)

    def dry_run_group(
        self, pods: Sequence[Pod], group: PodGroup | None, policies: PolicySet, rng: random.Random
    ) -> Record:
        """Decide about a pod group without placing its pods; return the decision record.

        Args:
            pods: Pods of the group, of one of the profiles; its pending pods are decided with them.
            group: The PodGroup object, if it does not exist yet or is to be replaced.
            policies: The policies in force.
            rng: Random generator that chooses among equally good nodes.

        Raises:
            UsageError: A pod is on a node, the group does not exist, or extenders are interested in a pod.
        """
        self._changes.update_time()
        engine = self._engines[pods[0].spec.scheduler_name].beside(rng)
        return dry_run_group(engine, pods, group, policies, rng)

    def template_evaluator(self, pod: Pod, policies: PolicySet, rng: random.Random) -> TemplateEvaluator:
        """Return an evaluator that tests whether a pod would fit on nodes that do not exist yet."""
        self._changes.update_time()
        engine = self._engines[pod.spec.scheduler_name].beside(rng)
        return TemplateEvaluator(engine, pod, policies.acting(engine.profile))

    def plugin_watches(self) -> dict[str, PluginWatch]:
        """Return, for each profile, the object that records run times of out-of-tree plugins; thread-safe."""
        return {name: profile.handle.watch for name, profile in self._profiles.items() if profile.handle is not None}

    def profiles_in_force(self) -> dict[str, Profile]:
        """Return the profiles by name, combined with the policies in force."""
        return {name: engine.profile for name, engine in self._engines.items()}

    @property
    def binding_count(self) -> int:
        """Number of running bindings; thread-safe."""
        return self._binder.under_way

    @property
    def kept_bytes(self) -> int:
        """The memory of all cached filter and score results. Units: bytes."""
        return sum(engine.classes.nbytes for engine in self._engines.values())

    def set_node(self, node: Node) -> None:
        """Add a node to the cluster, or replace the node of the same name."""
        self._changes.publish(self.cluster.set_node(node))

    def remove_node(self, name: str) -> None:
        """Remove a node from the cluster."""
        self._changes.publish(self.cluster.remove_node(name))

    def set_pod(self, pod: Pod) -> None:
        """Add or replace a pod, placed or pending."""
        identity = pod_id(pod)
        if pod.spec.node_name:
            self.cluster.nominations.discard(identity)
            self.queue.delete(identity)
            if self.cluster.is_elsewhere(pod):
                self._changes.publish(self.cluster.remove_pod(identity))
            self._changes.publish(self.cluster.set_pod(pod))
            self._binder.reject_waiting(identity, "the pod was bound by another client")
        elif pod.status.phase in FINISHED:
            self.remove_pod(identity)
        elif self.cluster.is_assumed(identity):
            if pod.spec.scheduler_name not in self._profiles:
                self.queue.delete(identity)
            else:
                self.queue.renew(pod)
            if pod.metadata.deletion_timestamp is not None:
                self._changes.publish(self.cluster.remove_pod(identity))
                self._binder.reject_waiting(identity, "the pod is being deleted")
        else:
            self._set_pending(pod, identity)

    def _set_pending(self, pod: Pod, identity: str) -> None:
        if identity in self.cluster.pods.by_id:  # a new pod of the same identity: a pod never loses its node
            self._changes.publish(self.cluster.remove_pod(identity))
        freed = self.cluster.nominations.update(pod) or self._nominated_before(pod, identity)
        if pod.spec.scheduler_name not in self._profiles:
            self.queue.delete(identity)
        elif self.cluster.pod_groups is not None:
            self._add_member(pod, identity, self.cluster.pod_groups)
        else:
            self._changes.latest = PENDING_ADDED if self.queue.get(identity) is None else PENDING_UPDATED
            self.queue.add(pod)
        self._nomination_ended(freed)

    def _add_member(self, pod: Pod, identity: str, groups: PodGroups) -> None:
        """Add or update a pod in a cluster with pod groups; a new pod may make its group complete."""
        is_new = self.queue.get(identity) is None
        groups.await_pod(pod)
        self.queue.add(pod)
        if is_new:
            self._changes.publish(Change(Resource.PENDING_POD, Action.ADD, None, pod))
        else:
            self._changes.latest = PENDING_UPDATED

    def _nominated_before(self, pod: Pod, identity: str) -> Nomination | None:
        """Return a pod's nomination by its last attempt if the pod's new version does not have it; else None."""
        queued = self.queue.get(identity)
        if queued is None:
            return None
        old = self.queue.latest(queued)
        node = old.status.nominated_node_name
        return Nomination(old, node) if node and node != pod.status.nominated_node_name else None

    def _nomination_ended(self, freed: Nomination | None) -> None:
        """Requeue the pods that may use the resources of a nomination that ended, including the nominated pod."""
        if freed is not None:
            change = departure(freed.pod, freed.node, self.cluster.nodes.row_of.get(freed.node, -1))
            self._changes.update_time()
            self.queue.move(change, at_most=pod_priority(freed.pod))

    def remove_pod(self, identity: str) -> None:
        """Remove a pod from the cluster and from the queue."""
        if self.queue.delete(identity):
            self._changes.latest = PENDING_DELETED
        self._nomination_ended(self.cluster.nominations.discard(identity))
        self._changes.publish(self.cluster.remove_pod(identity))
        self._binder.reject_waiting(identity, "the pod was deleted")

    def take(self, obj: Any) -> None:
        """Add or replace an object of a kind in `policysched.model.kinds`, and requeue the pods that it may help."""
        self._handle(self._take, obj)

    def _take(self, obj: Any) -> None:
        if isinstance(obj, Pod):
            self.set_pod(obj)
        elif isinstance(obj, PodGroup):
            self._set_pod_group(obj)
        else:
            self._changes.publish(self.cluster.take(obj))

    def drop(self, obj: Any) -> None:
        """Remove an object of a kind in `policysched.model.kinds`, and requeue the pods that the removal may help."""
        self._handle(self._drop, obj)

    def _drop(self, obj: Any) -> None:
        if isinstance(obj, Pod):
            self.remove_pod(pod_id(obj))
        elif isinstance(obj, PodGroup):
            self._remove_pod_group(obj)
        else:
            self._changes.publish(self.cluster.drop(obj))

    def _set_pod_group(self, group: PodGroup) -> None:
        known = self.cluster.objects.of(PodGroup).get(group.key)
        if known is not None and known.metadata.uid != group.metadata.uid:
            self._remove_pod_group(known)
        change = self.cluster.take(group)
        if isinstance(self.queue, GroupQueue):
            self.queue.set_group(group)
        self._changes.publish(change)

    def _remove_pod_group(self, group: PodGroup) -> None:
        change = self.cluster.drop(group)
        if isinstance(self.queue, GroupQueue):
            self.queue.remove_group(group)
        self._changes.publish(change)

    def _handle(self, act: Callable[[Any], None], obj: Any) -> None:
        """Apply a change of an object to the cluster; if the cluster changed, record how long this took."""
        timing = self._timing
        if timing is None:
            act(obj)
        else:
            self._changes.latest, began = NOTHING, timing.now()
            act(obj)
            if self._changes.latest is not NOTHING:
                timing.change(label(self._changes.latest), timing.now() - began)
        if self.cluster.counters.crowded:  # the next decision may be far away
            for engine in self._engines.values():
                engine.classes.relieve()

    def set_metric(self, answer: MetricAnswer) -> None:
        """Store the values from a metric source, and requeue the pods that the values may help."""
        self._changes.update_time()
        self._changes.publish(self.cluster.metrics.take(answer))

    @property
    def is_busy(self) -> bool:
        """Whether pods are active, or bindings or status writes are running; thread-safe."""
        return bool(self.queue.counts().active or self.attempts.tasks)

    async def run(self) -> None:
        """Run attempts for pending pods until cancelled, then wait for bindings to end."""
        self._connect_plugins()
        try:
            while True:
                try:
                    await self._try_pods()
                except Exception:  # an exception would end the process
                    log.exception("scheduling failed; retrying after a pause")
                    await asyncio.sleep(AFTER_FAILURE)
        finally:
            await self.attempts.finish(self.last_words)

    async def _try_pods(self) -> None:
        """Run scheduling attempts for at most `TURN` seconds; if no pod is ready, wait until a pod is ready."""
        turn_ends = self._clock.monotonic() + TURN
        while (queued := self.queue.pop()) is not None:
            if self.group_attempts is not None and isinstance(queued, QueuedPodGroup):
                await self.group_attempts.make(queued)
            else:
                await self.attempts.make(queued)
            if self._clock.monotonic() >= turn_ends:
                await asyncio.sleep(0)
                return
        await self._waiter.wait()


def _notify_queued(observers: Observers, queued: QueuedPod, queue: str, event: str) -> None:
    notify(observers, lambda one: one.on_queued(queued, queue, event))


def _join(policies: PolicySet, profiles: Mapping[str, Profile]) -> dict[str, Profile]:
    return {name: policies.join(profile) for name, profile in profiles.items()}


def _interests(profiles: Mapping[str, Profile], release: Release) -> dict[str, Interests]:
    return {
        name: Interests(
            profile.pre_enqueue,
            profile.hints,
            {plugin.name: plugin for plugin in profile.retry_controls},
            taint_updates_wake_all=release.taint_updates_wake_all,
        )
        for name, profile in profiles.items()
    }
