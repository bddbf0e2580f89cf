"""What a dry-run makes of a workload is what real controllers make of it."""

from __future__ import annotations

from typing import Any

import pytest

from policysched.app.files.workload_pods import controlled
from tests.e2e.objects import Json
from tests.e2e.server import Server
from tests.e2e.waiting import until

SPEC: Json = {
    "schedulerName": "nobody",
    "containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": 1}}}],
}
TEMPLATE: Json = {"metadata": {"labels": {"app": "web"}}, "spec": SPEC}
SELECTOR: Json = {"selector": {"matchLabels": {"app": "web"}}}
CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
WORKLOADS = {
    "Deployment": ("/apis/apps/v1/namespaces/default/deployments", SELECTOR),
    "ReplicaSet": ("/apis/apps/v1/namespaces/default/replicasets", SELECTOR),
    "StatefulSet": (
        "/apis/apps/v1/namespaces/default/statefulsets",
        {**SELECTOR, "serviceName": "web", "volumeClaimTemplates": [CLAIM]},
    ),
    "Job": ("/apis/batch/v1/namespaces/default/jobs", {}),
}
BY_UID = {"controller-uid", "batch.kubernetes.io/controller-uid"}
"""Labels whose values nobody can know before."""


async def _made(server: Server, kind: str) -> tuple[Json, Json]:
    """Create a workload and wait for its pod; give both as they were first written."""
    path, spec = WORKLOADS[kind]
    job = {"restartPolicy": "Never"} if kind == "Job" else {}
    template = {**TEMPLATE, "spec": {**SPEC, **job}}
    version = path.split("/namespaces")[0].removeprefix("/apis/")
    workload = {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": "web"},
        "spec": {**spec, "template": template},
    }
    await server.call("POST", path, workload)
    [pod] = await until(lambda: server.objects("Pod"), bool)
    return workload, pod


@pytest.mark.controlplane
@pytest.mark.parametrize("kind", WORKLOADS)
async def test_controllers_make_the_pod_that_is_decided_about(real_server: Server, kind: str) -> None:
    workload, pod = await _made(real_server, kind)
    sets = (await real_server.call("GET", "/apis/apps/v1/namespaces/default/replicasets"))["items"]
    objects = [{"kind": "ReplicaSet", **one} for one in sets]
    template = workload["spec"]["template"]
    mine = {"kind": "Pod", **template, "metadata": {**template["metadata"], "name": "web", "namespace": "default"}}
    found = controlled(workload, mine, objects).pod
    assert _identity(found) == _identity(pod)


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet"])
async def test_the_sandboxs_controllers_make_it_too(server: Server, kind: str) -> None:
    workload, pod = await _made(server, kind)
    mine = {**workload["spec"]["template"], "kind": "Pod"}
    mine["metadata"] = {**mine["metadata"], "name": "web", "namespace": "default"}
    sets = (await server.call("GET", "/apis/apps/v1/namespaces/default/replicasets"))["items"]
    found = controlled(workload, mine, [{"kind": "ReplicaSet", **one} for one in sets]).pod
    assert _identity(found) == _identity(pod)


def _identity(pod: Json) -> dict[str, Any]:
    """Give what controllers write into a pod, without what is drawn at random."""
    metadata = pod["metadata"]
    labels = {
        key: value if "revision" not in key else "any" for key, value in metadata["labels"].items() if key not in BY_UID
    }
    owners = [(one["apiVersion"], one["kind"], one["name"], one["controller"]) for one in metadata["ownerReferences"]]
    claims = [one["persistentVolumeClaim"] for one in pod["spec"].get("volumes", ()) if "persistentVolumeClaim" in one]
    return {"name": metadata["generateName"], "labels": labels, "owners": owners, "claims": claims}
