"""PrioritySort: the queue's order, higher priority first and among equals who waits longer.

Knows priorities. It gives a key instead of comparing two pods, so that the queue's heap compares tuples.

Source: plugins/queuesort/priority_sort.go, v1.36.
"""

from __future__ import annotations

from typing import Any

from policysched.model.objects import Pod
from policysched.model.pod_requirements import pod_priority


class PrioritySort:
    """The plugin."""

    name = "PrioritySort"

    def key(self, pod: Pod, queued_at: float) -> tuple[Any, ...]:
        """Give the sort key."""
        return (-pod_priority(pod), queued_at)
