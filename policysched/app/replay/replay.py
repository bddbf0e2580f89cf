"""Replay of a record: repeats every decision and compares nodes, totals, reasons, victims and devices exactly."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from policysched.app.plugins.discovery import find_plugins
from policysched.app.recording import entries
from policysched.app.recording.entries import (
    Begin,
    Decided,
    DecidedPodGroup,
    RecordedGroupOutcome,
    RecordedOutcome,
    Searched,
)
from policysched.app.recording.file_format import END, BrokenRecordError, files_of, read_entries
from policysched.app.recording.recorder import group_outcome_of, outcome_of
from policysched.app.replay.replayed_state import ReplayedState
from policysched.app.replay.results import ReplayDifference, Replayed
from policysched.errors import UsageError
from policysched.framework.registry import PluginRegistry
from policysched.model.objects import AllocationResult, Pod, ResourceClaim
from policysched.plugins.dynamic_resources.pod_claims import has_claims
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.post_filter import FailedCycle, at_once, run_post_filters
from policysched.schedule.cycle.record import plugin_of_devices
from policysched.schedule.groups.dry_run import GroupDryRun, by_engine
from policysched.state.placed.pods import pod_id

log = logging.getLogger(__name__)

TELL_EVERY: Final = 64
Told = Decided | DecidedPodGroup | Searched | ResourceClaim | None
Progress = Callable[[int], None]
"""Callback that receives the number of processed decisions."""


class Walk:
    """Reads the entries of a record's files, applies changes to the state, and stops at each decision.

    Args:
        state: State to which entries are applied.
        found: Receives problems of the files.
    """

    def __init__(self, state: ReplayedState, found: Replayed) -> None:
        self.state, self.found = state, found
        self._number = 0
        """Number of the last decision."""
        self._begun: set[Path] = set()
        """Files whose snapshot was read."""
        self._members: dict[str, Pod] = {}
        """The pods of the last decided pod group, by identity."""

    def entries(self, given: Iterable[Path]) -> Iterator[Told]:
        """Apply the entries of all files to the state; yield each decision before the changes that result from it.

        An allocation of a claim is also yielded before it is in flight; for other changes None is yielded.

        Raises:
            UsageError: the first file is not a record of this version.
        """
        for path in [file for one in given for file in files_of(one)]:
            try:
                for entry in read_entries(path):
                    yield from self._entry(path, entry)
            except BrokenRecordError as error:
                self.found.remainder.append(str(error))
                self.found.damaged |= not error.cut
            except UsageError:
                raise
            except Exception as error:  # a record that was not written by a scheduler can cause any exception
                log.debug("%s: an entry after decision %d cannot be applied", path, self._number, exc_info=True)
                self.found.remainder.append(f"{path}: invalid entry after decision {self._number:,}: {error}")
                self.found.damaged = True

    def _entry(self, path: Path, entry: list[Any]) -> Iterator[Told]:
        name, *given = entry
        match name:
            case entries.BEGIN:
                self._begin(path, msgspec.convert(given[0], Begin))
                yield None
            case entries.DECIDED:
                told = msgspec.convert(given[0], Decided)
                told.pod = pod = self._pod(told.pod)
                self._number = told.number
                self.state.cluster.time.move(told.seconds)
                yield told
                self.state.decided_about(pod)
            case entries.GROUPED | entries.SEARCHED:
                yield self._grouped(given[0]) if name == entries.GROUPED else msgspec.convert(given[0], Searched)
            case entries.SWAP:
                self.state.swap(given[0], given[1])
                yield None
            case _ if name == END:
                if given[0]:
                    self.found.remainder.append(f"{path}: {given[0]:,} entries were dropped before its end")
            case _:
                if name != entries.TIME:
                    yield entries.read_claim(given[0]) if name == entries.ALLOCATED else None
                self._change(name, given)

    def _pod(self, given: Any) -> Pod:
        """Return the pod of a decision."""
        return self._members[given] if isinstance(given, str) else entries.read_pod(given)

    def _grouped(self, given: Any) -> DecidedPodGroup:
        """Decode a decision about a pod group with its pods, and set the time of the decision."""
        told = msgspec.convert(given, DecidedPodGroup)
        told.pods = [entries.read_pod(one) for one in told.pods]
        self._members = {pod_id(pod): pod for pod in told.pods}
        self.state.cluster.time.move(told.seconds)
        return told

    def _change(self, name: str, given: list[Any]) -> None:
        error = self.state.change(name, given)
        if error is not None:
            self.found.failures.append(f"{name}: {error!r}")

    def _begin(self, path: Path, given: Begin) -> None:
        is_start = given.why == entries.START and path.resolve() not in self._begun
        self._begun.add(path.resolve())
        self.found.runs += is_start or not self.found.runs
        missing = given.decisions - self._number if self._number and not is_start else 0
        if missing < 0:
            self.found.remainder.append(
                f"{path.name} starts with decision {given.decisions + 1:,}, which is already replayed"
            )
        elif missing or given.lost:
            self.found.remainder.append(
                f"incomplete after decision {self._number:,}: {missing:,} decisions missing before {path.name}"
                + (f", {given.lost:,} entries dropped" if given.lost else "")
            )
        self._number = given.decisions
        self.state.begin(given)


class _Comparing:
    """Repeats each decision of a record and compares the result with the recorded result."""

    def __init__(self, state: ReplayedState, found: Replayed) -> None:
        self._state, self._found = state, found
        self._open: tuple[Engine, Decision, int] | None = None
        """The last decision, if it selected no node, so that the record contains its PostFilter result next."""
        self._devices: tuple[int, str, dict[str, AllocationResult]] = 0, "", {}
        """Number of the last decision, the decided pod, and the allocations of the pod's claims by claim UID."""

    def look(self, told: Told) -> None:
        """Process the next entry of the record: repeat and compare a decision, or check a result that follows one."""
        match told:
            case ResourceClaim():
                self._open = None
                self._take_devices(told)
            case Decided():
                self._open = None
                self._decide(told)
            case DecidedPodGroup():
                self._open = None
                self._decide_group(told)
            case Searched():
                self._search(told)
            case None:
                self._open = None

    def _decide(self, told: Decided) -> None:
        found, pod = self._found, told.pod
        self._devices = 0, "", {}
        if told.extended:
            found.extended += 1
            return
        found.first = found.first or told.number
        found.last = told.number
        found.decisions += 1
        engine = self._state.engines.get(told.profile)
        if engine is None:
            unknown = f'no profile "{told.profile}" in the record'
            found.found([ReplayDifference(told.number, pod.key, "failed", told.outcome.node, unknown)])
            return
        found.plugins |= engine.profile.out_of_tree_cycle
        self._state.rng.use(told.draws)
        try:
            decision = engine.decide(pod, rows=told.rows)
        except Exception as error:  # the decision did not fail when it was recorded
            found.found([ReplayDifference(told.number, pod.key, "failed", told.outcome.node, repr(error))])
            return
        outcome = outcome_of(decision)
        found.placed += decision.row >= 0
        self._devices = told.number, pod.key, _devices_of(decision)
        if outcome != told.outcome:
            found.found(_differing(told.number, pod, told.outcome, outcome))
        if decision.row < 0 and not decision.failed:
            self._open = engine, decision, told.number

    def _decide_group(self, told: DecidedPodGroup) -> None:
        """Run the cycle of a pod group again, and compare the results."""
        engine = self._state.engines.get(told.profile)
        if told.outcome is None or engine is None or self._state.cluster.pod_groups is None:
            return
        self._found.groups += 1
        self._state.rng.use(told.draws)
        number, name = told.number + 1, f"pod group {told.group}"
        try:
            result = GroupDryRun(engine, told.pods, self._state.rng, by_engine).attempt()
        except Exception as error:  # the decision did not fail when it was recorded
            self._found.found([ReplayDifference(number, name, "failed", told.outcome.result, repr(error))])
            return
        outcome = RecordedGroupOutcome("", "", {}, {}, []) if result is None else group_outcome_of(result.verdict)
        self._found.found(
            ReplayDifference(number, name, field, str(getattr(told.outcome, field)), str(getattr(outcome, field)))
            for field in RecordedGroupOutcome.__struct_fields__
            if getattr(told.outcome, field) != getattr(outcome, field)
        )

    def _take_devices(self, claim: ResourceClaim) -> None:
        """Compare a claim's recorded allocation with the allocation of the repeated decision."""
        number, pod, devices = self._devices
        given, got = claim.status.allocation, devices.pop(claim.metadata.uid, None)
        if given is None or got is None:
            return
        self._found.claims += 1
        one, two = msgspec.json.encode(given).decode(), msgspec.json.encode(got).decode()
        if one != two:
            names = _names(given), _names(got)
            recorded, replayed = names if names[0] != names[1] else (one, two)
            self._found.found([ReplayDifference(number, pod, f"devices of {claim.key}", recorded, replayed)])

    def _search(self, told: Searched) -> None:
        if self._open is None:
            self._found.moved_on += 1
            return
        (engine, decision, number), self._open = self._open, None
        self._state.rng.use(told.draws)
        failed = FailedCycle(decision, self._state.rng, (), engine.profile.victim_guards)
        result = at_once(run_post_filters(engine.profile.post_filters, decision.pod, failed))
        self._found.searches += 1
        kept = decision.pod.status.nominated_node_name
        node = kept if result.nominated_node is None else result.nominated_node
        victims = [one.key for one in result.victims]
        both = (("nominated node", told.node, node), ("victims", told.victims, victims))
        self._found.found(
            ReplayDifference(number, decision.pod.key, what, str(one), str(two))
            for what, one, two in both
            if one != two
        )


def _devices_of(decision: Decision) -> dict[str, AllocationResult]:
    """Return the new allocations of a decision's claims, by UID."""
    plugin = plugin_of_devices(decision)
    if plugin is None or decision.row < 0 or not has_claims(decision.pod, decision.cluster):
        return {}
    taken = plugin.devices_on(decision.pod, decision.node, decision.cluster)
    return {claim.metadata.uid: got for claim, got in taken if claim.status.allocation is None}


def _names(allocation: AllocationResult) -> str:
    return ", ".join(f"{one.driver}/{one.pool}/{one.device}" for one in allocation.devices.results)


def _differing(
    number: int, pod: Pod, recorded: RecordedOutcome, replayed: RecordedOutcome
) -> Iterator[ReplayDifference]:
    for field in msgspec.structs.fields(RecordedOutcome):
        one, two = getattr(recorded, field.name), getattr(replayed, field.name)
        if one != two:
            what = "totals" if field.name == "digest" else field.name
            yield ReplayDifference(
                number, pod.key, what, *(v.hex() if isinstance(v, bytes) else str(v) for v in (one, two))
            )


def replay(
    files: Iterable[Path], *, plugins: PluginRegistry | None = None, progress: Progress = lambda _: None
) -> Replayed:
    """Repeat all decisions of a record and compare the results exactly with the recorded results.

    Args:
        files: Files, or folders of files, in the order in which they were written.
        plugins: Out-of-tree plugins that the configuration can enable.
        progress: Called with the number of processed decisions.

    Returns:
        The differences; after an interruption those found so far.

    Raises:
        UsageError: a file is not a record of this version, or its policies do not compile here.
    """
    found = Replayed()
    state = ReplayedState(find_plugins().registry if plugins is None else plugins)
    comparing = _Comparing(state, found)
    try:
        for told in Walk(state, found).entries(files):
            comparing.look(told)
            if not found.decisions % TELL_EVERY:
                progress(found.decisions)
    except KeyboardInterrupt:
        found.interrupted = True
    if not found.decisions and not found.extended and found.remainder:
        raise UsageError(found.remainder[0])
    return found
