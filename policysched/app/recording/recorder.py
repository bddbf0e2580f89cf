"""Observer that records a scheduler's decisions and the changes of its cluster: `Recorder`.

On the event loop, an entry needs a few references and, for a decision, a digest of the totals. A thread encodes and
writes. Objects are immutable, so they can wait in a queue.
"""

from __future__ import annotations

import hashlib
import logging
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from policysched.app.recording import entries
from policysched.app.recording.entries import (
    Begin,
    Decided,
    DecidedPodGroup,
    RecordedGroupOutcome,
    RecordedOutcome,
    Searched,
)
from policysched.app.recording.recorded_cluster import RecordedCluster
from policysched.app.recording.writer import RecordWriter
from policysched.framework import Mask, MetricAnswer, PostFilterResult
from policysched.framework.profile import Profile
from policysched.model.objects import Node, Pod
from policysched.model.release import DEFAULT, Release
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.evaluation import Evaluation
from policysched.schedule.cycle.results.rejections import ABSENT, FEASIBLE
from policysched.schedule.observer import GroupVerdict, Observer
from policysched.schedule.queue.queued_pod import QueuedPod
from policysched.schedule.queue.queued_pod_group import QueuedPodGroup

log = logging.getLogger(__name__)
DIGEST_BYTES: Final = 8


class RecordedRandom(random.Random):
    """A random source that stores each random number it returns, for the record."""

    def __init__(self) -> None:
        super().__init__()
        self.draws: list[float | int] = []

    def random(self) -> float:
        """Return a random number from 0 to below 1."""
        made = super().random()
        self.draws.append(made)
        return made

    def getrandbits(self, k: int, /) -> int:
        """Return a random integer of `k` bits."""
        made = super().getrandbits(k)
        self.draws.append(made)
        return made


def outcome_of(decision: Decision) -> RecordedOutcome:
    """Return the result of a decision; called before the cluster changes."""
    text = ""
    if decision.row < 0:
        text = decision.error() if decision.failed else decision.fit_error()
    return RecordedOutcome(
        decision.node, decision.nominated, decision.feasible_count, int(decision.tied.size), text, _digest(decision)
    )


def group_outcome_of(verdict: GroupVerdict) -> RecordedGroupOutcome:
    """Return the result of a decision about a pod group."""
    victims = sorted(one.key for one in verdict.victims)
    return RecordedGroupOutcome(
        verdict.result.value, verdict.message, dict(verdict.nodes), dict(verdict.nominated), victims
    )


def _digest(decision: Decision) -> bytes:
    """Return a digest of the first rejecting filter of each infeasible node and the total of each feasible node."""
    evaluation, size = decision.evaluation, decision.cluster.nodes.size
    made = hashlib.sha256()  # sha256, for which processors have instructions
    if decision.rejection is None and evaluation.first.size:
        first, everywhere = evaluation.first[:size], evaluation.feasible_count == size
        numbers = [FEASIBLE] if everywhere else (np.bincount(first - ABSENT).nonzero()[0] + ABSENT).tolist()
        for number in numbers:
            for name, rows in _rejected(evaluation, first, number):
                made.update(name)
                made.update(np.packbits(rows).tobytes())
        if decision.row >= 0 and not decision.nominated:
            for tier in evaluation.tiers:
                ranking = evaluation.ranking(tier)
                totals = ranking if everywhere else ranking[first == FEASIBLE]  # its width depends on the weights
                made.update(totals.astype(totals.dtype.newbyteorder("<"), copy=False).tobytes())
    return made.digest()[:DIGEST_BYTES]


def _rejected(evaluation: Evaluation, first: NDArray[np.int16], number: int) -> Iterator[tuple[bytes, Mask]]:
    """Yield the filter with a number, or each of its policies, with the nodes that it is the first to reject.

    The numbers of filters are not recorded, because they depend on which filters apply.
    """
    rows = first == number
    if number <= FEASIBLE:
        yield b"?" if number == ABSENT else b"", rows
        return
    results = evaluation.filter_at(number)
    if results.block is None:
        yield results.plugin_name.encode(), rows
        return
    codes = np.where(rows, results.codes[: rows.size], 0)
    for part in results.parts():
        own = rows & (codes == part.codes[: rows.size])
        if own.any():
            yield part.plugin.name.encode(), own


class Recorder(Observer):
    """Records the decisions of one scheduler and the changes of its cluster.

    Attributes:
        cluster: The cluster for the scheduler.
        rng: The random source for the scheduler.
        configuration: The configuration in force, as a dict that decodes to the same configuration.
        decisions: Number of decisions.

    Args:
        writer: Writes the entries.
        configuration: The configuration at the start.
        profiles: The profiles at the start, without policies.
        release: The Kubernetes release that decisions follow.
    """

    def __init__(
        self,
        writer: RecordWriter,
        configuration: dict[str, Any],
        profiles: Mapping[str, Profile],
        release: Release = DEFAULT,
    ) -> None:
        self.cluster = RecordedCluster(self._changed, release)
        self.rng = RecordedRandom()
        self.configuration = configuration
        self._profiles = dict(profiles)
        self._policies = PolicySet()
        self._annotations = self._annotations_read()
        """The annotations that the current file keeps; None if it keeps all."""
        self._writer = writer
        self._others: dict[tuple[str, str, str], Any] = {}
        """The last version of each object other than nodes and pods."""
        self._seconds = 0.0
        self.decisions = 0
        self._last: Pod | None = None
        """The pod of the last decision."""
        self._victims: PostFilterResult | None = None
        self._searching = ""
        """Identity of the pod for which PostFilter runs."""
        self._group: _GroupCycle | None = None
        """The current cycle of a pod group; None outside of such a cycle."""
        self._snapshot(entries.START)

    def close(self) -> None:
        """Write waiting entries and the end of the record."""
        self._writer.close()

    def on_swap(self, profiles: Mapping[str, Profile], policies: PolicySet) -> None:
        """Record the configuration and policies that are in force from now on."""
        self._policies, self._profiles = policies, {**self._profiles, **profiles}
        read, kept = self._annotations_read(), self._annotations
        if kept is not None and (read is None or not read <= kept):
            self._snapshot("policies read other annotations")
            return
        configuration = self.configuration
        self._put(entries.SWAP, lambda: [entries.SWAP, configuration, entries.written_policies(policies)])

    def _annotations_read(self) -> frozenset[str] | None:
        """Return the annotations that decisions read now; None if they can read any annotation."""
        return entries.annotations_read((one.policy for one in self._policies.active), self._profiles.values())

    def on_decision(self, queued: QueuedPod, decision: Decision) -> None:
        """Record a decision."""
        try:
            self._record_decision(queued, decision)
        except Exception:  # other observers must run; the record continues after a gap
            log.exception("record: cannot record a decision")
            self._writer.skip()

    def _record_decision(self, queued: QueuedPod, decision: Decision) -> None:
        self._begin_file_if_due()
        self._record_time()
        self.decisions += 1
        self._last = pod = queued.pod
        extended = bool(self._profiles[queued.profile].extending(pod))
        drawn = self.rng.draws[-1:] if decision.tied.size > 1 else []
        draws = [*self.rng.draws]
        self.rng.draws.clear()
        searches = self._group is None and decision.row < 0 and not decision.failed and not extended
        self._searching = queued.identity if searches else ""
        self._victims = None
        rows = decision.evaluation.rows
        limit = None if rows is None else rows.tolist()
        seconds, outcome = self.cluster.time.seconds, outcome_of(decision)
        entry = Decided(self.decisions, queued.profile, pod, seconds, drawn, extended, outcome, limit)
        if self._group is not None and self._group.adds(queued, draws, extended=extended):
            entry.pod = queued.identity
            self._put(entries.DECIDED, lambda: [entries.DECIDED, entry])
        else:
            self._put(entries.DECIDED, partial(_decided, entry, self._annotations))

    def on_group_cycle(self, queued: QueuedPodGroup, members: Sequence[QueuedPod]) -> None:
        """Begin to hold back the entries of a pod group's cycle; the entry about the group precedes them."""
        self._begin_file_if_due()
        self._record_time()
        self.rng.draws.clear()
        self._group = _GroupCycle(queued.key, members, self.decisions, self.cluster.time.seconds)

    def on_group_decision(self, verdict: GroupVerdict | None) -> None:
        """Record the decision about a pod group, then the entries of its cycle."""
        cycle, self._group = self._group, None
        if cycle is None:
            return
        entry, kept = cycle.entry(verdict, self.rng.draws), self._annotations
        self.rng.draws.clear()
        self._put(entries.GROUPED, partial(_grouped, entry, kept))
        for name, made in cycle.held:
            self._put(name, made)

    def on_preemption(self, queued: QueuedPod, result: PostFilterResult) -> None:
        """Keep the victims of a preemption until its PostFilter ends."""
        if queued.identity == self._searching:
            self._victims = result

    def _changed(self, name: str, *given: Any) -> None:
        """Record a change before the cluster makes the change; errors never stop the scheduler."""
        try:
            self._record_change(name, *given)
        except Exception:
            log.exception("record: cannot record a change of the cluster")
            self._writer.skip()

    def _record_change(self, name: str, *given: Any) -> None:
        self._begin_file_if_due()
        self._record_time()
        kept = self._annotations
        match name:
            case "take" | "drop" | "reserve" | "unreserve":
                self._remember(name, given[0])
                self._put(name, lambda: [name, entries.written(given[0], kept)])
            case entries.ASSUMED | entries.ALLOCATED:
                self._put(name, lambda: [name, entries.written(given[0], kept)])
            case "assume" if given[0] is self._last:
                self._put(entries.PLACED, lambda: [entries.PLACED, given[1]])
            case "assume" | "nominate" | "renominate" | entries.WAITING:
                if name == "nominate":
                    self._search_ended(*given)
                self._put(name, lambda: [name, entries.written(given[0], kept)[1], *given[1:]])
            case "answer":
                self._put(name, lambda: [name, entries.written_answer(given[0])])
            case "keep":
                keys = [list(one) for one in given[0]]
                self._put(name, lambda: [name, keys])
            case _:
                self._put(name, lambda: [name, *given])

    def _search_ended(self, pod: Pod, node: str) -> None:
        """Record the result of PostFilter at the end of the pod's attempt."""
        if not self._searching or self._last is None or pod.metadata.uid != self._last.metadata.uid:
            return
        victims = [] if self._victims is None else [one.key for one in self._victims.victims]
        entry = Searched(node, victims, [*self.rng.draws])
        self.rng.draws.clear()
        self._searching = ""
        self._put(entries.SEARCHED, lambda: [entries.SEARCHED, entry])

    def _remember(self, name: str, obj: Any) -> None:
        if isinstance(obj, Node | Pod):
            return
        metadata = obj.metadata
        key = (entries.kind_name(obj), metadata.namespace, metadata.name)
        if name == "take":
            self._others[key] = obj
        elif name == "drop":
            self._others.pop(key, None)

    def _record_time(self) -> None:
        seconds = self.cluster.time.seconds
        if seconds != self._seconds:
            self._seconds = seconds
            self._put(entries.TIME, lambda: [entries.TIME, seconds])

    def _put(self, name: str, entry: Any) -> None:
        if self._group is None:
            self._writer.put(name, entry)
        else:
            self._group.held.append((name, entry))

    def _begin_file_if_due(self) -> None:
        if self._group is None and self._writer.needs_snapshot:
            lost = self._writer.lost
            self._snapshot("a gap" if lost else "the file before was full", lost)

    def _snapshot(self, why: str, lost: int = 0) -> None:
        """Begin a file with a snapshot of the cluster; the writer's thread encodes the objects later."""
        self._annotations = kept = self._annotations_read()
        cluster, names = self.cluster, self.cluster.nodes.names
        self._seconds, self._searching, self._last = cluster.time.seconds, "", None
        nodes = [one for one in cluster.nodes.nodes if one is not None]
        reserved = cluster.reserved()
        others = [*self._others.values()]
        placed = [(one.pod, one.row if one.assumed else -1) for one in cluster.pods.by_row()]
        nominated = cluster.nominations.listed()
        answers: list[MetricAnswer] = cluster.metrics.answers()
        assumed, in_flight = cluster.resource_claims.assumed(), cluster.resource_claims.pending()
        rows, policies, configuration = names[: cluster.nodes.size], self._policies, self.configuration
        seconds, decisions, waiting = self._seconds, self.decisions, cluster.waiting_members()

        def make() -> list[Any]:
            return [entries.BEGIN, Begin(
                version("policysched"), why, lost, decisions, seconds, configuration,
                entries.written_policies(policies), None if kept is None else sorted(kept), rows,
                [entries.written(one, kept) for one in (*others, *nodes)],
                [entries.written(one, kept) for one in reserved],
                [[entries.written(pod, kept)[1], row] for pod, row in placed],
                [[entries.written(one.pod, kept)[1], one.node] for one in nominated],
                [entries.written_answer(one) for one in answers],
                [entries.written(one, kept) for one in assumed],
                [entries.written(one, kept) for one in in_flight],
                cluster.release.minor, entries.gates_of(cluster.release),
                [entries.written(one, kept)[1] for one in waiting],
            )]  # fmt: skip

        self._put(entries.BEGIN, make)


@dataclass(slots=True)
class _GroupCycle:
    """The current cycle of a pod group, with the entries that are held back until the group is decided."""

    key: str
    members: Sequence[QueuedPod]
    decisions: int
    """Number of decisions before the cycle."""
    seconds: float
    held: list[tuple[str, Any]] = field(default_factory=list)
    draws: list[float | int] = field(default_factory=list)
    """The random numbers drawn in the decisions about members."""
    is_extended: bool = False
    """Whether extenders were called."""

    def adds(self, queued: QueuedPod, draws: Sequence[float | int], *, extended: bool) -> bool:
        """Add a decision to the cycle; return whether the decided pod is a member of the group."""
        self.is_extended |= extended
        self.draws += draws
        return any(one is queued for one in self.members)

    def entry(self, verdict: GroupVerdict | None, draws: Sequence[float | int]) -> DecidedPodGroup:
        """Return the entry about the group, with pods that are encoded later.

        Args:
            verdict: The decision; None if the cycle failed.
            draws: The draws after the last decision.
        """
        outcome = None if verdict is None or self.is_extended else group_outcome_of(verdict)
        pods, profile = [one.pod for one in self.members], self.members[0].profile
        return DecidedPodGroup(self.decisions, profile, self.key, pods, self.seconds, [*self.draws, *draws], outcome)


def _grouped(entry: DecidedPodGroup, kept: frozenset[str] | None) -> list[Any]:
    entry.pods = [entries.written(one, kept)[1] for one in entry.pods]
    return [entries.GROUPED, entry]


def _decided(entry: Decided, kept: frozenset[str] | None) -> list[Any]:
    entry.pod = entries.written(entry.pod, kept)[1]
    return [entries.DECIDED, entry]
