"""What-if replay: the effect of other policies, another configuration or another Kubernetes minor on a record.

Each decision is repeated on the cluster of that time with the change in force. Pods that land on other nodes do not
affect later decisions. The last attempt of a pod is the one that is reported. Among equally good nodes a pod lands on
its recorded one, because a tie is no difference.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from policysched.app.configuration.profiles import configured_profiles
from policysched.app.configuration.reading import ConfigurationInput, load_configuration
from policysched.app.dry_run.policies import compile_alone, in_place
from policysched.app.object_names import refuse_unknown, without_kind
from policysched.app.plan.causes import cause
from policysched.app.plan.landing import effect_of, landing_of
from policysched.app.plan.reading import workload_of
from policysched.app.plan.results import Effect, Plan, PodEffect
from policysched.app.plugins.discovery import find_plugins
from policysched.app.recording import entries
from policysched.app.recording.entries import Decided
from policysched.app.replay.replay import TELL_EVERY, Progress, Walk
from policysched.app.replay.replayed_state import ReplayedState
from policysched.app.replay.results import Replayed
from policysched.errors import UsageError
from policysched.framework.profile import Profile
from policysched.framework.registry import PluginRegistry
from policysched.model.policy import KIND
from policysched.model.release import Release
from policysched.model.release_choice import AUTO
from policysched.reading.documents import of_kind
from policysched.rules.compile.policy import CompiledPolicy
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.cycle.engine import Engine

Object = Mapping[str, Any]


class _Side:
    """The engines with the change, on the cluster of the record at its current position.

    Args:
        state: The replayed state.
        tried: Policies to add or replace.
        without: Names of policies to delete.
        configured: Returns the profiles with the change for a release; None for the recorded profiles.
    """

    def __init__(
        self,
        state: ReplayedState,
        tried: Collection[CompiledPolicy],
        without: Collection[str],
        configured: Callable[[Release], Mapping[str, Profile]] | None,
    ) -> None:
        self._state, self._tried, self._without, self._configured = state, tried, without, configured
        self._engines: dict[str, Engine] = {}
        self._of: tuple[object, ...] = ()
        self.known: set[str] = set()
        """Names of all policies that were in force at some time."""

    def engine(self, name: str) -> Engine | None:
        """Return the engine of a profile with the change, at the current position of the record."""
        state = self._state
        now = (state.cluster, state.policies, state.profiles)
        if len(self._of) != len(now) or any(one is not two for one, two in zip(now, self._of, strict=True)):
            self._of = now
            self._make()
        return self._engines.get(name)

    def _make(self) -> None:
        state = self._state
        self.known |= {one.key for one in state.policies}
        coming = in_place(state.policies, self._tried, self._without)
        missing = [*entries.missing_annotations(state.annotations, coming)]
        if missing:
            raise UsageError(f"policies read annotations that are not in the record: {', '.join(missing)}")
        joined = PolicySet.of(coming)
        profiles = state.profiles if self._configured is None else self._configured(state.cluster.release)
        self._engines = {
            name: Engine(state.cluster, joined.join(profile), state.rng) for name, profile in profiles.items()
        }


def what_if(  # noqa: PLR0913 - a change may be in any of these
    files: Iterable[Path],
    *,
    policies: Iterable[Object] = (),
    without_policies: Collection[str] = (),
    config: ConfigurationInput | None = None,
    plugins: PluginRegistry | None = None,
    progress: Progress = lambda _: None,
    kube_version: str = AUTO,
) -> Plan:
    """Return the effects of a change on the decisions of a record.

    Args:
        files: Files of a record, or folders of them.
        policies: SchedulingPolicy objects to add or replace.
        without_policies: Names of policies to delete.
        config: The new KubeSchedulerConfiguration; default: the recorded one.
        plugins: Out-of-tree plugins that configurations can enable.
        progress: Called with the number of processed decisions.
        kube_version: The Kubernetes minor whose kube-scheduler decides; `auto` is the recorded one.

    Raises:
        UsageError: a file is not a record, the configuration is invalid, or a policy of the change does not compile or
            reads values that are not recorded.
    """
    without = [without_kind("policy", one) for one in without_policies]
    registry = find_plugins().registry if plugins is None else plugins
    tried = compile_alone(of_kind(one, KIND) for one in policies)
    state = ReplayedState(registry, kube_version)

    @cache
    def configured(release: Release) -> Mapping[str, Profile]:
        return configured_profiles(load_configuration(config or {}, release=release), registry)

    comparing = _WhatIf(state, _Side(state, tried, without, None if config is None else configured))
    interrupted = False
    try:
        comparing.run(files, progress)
    except KeyboardInterrupt:
        interrupted = True
    if not interrupted:
        comparing.check(without)
    return comparing.told(interrupted=interrupted)


class _WhatIf:
    """Repeats the decisions of a record with a change, and collects the effects of the change on pods."""

    def __init__(self, state: ReplayedState, side: _Side) -> None:
        self._found, self._state, self._side = Replayed(), state, side
        self._effects: dict[str, PodEffect | None] = {}
        self._failed: list[str] = []
        self._decisions = self._extended = 0

    def run(self, files: Iterable[Path], progress: Progress) -> None:
        """Repeat all decisions of the record with the change."""
        for told in Walk(self._state, self._found).entries(files):
            if isinstance(told, Decided):
                self._decide(told)
                if not self._decisions % TELL_EVERY:
                    progress(self._decisions)

    def _decide(self, told: Decided) -> None:
        self._decisions += 1
        self._extended += told.extended
        engine = None if told.extended else self._side.engine(told.profile)
        if engine is None:
            return
        try:
            self._effects[told.pod.key] = _effect(told, engine)
        except Exception as error:
            self._failed.append(f"{told.number:,} for pod {told.pod.key}: {error!r}")

    def check(self, without: Iterable[str]) -> None:
        """Check that the change applies to the record.

        Raises:
            UsageError: there is no decision, or a deleted policy was never in force.
        """
        if not self._decisions:
            raise UsageError(next(iter(self._found.remainder), "no decision in the record"))
        refuse_unknown("policy", sorted(without), self._side.known, "the record")

    def told(self, *, interrupted: bool) -> Plan:
        """Return the effects of the change as a plan."""
        order = list(Effect)
        changed = [one for one in self._effects.values() if one is not None]
        changed.sort(key=lambda one: (order.index(one.effect), one.pod))
        notes = [*self._found.remainder, *self._found.failed_changes]
        if self._failed:
            notes.append(f"decisions that fail with the change: {len(self._failed):,}, first: {self._failed[0]}")
        if self._extended:
            notes.append(f"{self._extended:,} of {self._decisions:,} decisions left out because extenders were called")
        return Plan(len(self._effects), tuple(changed), notes=tuple(notes), interrupted=interrupted)


def _effect(told: Decided, engine: Engine) -> PodEffect | None:
    """Repeat a decision with the change; return the effect of the change on the pod, or None for no effect."""
    before, pod = told.outcome, told.pod
    decision = engine.decide(pod, rows=told.rows)
    after = landing_of(decision, before.node)
    effect = effect_of(before.node, after.node)
    if effect is None:
        return None
    by = cause(decision, before.node, after.node)
    return PodEffect(pod.key, workload_of(pod), effect, before.node, after.node, after.ties, after.reason, by=by)
