"""`LastGoodWriter`: stores each policy's generation in force in an annotation of the policy, for restarts."""

from __future__ import annotations

import logging
from typing import Final

from policysched.framework import ApiError, Client
from policysched.model.policy import (
    LAST_GOOD,
    MAX_ANNOTATIONS,
    PolicyKey,
    annotations_size,
    keeps,
    last_good_text,
)
from policysched.rules.policy_set.store import StoredPolicy

log = logging.getLogger(__name__)
SERVER_ERROR: Final = 500
TOO_LARGE: Final = f"the annotations of the policy would exceed {MAX_ANNOTATIONS:,} bytes"


class LastGoodWriter:
    """Writes the generation in force of each policy into an annotation of it, and remembers why a write failed."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._unkept: dict[PolicyKey, str] = {}
        """For each policy, the reason why its generation in force could not be stored."""

    def unkept(self, key: PolicyKey) -> str:
        """Return why a policy's generation in force is not stored in its annotation; empty if it is stored."""
        return self._unkept.get(key, "")

    def forget(self, key: PolicyKey) -> None:
        """Forget, after a policy was deleted, why its annotation was not written."""
        self._unkept.pop(key, None)

    async def keep(self, entry: StoredPolicy) -> tuple[bool, str]:
        """Write a policy's annotation if it does not contain the generation in force.

        Returns:
            Whether no retry is needed, and the version of the object now. The version is empty if others have changed
            the object: its watch event causes the next write.
        """
        policy, active = entry.policy, entry.active
        version = policy.metadata.resource_version
        if active is None or keeps(policy, active.generation, active.spec):
            self._unkept.pop(policy.key, None)
            return True, version
        changed = {LAST_GOOD: last_good_text(policy, active.generation, active.spec)}
        if annotations_size({**policy.metadata.annotations, **changed}) > MAX_ANNOTATIONS:
            self._failed(policy.key, TOO_LARGE, TOO_LARGE)
            return True, version
        try:
            version = await self._client.annotate_policy(policy, changed)
        except ApiError as error:
            if error.status in {404, 409}:
                return True, ""
            self._failed(policy.key, f"cannot write the annotation {LAST_GOOD} ({error.reason})", error.message)
            return 0 < error.status < SERVER_ERROR, version
        self._unkept.pop(policy.key, None)
        return True, version

    def _failed(self, key: PolicyKey, reason: str, details: str) -> None:
        """Remember and log a failed write: each policy that is too large, but other failures only once."""
        known = {self.unkept(key)} if reason == TOO_LARGE else set(self._unkept.values())
        if reason not in known:
            log.warning('policy "%s": cannot store the generation in force; a restart may lose it: %s', key, details)
        self._unkept[key] = reason
