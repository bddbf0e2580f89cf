"""Resource claims for generated cases: what they ask for, and what they were given before.

Knows nothing of pods. Most claims ask for little of the devices that there are, so that a claim is allocated on some
nodes and refused on others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from .published import DRIVERS, GPU, ZONE, ZONES, opaque

if TYPE_CHECKING:
    from random import Random

    from .published import Devices

Thing: TypeAlias = dict[str, Any]

USUAL = ("gpu", "gpu", "gpu-a", "any", "nic")
RARE = ("erring", "twin", "picky", "gone")
TEXTS = (
    f'device.attributes["{GPU}"].model == "A"',
    f'device.attributes["{GPU}"].model in ["A", "B"]',
    f'device.attributes["{GPU}"].numa == 0',
    f'device.attributes["{GPU}"].?numa.orValue(7) == 1',
    f'device.attributes["{GPU}"].healthy',
    f'has(device.attributes["{GPU}"].healthy) && device.attributes["{GPU}"].healthy',
    f'device.attributes["{GPU}"].version.isGreaterThan(semver("1.9.0"))',
    f'device.capacity["{GPU}"].memory.isGreaterThan(quantity("9Gi"))',
    'device.attributes["dra.example.com"].root == "pci0"',
    'device.driver.startsWith("gpu")',
    "device.allowMultipleAllocations",
    "true",
)
SAFE = (TEXTS[3], TEXTS[5], TEXTS[9], TEXTS[10], TEXTS[11])
"""Those that fail on no device."""
ERRING = ('device.attributes["nowhere"].x', "device.driver", f'device.attributes["{GPU}"].model', "1 / 0 == 1")
ATTRIBUTES = (f"{GPU}/model", f"{GPU}/numa", "dra.example.com/root", f"{GPU}/version", f"{GPU}/nowhere")
AMOUNTS = ("1Gi", "2Gi", "3Gi", "5Gi", "7Gi", "8Gi", "13Gi", "3", "2500m")
SOME_SHARE = "11111111-1111-1111-1111-11111111111"


@dataclass
class Claims:
    """Draws the claims of a case."""

    rng: Random
    themes: frozenset[str]
    devices: Devices
    calm: bool = False
    """Whether claims ask for little, and seldom for anything that fails."""
    _serial: int = 0

    def chance(self, share: float) -> bool:
        """Draw whether something is so."""
        return self.rng.random() < share

    def claim(self, name: str, **metadata: Any) -> Thing:
        """Draw a claim that has nothing yet."""
        requests = [
            self._request(f"r{number}") for number in range(self.rng.choice([1] if self.calm else [1, 1, 1, 2, 3]))
        ]
        spec: Thing = {"requests": requests}
        names = [*_names(requests)]
        if "constraints" in self.themes or self.chance(0.1):
            spec["constraints"] = [self._constraint(names) for _ in range(self.rng.choice([1, 1, 2]))]
        if self.chance(0.2):
            of: Thing = {} if self.chance(0.4) else {"requests": self.rng.sample(names, 1)}
            spec["config"] = [opaque(self.rng, "claim", **of)]
        return claim(name, spec, **metadata)

    def _request(self, name: str) -> Thing:
        if self.chance(0.6 if "alternatives" in self.themes else 0.05):
            count = self.rng.choice([1, 2, 2, 3])
            return {"name": name, "firstAvailable": [self._wanted({"name": f"a{n}"}) for n in range(count)]}
        return {"name": name, "exactly": self._wanted({}, admin="admin" in self.themes and self.chance(0.5))}

    def _wanted(self, wanted: Thing, *, admin: bool = False) -> Thing:
        """Draw what is asked for; what the API server fills in may be left out."""
        rare = not self.calm and self.chance(0.4 if "errors" in self.themes else 0.04)
        wanted["deviceClassName"] = self.rng.choice(RARE if rare else USUAL)
        if self.chance(0.0 if self.calm else 0.25 if {"all", "pools", "limits"} & self.themes else 0.06):
            wanted["allocationMode"] = "All"
        elif self.chance(0.8):
            wanted |= {"allocationMode": "ExactCount", "count": self._count()}
        if self.chance(0.2 if self.calm else 0.4):
            wanted["selectors"] = [self._selector() for _ in range(self.rng.choice([1, 1, 2]))]
        if "taints" in self.themes and self.chance(0.4):
            wanted["tolerations"] = [self._toleration() for _ in range(self.rng.choice([1, 2]))]
        if "capacity" in self.themes and self.chance(0.7):
            wanted["capacity"] = {"requests": self._amounts()}
        if admin:
            wanted["adminAccess"] = True
        return wanted

    def _count(self) -> int:
        if "limits" in self.themes and self.chance(0.4):
            return self.rng.choice([33, 33, 34, 40])  # less would have kube-scheduler try all combinations
        if "constraints" in self.themes:
            return self.rng.choice([1, 2, 3, 3])
        return self.rng.choice([1, 1, 1, 2] if self.calm else [1, 1, 1, 2, 2, 3])

    def _selector(self) -> Thing:
        wrong = not self.calm and self.chance(0.2 if "errors" in self.themes else 0.02)
        texts = ERRING if wrong else SAFE if self.calm else TEXTS
        return {"cel": {"expression": self.rng.choice(texts)}}

    def _toleration(self) -> Thing:
        found: Thing = {"operator": self.rng.choice(["Exists", "Equal"])}
        if found["operator"] == "Equal" or self.chance(0.8):
            found["key"] = self.rng.choice(["broken", "reserved"])
        if found["operator"] == "Equal":
            found["value"] = self.rng.choice(["yes", "no", ""])
        if self.chance(0.6):
            found["effect"] = self.rng.choice(["NoSchedule", "NoExecute"])
        return found

    def _amounts(self) -> Thing:
        found = {"memory": self.rng.choice(AMOUNTS)} if self.chance(0.85) else {}
        if self.chance(0.2):
            found["cores"] = self.rng.choice(["1", "4", "9"])
        return found

    def _constraint(self, names: list[str]) -> Thing:
        kind = self.rng.choice(["matchAttribute", "distinctAttribute"])
        found: Thing = {kind: self.rng.choices(ATTRIBUTES, [4, 3, 2, 2, 1])[0]}
        if self.chance(0.5):
            found["requests"] = self.rng.sample(names, self.rng.randint(1, len(names)))
        return found

    def allocated(self, name: str, **metadata: Any) -> Thing:
        """Draw a claim that was given devices, which may be published no more."""
        self._serial += 1
        results, nodes = [], [*self.devices.nodes]
        for number in range(self.rng.choice([1, 1, 2])):
            driver, pool, device = self._device()
            results.append(self._result(f"r{number}", driver, pool, device))
        allocation: Thing = {"devices": {"results": results}}
        if self.chance(0.7):
            allocation["nodeSelector"] = self._where(nodes)
        if self.chance(0.5):
            allocation["allocationTimestamp"] = "2026-01-01T00:00:00Z"
        wanted = [{"name": one["request"], "exactly": {"deviceClassName": "any"}} for one in results]
        made = claim(name, {"requests": wanted}, **metadata)
        made["status"] = {"allocation": allocation}
        if self.chance(0.6):
            made["status"]["reservedFor"] = [{"resource": "pods", "name": "other", "uid": "other"}]
        if "conditions" in self.themes:
            made["status"]["devices"] = [self._state(one) for one in results]
        return made

    def _device(self) -> tuple[str, str, Thing]:
        if self.devices.published and self.chance(0.9):
            return self.rng.choice(self.devices.published)
        return self.rng.choice(DRIVERS), "gone", {"name": "gone"}

    def _result(self, request: str, driver: str, pool: str, device: Thing) -> Thing:
        made = {"request": request, "driver": driver, "pool": pool, "device": device["name"]}
        if device.get("allowMultipleAllocations") and self.chance(0.9):
            self._serial += 1
            made["shareID"] = f"{SOME_SHARE}{self._serial % 10}"
            if "capacity" in device:
                made["consumedCapacity"] = {"memory": self.rng.choice(["2Gi", "5Gi", "8Gi", "30Gi"])}
        elif self.chance(0.1):
            made["adminAccess"] = True
        if "bindingConditions" in device:
            made |= {key: device[key] for key in ("bindingConditions", "bindingFailureConditions")}
        return made

    def _where(self, nodes: list[str]) -> Thing:
        if self.chance(0.7):
            rule = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [self.rng.choice(nodes)]}]}
        else:
            values = [self.rng.choice(ZONES)]
            rule = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": values}]}
        return {"nodeSelectorTerms": [rule]}

    def _state(self, result: Thing) -> Thing:
        """Draw what a driver says of a device that it was to attach."""
        kind, status = self.rng.choice(["attached", "attached", "broken"]), self.rng.choice(["True", "True", "False"])
        condition = {"type": kind, "status": status, "reason": "Said", "message": "so", "lastTransitionTime": None}
        return {key: result[key] for key in ("driver", "pool", "device")} | {"conditions": [condition]}


def claim(name: str, devices: Thing, **metadata: Any) -> Thing:
    """Make a claim; its UID is made of its name."""
    of = {"name": name, "namespace": "default", "uid": f"claim-{name}", **metadata}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": of, "spec": {"devices": devices}}


def _names(requests: list[Thing]) -> list[str]:
    """Give the names that constraints and configurations may use."""
    found = [one["name"] for one in requests]
    return found + [f"{one['name']}/{sub['name']}" for one in requests for sub in one.get("firstAvailable", ())]
