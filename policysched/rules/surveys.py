"""What an installation last told of the cluster in the statuses of policies, and whether there is news.

Counts change with every node; they are told anew only where one leaves or reaches 0, where the trouble with a metric
changes, or where the policy does. So what was told is kept, and a restart takes it over from the status.
"""

from __future__ import annotations

from policysched.framework import Cluster
from policysched.model.policy import Policy
from policysched.pausing import Pausing, finished
from policysched.rules.presence import Presence, Survey, surveying
from policysched.rules.store import Entry

NOTHING = Survey()


class Surveys:
    """Surveys by policy, as they were told."""

    def __init__(self, cluster: Cluster, instance: str) -> None:
        self._cluster = cluster
        self._instance = instance
        self._told: dict[str, Survey] = {}

    def of(self, name: str) -> Survey:
        """Give what is told of a policy."""
        return self._told.get(name, NOTHING)

    def take(self, entry: Entry) -> bool:
        """Look at the cluster again; tell whether a status has to say something else now."""
        return finished(self.taking(entry))

    def taking(self, entry: Entry) -> Pausing[bool]:
        """Do what `take` does, pausing now and then."""
        name = entry.policy.name
        if entry.active is None:
            return self._told.pop(name, None) is not None
        found = yield from surveying(entry.active, self._cluster)
        before = self._told.get(name)
        if before is None:
            before = Survey(_written(entry.policy, self._instance), found.warnings)
        if [one.name for one in before.inputs] == [one.name for one in found.inputs] and before.gist == found.gist:
            self._told[name] = before
            return False
        self._told[name] = found
        return True

    def forget(self, name: str) -> None:
        """Forget a policy that is gone."""
        self._told.pop(name, None)


def _written(policy: Policy, instance: str) -> tuple[Presence, ...]:
    own = (one.inputs for one in policy.status.instances if one.name == instance)
    return tuple(Presence(one.name, one.present, one.total, one.problem) for one in next(own, []))
