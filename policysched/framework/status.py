"""`Status`, a plugin's answer: a code and, unless it is success, the reasons.

One paragraph per code says what the queue does next with the pod; that is the contract between plugins and queue.

Source: k8s.io/kube-scheduler/framework/interface.go (Status, Code).
"""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum

from policysched.late_dataclass import dataclass


class Code(IntEnum):
    """The kinds of answers."""

    SUCCESS = 0
    """The plugin has nothing against it."""
    ERROR = 1
    """The plugin failed. The pod's attempt ends with SchedulerError and is repeated after a backoff that grows with
    consecutive errors; no event is needed to try again."""
    UNSCHEDULABLE = 2
    """The pod does not fit now. It waits until a change arrives that the plugin said can help; removing other pods
    might be one, so preemption looks at the node."""
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    """As Unschedulable, but removing pods from the node would not help, so preemption passes it over."""
    WAIT = 4
    """Only from Permit: the pod's binding waits until it is allowed or rejected."""
    SKIP = 5
    """The plugin has nothing to do with this pod: its later points are skipped in this cycle."""
    PENDING = 6
    """The pod waits for something outside; once the plugin says so it is tried at once, without backoff."""

    @property
    def text(self) -> str:
        """The code's name as kube-scheduler writes it."""
        return _TEXTS[self]


_TEXTS = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.WAIT: "Wait",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}
REJECTIONS = frozenset((Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING))


@dataclass(frozen=True, slots=True)
class Status:
    """A plugin's answer; `plugin` is filled in by whoever ran it."""

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def message(self) -> str:
        """The reasons as one text."""
        return ", ".join(self.reasons)

    @property
    def rejects(self) -> bool:
        """True where the pod is turned away, as opposed to failing."""
        return self.code in REJECTIONS

    def by(self, plugin: str) -> Status:
        """Return the same status as this plugin's."""
        return self if self.plugin == plugin else replace(self, plugin=plugin)


def filter_error(status: Status) -> str:
    """Return how kube-scheduler tells that a plugin failed at Filter.

    Source: pkg/scheduler/framework/runtime/framework.go (RunFilterPlugins).
    """
    return f'running "{status.plugin}" filter plugin: {status.message}'


def unschedulable(*reasons: str) -> Status:
    """Reject, for reasons that removing pods could end."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """Reject, for reasons that removing pods cannot end."""
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)
