"""Resource slices and device classes for generated cases.

Knows nothing of claims. What a slice is for stands in its themes: a case about counters has many devices that consume
some, most other cases have none. Pools are small, since a search without a solution tries all combinations.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from random import Random

Thing: TypeAlias = dict[str, Any]

GPU, NIC = "gpu.example.com", "nic.example.com"
DRIVERS = (GPU, NIC)
ZONE = "topology.kubernetes.io/zone"
ZONES = ("a", "b")
EXTENDED = ("example.com/gpu", "example.com/nic")
IMPLICIT = "deviceclass.resource.kubernetes.io/"
CLASSES = ("gpu", "gpu-a", "nic", "any", "erring", "twin", "picky")
PARTS = {"memory": ("10Gi", "20Gi", "40Gi"), "slices": ("1", "2", "4")}
"""What devices consume of the counters of a set."""
WHOLE = {"memory": "40Gi", "slices": "7"}
TAINTS = ("NoSchedule", "NoSchedule", "NoExecute", "None", "Future")
POLICIES: tuple[Thing | None, ...] = (
    None,
    {"default": "4Gi", "validRange": {"min": "2Gi", "step": "2Gi", "max": "12Gi"}},
    {"default": "3Gi", "validRange": {"min": "3Gi", "step": "5Gi"}},
    {"default": "1Gi", "validRange": {"min": "1Gi"}},
    {"default": "8Gi", "validValues": ["2Gi", "5Gi", "8Gi"]},
    {"default": "5Gi"},
)


@dataclass
class Devices:
    """What the drivers of a case publish."""

    rng: Random
    themes: frozenset[str]
    nodes: list[str]
    slices: list[Thing] = field(default_factory=list)
    published: list[tuple[str, str, Thing]] = field(default_factory=list)
    """Driver, pool and device of everything that was drawn."""
    calm: bool = False
    """Whether there is much of everything, and seldom anything wrong."""
    _serial: int = 0

    def chance(self, share: float) -> bool:
        """Draw whether something is so."""
        return self.rng.random() < share

    def fill(self) -> None:
        """Draw all pools."""
        for node in self.nodes:
            for driver in DRIVERS:
                if self.chance((1.0 if self.calm else 0.8) if driver == GPU else 0.4):
                    self._pool(driver, self._pool_name(node, driver), {"nodeName": node})
        for number in range(self.rng.choice([0, 0, 1, 2]) if "pools" not in self.themes else self.rng.randint(1, 3)):
            self._pool(self.rng.choice(DRIVERS), f"shared-{number}", self._reach())
        self.rng.shuffle(self.slices)

    def _pool_name(self, node: str, driver: str) -> str:
        """Name a pool; two drivers may use one name, and its order is not that of the nodes."""
        if self.chance(0.8):
            return node
        return f"{self.rng.choice('azm')}-{node}" + ("" if self.chance(0.5) else f"-{driver[:3]}")

    def _reach(self) -> Thing:
        """Draw on which nodes a slice's devices are."""
        kind = self.rng.choice(["all", "labels", "names", "each", "each", "nothing"])
        if kind == "nothing" and not self.chance(0.3):
            kind = "all"
        match kind:
            case "all":
                return {"allNodes": True}
            case "labels":
                return {"nodeSelector": self._selector("matchExpressions", ZONE, ZONES)}
            case "names":
                return {"nodeSelector": self._selector("matchFields", "metadata.name", self.nodes)}
            case "each":
                return {"perDeviceNodeSelection": True}
        return {}

    def _selector(self, part: str, key: str, values: Any) -> Thing:
        chosen = self.rng.sample(list(values), 1)
        return {"nodeSelectorTerms": [{part: [{"key": key, "operator": "In", "values": chosen}]}]}

    def _pool(self, driver: str, name: str, reach: Thing) -> None:
        """Publish a pool: of one or two slices, in the middle of an update, or wrong."""
        odd = "pools" in self.themes
        generation = self.rng.randint(1, 3)
        devices = [self._device(number, reach) for number in range(self._count())]
        if odd and len(devices) > 1 and self.chance(0.2):
            devices[-1]["name"] = devices[0]["name"]
        sets = self._counters(devices) if "counters" in self.themes else []
        cut = self.rng.randint(0, len(devices)) if self.chance(0.4) else len(devices)
        parts = [part for part in (devices[:cut], devices[cut:]) if part] or [[]]
        count = len(parts) + bool(sets)
        told = count + (self.rng.choice([-1, 1, 1]) if odd and self.chance(0.2) else 0)
        pool = {"name": name, "generation": generation, "resourceSliceCount": max(told, 1)}
        for part in parts:
            self._slice(driver, pool, reach, devices=part)
        if sets:
            self._slice(driver, pool, reach, sharedCounters=sets)
        if odd and self.chance(0.3):
            self._other_generation(driver, pool, reach)
        self.published += [(driver, name, device) for device in devices]

    def _other_generation(self, driver: str, pool: Thing, reach: Thing) -> None:
        """Leave a slice of before, or publish the first one of what comes, perhaps for another node."""
        number = pool["generation"] + self.rng.choice([-1, -1, 1])
        where = reach if self.chance(0.6) or "nodeName" not in reach else {"nodeName": self.rng.choice(self.nodes)}
        late = {**pool, "generation": number, "resourceSliceCount": self.rng.choice([1, 2])}
        self._slice(driver, late, where, devices=[self._device(number, where) for number in range(2)])

    def _slice(self, driver: str, pool: Thing, reach: Thing, **content: Any) -> None:
        self._serial += 1
        name = f"{self.rng.choice('zkab')}{self._serial:03}-{driver[:3]}"
        self.slices.append(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "metadata": {"name": name, "uid": f"slice-{name}"},
                "spec": {"driver": driver, "pool": pool, **reach, **content},
            }
        )

    def _count(self) -> int:
        if "limits" in self.themes and self.chance(0.4):
            return self.rng.choice([31, 32, 33, 40])
        return self.rng.choice([4, 6, 8] if self.calm else [1, 2, 2, 3, 4, 5])

    def _device(self, number: int, reach: Thing) -> Thing:
        device: Thing = {"name": f"{self.rng.choice('dd0')}-{number}", "attributes": self._attributes()}
        if self.chance(0.5):
            device["capacity"] = {"memory": {"value": self.rng.choice(["8Gi", "40Gi", "80Gi", "16384Mi"])}}
        if "capacity" in self.themes and self.chance(0.7):
            self._share(device)
        if "taints" in self.themes and self.chance(0.4):
            device["taints"] = [self._taint() for _ in range(self.rng.choice([1, 1, 2]))]
        if "conditions" in self.themes and self.chance(0.35):
            device["bindingConditions"] = ["attached"]
            device["bindingFailureConditions"] = ["broken"]
            device["bindsToNode"] = self.chance(0.5)
        if reach.get("perDeviceNodeSelection"):
            device |= self._of_a_node()
        return device

    def _of_a_node(self) -> Thing:
        match self.rng.choice(["name", "name", "all", "labels", "fields"]):
            case "name":
                return {"nodeName": self.rng.choice(self.nodes)}
            case "all":
                return {"allNodes": True}
            case "labels":
                return {"nodeSelector": self._selector("matchExpressions", ZONE, ZONES)}
        return {"nodeSelector": self._selector("matchFields", "metadata.name", self.nodes)}

    def _attributes(self) -> Thing:
        """Draw attributes, some of which lack, have another type, or are named with their domain."""
        found: Thing = {"model": {"string": self.rng.choice("AABC")}}
        if self.chance(0.8):
            found["numa"] = {"int": self.rng.randint(0, 1)}
        if self.chance(0.6):
            found["healthy"] = {"bool": self.chance(0.7)}
        if self.chance(0.5):
            found["version"] = {"version": self.rng.choice(["1.2.3", "1.10.0", "2.0.0-rc.1"])}
        if self.chance(0.6):
            found["dra.example.com/root"] = {"string": f"pci{self.rng.randint(0, 1)}"}
        if self.chance(0.1):
            found["numa"] = {"string": "0"}
        if self.chance(0.1):
            del found["model"]
            found[f"{self.rng.choice(DRIVERS)}/model"] = {"string": "A"}
        return found

    def _share(self, device: Thing) -> None:
        """Let a device be allocated several times, by parts of its capacity."""
        device["allowMultipleAllocations"] = True
        policy = self.rng.choice(POLICIES)
        memory: Thing = {"value": self.rng.choice(["12Gi", "16Gi", "20Gi", "7"])}
        device["capacity"] = {"memory": memory | ({"requestPolicy": policy} if policy else {})}
        if self.chance(0.3):
            device["capacity"]["cores"] = {"value": "8"}
        if self.chance(0.1):
            del device["capacity"]

    def _taint(self) -> Thing:
        taint: Thing = {"key": self.rng.choice(["broken", "reserved"]), "effect": self.rng.choice(TAINTS)}
        if self.chance(0.6):
            taint["value"] = self.rng.choice(["yes", "no"])
        return taint | {"timeAdded": "2026-01-01T00:00:00Z"}

    def _counters(self, devices: list[Thing]) -> list[Thing]:
        """Give devices parts of counter sets, and the sets; some consume what is nowhere."""
        names = [f"set-{number}" for number in range(self.rng.choice([1, 1, 2]))]
        for device in devices:
            if self.chance(0.8):
                device["consumesCounters"] = [
                    {"counterSet": name, "counters": {key: {"value": self.rng.choice(PARTS[key])} for key in PARTS}}
                    for name in self.rng.sample(names, self.rng.randint(1, len(names)))
                ]
        if "pools" in self.themes and self.chance(0.1):
            names[-1] = names[0] if self.chance(0.5) else "another"
        counters = {key: {"value": value} for key, value in WHOLE.items()}
        return [{"name": name, "counters": counters} for name in names]


def classes(rng: Random, themes: frozenset[str], *, calm: bool) -> list[Thing]:
    """Draw the device classes that there are; now and then one lacks, and two of them have one extended resource."""
    found = []
    for name in CLASSES:
        if calm or rng.random() < (0.97 if name in CLASSES[:4] else 0.8):
            spec: Thing = {"selectors": [{"cel": {"expression": text}} for text in SELECTORS[name]]}
            if rng.random() < 0.3:
                spec["config"] = [opaque(rng, f"class-{name}") for _ in range(rng.choice([1, 2]))]
            if "extended" in themes and name in RESOURCES and rng.random() < 0.9:
                spec["extendedResourceName"] = RESOURCES[name]
            made = f"2026-01-0{rng.randint(1, 3)}T00:00:00Z"
            metadata = {"name": name, "uid": f"class-{name}", "creationTimestamp": made}
            found.append(
                {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": metadata, "spec": spec}
            )
    return found


RESOURCES = {"gpu": EXTENDED[0], "nic": EXTENDED[1], "twin": EXTENDED[0]}
SELECTORS = {
    "gpu": [f'device.driver == "{GPU}"'],
    "gpu-a": [f'device.driver == "{GPU}"', f'device.attributes["{GPU}"].model == "A"'],
    "nic": [f'device.driver == "{NIC}"'],
    "any": [],
    "erring": [f'device.attributes["{GPU}"].numa > 0'],
    "twin": [f'device.driver == "{GPU}" && device.attributes["{GPU}"].?model.orValue("A") == "A"'],
    "picky": [f'device.capacity["{GPU}"].memory.compareTo(quantity("20Gi")) >= 0'],
}
"""The selectors of classes: `erring` and `picky` fail on devices that lack what they read."""


def opaque(rng: Random, name: str, **more: Any) -> Thing:
    """Make a configuration for a driver."""
    return {"opaque": {"driver": rng.choice(DRIVERS), "parameters": {"of": name}}, **more}
