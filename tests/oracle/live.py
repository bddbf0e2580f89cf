"""Our side of a sequence: one engine over one cluster that lives through all of it.

Knows nothing of kube-scheduler. Where dry-run reads a cluster anew for every pod, here everything that is
kept between decisions has to follow each change.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec.structs import replace

from policysched.app.configuration.profiles import configured_profiles
from policysched.model.decode import decode_pod
from policysched.model.defaults import priority_classes
from policysched.model.kinds import fill, kind_of
from policysched.model.objects import Pod
from policysched.model.release import DEFAULT, Release
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.record import make_record
from policysched.state.cluster import Cluster
from policysched.state.placed.pods import pod_id

if TYPE_CHECKING:
    from collections.abc import Iterable

    from policysched.framework.profile import Profile
    from policysched.schedule.cycle.decision import Decision

Thing: TypeAlias = dict[str, Any]
Record: TypeAlias = dict[str, Any]
NOW = 1_800_000_000.0
"""The time in all cases, after all that is said to have begun. Units: seconds since 1970."""


class Live:
    """Decides about the pods of a case one after another.

    Args:
        case: The case.
        seed: What draws among equally good nodes.
        profile: The plugins; absent, those of the case's configuration.
        release: The release of Kubernetes whose decisions are followed.
    """

    def __init__(self, case: Thing, seed: int, profile: Profile | None = None, release: Release = DEFAULT) -> None:
        self._classes = priority_classes(case["objects"])
        self._cluster = Cluster(release=release)
        self._homes: dict[str, str] = {}
        if profile is None:
            (profile,) = configured_profiles(case["config"], release=release).values()
            profile = PolicySet.of([]).join(profile)
        self._name = profile.scheduler_name
        coming = {_key(pod) for pod in case["sequence"]}
        for thing in case["objects"]:
            if thing["kind"] != "Pod" or _key(thing) not in coming:
                self.set(thing)
        self._cluster.time.move(NOW)
        self.engine = Engine(self._cluster, profile, Random(seed))

    def run(self, case: Thing) -> list[Record]:
        """Decide about all pods, with what happens between them."""
        between = [*case.get("between", ()), *[[]] * len(case["sequence"])]
        records = []
        for pod, changes in zip(case["sequence"], between, strict=False):
            self.apply(changes)
            records.append(self.decide(pod))
        return records

    def apply(self, changes: Iterable[Thing]) -> None:
        """Make changes known."""
        for change in changes:
            if "set" in change:
                self.set(change["set"])
            else:
                self.remove(change["remove"])

    def set(self, thing: Thing) -> None:
        """Add or replace an object."""
        kind = kind_of(thing)
        if kind is None:
            return
        obj = kind.decode(fill(thing, self._classes, self._cluster.release))
        if isinstance(obj, Pod):
            self._set_pod(obj)
        else:
            self._cluster.take(obj)

    def remove(self, thing: Thing) -> None:
        """Take an object away."""
        kind = kind_of(thing)
        if kind is None:
            return
        obj = kind.decode(fill(thing, self._classes, self._cluster.release))
        if isinstance(obj, Pod):
            self._homes.pop(pod_id(obj), None)
        self._cluster.drop(obj)

    def decide(self, thing: Thing) -> Record:
        """Decide about a pod and count it on its node from now on."""
        decision = self.look(thing)
        record: Record = make_record(decision)
        if decision.row >= 0:
            self._homes[pod_id(decision.pod)] = decision.node
            self._cluster.assume(decision.pod, decision.row)
        return record

    def look(self, thing: Thing) -> Decision:
        """Decide about a pod, and leave everything as it is."""
        pod = decode_pod(fill(thing, self._classes, self._cluster.release))
        pod = replace(pod, spec=replace(pod.spec, scheduler_name=self._name))
        return self.engine.decide(pod)

    def _set_pod(self, pod: Pod) -> None:
        home = pod.spec.node_name or self._homes.get(pod_id(pod), "")
        if home:
            self._cluster.set_pod(replace(pod, spec=replace(pod.spec, node_name=home)))
        else:
            self._cluster.nominations.update(pod)


def _key(pod: Thing) -> tuple[str, str]:
    return pod["metadata"]["namespace"], pod["metadata"]["name"]
