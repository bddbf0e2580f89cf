"""`Engine`, the scheduling cycle as a function: finds the feasible nodes of a pod and chooses the best.

A plain synchronous function over the columns: nothing changes while it runs. The running scheduler, dry-run and the
benchmarks call the same one. It draws among the best nodes with the random source it was given and never places
anything itself: assuming is the caller's step.

Source: pkg/scheduler/schedule_one.go (schedulePod, findNodesThatFitPod, selectHost).
"""

from __future__ import annotations

import logging
import random
from collections.abc import Hashable
from copy import copy
from operator import attrgetter
from weakref import ref

import numpy as np
from cachetools import LRUCache

from policysched.framework.profile import Profile
from policysched.model.objects import Pod
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.evaluation import Evaluation
from policysched.schedule.cycle.nominated_pods import with_nominated_pods
from policysched.schedule.cycle.per_pod_results import (
    with_out_of_tree_filters,
    with_out_of_tree_scores,
    with_per_pod_results,
)
from policysched.schedule.cycle.pod_classes import class_key
from policysched.schedule.cycle.results.carried_over import EarlierResults
from policysched.schedule.timing import FILTERED, PREPARED, SCORED, CycleTimes, Timing
from policysched.state.cluster import Cluster

CACHE_BYTES = 512 * 1024 * 1024
"""How much memory the evaluations of pod classes may take, with what they alone hold. Units: bytes."""
CACHE_NODES = 1 << 15
"""Up to how many nodes that is so; evaluations are as large as their arrays: of more nodes they may take more."""
MOST_CACHES = 4
"""How many times as much it is at most."""
LARGEST = 4
"""A class that takes more than one in so many bytes of that is evaluated for each of its pods, and not kept."""
BYTES_PER_KEY_BYTE = 4
"""What a pod takes, and what was made of its parts, for each byte of its class's key."""


FORGOTTEN = 20_000
"""With how many weights of their counters no further ones are given up at once."""
GIVEN_UP = 64
"""How many classes are given up at once where there are too many counters of placed pods."""
MOST_EARLIER = 4
"""Of how many earlier profiles evaluations are kept, to go on with what they found. Each keeps the results of its
policies' rules, too; of profiles that differ in weights alone one stands for all, because evaluations know the weights
that they were added up with."""


log = logging.getLogger(__name__)


class Engine:
    """Decides for the pods of one profile over one cluster."""

    times: CycleTimes | None = None
    """What the extension points of the last decision took, None where nobody measures."""

    def __init__(self, cluster: Cluster, profile: Profile, rng: random.Random, timing: Timing | None = None) -> None:
        if timing is not None:
            self.times = CycleTimes(timing)
        self.cluster = cluster
        self.profile = profile
        self._rng = rng
        self._nodes = CACHE_NODES
        """For so many nodes evaluations may take memory."""
        self._capacity = cluster.nodes.columns.capacity
        self._evaluations = _no_evaluations(self._nodes)
        self._earlier: list[ref[Profile]] = []
        """The profiles of evaluations that are not of the one in force, the newest first; evaluations hold them."""
        if profile.handle is not None:
            profile.handle.connect(cluster)

    def use(self, profile: Profile) -> None:
        """Decide with another set of plugins; results of a pod class are carried over at its next pod."""
        before = [one for earlier in self._earlier if (one := earlier()) is not None]
        used = {id(one.profile) for one in self._evaluations.values()}
        kept: list[Profile] = []
        stand_ins = {id(profile): profile}
        for one in (self.profile, *before):
            if id(one) not in used or one is profile:
                continue
            same = next((other for other in kept if one.has_plugins_of(other)), None)
            if same is None and len(kept) < MOST_EARLIER:
                kept.append(one)
                same = one
            if same is not None:
                stand_ins[id(one)] = same
        self.profile, self._earlier = profile, [ref(one) for one in kept]
        for key in [key for key, one in self._evaluations.items() if id(one.profile) not in stand_ins]:
            del self._evaluations[key]
        for evaluation in self._evaluations.values():
            evaluation.profile = stand_ins[id(evaluation.profile)]

    def forget(self) -> None:
        """Forget what was found out for pod classes."""
        self._nodes = nodes_allowed_for(self.cluster.nodes.count, self._nodes)
        self._capacity = self.cluster.nodes.columns.capacity
        self._evaluations, self._earlier = _no_evaluations(self._nodes), []

    def _follow_rows(self) -> None:
        """Forget everything where rows came or were given back, such as of pods whose nodes never were."""
        if self._capacity != self.cluster.nodes.columns.capacity:
            self.forget()

    def beside(self, rng: random.Random) -> Engine:
        """Return another engine of the same plugins over the same cluster, which keeps and draws for itself alone.

        Nothing that it decides shows in what this one keeps, and what plugins reach the scheduler with stays as it is.
        """
        made = copy(self)
        made._rng, made.times = rng, None
        made.forget()
        return made

    def key(self, pod: Pod) -> Hashable:
        """Return the key of the pod's class at this time."""
        return self._key_under(self.profile, pod)

    def _key_under(self, profile: Profile, pod: Pod) -> Hashable:
        extra = profile.extra_key
        key = class_key(pod, None if extra is None else extra(pod, self.cluster))
        shared = profile.shared_keys(pod, self.cluster)
        return (key, shared) if shared else key

    def evaluate(self, pod: Pod, key: Hashable = None) -> Evaluation:
        """Return the up-to-date evaluation of the pod's class."""
        times = self.times
        if times is not None:
            times.begin()
        self.cluster.strings.tidy()
        self._follow_rows()
        if self.cluster.counters.crowded:
            self.relieve()
        if key is None or pod.spec.resource_claims:  # what claims have in common is so for a moment only
            key = self.key(pod)
        generations = self._generations()
        evaluation = self._evaluations.get(key)
        if evaluation is not None and evaluation.profile is not self.profile:
            evaluation.reweigh(self.profile)
        if (
            evaluation is None
            or evaluation.profile is not self.profile
            or evaluation.generations != generations
            or evaluation.is_outdated
        ):
            earlier = self._earlier_results(pod, key)
            evaluation = Evaluation(self.cluster, self.profile, pod, generations, times, earlier)
            self._keep(key, evaluation)
        else:
            if times is not None:
                times.lap(PREPARED)
            self._refresh(key, evaluation)
        return evaluation

    def _earlier_results(self, pod: Pod, key: Hashable) -> EarlierResults | None:
        """Return what was found for the pod's class under earlier policies, None where nothing can be gone on with.

        Classes may have been told apart otherwise then; so the pod is looked for under the key that it had.
        """
        for one in self._earlier:
            profile = one()
            if profile is None:
                continue
            own = key if profile.extra_key == self.profile.extra_key else self._key_under(profile, pod)
            found = self._evaluations.get(own)
            if found is not None and found.profile is profile:
                del self._evaluations[own]
                return found.handed_over() if found.generations == self._generations(profile) else None
        return None

    def _generations(self, profile: Profile | None = None) -> Hashable:
        return (profile or self.profile).generations(self.cluster), self.cluster.nodes.columns.capacity

    @property
    def kept_bytes(self) -> int:
        """The memory that the evaluations took when they were last measured. Units: bytes."""
        return int(self._evaluations.currsize)

    def decide(self, pod: Pod, key: Hashable = None) -> Decision:
        """Run one scheduling cycle for a pod.

        Cost: a few operations over all rows, plus what the plugins ask for rows that changed.
        """
        return self.choose(pod, self.find(pod, key))

    def find(self, pod: Pod, key: Hashable = None) -> Evaluation:
        """Return which nodes every filter lets pass.

        Before one is chosen, others may lay answers of theirs over it: see `laid_over` in `per_pod_results`.
        """
        of_class = evaluation = self.evaluate(pod, key)
        if (plugins := self.profile.per_pod_plugins(pod, self.cluster)) is not None:
            evaluation = with_per_pod_results(evaluation, self.profile, pod, plugins)
        evaluation = self._with_nominations(pod, evaluation)
        if evaluation is not of_class and self.times is not None:
            self.times.lap(FILTERED)
        return evaluation

    def _with_nominations(self, pod: Pod, evaluation: Evaluation) -> Evaluation:
        """Return which nodes are left beside nominated pods, and by the answers of out-of-tree filters."""
        if evaluation.rejection is not None:
            return evaluation
        nominations = self.cluster.nominations
        if nominations and (nominated := nominations.yielded_to(pod, self.cluster.nodes.row_of)):
            evaluation = evaluation.copy()
            evaluation.nominated = nominated
        part = evaluation.out_of_tree
        if part is not None and (row := self._row_of_nomination(pod)) is not None:
            part.nominated_status = evaluation.trial(row).verdict()
            part.nominated_row = row if part.nominated_status is None else None
            # who is asked afterwards may still turn the nominated node down
            if part.nominated_row is not None and not self.profile.extending(pod):
                return evaluation
        evaluation = with_nominated_pods(evaluation) if evaluation.nominated else evaluation
        return evaluation if part is None else with_out_of_tree_filters(evaluation, part)

    def choose(self, pod: Pod, evaluation: Evaluation) -> Decision:
        """Choose among the nodes that were found, before the cluster changes."""
        if self.cluster.nodes.count == 0:
            return Decision(self.cluster, pod, evaluation)
        if evaluation.rejection is not None:
            return Decision(self.cluster, pod, evaluation, rejection=evaluation.rejection)
        nominated = self.nominated_row(pod, evaluation) if pod.status.nominated_node_name else None
        if nominated is not None:
            tied = np.array([nominated])
            return Decision(self.cluster, pod, evaluation, row=nominated, tied=tied, feasible_count=1, nominated=True)
        if evaluation.filter_failure is not None or not evaluation.feasible_count:
            return Decision(self.cluster, pod, evaluation, failure=evaluation.filter_failure)
        return self._choose_best(pod, evaluation)

    def _choose_best(self, pod: Pod, evaluation: Evaluation) -> Decision:
        """Draw among the best of the feasible nodes."""
        feasible_count, part = evaluation.feasible_count, evaluation.out_of_tree
        if part is not None and feasible_count > 1 and evaluation.score_failure is None:
            evaluation = with_out_of_tree_scores(evaluation, part)
        tied = evaluation.best()
        if self.times is not None:
            self.times.lap(SCORED)
        if feasible_count > 1 and (failure := evaluation.failed_score()) is not None:
            return Decision(self.cluster, pod, evaluation, failure=failure)
        chosen = int(tied[0 if tied.size == 1 else int(self._rng.random() * tied.size)])
        return Decision(self.cluster, pod, evaluation, row=chosen, tied=tied, feasible_count=feasible_count)

    def _keep(self, key: Hashable, evaluation: Evaluation) -> None:
        """Keep an evaluation in place of the one of its class, and give up those asked for longest ago."""
        if self._nodes != nodes_allowed_for(self.cluster.nodes.count, self._nodes):
            self.forget()
        evaluation.measure()
        evaluation.nbytes += BYTES_PER_KEY_BYTE * _length(key)
        self._evaluations.pop(key, None)
        if LARGEST * evaluation.nbytes <= self._evaluations.maxsize:
            self._evaluations[key] = evaluation

    def relieve(self) -> None:
        """Give up the classes asked for longest ago, because what they count of placed pods holds up placing each."""
        counters = self.cluster.counters
        counters.crowded, before = False, counters.forgotten
        for _ in range(min(GIVEN_UP, len(self._evaluations))):
            self._evaluations.popitem()
            if counters.forgotten - before >= FORGOTTEN:
                break

    def _refresh(self, key: Hashable, evaluation: Evaluation) -> None:
        try:
            evaluation.refresh()
        except Exception:
            # It is half up to date, and the next pod of its class must not find it.
            del self._evaluations[key]
            raise
        if evaluation.to_be_measured:
            self._keep(key, evaluation)

    def nominated_row(self, pod: Pod, evaluation: Evaluation) -> int | None:
        """Return the row of the pod's nominated node where every filter lets it pass, None otherwise."""
        part = evaluation.out_of_tree
        row = self._row_of_nomination(pod) if part is None else part.nominated_row
        if row is None or evaluation.is_rejected_outside(row):
            return None
        return row if part is not None or evaluation.trial(row).verdict() is None else None

    def _row_of_nomination(self, pod: Pod) -> int | None:
        name = pod.status.nominated_node_name
        row = self.cluster.nodes.row_of.get(name) if name else None
        return row if row is not None and self.cluster.nodes.present.data[row] else None


def nodes_allowed_for(nodes: int, before: int) -> int:
    """Return for how many nodes evaluations may take memory: a power of two, that only far fewer nodes make smaller.

    Args:
        nodes: How many there are; rows of pods whose nodes never were do not count.
        before: What was returned before.
    """
    if nodes <= before < 4 * nodes:
        return before
    return max(CACHE_NODES, min(1 << max(nodes - 1, 0).bit_length(), MOST_CACHES * CACHE_NODES))


def _no_evaluations(nodes: int) -> LRUCache[Hashable, Evaluation]:
    return LRUCache(CACHE_BYTES * nodes // CACHE_NODES, getsizeof=attrgetter("nbytes"))


def _length(key: Hashable) -> int:
    """Return the length of a class's key in bytes, without what policies add."""
    while isinstance(key, tuple):
        key = key[0]
    return len(key) if isinstance(key, bytes) else 0
