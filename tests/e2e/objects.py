"""Objects of the end-to-end tests, as a user would write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from policysched.model.release import RELEASES
from tests.controlplane.releases import chosen

Json = dict[str, Any]
DEFINITION: Json = yaml.safe_load((Path(__file__).parents[2] / "crds" / "schedulingpolicies.yaml").read_text("utf-8"))
NAME = "policysched"
"""The schedulerName of pods that are ours."""
RELEASE = RELEASES[chosen().minor]
"""The release of the control plane, and of the sandbox of these tests."""
NO_CLAIMS = "no new claims to deallocate, " if RELEASE.no_deallocation_is_reported else ""
"""The message of DynamicResources at PostFilter for pods without claims, in front of that of preemption."""
NO_HELP = "still not schedulable, " if RELEASE.no_deallocation_is_reported else ""
"""The message of DynamicResources at PostFilter for pods with claims, in front of that of preemption."""


def node(
    name: str,
    *,
    labels: Json | None = None,
    taints: list[Json] | None = None,
    cpu: str = "4",
    extended: Json | None = None,
) -> Json:
    """A node of 4 cores, 8Gi and 110 pods; `extended` are further resources."""
    capacity = {"cpu": cpu, "memory": "8Gi", "pods": "110"} | (extended or {})
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name} | (labels or {})},
        "spec": {"taints": taints} if taints else {},
        "status": {
            "capacity": capacity,
            "allocatable": dict(capacity),
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def pod(
    name: str,
    *,
    requests: Json | None = None,
    labels: Json | None = None,
    scheduler: str = NAME,
    namespace: str = "default",
    **spec: Any,
) -> Json:
    """A pod of one container; `spec` is any other field of it."""
    container: Json = {"name": "c", "image": "registry.k8s.io/pause:3.10"}
    if requests:
        # Extended resources must have limits; for others they do no harm.
        container["resources"] = {"requests": requests, "limits": requests}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
        "spec": {"schedulerName": scheduler, "containers": [container]} | spec,
    }


def policy(name: str, **spec: Any) -> Json:
    """A SchedulingPolicy."""
    return {
        "apiVersion": "policysched.io/v1beta1",
        "kind": "SchedulingPolicy",
        "metadata": {"name": name},
        "spec": spec,
    }


def only(name: str, wanted: str, **spec: Any) -> Json:
    """A policy that lets pods land on one node alone; its rule is called `here`."""
    return policy(name, filters=[{"name": "here", "require": f'node.name == "{wanted}"'}], **spec)


def deployment(name: str, replicas: int, scheduler: str = NAME, **spec: Any) -> Json:
    """A Deployment in the default namespace."""
    labels = {"app": name}
    template = pod(name, scheduler=scheduler, **spec)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": template["spec"]},
        },
    }


RESOLVABLE = (
    "Insufficient",
    "didn't have free ports",
    "didn't match pod topology spread constraints",
    "didn't match pod anti-affinity rules",
    "didn't satisfy existing pods anti-affinity rules",
    "ReadWriteOncePod access mode already in-use",
)
"""Reasons for which other pods might have to go, if any were of lower priority."""


def unfit(nodes: int, *reasons: str, hopeless: int | None = None) -> str:
    """The message of a pod that fits on none of so many nodes, with nobody of lower priority on them.

    On `hopeless` of them nobody's going would help; absent, the reasons tell, each being that of other nodes.
    """
    if hopeless is None:
        helped = [one for one in reasons if any(text in one for text in RESOLVABLE) and "missing required" not in one]
        hopeless = nodes - sum(int(one.split()[0]) for one in helped)
    return f"0/{nodes} nodes are available: {', '.join(sorted(reasons))}. {no_preemption(nodes, hopeless)}"


def unclaimed(why: str, nodes: int = 2) -> str:
    """The message of a pod that PreFilter ends because of its claims, before DynamicResources is asked.

    DynamicResources fails at PostFilter then, in the words in which it does in kube-scheduler.
    """
    return f"0/{nodes} nodes are available: {why}. not found"


def no_preemption(nodes: int, hopeless: int, claims: str = NO_CLAIMS) -> str:
    """What the PostFilter plugins say where nobody is of lower priority; `claims` is DynamicResources' part."""
    counts = {"Preemption is not helpful for scheduling": hopeless}
    counts["No preemption victims found for incoming pod"] = nodes - hopeless
    parts = sorted(f"{count} {text}" for text, count in counts.items() if count)
    return f"{claims}preemption: 0/{nodes} nodes are available: {', '.join(parts)}."
