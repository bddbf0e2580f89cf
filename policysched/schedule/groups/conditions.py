"""`GroupConditions`: writes the condition PodGroupInitiallyScheduled, one write at a time for each pod group.

kube-scheduler writes the condition before its next decision; here decisions do not wait for the network. Of the
conditions that wait for an earlier write of their group, only the newest is written. True is final.

Source: pkg/scheduler/schedule_one_podgroup.go (updateInitiallyScheduledCondition).
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any, Final

from msgspec.structs import replace

from policysched.framework import ApiError, Client, Clock
from policysched.framework.client import without_times
from policysched.model.objects import PodCondition, PodGroup
from policysched.schedule.observer import AttemptResult
from policysched.state.pod_groups import PodGroups
from policysched.visible import visible

log = logging.getLogger(__name__)
INITIALLY_SCHEDULED: Final = "PodGroupInitiallyScheduled"
INVALID: Final = "PodGroupError"
"""The reason of a pod group's condition if the group's members do not match the PodGroup object."""
_REASONS: Final = {
    AttemptResult.SCHEDULED: "Scheduled",
    AttemptResult.UNSCHEDULABLE: "Unschedulable",
    AttemptResult.ERROR: "SchedulerError",
}


def condition_for(result: AttemptResult, message: str, reason: str = "") -> PodCondition:
    """Return the condition for the result of a group's attempt; an empty `reason` is derived from the result."""
    status = "True" if result is AttemptResult.SCHEDULED else "False"
    return PodCondition(INITIALLY_SCHEDULED, status, reason or _REASONS[result], visible(message))


class GroupConditions:
    """Writes conditions of pod groups.

    Args:
        groups: The groups.
        client: Writes to the API server.
        clock: The time.
        renews_generation: Whether a condition that is True is written again for a newer generation of its group.
    """

    def __init__(self, groups: PodGroups, client: Client, clock: Clock, *, renews_generation: bool) -> None:
        self._groups, self._client, self._clock = groups, client, clock
        self._renews_generation = renews_generation
        self._wanted: dict[str, PodCondition] = {}
        """The newest requested condition of each group of which a write is running, by `namespace/name`."""

    def request(self, group: PodGroup, told: PodCondition) -> bool:
        """Request a condition of a group; return True if the caller must call `write`, because no write is running."""
        before = self._wanted.get(group.key)
        if before is not None and before.status == "True":
            return False
        if before is None and self._change(group, told) is None:
            return False
        self._wanted[group.key] = told
        return before is None

    async def write(self, group: PodGroup) -> None:
        """Write the requested condition of a group, then conditions requested during the write; log errors."""
        written: PodCondition | None = None
        try:
            while (told := self._wanted[group.key]) is not written:
                written = told
                if (condition := self._change(group, told)) is not None:
                    await self._send(group, condition)
        finally:
            del self._wanted[group.key]

    async def _send(self, group: PodGroup, condition: dict[str, Any]) -> None:
        try:
            await self._client.set_pod_group_status(group, condition)
        except ApiError as error:
            level = logging.DEBUG if error.is_not_found else logging.WARNING
            log.log(level, 'could not write the status of pod group "%s": %s', group.key, error.message)
        except Exception:
            log.exception('the status update of pod group "%s" failed', group.key)
        else:
            if condition["status"] == "True":
                self._groups.note_scheduled(group)

    def _change(self, group: PodGroup, told: PodCondition) -> dict[str, Any] | None:
        """Return the condition to write; None if the group was deleted, has this condition or has a true condition."""
        state = self._groups.get(group.key)
        current = None if state is None else state.group
        if state is None or current is None or current.metadata.uid != group.metadata.uid:
            return None
        known = next((one for one in current.status.conditions if one.type == told.type), None)
        is_true = known is not None and known.status == "True"
        is_reported = bool(current.metadata.uid) and state.initially_scheduled == current.metadata.uid
        if (is_true or is_reported) and not (self._renews_generation and told.status == "True"):
            return None
        return changed_condition(known, told, current.metadata.generation, self._clock.now())


def changed_condition(
    known: PodCondition | None, told: PodCondition, generation: int, now: datetime
) -> dict[str, Any] | None:
    """Return the JSON of a condition to write; None if the group already has an equal condition."""
    told = replace(told, observed_generation=generation)
    if known == told:
        return None
    condition = without_times(told, generation)
    if known is None or known.status != told.status:
        condition["lastTransitionTime"] = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return condition
