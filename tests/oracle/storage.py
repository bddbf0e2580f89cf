"""Cases about volumes: claims, volumes, storage classes, what CSI drivers say, disks that pods name themselves.

Knows nothing of how a case is answered. Nodes are roomy, so that the plugins before those of volumes leave nodes to
decide about. Volumes of one class have sizes of their own: of equal ones kube-scheduler takes any. A size without a
capacity is never stated: kube-scheduler panics at Score.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from . import disks, topology
from .storage_focus import FOCUSES, Focus, configuration
from .storage_things import thing

if TYPE_CHECKING:
    from random import Random

Case: TypeAlias = dict[str, Any]
Thing: TypeAlias = dict[str, Any]

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE, BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
ZONES = ["us-east1-b", "us-east1-c", "eu-w1-a"]
DRIVERS = ["csi.one", "csi.two"]
CLASSES = ["waits", "waits-too", "static", "at-once", "odd"]
ROOM = {"cpu": "64", "memory": "256Gi", "pods": "600"}
MODES = ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"]
DONE = "pv.kubernetes.io/bind-completed"
SELECTED = "volume.kubernetes.io/selected-node"
EPHEMERAL: Thing = {"ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}}
LEAVING = "2026-01-01T00:00:00Z"


def storage(rng: Random, name: str) -> Case:
    """Generate one case; `themes` tells what it is about and is no part of the question."""
    about = rng.choices([*FOCUSES], [4, 2, 2, 3])[0]
    world = World(rng, FOCUSES[about])
    world.fill()
    pod = world.pending()
    return {
        "id": name,
        "themes": [about],
        "objects": world.objects,
        "pod": pod,
        "config": configuration(rng),
    }


@dataclass
class World:
    """The objects of one case, as they are drawn."""

    rng: Random
    focus: Focus
    objects: list[Thing] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)
    volumes: list[str] = field(default_factory=list)
    claims: list[str] = field(default_factory=list)
    sizes: int = 0

    def chance(self, share: float) -> bool:
        """Draw whether something is so."""
        return self.rng.random() < share

    def fill(self) -> None:
        """Draw everything but the pod to schedule."""
        self.nodes = [f"node-{number}" for number in range(topology.node_count(self.rng))]
        self.objects += [self._node(name) for name in self.nodes]
        self.objects += [self._csi_node(name) for name in self.nodes if self.chance(self.focus.csi_nodes)]
        self.objects += [self._class(name) for name in CLASSES if self.chance(0.85)]
        self._bound_pairs()
        self._free_volumes()
        self._waiting_claims()
        self._residents()
        self._capacities()
        self._attachments()
        self.rng.shuffle(self.objects)

    def pending(self) -> Thing:
        """Draw the pod to schedule."""
        pod = self._pod("pending", most=3)
        for volume in pod["spec"]["volumes"]:
            if "ephemeral" in volume and self.chance(0.8):
                self._claim(f"pending-{volume['name']}", owner=pod if self.chance(0.9) else None)
        return pod

    def _node(self, name: str) -> Thing:
        labels = {"kubernetes.io/hostname": name}
        zone = self.rng.choice(ZONES)
        if self.chance(0.85):
            labels[ZONE if self.chance(0.85) else BETA_ZONE] = zone
        if self.chance(0.5):
            labels[REGION if self.chance(0.8) else BETA_REGION] = zone.rpartition("-")[0]
        for key in disks.TOPOLOGY_KEYS:
            if self.chance(0.4):
                labels[key] = zone
        return thing("Node", name, labels=labels, status={"capacity": ROOM, "allocatable": ROOM})

    def _csi_node(self, name: str) -> Thing:
        drivers = []
        for driver in (*DRIVERS, *disks.DRIVERS):
            if self.chance(self.focus.drivers):
                allocatable: Thing = {"count": self.rng.choice(self.focus.limits)} if self.chance(0.85) else {}
                drivers.append({"name": driver, "nodeID": name, "topologyKeys": [], "allocatable": allocatable})
        migrated = ",".join(plugin for plugin in disks.IN_TREE if self.chance(0.4))
        annotations = {"storage.alpha.kubernetes.io/migrated-plugins": migrated} if self.chance(0.7) else {}
        return thing("CSINode", name, annotations=annotations, spec={"drivers": drivers})

    def _class(self, name: str) -> Thing:
        mode = "Immediate" if name == "at-once" else "WaitForFirstConsumer"
        provisioner = (
            "kubernetes.io/no-provisioner" if name == "static" else self.rng.choice([*DRIVERS, *disks.IN_TREE])
        )
        if name == "odd":
            provisioner = self.rng.choice([provisioner, "kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"])
        found = thing("StorageClass", name, provisioner=provisioner, volumeBindingMode=mode)
        if self.chance(0.3):
            found["allowedTopologies"] = [
                {"matchLabelExpressions": [{"key": key, "values": self._zones()}]} if self.chance(0.9) else {}
                for key in self.rng.choices([ZONE, *disks.TOPOLOGY_KEYS], k=self.rng.choice([1, 1, 2]))
            ]
        return found

    def _zones(self) -> list[str]:
        return self.rng.sample(ZONES, self.rng.choice([1, 1, 2]))

    def _volume(self, name: str, of: str, claim: Thing | None, phase: str) -> None:
        self.sizes += 1
        spec: Thing = {
            "capacity": {"storage": f"{self.rng.choice([1, 5, 10]) * 1024 + self.sizes}Mi"},
            "accessModes": self.rng.sample(MODES, self.rng.choice([1, 2, 3])),
            "storageClassName": of,
            **disks.source(self.rng, name, DRIVERS),
        }
        if claim is not None:
            spec["claimRef"] = claim
        if self.chance(self.focus.affine):
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": self._terms()}} if self.chance(0.97) else {}
        if self.chance(0.1):
            spec["volumeMode"] = "Block"
        labels = {"tier": self.rng.choice(["a", "b"])} if self.chance(0.5) else {}
        for key in (ZONE, BETA_ZONE):
            if self.chance(self.focus.labelled):
                labels[key] = "__".join(self._zones()) if self.chance(0.95) else "__"
        if self.chance(0.15):
            labels[self.rng.choice([REGION, BETA_REGION])] = self.rng.choice(ZONES).rpartition("-")[0]
        leaving = LEAVING if self.chance(0.03) else None
        self.objects.append(
            thing("PersistentVolume", name, labels=labels, leaving=leaving, spec=spec, status={"phase": phase})
        )
        self.volumes.append(name)

    def _terms(self) -> list[Thing]:
        return [
            {"matchExpressions": [self._requirement() for _ in range(self.rng.choice([1, 1, 1, 2]))]}
            for _ in range(self.rng.choice([1, 1, 1, 2]))
        ]

    def _requirement(self) -> Thing:
        draw = self.rng.random()
        if draw < 0.15:
            names = self.rng.sample(self.nodes, min(len(self.nodes), self.rng.choice([1, 2, 4])))
            return {"key": "kubernetes.io/hostname", "operator": "In", "values": names}
        key = self.rng.choice([ZONE, ZONE, BETA_ZONE, *disks.TOPOLOGY_KEYS])
        if draw < 0.25:
            return {"key": key, "operator": self.rng.choice(["Exists", "DoesNotExist"])}
        operator = self.rng.choices(["In", "NotIn", "Strange"], [85, 13, 2])[0]
        return {"key": key, "operator": operator, "values": self._zones()}

    def _claim(
        self,
        name: str,
        *,
        volume: str = "",
        of: str | None = None,
        owner: Thing | None = None,
        annotations: dict[str, str] | None = None,
    ) -> None:
        annotations = dict(annotations or {})
        spec = self._claimed(volume, of)
        if self.chance(0.04):
            annotations["volume.beta.kubernetes.io/storage-class"] = self.rng.choice(CLASSES)
            spec.setdefault("storageClassName", "gone")  # without it kube-scheduler can panic at Score
        phase = "Lost" if self.chance(0.012) else "Bound" if volume else "Pending"
        leaving = LEAVING if self.chance(0.012) else None
        made = thing(
            "PersistentVolumeClaim", name, namespace="default", annotations=annotations, leaving=leaving,
            spec=spec, status={"phase": phase},
        )  # fmt: skip
        if owner is not None:
            identity = {"kind": "Pod", "apiVersion": "v1", "name": owner["metadata"]["name"]}
            made["metadata"]["ownerReferences"] = [{**identity, "uid": owner["metadata"]["uid"], "controller": True}]
        self.objects.append(made)
        self.claims.append(name)

    def _claimed(self, volume: str, of: str | None) -> Thing:
        """Make what a claim asks for."""
        rng = self.rng
        spec: Thing = {
            "accessModes": [MODES[3] if self.chance(self.focus.one_pod) else rng.choice(MODES[:3])],
            "resources": {"requests": {"storage": rng.choice(["1Gi", "1Gi", "3Gi", "7Gi", "100Gi"])}},
        }
        if self.chance(0.95):
            spec["storageClassName"] = (
                of if of is not None else rng.choices([*CLASSES, "gone", ""], [8, 6, 6, 1, 3, 0.4, 0.4])[0]
            )
        if volume:
            spec["volumeName"] = volume
        if self.chance(0.1):
            spec["volumeMode"] = rng.choice(["Block", "Filesystem"])
        if self.chance(0.15):
            spec["selector"] = rng.choice([{"matchLabels": {"tier": "a"}}, {"matchExpressions": [
                {"key": "tier", "operator": rng.choices(["In", "NotIn", "Strange"], [5, 5, 1])[0], "values": ["b"]}
            ]}])  # fmt: skip
        if self.chance(0.05):
            del spec["resources"]
        return spec

    def _bound_pairs(self) -> None:
        for number in range(self.rng.choice([2, 4, 8, 12])):
            of = self.rng.choice(CLASSES)
            name = f"bound-{number}"
            if self.chance(0.97):
                reference = {"namespace": "default", "name": name, "uid": f"uid-{name}"}
                self._volume(f"v-{name}", of, reference, "Bound")
            self._claim(name, volume=f"v-{name}", of=of, annotations={DONE: "yes"} if self.chance(0.98) else {})

    def _free_volumes(self) -> None:
        for number in range(self.rng.choice([0, 1, 3, 6, 12])):
            claim = None
            if self.chance(0.12):
                claim = {"namespace": "default", "name": f"waiting-{self.rng.randrange(4)}"}
                if self.chance(0.5):
                    claim["uid"] = self.rng.choice([f"uid-{claim['name']}", "uid-of-another"])
            phase = self.rng.choices(["Available", "Released", "Pending"], [90, 6, 4])[0]
            self._volume(f"free-{number}", self.rng.choice(CLASSES), claim, phase)

    def _waiting_claims(self) -> None:
        for number in range(self.rng.choice([1, 2, 4, 4])):
            annotations = {SELECTED: self.rng.choice([*self.nodes, "gone"])} if self.chance(0.1) else {}
            self._claim(f"waiting-{number}", annotations=annotations)

    def _residents(self) -> None:
        for number in range(self.rng.choice(self.focus.residents)):
            pod = self._pod(f"placed-{number}", most=2)
            pod["spec"]["nodeName"] = self.rng.choice([*self.nodes, *self.nodes, "gone"])
            for volume in pod["spec"]["volumes"]:
                if "ephemeral" in volume:
                    owner = pod if self.chance(0.97) else None
                    self._claim(f"{pod['metadata']['name']}-{volume['name']}", owner=owner)
            if self.chance(0.1):
                pod["status"] = {"phase": self.rng.choice(["Succeeded", "Failed"])}
            self.objects.append(pod)

    def _pod(self, name: str, most: int) -> Thing:
        volumes: list[Thing] = []
        for number in range(self.rng.randint(1, most)):
            source = {"persistentVolumeClaim": {"claimName": self._claim_name()}}
            if not self.chance(self.focus.claimed):
                source = self.rng.choices(
                    [disks.inline(self.rng), EPHEMERAL, {"secret": {"secretName": "s"}}], [6, 3, 1]
                )[0]
            volumes.append({"name": f"volume-{number}", **source})
        metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
        container = {"name": "c", "image": "registry.example.com/app:1"}
        spec = {"schedulerName": "policysched", "containers": [container], "volumes": volumes}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    def _claim_name(self) -> str:
        prefix = "bound-" if self.chance(self.focus.bound) else "waiting-"
        claims = [one for one in self.claims if one.startswith(prefix)]
        return self.rng.choice(claims) if claims and self.chance(0.985) else "none"

    def _capacities(self) -> None:
        required = self.rng.choice([*DRIVERS, *disks.DRIVERS, "", ""])  # of several kube-scheduler names any
        for driver in (*DRIVERS, *disks.DRIVERS):
            if driver == required or self.chance(0.4 if driver in DRIVERS else 0.1):
                spec = {
                    "storageCapacity": self.rng.choice([True, True, False, None]),
                    "preventPodSchedulingIfMissing": self.rng.choice([False, None]) if driver != required else True,
                }
                self.objects.append(thing("CSIDriver", driver, spec=spec))
        zoned = {of: self.chance(0.7) for of in CLASSES}
        amounts: dict[tuple[str, str], str] = {}  # of several that apply to a node kube-scheduler takes any
        for number in range(self.rng.choice([0, 3, 9])):
            of = self.rng.choice(CLASSES)
            zone = self.rng.choice(ZONES) if zoned[of] else ""
            made = thing("CSIStorageCapacity", f"capacity-{number}", namespace="kube-system", storageClassName=of)
            if self.chance(0.9):
                amount = self.rng.choice(["1Gi", "8Gi", "10Gi", "120Gi", "1Ti"])
                made["capacity"] = amounts.setdefault((of, zone), amount)
                if self.chance(0.2):
                    made["maximumVolumeSize"] = self.rng.choice(["1Gi", "5Gi"])
            if self.chance(0.9):
                made["nodeTopology"] = {"matchLabels": {ZONE: zone}} if zone else {}
            self.objects.append(made)

    def _attachments(self) -> None:
        for number in range(self.rng.choice([0, 0, 4, 10]) if self.volumes else 0):
            source: Thing = (
                {"persistentVolumeName": self.rng.choice([*self.volumes, "gone"])} if self.chance(0.95) else {}
            )
            spec = {
                "attacher": self.rng.choice([*DRIVERS, *disks.DRIVERS, ""]),
                "nodeName": self.rng.choice(self.nodes),
                "source": source,
            }
            self.objects.append(thing("VolumeAttachment", f"attachment-{number}", spec=spec))
