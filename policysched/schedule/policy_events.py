"""`PolicyEvents`: records Kubernetes Events about edits of SchedulingPolicy objects.

Each generation that takes effect or is rejected gets an Event. If a policy is edited repeatedly, later Events have an
equal text, so that they are counted as a series.

Source: client-go/tools/record/events_cache.go (EventAggregator).
"""

from __future__ import annotations

from collections import deque
from typing import Final

from policysched.framework import Client, Clock, PolicyEvent
from policysched.model.policy import PolicyKey
from policysched.rules.policy_set.store import StoredPolicy
from policysched.rules.policy_status.status import effect

MOST: Final = 10
"""Maximum number of different Events about one policy within `WITHIN` seconds."""
WITHIN: Final = 600.0
"""Period to which the limit `MOST` applies. Units: seconds."""
COMBINED: Final = "(combined from similar events): the policy is edited repeatedly; see its status"


class PolicyEvents:
    """Records one Event about each generation of a policy."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._told: dict[PolicyKey, tuple[str, int, int]] = {}
        """For each policy, the UID, generation and generation in force of its last Event."""
        self._recent: dict[PolicyKey, deque[float]] = {}

    def record(self, entry: StoredPolicy) -> None:
        """Record an Event about the newest generation of a policy, unless its last Event is about that generation."""
        policy, active = entry.policy, entry.active.generation if entry.active is not None else 0
        of, status = policy.metadata, policy.status
        said = (of.uid, of.generation, active)
        if self._told.get(policy.key) == said:
            return
        self._told[policy.key] = said
        if (status.observed_generation, status.active_generation) == (of.generation, active):
            return
        kind, reason, note = _outcome(entry, active)
        if self._is_one_of_many(policy.key):
            note = COMBINED
        self._client.record(PolicyEvent(policy, kind, reason, "Reloading", note, self._clock.now()))

    def forget(self, key: PolicyKey) -> None:
        """Forget the Events of a deleted policy."""
        self._told.pop(key, None)
        self._recent.pop(key, None)

    def _is_one_of_many(self, key: PolicyKey) -> bool:
        now, recent = self._clock.monotonic(), self._recent.setdefault(key, deque(maxlen=MOST))
        if len(recent) == MOST and now - recent[0] < WITHIN:
            return True
        recent.append(now)
        return False


def _outcome(entry: StoredPolicy, active: int) -> tuple[str, str, str]:
    """Return type, reason and note of the Event about a policy's newest generation."""
    generation = entry.policy.metadata.generation
    if not entry.result.errors and entry.active is not None and active == generation:
        return "Normal", "PolicyActive", effect(entry.active)
    errors = (f"{one.code} {one.field}: {one.message}" for one in entry.result.diagnostics if one.severity == "error")
    why = next(errors, "") or entry.refused or "it cannot be evaluated"
    stays = f"the last good {effect(entry.active, 'stays')}" if entry.active and active else "no generation is in force"
    return "Warning", "PolicyRejected", f"generation {generation} is rejected: {why}; {stays}"
