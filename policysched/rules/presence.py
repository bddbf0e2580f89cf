"""On how many nodes a policy's inputs are present, and warnings about what is on none.

A label that no node has is most often a misspelt one, so the warning names the nearest that some node has. It never
keeps a policy from compiling: the nodes may come later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from policysched.framework import Cluster, Mask
from policysched.language.diagnostics import Diagnostic, diagnose
from policysched.language.suggest import did_you_mean
from policysched.language.typed import ANY_KEY, Input
from policysched.model.objects import Node
from policysched.model.requests import allocatable
from policysched.rules.compiled import CompiledPolicy
from policysched.rules.metrics import MetricInput
from policysched.rules.node_inputs import RESOURCE_NAMES, WELL_KNOWN_LABELS
from policysched.rules.sites import KEYED, Site, sites

MOST_INPUTS = 100
"""How many inputs of a policy a status tells."""
MOST_COMPARED = 300
_ALWAYS = frozenset(("cpu", "memory", "pods", "ephemeral-storage"))


@dataclass(frozen=True, slots=True)
class Presence:
    """On how many of all nodes an input is present."""

    name: str
    present: int
    total: int
    problem: str = ""
    """What the source of a metric says is wrong."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What a cluster has of what a policy reads."""

    inputs: tuple[Presence, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def gist(self) -> object:
        """What is worth telling anew: which inputs are on no node, and the trouble with metrics."""
        return {(one.name, one.present == 0, one.problem) for one in self.inputs}, self.warnings


def survey(policy: CompiledPolicy, cluster: Cluster) -> Survey:
    """Count a policy's inputs on a cluster.

    Cost: O(nodes) for each input; texts are parsed only where something is absent.
    """
    counted = tuple(_count(item, cluster) for item in policy.inputs if _may_be_absent(item))[:MOST_INPUTS]
    return Survey(counted, absent(policy, cluster))


def absent(policy: CompiledPolicy, cluster: Cluster) -> tuple[Diagnostic, ...]:
    """Warn of inputs and values that no node has (W0705); a cluster without nodes says nothing of them."""
    if not cluster.nodes.count:
        return ()
    bound = {item.path: item for item in policy.inputs if isinstance(item, MetricInput)}
    found = (_warning(site, bound.get(site.item.path, site.item), cluster) for site in sites(policy.spec))
    return tuple(dict.fromkeys(one for one in found if one is not None))


def _warning(site: Site, item: Input, cluster: Cluster) -> Diagnostic | None:
    present = _present(item, cluster).any()
    if site.values:
        return _unknown_value(site, item, cluster) if present else None
    if present:
        return None
    hint = _nearest(item.key, _keys(item, cluster)) if item.key is not None else ""
    return replace(diagnose("W0705", site.text, site.span, input=item.text, help=hint), field=site.field)


def _unknown_value(site: Site, item: Input, cluster: Cluster) -> Diagnostic | None:
    known = _values(item, cluster)
    if known is None or not known.isdisjoint(site.values):
        return None
    hint = next(filter(None, (_nearest(value, known) for value in site.values)), "")
    found = diagnose("W0705", site.text, site.span, "value", input=item.text, help=hint)
    return replace(found, field=site.field)


def _count(item: Input, cluster: Cluster) -> Presence:
    problem = cluster.metrics.problems.get(item.metric, "") if isinstance(item, MetricInput) else ""
    return Presence(item.text, int(np.count_nonzero(_present(item, cluster))), cluster.nodes.count, problem)


def _may_be_absent(item: Input) -> bool:
    if item.root == "metrics":
        return True
    if item.root != "node" or item.key == ANY_KEY:
        return False
    return item.path[0] in WELL_KNOWN_LABELS or (item.path[0] in KEYED and item.key is not None)


def _present(item: Input, cluster: Cluster) -> Mask:
    """Tell on which rows an input is there. Shapes: (N,)."""
    rows = slice(0, cluster.nodes.size)
    has: Mask = _CHECKS[item.path[0] if item.root == "node" else item.root](item, cluster)[rows]
    found: Mask = has & cluster.nodes.present.data[rows]
    return found


def _everywhere(_: Input, cluster: Cluster) -> Mask:
    present: Mask = cluster.nodes.present.data
    return present


def _has_label(item: Input, cluster: Cluster) -> Mask:
    key = item.key if item.key is not None else WELL_KNOWN_LABELS[item.path[0]]
    found: Mask = cluster.nodes.labels(key) >= 0
    return found


def _has_resource(item: Input, cluster: Cluster) -> Mask:
    name = RESOURCE_NAMES.get(item.key or "", item.key or "")
    if name in _ALWAYS:
        return _everywhere(item, cluster)
    found: Mask = cluster.nodes.allocatable(name) > 0
    return found


def _has_value(item: Input, cluster: Cluster) -> Mask:
    if not isinstance(item, MetricInput):
        return _everywhere(item, cluster)
    values = cluster.metrics.gauge(item.metric, item.max_age).data
    has: Mask = ~np.isnan(values)
    return has


_CHECKS: Mapping[str, Callable[[Input, Cluster], Mask]] = {
    "name": _everywhere,
    "labels": _has_label,
    "annotations": lambda item, cluster: cluster.nodes.annotations(item.key or "") >= 0,
    "metrics": _has_value,
    **dict.fromkeys(("allocatable", "requested", "free"), _has_resource),
    **dict.fromkeys(WELL_KNOWN_LABELS, _has_label),
}


def _keys(item: Input, cluster: Cluster) -> set[str]:
    """Give the keys of an input's kind that some node has."""
    kinds: Mapping[str, Callable[[Node], Iterable[str]]] = {
        "labels": lambda node: node.metadata.labels,
        "annotations": lambda node: node.metadata.annotations,
    }
    keys = kinds.get(item.path[0], _resources)
    return {key for node in _nodes(cluster) for key in keys(node)}


def _resources(node: Node) -> Iterable[str]:
    return (name for name, _ in allocatable(node).scalars)


def _values(item: Input, cluster: Cluster) -> set[str] | None:
    """Give the values that nodes have of an input, None where it is not about texts."""
    name, nodes = item.path[0], cluster.nodes
    if name == "name":
        codes = nodes.name.data
    elif name == "annotations":
        codes = nodes.annotations(item.key or "")
    elif name == "labels" or name in WELL_KNOWN_LABELS:
        codes = nodes.labels(item.key if item.key is not None else WELL_KNOWN_LABELS[name])
    else:
        return None
    shown = np.unique(codes[nodes.present.data & (codes >= 0)])
    return {cluster.strings.value(code) for code in shown.tolist()}


def _nearest(name: str, known: set[str]) -> str:
    """Suggest what is near; among very many only what begins or ends alike, which keeps it fast."""
    if len(known) > MOST_COMPARED:
        alike = (one for one in known if one[:2] == name[:2] or one[-2:] == name[-2:])
        known = set(sorted(alike)[:MOST_COMPARED])
    return did_you_mean(name, known)


def _nodes(cluster: Cluster) -> Iterable[Node]:
    return (node for node in cluster.nodes.nodes if node is not None)
