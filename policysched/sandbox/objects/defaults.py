"""Defaults that the API server fills into built-in objects on every write.

Functions here change a freshly decoded object in place; they see one object and nothing else of the cluster.
What needs the cluster (priority, service accounts) is admission's. Only defaults that someone reads are here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from policysched.sandbox.objects import Json
from policysched.sandbox.objects.resources import ApiResource

_NODE_INFO = (
    *("architecture", "bootID", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion"),
    *("kubeletVersion", "machineID", "operatingSystem", "osImage", "systemUUID"),
)


def fill(target: Json, **values: Any) -> None:
    """Set what is not set; camel-case names are the fields'."""
    for name, value in values.items():
        target.setdefault(name, value)


def apply_defaults(resource: ApiResource, obj: Json) -> None:
    """Fill in the defaults of the object's kind."""
    default = _DEFAULTS.get(resource.key)
    if default is not None and resource.custom is None:
        default(obj)


def pod_spec(spec: Json) -> None:
    """Fill in what pods and pod templates share."""
    fill(spec, restartPolicy="Always", dnsPolicy="ClusterFirst", schedulerName="default-scheduler")
    fill(spec, securityContext={}, terminationGracePeriodSeconds=30)
    if "serviceAccountName" in spec:
        spec["serviceAccount"] = spec["serviceAccountName"]
    elif "serviceAccount" in spec:
        spec["serviceAccountName"] = spec["serviceAccount"]
    for container in all_containers(spec):
        _container(container, host_network=bool(spec.get("hostNetwork")))
    for volume in spec.get("volumes") or ():
        _volume(volume)


def all_containers(spec: Json) -> list[Json]:
    """List the init containers and the containers of a pod."""
    return [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]


def _container(container: Json, *, host_network: bool) -> None:
    fill(container, resources={}, terminationMessagePath="/dev/termination-log")
    fill(container, terminationMessagePolicy="File")
    image = str(container.get("image", "")).rpartition("/")[2]
    floating = ":" not in image or image.endswith(":latest")
    fill(container, imagePullPolicy="Always" if floating and "@" not in image else "IfNotPresent")
    for port in container.get("ports") or ():
        fill(port, protocol="TCP")
        if host_network:
            fill(port, hostPort=port.get("containerPort"))
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if probe in container:
            _probe(container[probe])
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if reference:
            fill(reference, apiVersion="v1")


def _probe(probe: Json) -> None:
    fill(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
    if "httpGet" in probe:
        fill(probe["httpGet"], path="/", scheme="HTTP")


def _volume(volume: Json) -> None:
    if set(volume) == {"name"}:
        volume["emptyDir"] = {}
    for source in ("configMap", "secret", "downwardAPI", "projected"):
        if source in volume:
            fill(volume[source], defaultMode=420)
    if "hostPath" in volume:
        fill(volume["hostPath"], type="")


def _pod(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    pod_spec(spec)
    fill(spec, enableServiceLinks=True)
    for condition in (obj.get("status") or {}).get("conditions") or ():
        fill(condition, lastProbeTime=None, lastTransitionTime=None)
    for container in all_containers(spec):
        resources = container["resources"]
        if resources.get("limits"):
            resources["requests"] = resources["limits"] | (resources.get("requests") or {})


def _workload(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    fill(spec, replicas=1)
    template = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    pod_spec(template.setdefault("spec", {}))


def _deployment(obj: Json) -> None:
    _workload(obj)
    spec = obj["spec"]
    fill(spec, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = spec.setdefault("strategy", {})
    fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill(strategy.setdefault("rollingUpdate", {}), maxUnavailable="25%", maxSurge="25%")


def _stateful_set(obj: Json) -> None:
    _workload(obj)
    fill(obj["spec"], podManagementPolicy="OrderedReady", revisionHistoryLimit=10)
    fill(obj["spec"], updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 0}})
    fill(obj["spec"], persistentVolumeClaimRetentionPolicy={"whenDeleted": "Retain", "whenScaled": "Retain"})


def _daemon_set(obj: Json) -> None:
    _workload(obj)
    spec = obj["spec"]
    del spec["replicas"]
    fill(spec, revisionHistoryLimit=10)
    rolling = {"maxUnavailable": 1, "maxSurge": 0}
    fill(spec, updateStrategy={"type": "RollingUpdate", "rollingUpdate": rolling})


def _replication_controller(obj: Json) -> None:
    _workload(obj)
    labels = obj["spec"]["template"]["metadata"].get("labels")
    if labels:
        fill(obj["spec"], selector=labels)


def _service(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    fill(spec, type="ClusterIP", sessionAffinity="None")
    if spec["type"] != "ExternalName":
        fill(spec, ipFamilies=["IPv4"], ipFamilyPolicy="SingleStack", internalTrafficPolicy="Cluster")
    for port in spec.get("ports") or ():
        fill(port, protocol="TCP", targetPort=port.get("port"))
    obj.setdefault("status", {}).setdefault("loadBalancer", {})


def _node(obj: Json) -> None:
    obj.setdefault("spec", {})
    status = obj.setdefault("status", {})
    fill(status, daemonEndpoints={"kubeletEndpoint": {"Port": 0}})
    fill(status.setdefault("nodeInfo", {}), **dict.fromkeys(_NODE_INFO, ""))
    for condition in status.get("conditions") or ():
        fill(condition, lastHeartbeatTime=None, lastTransitionTime=None)
    if "capacity" in status:
        status["allocatable"] = status["capacity"] | (status.get("allocatable") or {})


def _volume_claim(obj: Json) -> None:
    fill(obj.setdefault("spec", {}), volumeMode="Filesystem")
    fill(obj.setdefault("status", {}), phase="Pending")


def _persistent_volume(obj: Json) -> None:
    fill(obj.setdefault("spec", {}), volumeMode="Filesystem", persistentVolumeReclaimPolicy="Retain")
    fill(obj.setdefault("status", {}), phase="Pending")


def _namespace(obj: Json) -> None:
    name = obj["metadata"].get("name")
    if name:
        labels = obj["metadata"].get("labels") or {}
        obj["metadata"]["labels"] = {"kubernetes.io/metadata.name": name} | labels
    fill(obj.setdefault("spec", {}), finalizers=["kubernetes"])
    fill(obj.setdefault("status", {}), phase="Active")


def _driver(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    fill(spec, attachRequired=True, podInfoOnMount=False, storageCapacity=False, requiresRepublish=False)
    fill(spec, fsGroupPolicy="ReadWriteOnceWithFSType", volumeLifecycleModes=["Persistent"], seLinuxMount=False)


def _device_requests(obj: Json) -> None:
    spec = obj.get("spec") or {}
    devices = (spec.get("spec") or spec).get("devices") or {}
    for request in devices.get("requests") or ():
        exact = request.get("exactly")
        for each in [exact] if exact is not None else request.get("firstAvailable") or ():
            fill(each, allocationMode="ExactCount")
            if each["allocationMode"] == "ExactCount":
                fill(each, count=1)


def _definition(crd: Json) -> None:
    spec = crd.setdefault("spec", {})
    names = spec.get("names") or {}
    if names.get("kind"):
        fill(names, singular=names["kind"].lower(), listKind=f"{names['kind']}List")
    fill(spec, conversion={"strategy": "None"})


_DEFAULTS: dict[str, Callable[[Json], None]] = {
    "pods": _pod,
    "nodes": _node,
    "namespaces": _namespace,
    "services": _service,
    "persistentvolumes": _persistent_volume,
    "persistentvolumeclaims": _volume_claim,
    "replicationcontrollers": _replication_controller,
    "secrets": lambda obj: fill(obj, type="Opaque"),
    "deployments.apps": _deployment,
    "replicasets.apps": _workload,
    "statefulsets.apps": _stateful_set,
    "daemonsets.apps": _daemon_set,
    "priorityclasses.scheduling.k8s.io": lambda obj: fill(obj, preemptionPolicy="PreemptLowerPriority"),
    "storageclasses.storage.k8s.io": lambda obj: fill(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate"),
    "csidrivers.storage.k8s.io": _driver,
    "resourceclaims.resource.k8s.io": _device_requests,
    "resourceclaimtemplates.resource.k8s.io": _device_requests,
    "customresourcedefinitions.apiextensions.k8s.io": _definition,
}
