"""Random cases for the allocator, with what is hard about it: each case has some of the features, not all.

Left out is what Kubernetes itself answers now so, now so: an attribute with and without its domain on one device, and
slices of one generation that count differently.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

Json = dict[str, Any]

DRIVERS: Final = ("a.io", "b.io")
NODES: Final = ("n0", "n1", "n2")
ZONES: Final = ("z0", "z1")
CLASSES: Final = ("c0", "c1", "c2")
FEATURES: Final = (
    "admin",
    "all",
    "alpha",
    "alternatives",
    "binding",
    "config",
    "constraints",
    "counters",
    "duplicates",
    "errors",
    "many",
    "per-device",
    "shares",
    "taints",
    "updates",
    "wide",
)
ATTRIBUTES: Final[dict[str, tuple[Json, ...]]] = {
    "model": ({"string": "A"}, {"string": "B"}, {"string": "1"}),
    "numa": ({"int": 0}, {"int": 1}, {"int": 2}),
    "on": ({"bool": True}, {"bool": False}),
    "version": ({"version": "1.2.3"}, {"version": "2.0.0"}),
    "x.io/root": ({"string": "r0"}, {"string": "r1"}, {"int": 1}, {"string": "1"}),
}
SELECTORS: Final = (
    'device.driver == "a.io"',
    'device.attributes["a.io"].?model.orValue("") == "A"',
    '"model" in device.attributes["a.io"] && device.attributes["a.io"].model == "A"',
    'device.attributes["a.io"].?numa.orValue(5) >= 1',
    'has(device.attributes["x.io"].root)',
    'device.capacity["a.io"].?memory.orValue(quantity("0")).compareTo(quantity("2Gi")) >= 0',
    "device.allowMultipleAllocations",
    'device.attributes["b.io"].exists(name, name == "on")',
    *("true",) * 8,
    "false",
)
LISTS: Final[tuple[Json, ...]] = (
    {"strings": ["A", "B"]},
    {"strings": ["r0"]},
    {"ints": [0, 1]},
    {"bools": [True]},
    {"versions": ["1.2.3"]},
)
FAILING: Final = (
    'device.attributes["a.io"].model == "A"',
    'device.attributes["a.io"].numa > 0',
    'device.attributes["x.io"].root == "r0"',
    'device.attributes["a.io"].on',
    'device.attributes["a.io"].missing == 1',
    "device.nothing",
)
CONSTRAINED: Final = ("a.io/numa", "a.io/model", "x.io/root", "b.io/on", "a.io/missing", "a.io/version")


class Cases:
    """Makes cases.

    Args:
        random: where they come from.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._features: set[str] = set()
        self._devices: list[tuple[str, str, str, bool]] = []

    def case(self) -> Json:
        """One case."""
        random = self._random
        self._features = set(random.sample(FEATURES, random.choice((1, 2, 3, 4, 6, 9))))
        self._devices = []
        slices = [one for number in range(self._pools()) for one in self._pool(number)]
        self._count_slices(slices)
        random.shuffle(slices)
        return {
            "nodes": [self._node(name) for name in NODES],
            "classes": [self._class(name) for name in CLASSES],
            "slices": slices,
            "claims": [self._claim(number) for number in range(random.choice((1, 1, 1, 2, 3)))],
            "allocated": self._allocated(),
        }

    def _is(self, feature: str, often: float = 0.5) -> bool:
        return feature in self._features and self._random.random() < often

    def _pools(self) -> int:
        """How many pools: few where many devices are asked for, since Kubernetes tries all combinations."""
        return self._random.randint(1, 2) if "many" in self._features else self._random.randint(2, 6)

    def _node(self, name: str) -> Json:
        return {"metadata": {"name": name, "labels": {"zone": self._random.choice(ZONES), "name": name}}}

    # Slices

    def _pool(self, number: int) -> list[Json]:
        random = self._random
        driver, name = random.choice(DRIVERS), f"p{random.choice((number, number, number, 0))}"
        where = self._reach()
        with_counters = self._is("counters", 0.8)
        parts = 1 if "many" in self._features else random.randint(1, 3)
        generation = random.randint(1, 2) if "updates" in self._features else 1
        slices = []
        for part in range(parts):
            devices = [
                self._device(driver, name, f"d{number}{part}{place}", with_counters)
                for place in range(random.randint(1, 4))
            ]
            here = where if random.random() < 0.8 else self._reach()
            slices.append(self._slice(f"s{number}-{part}", driver, name, generation) | {"devices": devices})
            slices[-1] |= here
            if here == {"perDeviceNodeSelection": True}:
                for device in devices:
                    device.update(self._device_reach())
        if with_counters:
            slices.append(self._slice(f"s{number}-c", driver, name, generation) | {"allNodes": True})
            slices[-1]["sharedCounters"] = self._counter_sets()
        if self._is("updates", 0.4):
            other = self._slice(f"s{number}-o", driver, name, generation + random.choice((-1, 1)))
            slices.append(other | {"devices": [self._device(driver, name, f"o{number}", False)]} | self._reach())
        return [{"metadata": {"name": one.pop("name")}, "spec": one} for one in slices]

    @staticmethod
    def _slice(name: str, driver: str, pool: str, generation: int) -> Json:
        return {"name": name, "driver": driver, "pool": {"name": pool, "generation": generation}}

    def _count_slices(self, slices: list[Json]) -> None:
        """Say in all slices of a pool's generation how many there are, which may be one more or less than there are."""
        generations: dict[tuple[str, ...], list[Json]] = {}
        for one in slices:
            pool = one["spec"]["pool"]
            generations.setdefault((one["spec"]["driver"], pool["name"], str(pool["generation"])), []).append(pool)
        for pools in generations.values():
            wrong = self._random.choice((-1, 1)) if self._is("updates", 0.2) else 0
            for pool in pools:
                pool["resourceSliceCount"] = len(pools) + wrong

    def _reach(self) -> Json:
        random = self._random
        if self._is("per-device", 0.4):
            return {"perDeviceNodeSelection": True}
        if not self._is("wide", 0.6):
            return {"nodeName": random.choice(NODES)}
        return random.choice(({"allNodes": True}, {"nodeSelector": self._selector()}))

    def _device_reach(self) -> Json:
        random = self._random
        return random.choice(
            ({"allNodes": True}, {"nodeName": random.choice(NODES)}, {"nodeSelector": self._selector()})
        )

    def _selector(self) -> Json:
        random = self._random
        one = random.choice(
            (
                {"key": "zone", "operator": "In", "values": [random.choice(ZONES)]},
                {"key": "zone", "operator": "Exists"},
                {"key": "name", "operator": "NotIn", "values": [random.choice(NODES)]},
            )
        )
        if random.random() < 0.2:
            field = {"key": "metadata.name", "operator": "In", "values": [random.choice(NODES)]}
            return {"nodeSelectorTerms": [{"matchFields": [field], "matchExpressions": [one]}]}
        return {"nodeSelectorTerms": [{"matchExpressions": [one]}]}

    def _counter_sets(self) -> list[Json]:
        random = self._random
        sets = [
            {"name": name, "counters": {each: {"value": str(random.randint(1, 6))} for each in ("c0", "c1")}}
            for name in ("s0", "s1")
        ]
        if self._is("duplicates", 0.2):
            sets[1]["name"] = "s0"
        return sets

    def _device(self, driver: str, pool: str, name: str, with_counters: bool) -> Json:
        random = self._random
        if self._is("duplicates", 0.15):
            name = "d000"
        device: Json = {"name": name, "attributes": self._attributes(driver)}
        if random.random() < 0.5:
            device["capacity"] = self._capacity()
        if with_counters and random.random() < 0.8:
            device["consumesCounters"] = self._consumed_counters()
        if self._is("shares", 0.6):
            device["allowMultipleAllocations"] = True
        if self._is("taints", 0.3):
            effects = ("NoSchedule", "NoExecute", "None", "Other")
            device["taints"] = [
                {"key": random.choice(("k", "l")), "value": random.choice(("", "v")), "effect": random.choice(effects)}
                for _ in range(random.randint(1, 2))
            ]
        if self._is("binding", 0.3):
            device |= {"bindingConditions": ["ready"], "bindingFailureConditions": ["failed"]}
        if self._is("binding", 0.3):
            device["bindsToNode"] = True
        self._devices.append((driver, pool, name, "allowMultipleAllocations" in device))
        return device

    def _attributes(self, driver: str) -> Json:
        random, found = self._random, {}
        for name, values in ATTRIBUTES.items():
            if random.random() < 0.75:
                full = f"{driver}/{name}" if "/" not in name and random.random() < 0.2 else name
                found[full] = random.choice(values)
        if self._is("errors", 0.06):
            found["bad"] = random.choice(({"version": "1.x"}, {"strings": ["a"]}, {"versions": ["1.0.0", "1.x"]}, {}))
        if self._is("alpha", 0.2):
            name = random.choice(("model", "x.io/root", "numa"))
            # With two attributes that cannot be read, the order of a Go map decides which one Kubernetes names.
            found.pop("bad", None)
            # With two spellings of one name, the order of a Go map decides which attribute Kubernetes reads.
            found[f"{driver}/{name}" if f"{driver}/{name}" in found else name] = random.choice(LISTS)
        return found

    def _consumed_counters(self) -> list[Json]:
        random = self._random
        counters = {each: {"value": str(random.randint(0, 3))} for each in random.sample(("c0", "c1"), 1)}
        if self._is("duplicates", 0.1):
            counters["c9"] = {"value": "1"}
        groups = {"compatibilityGroups": ["g"]} if self._is("alpha", 0.1) else {}
        return [
            {"counterSet": name, "counters": counters, **groups}
            for name in random.sample(("s0", "s1"), random.randint(1, 2))
        ]

    def _capacity(self) -> Json:
        random = self._random
        memory: Json = {"value": random.choice(("4Gi", "8Gi", "4096Mi", "10", "6G"))}
        if random.random() < 0.6:
            memory["requestPolicy"] = random.choice(
                (
                    {"default": "1Gi", "validValues": ["1Gi", "2Gi", "4Gi"]},
                    {"default": "1Gi", "validRange": {"min": "1Gi", "max": "3Gi"}},
                    {"default": "1024Mi", "validRange": {"min": "512Mi", "step": "512Mi"}},
                    {"default": "500m", "validRange": {"min": "1", "max": "8Gi", "step": "3"}},
                    {"default": "1", "validRange": {"min": "500m", "max": "8Gi", "step": "250m"}},
                    {"default": "1", "validRange": {"min": "0.1", "step": "300m"}},
                    {"default": "1k", "validValues": ["1000", "2k", "1e4"]},
                )
            )
        capacity = {"memory": memory}
        if random.random() < 0.3:
            capacity["cores"] = {"value": str(random.randint(1, 3))}
        return capacity

    # Claims and classes

    def _class(self, name: str) -> Json:
        random = self._random
        spec: Json = {"selectors": self._selectors(random.choice((0, 0, 1)))}
        if self._is("config"):
            spec["config"] = [{"opaque": {"driver": "a.io", "parameters": {"of": name}}}]
        return {"metadata": {"name": name}, "spec": spec}

    def _selectors(self, count: int) -> list[Json]:
        texts = FAILING if self._is("errors", 0.15) else SELECTORS
        return [{"cel": {"expression": self._random.choice(texts)}} for _ in range(count)]

    def _claim(self, number: int) -> Json:
        random = self._random
        requests = [self._request(f"r{place}") for place in range(random.choice((1, 1, 1, 2, 3)))]
        devices: Json = {"requests": requests}
        names = [one["name"] for one in requests]
        names += [f"{one['name']}/{each['name']}" for one in requests for each in one.get("firstAvailable", ())]
        if self._is("constraints", 0.9):
            devices["constraints"] = [self._constraint(names) for _ in range(random.randint(1, 2))]
        if self._is("config"):
            devices["config"] = [
                {"requests": random.sample(names, random.randint(0, len(names))), "opaque": {"driver": "a.io"}}
                for _ in range(2)
            ]
            for one in devices["config"]:
                one["opaque"]["parameters"] = {"x": random.randint(0, 9)}
        identity = {"name": f"claim{number}", "namespace": "ns", "uid": f"new-{number}"}
        return {"metadata": identity, "spec": {"devices": devices}}

    def _request(self, name: str) -> Json:
        if self._is("alternatives", 0.6):
            count = self._random.randint(1, 3)
            return {"name": name, "firstAvailable": [self._asked() | {"name": f"a{one}"} for one in range(count)]}
        exactly = self._asked()
        if self._is("admin"):
            exactly["adminAccess"] = self._random.random() < 0.9
        return {"name": name, "exactly": exactly}

    def _asked(self) -> Json:
        random = self._random
        asked: Json = {
            "deviceClassName": random.choice(CLASSES),
            "selectors": self._selectors(random.choice((0, 0, 0, 1, 1, 2))),
            "allocationMode": "ExactCount",
            "count": random.choice((1, 1, 1, 1, 2, 3)),
        }
        if self._is("many", 0.2):
            asked["count"] = random.choice((4, 5, 16, 31, 32, 33))
        if self._is("all", 0.3):
            asked["allocationMode"] = "All"
            del asked["count"]
        if self._is("taints"):
            asked["tolerations"] = [self._toleration() for _ in range(random.randint(0, 2))]
        if self._is("shares", 0.5):
            amounts = ("1", "2", "1Gi", "1500Mi", "2Gi", "5Gi", "0.5", "1.2", "1000", "1k", "1e3", "10P", "100u")
            asked["capacity"] = {"requests": {"memory": random.choice(amounts)}}
        if self._is("alpha", 0.06):
            asked["derivedAttributes"] = [{"name": "sum", "expression": "1"}]
        return asked

    def _toleration(self) -> Json:
        random = self._random
        toleration = {
            "key": random.choice(("k", "l", "")),
            "operator": random.choice(("Exists", "Equal")),
            "effect": random.choice(("", "NoSchedule", "NoExecute")),
        }
        if toleration["operator"] == "Equal":
            toleration["value"] = "v"
        return {name: value for name, value in toleration.items() if value}

    def _constraint(self, names: list[str]) -> Json:
        random = self._random
        kind = random.choice(("matchAttribute", "matchAttribute", "distinctAttribute"))
        requests = random.sample(names, random.randint(1, len(names))) if random.random() < 0.4 else []
        return {kind: random.choice(CONSTRAINED), "requests": requests}

    # Allocated claims

    def _allocated(self) -> list[Json]:
        random = self._random
        taken = random.sample(self._devices, random.randint(0, len(self._devices) // 3))
        return [self._holder(number, one) for number, one in enumerate([*taken, ("a.io", "p0", "gone", False)])]

    def _holder(self, number: int, device: tuple[str, str, str, bool]) -> Json:
        random = self._random
        driver, pool, name, is_shared = device
        result: Json = {"request": "r", "driver": driver, "pool": pool, "device": name}
        if is_shared and random.random() < 0.9:
            result["shareID"] = f"share-{number}"
            if random.random() < 0.8:
                result["consumedCapacity"] = {"memory": random.choice(("1Gi", "2Gi", "1", "3G"))}
        if self._is("admin", 0.3):
            result["adminAccess"] = True
        allocation = {"devices": {"results": [result]}}
        return {"metadata": {"name": f"held{number}", "uid": f"held-{number}"}, "status": {"allocation": allocation}}
