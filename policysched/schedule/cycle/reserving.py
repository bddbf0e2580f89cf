"""Reserve: plugins hold what a pod needs on its node before the next pod is decided.

Either every plugin holds its part, or none does.

Source: pkg/scheduler/framework/runtime/framework.go (RunReservePluginsReserve).
"""

from __future__ import annotations

from policysched.framework import Cluster, Reservation, Status
from policysched.framework.profile import Profile
from policysched.model.objects import Pod
from policysched.schedule.binding import undo


def reserve(profile: Profile, pod: Pod, cluster: Cluster, row: int) -> list[Reservation] | str:
    """Let every plugin hold its part; give what is held, or what went wrong."""
    held: list[Reservation] = []
    for plugin in profile.reserves:
        try:
            answer = plugin.reserve(pod, cluster, row)
        except Exception:
            undo(held)
            raise
        if isinstance(answer, Status):
            undo(held)
            return f'running Reserve plugin "{plugin.name}": {answer.message}'
        if answer is not None:
            held.append(answer)
    return held
