"""TopologyPlacementGenerator and PodGroupPodsCount: placements of pod groups by topology, and their size.

Source: plugins/topologyaware/topology_placement.go, plugins/podgrouppodscount/podgroup_pods_count.go, v1.37 and v1.38.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from policysched.framework import MAX_NODE_SCORE, Cluster, Code, Scores, Status
from policysched.framework.pod_groups import (
    CandidatePlacement,
    FeasiblePlacement,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
    PodGroupContext,
)
from policysched.model.objects import Pod
from policysched.state.placed.pods import pod_id
from policysched.state.tables.interner import MISSING

UNDETERMINED: Final = "cannot determine domain for already scheduled pods: "
NOTHING_ASSIGNED: Final = "no pods from pod group are assigned to any of the candidate placements"


class UndeterminedDomainError(Exception):
    """Raised if the placed members of a pod group do not determine a topology domain; has kube-scheduler's message."""


class TopologyPlacementGenerator(PlacementGeneratePlugin):
    """The TopologyPlacementGenerator plugin: one placement for each value of the pod group's topology label.

    Args:
        empty_is_domain: Whether an empty label value is a domain, instead of a mistake.
        quotes: Whether messages quote the names of domains.
    """

    name = "TopologyPlacementGenerator"

    def __init__(self, *, empty_is_domain: bool = False, quotes: bool = True) -> None:
        self._empty_is_domain, self._quotes = empty_is_domain, quotes

    def generate_placements(
        self, context: PodGroupContext, parent: CandidatePlacement
    ) -> Sequence[CandidatePlacement] | Status:
        """Return the topology domains of the nodes by name; if members are placed, only the domain of these members."""
        key, cluster = context.group.topology_key, context.cluster
        if key is None:
            return (parent,)
        try:
            required = self._domain_of(self._scheduled(context), key, cluster)
        except UndeterminedDomainError as error:
            return Status(Code.ERROR, (f"{UNDETERMINED}{error}",))
        codes = cluster.nodes.labels(key)[parent.rows]
        rows, codes = parent.rows[codes != MISSING], codes[codes != MISSING]
        order = np.argsort(codes, kind="stable")
        rows, codes = rows[order], codes[order]
        begins = np.flatnonzero(np.diff(codes, prepend=MISSING))
        names = [cluster.strings.text(code) for code in codes[begins].tolist()]
        found = [CandidatePlacement(name, some) for name, some in zip(names, np.split(rows, begins[1:]), strict=False)]
        return sorted((one for one in found if self._is_taken(one.name, required)), key=lambda one: one.name)

    def _is_taken(self, domain: str, required: str | None) -> bool:
        return (domain == required) if required is not None else bool(domain) or self._empty_is_domain

    @staticmethod
    def _scheduled(context: PodGroupContext) -> Sequence[Pod]:
        groups = context.cluster.pod_groups
        state = None if groups is None else groups.get(context.group.key)
        return () if state is None else tuple(state.scheduled)

    def _domain_of(self, pods: Sequence[Pod], key: str, cluster: Cluster) -> str | None:
        """Return the topology domain of placed pods; None if no pod is given.

        Raises:
            UndeterminedDomainError: the pods are in no domain, or in several.
        """
        domain = ""
        for pod in pods:
            own = self._domain_of_one(pod, key, cluster)
            if domain and domain != own:
                pair = f'"{domain}", "{own}"' if self._quotes else f"{domain}, {own}"
                raise UndeterminedDomainError(f"more than 1 domain found for pod group: {pair}")
            domain = own
        return domain if pods else None

    def _domain_of_one(self, pod: Pod, key: str, cluster: Cluster) -> str:
        row = cluster.pods.by_id[pod_id(pod)].row
        if not cluster.nodes.present.data[row]:
            name = cluster.nodes.names[row]
            raise UndeterminedDomainError(f'getting node for pod {pod.key}: nodeinfo not found for node name "{name}"')
        code = int(cluster.nodes.labels(key)[row])
        if code == MISSING:
            raise UndeterminedDomainError(f"no topology domain found for pod {pod.key}")
        domain = cluster.strings.text(code)
        if not domain and not self._empty_is_domain:
            raise UndeterminedDomainError(f"empty topology domain found for pod {pod.key}")
        return domain


class PodGroupPodsCount(PlacementScorePlugin):
    """The PodGroupPodsCount plugin: prefers the placements on which the most members of a pod group fit."""

    name = "PodGroupPodsCount"

    def score_placements(self, context: PodGroupContext, feasible: Sequence[FeasiblePlacement]) -> Scores:
        """Return for each placement the number of members that fit."""
        groups = context.cluster.pod_groups
        state = None if groups is None else groups.get(context.group.key)
        scheduled = 0 if state is None else state.scheduled_count
        return np.array([scheduled + len(one.pods) for one in feasible], np.int64)

    def normalize_placements(
        self,
        context: PodGroupContext,  # noqa: ARG002 - the base's signature
        feasible: Sequence[FeasiblePlacement],  # noqa: ARG002 - the base's signature
        scores: Scores,
    ) -> Scores | Status:
        """Scale the scores to 0 to 100 by their maximum."""
        most = int(scores.max())
        if not most:
            return Status(Code.ERROR, (NOTHING_ASSIGNED,))
        return scores * MAX_NODE_SCORE // most
