"""Dry-runs for the HTTPS port, in the scheduler's event loop: `LiveDryRuns`.

`LiveDryRuns` selects the profile, and adds the policies that do not apply to the decision record.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from http import HTTPStatus

from msgspec.structs import replace

from policysched.app.running.extenders import RunningExtenders
from policysched.app.serving.dry_run.interface import DryRunPod, LiveDecision
from policysched.app.serving.refused import RefusedError
from policysched.errors import UsageError
from policysched.framework.profile import Profile
from policysched.model.objects import Node, Pod
from policysched.model.policy import PolicyKey
from policysched.rules.policy_set.not_applied import not_applied, not_compiled
from policysched.schedule.cycle.node_templates import TemplateEvaluator
from policysched.schedule.cycle.record import Record
from policysched.schedule.reload import Reloader
from policysched.schedule.scheduler import Scheduler
from policysched.state.placed.pods import pod_id
from policysched.state.pod_groups import group_key

AGAIN = {"Retry-After": "5"}


class LiveDryRuns:
    """Decides about pods that do not exist in the cluster, on the live state.

    Args:
        scheduler: The scheduler.
        reloader: Source of the policies.
        extenders: Extenders that are called for the pod.
        problem: Returns why no dry-run can be evaluated yet; empty if dry-runs can be evaluated.
        leads: Returns whether this process is the leader.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        reloader: Reloader,
        extenders: RunningExtenders,
        problem: Callable[[], str],
        leads: Callable[[], bool],
    ) -> None:
        self._scheduler, self._reloader, self._extenders = scheduler, reloader, extenders
        self._problem, self._leads = problem, leads

    async def decide(self, dry_run: DryRunPod) -> LiveDecision:
        """Return where a pod, or the pods of its group, would be placed now, and why.

        Raises:
            RefusedError: 422 if no profile matches, or a pod of this name has a node; 503 before everything is listed.
        """
        problem = self._problem()
        if problem:
            raise RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, problem, AGAIN)
        profile = self._profile(dry_run.profile)
        pod, *others = (_under(profile, one) for one in (dry_run.pod, *dry_run.others))
        try:
            record = await self._record(dry_run, pod, others)
        except UsageError as error:
            raise RefusedError(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from error
        reasons = await self._not_applied(pod, profile)
        return LiveDecision(record | ({"notApplied": dict(sorted(reasons.items()))} if reasons else {}), self._leads())

    async def _record(self, dry_run: DryRunPod, pod: Pod, others: Sequence[Pod]) -> Record:
        """Return the decision record of a pod, or of its pod group."""
        rng, policies = random.Random(dry_run.seed), self._reloader.in_force  # noqa: S311 - a draw among equals
        if self._scheduler.cluster.pod_groups is not None and group_key(pod):
            return self._scheduler.dry_run_group((pod, *others), dry_run.group, policies, rng)
        with self._extenders.providing(pod_id(pod), dry_run.text):
            record = await self._scheduler.dry_run(pod, policies, rng)
        if dry_run.templates:
            evaluator = self._scheduler.template_evaluator(pod, policies, rng)
            record["nodeTemplates"] = await _on_templates(evaluator, dry_run.templates)
        return record

    def _profile(self, name: str) -> Profile:
        profiles = self._scheduler.profiles_in_force()
        if name in profiles:
            return profiles[name]
        if not name and len(profiles) == 1:
            return next(iter(profiles.values()))
        names = ", ".join(sorted(profiles))
        problem = f'no profile is named "{name:.253}"' if name else "the pod has no schedulerName"
        raise RefusedError(HTTPStatus.UNPROCESSABLE_ENTITY, f"{problem}; choose one of {names} with profile=")

    async def _not_applied(self, pod: Pod, profile: Profile) -> dict[PolicyKey, str]:
        """Return the policies that do not apply to the pod, with reasons, yielding to the loop between policies."""
        reasons: dict[PolicyKey, str] = {}
        store = self._reloader.store
        for key in sorted(store.listed()):
            entry = store.get(key)
            if entry is None:
                continue
            if entry.active is not None:
                reasons |= not_applied([entry.active], pod, self._scheduler.cluster, profile)
            elif entry.result.errors:
                reasons[key] = not_compiled(entry.result.diagnostics)
            await asyncio.sleep(0)
        return reasons


async def _on_templates(evaluator: TemplateEvaluator, templates: Sequence[Node]) -> Record:
    """Evaluate a pod on node templates, yielding to the loop between templates."""
    found: Record = {}
    for template in templates:
        await asyncio.sleep(0)
        found[template.metadata.name] = evaluator.evaluate(template)
    return found


def _under(profile: Profile, pod: Pod) -> Pod:
    """Return a pod with the scheduler name of a profile."""
    return replace(pod, spec=replace(pod.spec, scheduler_name=profile.scheduler_name))
