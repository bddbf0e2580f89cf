"""A cluster that pods of groups fill: every pod is a member of a gang.

A scheduler that is killed between two bindings leaves a gang of which fewer than minCount pods are bound; the next
attempt counts them and places the others. What must be so once a scheduler has come to rest is read from the API alone:
a group that counts as scheduled, or of which any pod is bound, has minCount pods bound. A group whose pods were bound
when its scheduler was killed may lack the condition, as nothing is left to be tried. It knows no scheduler.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import Any, Final

from tests.controlplane.api import Json
from tests.controlplane.commands import POD_GROUPS
from tests.controlplane.loading import until
from tests.faults.scene import PATIENCE, Scene, Size
from tests.faults.schedulers import NAME

API: Final = "scheduling.k8s.io/v1beta1"
ALL: Final = Size(nodes=70, a_node=20, seconds=6.0)
LARGEST: Final = 64
"""How many pods a group has at most, where the cluster has room for four of them."""
SMALLEST: Final = 2
_LISTED: Final = 4_000.0
"""How many pods are listed in a second to see whether something holds."""
_A_SECOND: Final = 10.0
"""How many pods are bound in a second at least."""
_PATH: Final = f"/apis/{API}/namespaces/default/podgroups"


class GroupScene(Scene):
    """One fault's cluster, with gangs of 2 to 64 pods, small ones more often."""

    controllers = ("podgroup-protection-controller",)
    gates = (POD_GROUPS,)

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.chance = random.Random(7)
        self.least: dict[str, int] = {}
        """The minCount of all groups that were ever made."""
        self._numbers = count()

    def until(self, holds: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
        """Wait until something holds; look the less often the more pods a list has, and with more patience."""

        def look() -> Any:
            time.sleep(self.size.pods / _LISTED)
            return holds()

        return super().until(look, what, seconds + self.size.pods / _A_SECOND)

    def make_pods(self, count: int, scheduler: str = NAME, **fields: Any) -> list[str]:
        """Make pods in groups, and give their names; a group may have a pod alone where no more are to be made."""
        names: list[str] = []
        most = min(LARGEST, self.size.pods // 4)
        while len(names) < count:
            size = round(SMALLEST * (most / SMALLEST) ** (self.chance.random() ** 2))
            size = min(size, count - len(names))
            names += self.make_group(size, self.chance.choice((size, size, max(size // 2, 1))), scheduler, **fields)
        return names

    def make_group(self, size: int, least: int, scheduler: str = NAME, **fields: Any) -> list[str]:
        """Make a gang with its pods, whose names are its own with a number, and give the names of the pods."""
        name = f"{self.prefix}-g{next(self._numbers):04}"
        self.least[name] = least
        spec = {"schedulingPolicy": {"gang": {"minCount": least}}}
        self.api.create({"apiVersion": API, "kind": "PodGroup", "metadata": {"name": name}, "spec": spec})
        return self.add(name, size, scheduler, **fields)

    def add(self, group: str, count: int, scheduler: str = NAME, **fields: Any) -> list[str]:
        """Make more pods of a group, and give their names."""
        return self._make_pods(group, count, scheduler, {"schedulingGroup": {"podGroupName": group}} | fields)

    def delete_groups(self, names: list[str]) -> int:
        """Delete groups with their pods, and tell how many these were."""
        pods = [one["metadata"]["name"] for one in self.pods() if group_of(one["metadata"]["name"]) in names]
        self.delete_pods(pods)
        for name in names:
            self.api.delete("PodGroup", name)
        return len(pods)

    def groups(self) -> list[Json]:
        """List all groups that are not on their way out."""
        return [one for one in self.api.objects("PodGroup", "default") if "deletionTimestamp" not in one["metadata"]]

    def empty(self) -> None:
        """Delete all pods and groups."""
        super().empty()
        self._delete_all()

    def clear(self) -> None:
        """Delete everything."""
        super().clear()
        self._delete_all()

    def _delete_all(self) -> None:
        self.api.call("DELETE", _PATH, {})
        until(lambda: not self.api.objects("PodGroup", "default"), "no groups")

    def wrong(self) -> list[str]:
        """Name the groups that are placed in part, or count as scheduled and are not."""
        return faults_of(self.groups(), self.pods())


def group_of(pod: str) -> str:
    """Give the group of a pod by the name of the pod."""
    return pod.rpartition("-")[0]


def counts_as_scheduled(group: Json) -> bool:
    """Whether the condition of a group says that it has been scheduled."""
    conditions = group.get("status", {}).get("conditions", ())
    return any(one["type"] == "PodGroupInitiallyScheduled" and one["status"] == "True" for one in conditions)


def bound_pods(pods: list[Json]) -> Counter[str]:
    """Count the pods of each group that have a node."""
    return Counter(one["spec"]["schedulingGroup"]["podGroupName"] for one in pods if one["spec"].get("nodeName"))


def in_part(groups: list[Json], pods: list[Json]) -> list[str]:
    """Name the groups of which some pods are bound, and fewer than minCount."""
    bound = bound_pods(pods)
    return [name for one in groups if 0 < bound[name := one["metadata"]["name"]] < _least(one)]


def faults_of(groups: list[Json], pods: list[Json]) -> list[str]:
    """Name what is wrong with groups while no scheduler has anything under way."""
    bound, partly = bound_pods(pods), in_part(groups, pods)
    told = [f"{bound[name]} pods of group {name} are bound, which is in part" for name in partly]
    for one in groups:
        name = one["metadata"]["name"]
        if counts_as_scheduled(one) and bound[name] < _least(one):
            told.append(f"group {name} counts as scheduled, and {bound[name]} of {_least(one)} pods are bound")
    return told


def _least(group: Json) -> int:
    return int(group["spec"]["schedulingPolicy"]["gang"]["minCount"])
