"""Pods of DaemonSets in a plan: deleted together with their node, and created on each new node.

A new node gets a copy of a pod of each DaemonSet whose node selector, node affinity and tolerations fit the node, as
the DaemonSet controller places them.

Source: pkg/controller/daemon/daemon_controller.go (NodeShouldRunDaemonPod), v1.36.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from policysched.app.plan.reading import ReadPod, controller_of
from policysched.model.objects import Node, Pod, Requirement
from policysched.model.objects.pods import Affinity
from policysched.model.selection.node_selectors import NAME_FIELD, TolerationMatcher, required_nodes

DAEMON_SET: Final = "DaemonSet"


def without_daemons_of(pods: Mapping[str, ReadPod], nodes: Collection[str]) -> dict[str, ReadPod]:
    """Return the pods except the pods that DaemonSets run on some nodes."""
    return {key: one for key, one in pods.items() if not (is_daemon(one.pod) and _node_of(one.pod) in nodes)}


def daemons_of(pods: Mapping[str, ReadPod], nodes: Iterable[Node]) -> dict[str, ReadPod]:
    """Return the pods that DaemonSets create on new nodes."""
    templates = {}
    for one in pods.values():
        if is_daemon(one.pod):
            owner = controller_of(one.pod)
            templates[one.pod.metadata.namespace, owner.name if owner else ""] = one
    made = (_on(template, name, node) for node in nodes for (_, name), template in sorted(templates.items()))
    return {one.pod.key: one for one in made if one is not None}


def is_daemon(pod: Pod) -> bool:
    """Return whether a DaemonSet controls a pod."""
    owner = controller_of(pod)
    return owner is not None and owner.kind == DAEMON_SET


def _on(template: ReadPod, daemon_set: str, node: Node) -> ReadPod | None:
    pod, name = template.pod, node.metadata.name
    metadata = replace(pod.metadata, name=f"{daemon_set}-{name}", uid="", creation_timestamp=None)
    spec = replace(pod.spec, node_name=name, affinity=_with_node(pod, name))
    made = replace(pod, metadata=metadata, spec=spec, status=type(pod.status)(phase="Running"))
    fits = required_nodes(made).matches(name, node.metadata.labels)
    tolerated = TolerationMatcher(pod.spec.tolerations).covers_all(node.spec.taints)
    return ReadPod(made, template.resources) if fits and tolerated else None


def _with_node(pod: Pod, name: str) -> Affinity | None:
    """Return the affinity of a pod with another node, as the DaemonSet controller writes the affinity."""
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None or affinity.node_affinity.required is None:
        return affinity
    field = Requirement(key=NAME_FIELD, operator="In", values=(name,))
    required = affinity.node_affinity.required
    terms = [replace(one, match_fields=(field,)) for one in required.node_selector_terms]
    changed = replace(affinity.node_affinity, required=replace(required, node_selector_terms=terms))
    return replace(affinity, node_affinity=changed)


def _node_of(pod: Pod) -> str:
    """Return the node of a DaemonSet's pod; for a pending pod, the node in the pod's node affinity."""
    if pod.spec.node_name or pod.spec.affinity is None or pod.spec.affinity.node_affinity is None:
        return pod.spec.node_name
    required = pod.spec.affinity.node_affinity.required
    terms = () if required is None else required.node_selector_terms
    fields = (one for term in terms for one in term.match_fields if one.key == NAME_FIELD)
    return next((value for one in fields for value in one.values), "")
