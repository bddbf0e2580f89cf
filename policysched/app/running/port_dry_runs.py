"""Dry-runs for the HTTPS port, in the scheduler's loop: picks the profile, and adds the policies that do not apply."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from http import HTTPStatus

from msgspec.structs import replace

from policysched.app.running.extenders import RunningExtenders
from policysched.app.serving.answers import RefusedError
from policysched.app.serving.dry_run.interface import AskedPod, LiveDecision
from policysched.errors import UsageError
from policysched.framework.profile import Profile
from policysched.model.objects import Pod
from policysched.model.policy import PolicyKey
from policysched.rules.policy_set.not_applied import not_applied, not_compiled
from policysched.schedule.reload import Reloader
from policysched.schedule.scheduler import Scheduler
from policysched.state.placed.pods import pod_id

AGAIN = {"Retry-After": "5"}


class LiveDryRuns:
    """Decides about pods that nobody created, against the live state.

    Args:
        scheduler: The scheduler.
        reloader: The policies.
        extenders: Those that are told of the pod.
        problem: Says what is not listed or not in force yet; empty where all is.
        leads: Whether this process schedules.
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

    async def decide(self, asked: AskedPod) -> LiveDecision:
        """Say where a pod would go now, and why.

        Raises:
            RefusedError: 422 where no profile is meant or a pod of its name is on a node, 503 before all is listed.
        """
        problem = self._problem()
        if problem:
            raise RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, problem, AGAIN)
        profile = self._profile(asked.profile)
        pod = replace(asked.pod, spec=replace(asked.pod.spec, scheduler_name=profile.scheduler_name))
        rng, policies = random.Random(asked.seed), self._reloader.in_force  # noqa: S311 - a draw among equals
        with self._extenders.telling_of(pod_id(pod), asked.text):
            try:
                record = await self._scheduler.dry_run(pod, policies, rng)
            except UsageError as error:
                raise RefusedError(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from error
        said = await self._not_applied(pod, profile)
        return LiveDecision(record | ({"notApplied": dict(sorted(said.items()))} if said else {}), self._leads())

    def _profile(self, name: str) -> Profile:
        profiles = self._scheduler.profiles_in_force()
        if name in profiles:
            return profiles[name]
        if not name and len(profiles) == 1:
            return next(iter(profiles.values()))
        names = ", ".join(sorted(profiles))
        said = f'no profile is named "{name:.253}"' if name else "the pod has no schedulerName"
        raise RefusedError(HTTPStatus.UNPROCESSABLE_ENTITY, f"{said}; choose one of {names} with profile=")

    async def _not_applied(self, pod: Pod, profile: Profile) -> dict[PolicyKey, str]:
        """Say of each policy that does not apply to the pod why, one at a time."""
        said: dict[PolicyKey, str] = {}
        store = self._reloader.store
        for key in sorted(store.listed()):
            entry = store.get(key)
            if entry is None:
                continue
            if entry.active is not None:
                said |= not_applied([entry.active], pod, self._scheduler.cluster, profile)
            elif entry.result.errors:
                said[key] = not_compiled(entry.result.diagnostics)
            await asyncio.sleep(0)
        return said
