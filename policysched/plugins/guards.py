"""Guards: plugins that turn away the pods for which work is missing, under the name of the plugin meant for it.

A guard knows what it cannot do and says so in the user's words. It rejects before any node is looked at and skips
all other pods, so a decision is never made as if a demand had not been there.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from policysched.framework import SKIP, Aspect, Cluster, Codes, Hint, Rows, Status, unresolvable
from policysched.model.objects import Pod

Missing = Callable[[Pod, Cluster], str]
"""What is missing for the pod, the empty text where nothing is."""


def pod_alone(cluster: Cluster) -> Hashable:  # noqa: ARG001 - one signature for all epochs
    """Give the epoch of guards that look at the pod alone."""
    return 0


class Guard:
    """A guard.

    Args:
        name: the name of the plugin in whose place it stands.
        missing: what is missing for a pod.
        hints: the changes after which nothing may be missing any more.
        epoch: what moves when the answer for a pod may be another.
    """

    filter_reads = Aspect.NONE

    def __init__(
        self,
        name: str,
        missing: Missing,
        hints: Sequence[Hint] = (),
        epoch: Callable[[Cluster], Hashable] = pod_alone,
    ) -> None:
        self.name = name
        self._missing = missing
        self._hints = tuple(hints)
        self._epoch = epoch

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> Any:
        """Reject the pod if something is missing for it, else skip it."""
        missing = self._missing(pod, cluster)
        return unresolvable(missing) if missing else SKIP

    def filter(self, state: Any, rows: Rows) -> Codes:
        """Refuse: no pod gets this far.

        Raises:
            RuntimeError: always, because a guard prepares no state that could be asked.
        """
        raise RuntimeError(f"{self.name} prepared no state, and was asked about {rows} with {state!r}")

    def reason(self, state: Any, code: int) -> Status:
        """Refuse: there are no codes.

        Raises:
            RuntimeError: always, as for `filter`.
        """
        raise RuntimeError(f"{self.name} gave no reason codes, and was asked for {code} of {state!r}")

    def events(self) -> Sequence[Hint]:
        """Give the changes after which nothing may be missing any more."""
        return self._hints

    def epoch(self, cluster: Cluster) -> Hashable:
        """Give what moves when the answer for a pod may be another."""
        return self._epoch(cluster)
