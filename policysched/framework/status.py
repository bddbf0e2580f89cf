"""`Status`: the result of a plugin, a code with the reasons of a rejection or failure.

The docstring of each code states what the scheduling queue does with the pod next.

Source: k8s.io/kube-scheduler/framework/interface.go (Status, Code).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum


class Code(IntEnum):
    """The codes of a status, with the meanings of kube-scheduler's codes."""

    SUCCESS = 0
    """The plugin accepts the pod or node."""
    ERROR = 1
    """The plugin failed; the attempt ends with reason SchedulerError.

    The pod is retried without an event, after a backoff that grows with consecutive errors.
    """
    UNSCHEDULABLE = 2
    """The pod does not fit now, but may fit after pods are removed, so that preemption considers the node.

    The pod waits for one of the events that the plugin registers.
    """
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    """As UNSCHEDULABLE, but removing pods from the node cannot help, so that preemption skips the node."""
    WAIT = 4
    """Only from Permit: the binding waits until the pod is allowed or rejected, or its timeout expires."""
    SKIP = 5
    """The plugin does not apply to the pod: its later extension points are skipped in this cycle.

    After SKIP from Bind, the next Bind plugin binds the pod.
    """
    PENDING = 6
    """The pod waits for an action outside of the scheduler. The plugin's events retry the pod without a backoff."""

    @property
    def text(self) -> str:
        """The name of the code in kube-scheduler."""
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
    """The result of a plugin; the scheduler sets `plugin` to the plugin's name."""

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def message(self) -> str:
        """The reasons, joined with commas."""
        return ", ".join(self.reasons)

    @property
    def rejects(self) -> bool:
        """Whether the status rejects the pod or node; False for success and for failures."""
        return self.code in REJECTIONS

    def by(self, plugin: str) -> Status:
        """Return a copy of the status with the name of a plugin."""
        return self if self.plugin == plugin else replace(self, plugin=plugin)


def filter_error(status: Status) -> str:
    """Return kube-scheduler's message that a plugin failed at Filter.

    Source: pkg/scheduler/framework/runtime/framework.go (RunFilterPlugins).
    """
    return f'running "{status.plugin}" filter plugin: {status.message}'


def unschedulable(*reasons: str) -> Status:
    """Return a rejection that preemption may resolve (Code.UNSCHEDULABLE)."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """Return a rejection that preemption cannot resolve (Code.UNSCHEDULABLE_AND_UNRESOLVABLE)."""
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)
