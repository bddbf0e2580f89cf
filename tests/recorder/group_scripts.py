"""Random scripts about pod groups: a small cluster, groups that come in many ways, and other pods beside them.

Nodes never tie: the plugin `ranks` distinguishes nodes that are equal for all other plugins, whose weights it leaves
the last word by a factor. All pods and groups of a script have one priority, except members that are meant to be
refused for theirs: so no pod preempts another. Members are nominated only above the priority 0, that of the empty pods
as which kube-scheduler counts nominated members of the group under way. Steps have moments of their own, off the whole
seconds at which queues work. DynamicResources is off at PodGroupPostFilter: kube-scheduler's fails where no member got
as far as that plugin.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Any, Final

from tests.recorder.scripts import NAME, taking, written_node

Script = dict[str, Any]
Thing = dict[str, Any]
ZONE: Final = "topology.kubernetes.io/zone"
SECOND: Final = "second"
"""The name of another profile, with the same plugins."""
HOST: Final = "kubernetes.io/hostname"
WEIGHTS: Final = {
    "TaintToleration": 3, "NodeAffinity": 2, "NodeResourcesFit": 1, "PodTopologySpread": 2, "InterPodAffinity": 2,
    "NodeResourcesBalancedAllocation": 1, "ImageLocality": 1,
}  # fmt: skip
"""The plugins that score by default, with their weights."""
LAST_WORD: Final = 101
"""By what the weights are multiplied: more than `ranks` may give a node."""
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
TAINT: Final = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
TOLERATION: Final = {"key": "dedicated", "operator": "Exists"}
LENGTHS: Final = (*range(2, 11), *range(2, 11), 100)
"""How many things happen while a script runs."""
RECORDED: Final = ("preFilter", "postFilter", "reserve", "permit", "preBind", "postBind")
"""Points at which a plugin records the calls of some scripts."""
CLAIMING: Final = 0.2
"""What part of the scripts has devices: members claim some of their own, and the recorder objects to nobody then.

kube-scheduler waits in its cycle for what Unreserve writes to claims. Members that share a claim conflict there.
"""
FEW_STEPS: Final = 40
"""The scripts with fewer steps record the calls of Filter too, with the pods that are on the node then.

Unless members are nominated: kube-scheduler drops what Filter writes about a node that has a nominated pod.
"""
ODD: Final[dict[str, Thing]] = {
    "priority": {"more": 1},
    "policy": {"preemptionPolicy": "Never"},
    "gate": {"schedulingGates": [{"name": "example.com/wait"}]},
    "claim": {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "missing"}}]},
    "large": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "64"}}}]},
}
"""What one member of a group may have: fields of its spec, and by how much its priority is higher, as none preempts."""
_NO: Final = {"code": "Unschedulable", "reasons": ["not today"]}
_BROKEN: Final = {"code": "Error", "reasons": ["broken"]}
OBJECTIONS: Final = {
    "preFilter": (_NO, _BROKEN, {"nodes": ["n1", "n2"]}),
    "reserve": (_NO, _BROKEN),
    "permit": (_NO, _BROKEN, {"code": "Wait", "timeout": 2.0057}),
    "preBind": ({"pause": 0.0613, **_NO}, {"pause": 0.0613, **_BROKEN}, {"pause": 1.7}),
}
"""What the recorder may answer, by point. Bindings fail when mostly no group is in flight: in kube-scheduler, such a
failure ends the attempt of the group that was popped last."""
RACK: Final = "example.com/rack"
RACKS: Final = ("r1", "r2", "r3", "r4", "")
"""The values of `RACK`; the empty one is a domain in 1.37 only."""
PLACING: Final = {"NodeResourcesFit": 1, "PodGroupPodsCount": 1}
"""The plugins that score placements by default, with their weights."""
STEP: Final = 0.0137
"""What is between two things that happen in a row. Units: seconds."""


def group_scripts(
    seed: int, numbers: Iterable[int], *, eventful: bool = False, generators: int = 0
) -> Iterator[Script]:
    """Make scripts.

    Args:
        seed: Where the random numbers begin.
        numbers: Which scripts to make; each has random numbers of its own.
        eventful: Whether groups grow, shrink, change and go while the script runs.
        generators: How many plugins may generate placements; 0 without topologies. 1.37 allows one.
    """
    for number in numbers:
        name = f"{seed}-{'events' if eventful else 'groups'}{generators or ''}-{number}"
        yield _Maker(Random(name), generators).script(name, eventful=eventful)


def written_group(name: str, min_count: int | None = None, **spec: Any) -> Thing:
    """Write a pod group: a gang, or a basic group without a count."""
    policy: Thing = {"basic": {}} if min_count is None else {"gang": {"minCount": min_count}}
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": policy, **spec},
    }  # fmt: skip


def written_member(name: str, group: str | None, cpu: str = "1", **spec: Any) -> Thing:
    """Write a pod, which belongs to a group unless that is None."""
    written: Thing = {
        "schedulerName": NAME, "priority": 0,
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}],
        **({} if group is None else {"schedulingGroup": {"podGroupName": group}}), **spec,
    }  # fmt: skip
    metadata = {"name": name, "namespace": "default", "labels": {"app": group or "none"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": written}


def written_script(
    name: str, ranks: dict[str, int], steps: list[Any], *, until: float, recorded: bool = False
) -> Script:
    """Write a script with the default plugins, the gate of pod groups and an order of nodes.

    Args:
        name: Its name.
        ranks: The nodes in use, each with a number of its own below 101: of equal nodes the highest is taken.
        steps: What happens, in order.
        until: When it ends. Units: seconds.
        recorded: Whether a plugin records calls.
    """
    score = [{"name": one, "weight": weight * LAST_WORD} for one, weight in WEIGHTS.items()]
    lists: Thing = {"score": {"enabled": [*score, {"name": "ranks", "weight": 1}], "disabled": [{"name": "*"}]}}
    plugins: list[Thing] = [{"name": "ranks", "ranks": ranks}]
    if recorded:
        lists |= {point: {"enabled": [{"name": "recorder-a"}]} for point in RECORDED}
        plugins.append({"name": "recorder-a", "answers": {}, "takes": taking("a"), "plainFilter": True, "events": []})
    profiles = [{"schedulerName": one, "plugins": lists} for one in (NAME, SECOND)]
    return {
        "id": name,
        "gates": {"GenericWorkload": True},
        "config": {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "percentageOfNodesToScore": 100,
            "parallelism": 1,
            "profiles": profiles,
        },
        "plugins": plugins,
        "steps": steps,
        "until": until,
    }


def place_by_topology(script: Script, ranks: dict[str, int], key: str = "") -> None:
    """Place the groups of a script by topology, with placements that never tie and in the order of their names.

    Args:
        script: The script, which is changed.
        ranks: A number below 101 for placements, by name: of equal placements the highest is taken.
        key: A label by whose values a second plugin divides the nodes; empty without one.
    """
    script["gates"]["TopologyAwareWorkloadScheduling"] = True
    score = [{"name": one, "weight": weight * LAST_WORD} for one, weight in PLACING.items()]
    everything = [{"name": "*"}]
    generate = [{"name": "placing"}, *([{"name": "dividing"}] if key else [])]
    for profile in script["config"]["profiles"]:
        profile["plugins"] |= {
            "placementGenerate": {"enabled": generate, "disabled": everything},
            "placementScore": {"enabled": [*score, {"name": "placing", "weight": 1}], "disabled": everything},
        }
    script["plugins"].insert(0, {"name": "placing", "placements": {"ranks": ranks}})
    if key:
        script["plugins"].insert(0, {"name": "dividing", "placements": {"key": key, "ranks": {}}})


def constrained(key: str) -> Thing:
    """Write the field of a pod group's spec that constrains it to one value of a label."""
    return {"schedulingConstraints": {"topology": [{"key": key}]}}


def _resource(kind: str, metadata: Thing, spec: Thing) -> Thing:
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec}


class _Maker:
    def __init__(self, rng: Random, generators: int = 0) -> None:
        self.rng = rng
        self.generators = generators
        """How many plugins may generate placements; 0 without topologies."""
        count = rng.choice((1, 2, 3, 4, 5, 6, 8, 8, 12, 12, 24)) if rng.random() < 0.97 else 0
        self.nodes = [f"n{number}" for number in range(1, count + 1)]
        self.priority = rng.choice((0, 0, 0, 100))
        """The priority of all pods and groups."""
        self.placed = 0
        """How many pods were placed before the scheduler starts."""
        self.at = 0.5173
        """When the next thing happens."""
        self.steps: list[Any] = []
        self.gone: set[tuple[str, str]] = set()
        """The kinds and names of objects that are deleted."""
        self.members: dict[str, list[Thing]] = {}
        """The members of each group, as they were written last."""
        self.groups: dict[str, Thing] = {}
        self.domains: dict[str, dict[str, str]] = {}
        """The labels of nodes, which stay with topologies."""
        self.claims = rng.random() < CLAIMING
        """Whether nodes have devices, and groups claims for them."""
        self.shares = self.claims and rng.random() < 0.5
        """Whether the first member of each group uses a claim of the group."""

    def script(self, name: str, *, eventful: bool) -> Script:
        rng = self.rng
        spare = [f"n{number}" for number in range(30, 33)]
        ranks = dict(zip([*self.nodes, *spare], rng.sample(range(101), len(self.nodes) + 3), strict=True))
        self.steps = [{"at": 0.011, "set": self.node(one)} for one in self.nodes]
        self.steps += [{"at": 0.012, "set": one} for one in self.devices()]
        self.steps += [{"at": 0.013, "set": pod} for pod in self.residents()]
        for number in range(rng.choice((1, 1, 1, 2, 3) if not eventful else (1, 2, 3))):
            self.group(f"g{number}")
        for _ in range(rng.choice(LENGTHS) if eventful else 0):
            self.at += rng.choice((0.0, 0.3, 1.1, 4.3))
            rng.choice(HAPPENINGS)(self, spare)
        until = round(self.at + rng.choice((40.0, 90.0)), 4)
        script = written_script(name, ranks, self.steps, until=until, recorded=rng.random() < 0.4)
        nominated = any("nominatedNodeName" in one["set"].get("status", {}) for one in self.steps if "set" in one)
        if len(self.steps) < FEW_STEPS and len(script["plugins"]) > 1 and not nominated:
            script["config"]["profiles"][0]["plugins"]["filter"] = {"enabled": [{"name": "recorder-a"}]}
        script["config"]["profiles"][0]["plugins"]["podGroupPostFilter"] = {"disabled": [{"name": "DynamicResources"}]}
        if len(script["plugins"]) > 1 and not self.claims and rng.random() < 0.6:
            script["plugins"][-1]["answers"] = self.answers()
        if self.generators:
            self.place(script)
        script["gates"]["DRAWorkloadResourceClaims"] = self.shares
        return script

    def place(self, script: Script) -> None:
        """Place groups by topology, sometimes divided by another label too."""
        key = ZONE if self.generators > 1 and self.rng.random() < 0.3 else ""
        nodes = [f"n{number}" for number in range(1, 33)]
        ranks: dict[str, int] = {}
        for values in (RACKS, nodes, ("a", "b")):
            names = [*values] if not key else [f"{one}/{zone}" for one in values for zone in ("a", "b")]
            ranks |= zip(names, self.rng.sample(range(101), len(names)), strict=True)
        place_by_topology(script, {**ranks, "a": 1, "b": 2} if key else ranks, key)

    def answers(self) -> Thing:
        """Have the recorder object to some members in their first cycles."""
        rng = self.rng
        pods = [one["set"]["metadata"]["name"] for one in self.steps if one.get("set", {}).get("kind") == "Pod"]
        objecting: Thing = {}
        for point in rng.sample(sorted(OBJECTIONS), rng.choice((1, 1, 2))):
            for pod in rng.sample(pods, min(len(pods), rng.choice((1, 2, 5)))):
                cycles = [rng.choice((*OBJECTIONS[point], {})) for _ in range(rng.randint(1, 3))]
                objecting.setdefault(point, {})[pod] = cycles
        return objecting

    def happens(self, **what: Any) -> None:
        """Add a step with a moment of its own."""
        self.steps.append({"at": round(self.at, 4), **copy.deepcopy(what)})
        self.at += STEP

    def node(self, name: str) -> Thing:
        rng = self.rng
        made: Thing = written_node(name, **({ZONE: rng.choice("ab")} if rng.random() < 0.9 else {}))
        if self.generators:
            if rng.random() < 0.9:
                made["metadata"]["labels"][RACK] = rng.choices(RACKS, (9, 9, 6, 3, 1))[0]
            made["metadata"]["labels"] = self.domains.setdefault(name, made["metadata"]["labels"])
        amounts = {"cpu": rng.choice(("1", "2", "4", "8")), "memory": "16Gi", "pods": rng.choice(("4", "20", "40"))}
        made["status"] = {"allocatable": amounts, "capacity": amounts}
        made["spec"] = {"taints": [TAINT]} if rng.random() < 0.15 else {}
        if rng.random() < 0.04:
            made["spec"]["unschedulable"] = True
        return made

    def devices(self) -> Iterator[Thing]:
        """Give nodes devices, if the script has claims."""
        if self.claims:
            yield _resource("DeviceClass", {"name": "gpu"}, {})
            for node in self.nodes:
                devices = [{"name": f"gpu-{number}"} for number in range(self.rng.choice((0, 1, 2, 4, 8)))]
                pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
                spec = {"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": devices}
                yield _resource("ResourceSlice", {"name": node}, spec)

    def claim(self, name: str) -> None:
        """Bring a claim for devices."""
        asked = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": self.rng.choice((1, 1, 2))}
        spec = {"devices": {"requests": [{"name": "gpu", "exactly": asked}]}}
        self.happens(set=_resource("ResourceClaim", {"name": name, "namespace": "default"}, spec))

    def share(self, group: str, pod: Thing) -> None:
        """Bring a claim of a group that one of its pods uses: pods that write it at the same time conflict."""
        self.claim(f"{group}-shared")
        entry = {"name": "shared", "resourceClaimName": f"{group}-shared"}
        self.groups[group]["spec"]["resourceClaims"] = [entry]
        pod["spec"]["resourceClaims"] = [*pod["spec"].get("resourceClaims", ()), entry]

    def residents(self) -> Iterator[Thing]:
        """Place pods of no group."""
        for number in range(self.rng.randint(0, len(self.nodes))):
            pod = written_member(f"old{number}", None, self.rng.choice(("500m", "1", "2")), priority=self.priority)
            pod["metadata"]["labels"] = {"app": self.rng.choice(("none", "g0"))}
            pod["spec"]["nodeName"] = self.some_node()
            yield pod

    def group(self, name: str) -> None:
        """Bring a group: its object and its members in some order, with other pods between them."""
        rng = self.rng
        size = rng.choices((rng.randint(1, 5), rng.randint(6, 16), rng.randint(17, 64)), (6, 3, 1))[0]
        least = rng.choice((1, max(size // 2, 1), max(size - 1, 1), size, size, size + 1, size + 3))
        self.groups[name] = written_group(name, None if rng.random() < 0.25 else least, **self.spec_of_group())
        scheduler = SECOND if rng.random() < 0.1 else NAME
        kinds = [self.kind(name, scheduler) for _ in range(rng.choice((1, 1, 2, 3)))]
        pods = [self.member(name, f"{name}-{number}", kinds) for number in range(size)]
        if self.shares:
            self.share(name, pods[0])
        if rng.random() < 0.25:
            self.odd(rng.choice(pods))
        self.members[name] = pods
        objects = [*pods]
        for _ in range(rng.choice((0, 0, 1, 2))):
            self.placed += 1
            other = written_member(f"single{self.placed}", None, rng.choice(("500m", "2")), priority=self.priority)
            objects.insert(rng.randint(0, size), other)
        where = rng.choices((0, len(objects), rng.randint(0, len(objects)), None), (4, 5, 2, 1))[0]
        if where is not None:
            objects.insert(where, self.groups[name])
        pause = rng.choice((STEP, STEP, STEP, 0.2, 1.3))
        for one in objects:
            self.happens(set=one)
            self.at += pause - STEP

    def spec_of_group(self) -> Thing:
        spec: Thing = {"priority": self.priority} if self.priority or self.rng.random() < 0.5 else {}
        if self.rng.random() < 0.1:
            spec["disruptionMode"] = {"single": {}}
        if self.generators and self.rng.random() < 0.8:
            spec |= constrained(self.rng.choices((RACK, ZONE, HOST, "example.com/none"), (12, 4, 2, 1))[0])
        return spec

    def kind(self, group: str, scheduler: str) -> Thing:
        """Draw what members of one kind ask for."""
        rng = self.rng
        spec: Thing = {"priority": self.priority, "schedulerName": scheduler}
        peers = {"labelSelector": {"matchLabels": {"app": group}}}
        affinity: Thing = {}
        if rng.random() < 0.3:
            spec["tolerations"] = [TOLERATION]
        if rng.random() < 0.15:
            spec["nodeSelector"] = {ZONE: rng.choice("ab")}
        if self.nodes and rng.random() < 0.15:
            names = rng.sample(self.nodes, rng.randint(1, len(self.nodes)))
            term = {"matchExpressions": [{"key": HOST, "operator": rng.choice(("In", "NotIn")), "values": names}]}
            affinity["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": [term]}}
        if rng.random() < 0.2:
            affinity["podAntiAffinity"] = {REQUIRED: [{"topologyKey": rng.choice((HOST, HOST, ZONE)), **peers}]}
        elif rng.random() < 0.15:
            affinity["podAffinity"] = {REQUIRED: [{"topologyKey": rng.choice((ZONE, ZONE, HOST)), **peers}]}
        elif rng.random() < 0.2:
            key = rng.choice((ZONE, HOST))
            spread = {"maxSkew": rng.choice((1, 2)), "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", **peers}
            spec["topologySpreadConstraints"] = [spread]
        if affinity:
            spec["affinity"] = affinity
        cpu, port = rng.choice(("100m", "500m", "1", "1", "2", "3")), rng.random() < 0.07
        return {"cpu": cpu, "spec": spec, "port": port, "claim": self.claims and rng.random() < 0.7}

    def member(self, group: str, name: str, kinds: list[Thing]) -> Thing:
        drawn = self.rng.choice(kinds)
        made = written_member(name, group, drawn["cpu"], **drawn["spec"])
        if drawn["port"]:
            made["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
        if drawn["claim"]:
            self.claim(name)
            made["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": name}]
            made["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
        elif not drawn["port"] and self.may_be_placed(name) and self.rng.random() < (0.2 if self.generators else 0.04):
            made["spec"]["nodeName"] = self.some_node()
        if self.generators and self.priority and "nodeName" not in made["spec"] and self.rng.random() < 0.2:
            made["status"] = {"nominatedNodeName": self.some_node()}
        return made

    def may_be_placed(self, name: str) -> bool:
        """Return whether a member may come with a node: with topologies, only the first member of a group.

        kube-scheduler names any one of several members that have no common domain.
        """
        return not self.generators or name.endswith("-0")

    def odd(self, pod: Thing) -> None:
        """Give a member something that no other member has."""
        rng, spec = self.rng, pod["spec"]
        spec["containers"][0].pop("ports", None)  # two pods with one host port on a node are counted differently
        pod.pop("status", None)  # kube-scheduler counts nominated pods as empty ones if they are not in its queue
        what = rng.choice((*ODD, "terminating", *(() if self.generators else ("placed", "scheduler"))))
        if what == "placed":
            spec["nodeName"] = self.some_node()
        elif what == "terminating":
            pod["metadata"] |= {"deletionTimestamp": "2000-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}
        elif what == "scheduler":
            spec["schedulerName"] = rng.choice(("somebody-else", SECOND))
            spec |= {"nodeName": self.some_node()} if rng.random() < 0.5 else {}
        else:
            spec |= copy.deepcopy(ODD[what])
            spec["priority"] += spec.pop("more", 0)

    def some_node(self) -> str:
        return self.rng.choice(self.nodes or ["n0"])

    def some_group(self) -> str:
        return self.rng.choice(sorted(self.groups))

    def remove(self, kind: str, name: str) -> None:
        if (kind, name) not in self.gone and any(
            (one["set"]["kind"], one["set"]["metadata"]["name"]) == (kind, name) for one in self.steps if "set" in one
        ):
            self.gone.add((kind, name))
            self.happens(remove={"kind": kind, "name": name})

    def bring(self, thing: Thing) -> None:
        self.gone.discard((thing["kind"], thing["metadata"]["name"]))
        self.happens(set=thing)


def _grow(maker: _Maker, _spare: list[str]) -> None:
    """Bring more members."""
    group = maker.some_group()
    kinds = [maker.kind(group, maker.members[group][0]["spec"]["schedulerName"])]
    for _ in range(maker.rng.choice((1, 1, 2, 5))):
        pod = maker.member(group, f"{group}-{len(maker.members[group])}", kinds)
        maker.members[group].append(pod)
        maker.bring(pod)


def _shrink(maker: _Maker, _spare: list[str]) -> None:
    """Delete members that gate nobody: kube-scheduler leaves the others gated for up to five minutes."""
    members = [pod for pod in maker.members[maker.some_group()] if "schedulingGates" not in pod["spec"]]
    for pod in maker.rng.sample(members, min(len(members), maker.rng.choice((1, 1, 2, 5)))):
        maker.remove("Pod", pod["metadata"]["name"])


def _delete(maker: _Maker, _spare: list[str]) -> None:
    """Delete a group's object, or bring it again as another one."""
    name = maker.some_group()
    if ("PodGroup", name) not in maker.gone:
        maker.remove("PodGroup", name)
    else:
        maker.groups[name]["metadata"]["uid"] = f"{name}-{len(maker.steps)}"
        maker.bring(maker.groups[name])


def _bring(maker: _Maker, _spare: list[str]) -> None:
    """Bring a group's object where it is missing."""
    for name in sorted(maker.groups):
        written = any(one["set"]["metadata"]["name"] == name for one in maker.steps if "set" in one)
        if not written or ("PodGroup", name) in maker.gone:
            maker.groups[name]["metadata"]["uid"] = f"{name}-{len(maker.steps)}"
            maker.bring(maker.groups[name])


def _count(maker: _Maker, _spare: list[str]) -> None:
    """Change a gang's minCount."""
    name = maker.some_group()
    policy = maker.groups[name]["spec"]["schedulingPolicy"]
    if "gang" not in policy or ("PodGroup", name) in maker.gone:
        return
    changed = max(policy["gang"]["minCount"] + maker.rng.choice((-3, -2, -1, -1, 1, 2)), 1)
    maker.groups[name] = copy.deepcopy(maker.groups[name])
    maker.groups[name]["spec"]["schedulingPolicy"] = {"gang": {"minCount": changed}}
    maker.bring(maker.groups[name])


def _node(maker: _Maker, spare: list[str]) -> None:
    """Add a node, delete one, or change one."""
    if spare and maker.rng.random() < 0.6:
        maker.nodes.append(spare.pop())
        maker.bring(maker.node(maker.nodes[-1]))
    elif len(maker.nodes) > 1 and maker.rng.random() < 0.3 and not maker.generators:
        maker.remove("Node", maker.nodes.pop(maker.rng.randrange(len(maker.nodes))))
    elif maker.nodes:
        maker.bring(maker.node(maker.rng.choice(maker.nodes)))


def _ungate(maker: _Maker, _spare: list[str]) -> None:
    """Remove the scheduling gates of members."""
    for pods in maker.members.values():
        for number, pod in enumerate(pods):
            if pod["spec"].get("schedulingGates") and ("Pod", pod["metadata"]["name"]) not in maker.gone:
                pods[number] = copy.deepcopy(pod)
                del pods[number]["spec"]["schedulingGates"]
                maker.bring(pods[number])


def _other(maker: _Maker, _spare: list[str]) -> None:
    """Bring a pod of no group, or delete one."""
    rng = maker.rng
    if rng.random() < 0.5 or not maker.placed:
        maker.placed += 1
        cpu = rng.choice(("500m", "2"))
        maker.bring(written_member(f"single{maker.placed}", None, cpu, priority=maker.priority))
    else:
        maker.remove("Pod", rng.choice((f"single{rng.randint(1, maker.placed)}", f"old{rng.randint(0, 3)}")))


def _leave(maker: _Maker, _spare: list[str]) -> None:
    """Delete a group with all its members."""
    name = maker.some_group()
    first = maker.rng.random() < 0.5
    if first:
        maker.remove("PodGroup", name)
    for pod in sorted(maker.members[name], key=lambda pod: "schedulingGates" in pod["spec"]):
        maker.remove("Pod", pod["metadata"]["name"])
    if not first:
        maker.remove("PodGroup", name)


HAPPENINGS: Final[tuple[Callable[[_Maker, list[str]], None], ...]] = (
    _grow, _grow, _shrink, _delete, _bring, _count, _count, _node, _node, _ungate, _other, _other, _leave,
)  # fmt: skip
"""What may happen while a script runs."""
