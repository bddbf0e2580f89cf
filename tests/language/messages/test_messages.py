"""Every sentence, word for word. UPDATE_MESSAGES=1 writes the files anew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from policysched.language import (
    Diagnostic,
    Environment,
    Span,
    Unit,
    Want,
    check_cost,
    code_table,
    compile_expression,
    diagnose,
    render,
)
from policysched.language.checking.compile import compile_cases
from policysched.language.checking.estimates import Cost
from tests.language.programs import compile_lets

FOLDER = Path(__file__).parent / "snapshots"
PHASES = {"appliesTo": "pod", "cases": "score"}
NESTED = "max(node.free.cpu) by node.zone"
for _ in range(4):
    NESTED = f"max({NESTED}) by node.zone"
VARIANTS = [
    ("E0100", "filter", "1 2"),
    ("E0100", "filter", "nöde"),
    ("E0100", "filter", 'p\u03bfd.name == "a"'),
    ("E0100", "filter", "node.ready\u00a0and true"),
    ("E0100", "filter", 'node.name in {"a"}'),
    ("E0100", "filter", 'node.name in ("a", "b")'),
    ("E0100", "filter", "node.free.memory > 4 Gi"),
    ("E0100", "filter", "node.age > 5 min"),
    ("E0100", "filter", "if node.ready then true"),
    ("E0100", "filter", 'node.labels["a"] is missing'),
    ("E0100", "filter", "sum by (node.zone) (node.free.cpu) > 3"),
    ("E0100", "filter", "sum(node.free.cpu) by (node.zone) > 3"),
    ("E0100", "filter", "\0"),
    ("E0100", "filter", '"a\\n"'),
    ("E0100", "filter", "node.name in [linux, arm]"),
    ("E0100", "filter", "node.name in []"),
    ("E0100", "filter", "node.free.cpu >= 2 cores"),
    ("E0100", "filter", "node.free.memory >= 2 GB"),
    ("E0100", "filter", "node.age > 5 minutes"),
    ("E0100", "filter", 'node.labels["a"] exists'),
    ("E0100", "cases", "when node.ready → 80"),
    ("E0100", "filter", '{{ node.name }} == "a"'),
    ("E0100", "filter", "node.ready\u200b"),
    ("E0100", "filter", "node.free.cpu > .5"),
    ("E0100", "filter", "node.free.cpu > 5."),
    ("E0100", "filter", "node.free.cpu > +5"),
    ("E0100", "filter", "node.free.cpu > 1,5"),
    ("E0100", "filter", "node.free.memory > 1_000k"),
    ("E0101", "filter", "node.ready;"),
    ("W0714", "filter", 'node.ready and pod.qos in ["gold", "Guaranteed"]'),
    ("W0714", "filter", 'not node.taints.has_effect("no_execute")'),
    ("W0714", "filter", 'not node.taints.has("node.kubernetes.io/disk-pressure:NoSchedule")'),
    ("W0714", "filter", 'not node.taints.has("NoSchedule")'),
    ("W0714", "filter", 'has(node.labels["disk=ssd"])'),
    ("W0714", "filter", 'has(node.labels["disk type"])'),
    ("W0714", "filter", 'node.labels["gpu"] == "A100*"'),
    ("W0714", "filter", 'node.labels["gpu"] != "A100,H100"'),
    ("W0714", "filter", 'pod.namespace == "Team A"'),
    ("W0714", "filter", 'starts_with(node.name, "gpu-*")'),
    ("W0714", "filter", 'glob(node.name, "^n[0-9]+$")'),
    ("W0714", "filter", 'node.labels["a"] == "{{ .Values.a }}"'),
    ("W0714", "filter", 'node.conditions["DiskPressure"] == "true"'),
    ("E0209", "preemption", "node.pods.any(peer.name == victim.name)"),
    ("E0301", "filter", "(metrics.cpu_load > 4Gi) ?? true"),
    ("E0301", "filter", "node.free.cpu > metrics.cpu_load"),
    ("E0301", "filter", 'node.free["hugepages-2Mi"] > 1Gi'),
    ("E0301", "filter", 'node.free.cpu > number(node.labels["cpu"])'),
    ("E0301", "filter", "node.free.memory > 2 + 2"),
    ("E0310", "filter", "metrics.cpu_load / node.allocatable.memory > 80%"),
    ("E0205", "filter", 'pod.claims.has("data")'),
    ("E0205", "filter", "pod.images.size() > 1"),
    ("E0205", "filter", 'cluster.pods.count(peer.labels["a"] == "b") < 2'),
    ("E0205", "filter", "cluster.nodes.count(node.ready) > 2"),
    ("E0205", "filter", "cluster.nodes.size() > 2"),
    ("E0205", "filter", 'pod.tolerations.has_effect("NoSchedule")'),
    ("E0206", "filter", "count(cluster.nodes, node.ready) > 2"),
    ("E0307", "filter", 'contains(pod.claims, "data")'),
    ("E0307", "filter", 'starts_with(pod.images, "registry.example/")'),
    ("E0307", "filter", 'concat("a", pod.priority) == node.name'),
    ("E0309", "filter", "any(cluster.nodes, node.ready)"),
    ("E0311", "filter", "number(pod.images) > 1"),
    ("E0209", "filter", 'node.pods.any(victim.labels["app"] == "db")'),
    ("E0202", "preemption", 'victim.qos == "BestEffort"'),
    ("E0202", "preemption", "victim.requests.cpu < 1"),
    ("E0204", "preemption", 'peer.labels["app"] == "db"'),
    ("E0204", "preemption", 'peer.qos == "BestEffort"'),
    ("E0205", "preemption", 'victim.tolerations.has("a")'),
    ("E0101", "filter", "node.ready // yes"),
    ("E0101", "filter", "$node.ready"),
    ("E0101", "filter", 'node.name ~= "a"'),
    ("E0101", "cases", "else: 80"),
    ("E0102", "filter", "node.age > 5milliseconds"),
    ("E0102", "filter", "node.age > 2months"),
    ("E0103", "filter", "node.name == 'a"),
    ("E0105", "filter", "hour(UTC) > 3"),
    ("E0101", "filter", "2 ** 3"),
    ("E0101", "filter", "10%3"),
    ("E0102", "filter", "node.free.cpu > 10cores"),
    ("E0102", "filter", "node.free.memory > 4mb"),
    ("E0102", "filter", "node.free.memory > 4gib"),
    ("E0102", "filter", "node.age > 5minutes"),
    ("E0102", "filter", "node.age > 1w"),
    ("E0102", "filter", "cluster.nodes > 1e3"),
    ("E0103", "filter", "node.name == “a”"),
    ("E0103", "filter", "node.name == ＂a＂"),
    ("E0105", "filter", "node.instanceType"),
    ("E0105", "filter", "true AND false"),
    ("E0105", "filter", 'node.labels["a"] == None'),
    ("E0105", "filter", 'node.labels["a"] != NULL'),
    ("E0105", "filter", "Null == node.zone"),
    ("E0105", "filter", "has(None)"),
    ("E0201", "filter", 'pod.requests["nvidia.com/gpu"] != null'),
    ("E0201", "filter", "node.free.cpu == null"),
    ("E0201", "filter", "pod.priority == null"),
    ("E0201", "filter", "node.ready != null"),
    ("E0202", "filter", '"nvidia.com/gpu" not in pod.requests'),
    ("E0205", "filter", 'pod.requests.has("nvidia.com/gpu")'),
    ("W0702", "filter", 'pod.requests["nvidia.com/gpu"] ?? 0 < node.free.pods'),
    ("W0703", "appliesTo", 'has(pod.requests["nvidia.com/gpu"])'),
    ("W0703", "filter", 'node.ready or has(node.free["nvidia.com/gpu"])'),
    ("W0703", "filter", "not has(pod.priority)"),
    ("W0703", "filter", "has(node.age)"),
    ("W0703", "filter", 'not node.pods.any(pod.labels["app"] == "db")'),
    ("W0703", "filter", "node.pods.count(node.ready) < 3"),
    ("W0703", "filter", "node.pods.sum(1, pod.priority > 3) < 3"),
    ("W0703", "filter", "node.pods.sum(pod.requests.cpu) < 3"),
    ("W0703", "filter", 'any(pod.images, pod.name == "a") or node.ready'),
    ("E0107", "filter", "1 " * 1100),
    ("E0101", "filter", "clock(22:00, 06:00)"),
    ("E0108", "filter", f"{NESTED} > 1"),
    ("E0201", "filter", "has"),
    ("E0201", "filter", 'node.labels["a"] == null'),
    ("E0201", "let", "a = 1\nb = a.x"),
    ("E0201", "filter", 'node.labels["a"] == gold'),
    ("E0201", "filter", 'zone == "a"'),
    ("E0201", "filter", "cpu_load > 3"),
    ("E0201", "filter", "cpu > 3"),
    ("E0201", "filter", "gpu > 0"),
    ("E0201", "appliesTo", "gpu > 0"),
    ("E0201", "appliesTo", "cpu > 1"),
    ("E0201", "filter", 'node.pods.any(labels["a"] == "b")'),
    ("E0201", "cases", "default → 80"),
    ("E0202", "filter", "node.cpu > 2"),
    ("E0202", "filter", "node.gpu > 0"),
    ("E0202", "filter", "pod.image == 2"),
    ("E0202", "filter", "node.pods.any(peer.limits.cpu > 2)"),
    ("E0206", "filter", "any(node.ready)"),
    ("E0206", "filter", "all(node.ready)"),
    ("E0308", "filter", "any(pod.images, item == node.name)"),
    ("E0309", "filter", 'any(pod.name, item == "a") and node.ready'),
    ("E0202", "filter", 'node.metadata.labels["a"] == "b"'),
    ("E0202", "filter", 'node.metadata.labels.team == "b"'),
    ("E0202", "filter", "node.status.capacity.cpu > 2"),
    ("E0202", "filter", "node.unschedulable"),
    ("E0202", "filter", 'node.namespace == "a"'),
    ("E0202", "filter", 'node.labels.example.com == "a"'),
    ("E0202", "filter", "node.free > 2"),
    ("E0202", "filter", "node.pods.size > 2"),
    ("E0202", "filter", "node.labels"),
    ("E0202", "filter", 'node.name["a"]'),
    ("E0202", "filter", "node.taints"),
    ("E0202", "filter", "node.taints.has"),
    ("E0202", "filter", "node.labels.team"),
    ("E0202", "filter", "node.free.gpu > 1"),
    ("E0202", "filter", "metrics"),
    ("E0202", "filter", "metrics.cpu_load.x > 1"),
    ("E0202", "filter", "node.pods.count > 1"),
    ("E0202", "filter", "node.pods > 1"),
    ("E0205", "filter", "node.pods.avg(peer.age) > 1h"),
    ("E0205", "filter", "node.pods.exists(true)"),
    ("E0205", "filter", 'exists(node.labels["a"])'),
    ("E0205", "filter", 'node.labels.has("a")'),
    ("E0205", "filter", 'node.name.starts_with("a")'),
    ("E0205", "filter", 'node.taints.contains("a")'),
    ("E0205", "filter", 'regex(node.name, "a.*")'),
    ("E0205", "filter", 'coalesce(node.zone, "a") == "a"'),
    ("E0203", "score", "metrics.laod"),
    ("E0206", "filter", "min(1, 2)"),
    ("E0206", "filter", "least()"),
    ("E0206", "filter", 'clock("22:00")'),
    ("E0206", "filter", 'hour("UTC", "UTC") > 1'),
    ("E0206", "filter", "node.taints.has()"),
    ("E0207", "let", "a = 1\na = 2"),
    ("E0208", "let", "Free = 1"),
    ("E0301", "filter", "node.free.memory + 1 > 1Gi"),
    ("E0301", "filter", "node.free.cpu - cluster.nodes > 1"),
    ("E0301", "filter", "cluster.nodes < 1 ?? true"),
    ("E0301", "filter", 'cluster.nodes in ["1"]'),
    ("E0301", "filter", 'node.labels["a"] in [1]'),
    ("E0301", "filter", "least(1min, 2) > 1min"),
    ("E0301", "filter", 'cluster.nodes == "3"'),
    ("E0301", "filter", '["a"] == ["a"]'),
    ("E0301", "filter", 'pod.namespace_labels["a"] == 3'),
    ("E0301", "filter", 'version(node.labels["a"]) > "1.2"'),
    ("E0301", "filter", 'version(node.labels["a"]) > 1.2'),
    ("E0301", "filter", "weekday() == 1"),
    ("E0302", "filter", "node.zone"),
    ("E0302", "filter", '"node.ready"'),
    ("E0302", "filter", "node.free.cpu"),
    ("E0302", "filter", 'node.zone == "a" or "b"'),
    ("E0302", "filter", 'node.zone == "a" or "node.ready"'),
    ("E0302", "filter", 'node.zone == "a" and "b"'),
    ("E0100", "filter", 'node.zone in ["a" "b"]'),
    ("E0302", "filter", 'split("a", ",")'),
    ("E0303", "filter", "-node.ready > 1"),
    ("E0306", "filter", "node.age in [1h, 2]"),
    ("E0303", "filter", "sum(node.name) > 1"),
    ("E0303", "filter", 'node.name + "-a" == "b-a"'),
    ("E0303", "filter", 'abs(split("a", ",")) > 1'),
    ("E0307", "filter", 'has(split("a", pod.name))'),
    ("E0307", "filter", 'clock(pod.labels["from"], "22:00")'),
    ("E0308", "filter", "node.pods.any(has(peer.labels[peer.name]))"),
    ("E0310", "filter", "1 / node.free.cpu > 1"),
    ("E0311", "filter", 'version(1.2) > version("1.1")'),
    ("E0312", "score", "scale(node.free.cpu, 1, 1)"),
    ("E0312", "score", "clamp(cluster.nodes, 2, 1)"),
    ("E0312", "filter", 'glob(node.name, "")'),
    ("E0312", "filter", 'clock("25:00", "06:00")'),
    ("E0312", "filter", 'clock("6:00", "06:00")'),
    ("E0312", "filter", 'clock("06:00", "06:00")'),
    ("E0312", "filter", 'weekday("Europe/Berln") == "mon"'),
    ("E0312", "filter", 'hour("here") == 1'),
    ("E0312", "filter", 'weekday() == "Monday"'),
    ("E0312", "filter", 'weekday() in ["sat", "sunday"]'),
    ("E0312", "filter", 'version(node.labels["a"]) > version("latest")'),
    ("E0402", "filter", "node.pods.count(node.pods.any(peer.name == pod.name)) > 1"),
    ("E0402", "let", "a = node.pods.count(true)\nb = node.pods.sum(a)"),
    ("E0403", "filter", "count(true) > 3"),
    ("E0403", "filter", "node.pods.any(sum(peer.requests.cpu) > 3)"),
    ("E0404", "filter", "sum(node.free.cpu) by pod.namespace > 3"),
    ("E0404", "let", "a = concat(node.zone, node.arch)\nb = sum(node.free.cpu) by a"),
    ("E0405", "appliesTo", "count(node.ready) > 1"),
    ("E0405", "appliesTo", "node.pods.any(true)"),
    ("E0405", "appliesTo", "metrics.cpu_load > 1"),
    ("E0501", "score", 'node.labels["a"]'),
    ("E0501", "cases", "node.ready → 1\nmissing → cluster.nodes"),
    ("E0503", "cases", "else → 1\nnode.ready → 2"),
    ("E0504", "cases", "false → 1\nelse → 2"),
    ("E0504", "cases", "node.ready → 1\nnode.ready → 2"),
    ("E0302", "filter", 'pod.namespace == ("prod" or "dev")'),
    ("E0302", "filter", 'pod.namespace == "prod" or "dev" or "test"'),
    ("E0302", "filter", 'pod.namespace != ("prod" and "dev")'),
    ("E0302", "filter", "node.ready and 3"),
    ("E0505", "score", "node.ready"),
    ("E0505", "score", "node.ready -> 80"),
    ("E0505", "score", f"{'node.ready and ' * 5}node.ready → 80"),
    ("E0505", "appliesTo", "pod.priority > 3 → 80"),
    ("E0505", "preemption", "victim.priority > 3 → 80"),
    ("E0505", "let", "a = node.ready → 80"),
    ("E0506", "score", "sum(normalize(node.free.cpu))"),
    ("E0506", "let", "a = normalize(node.free.cpu)\nb = node.pods.sum(a)"),
    ("W0701", "score", 'number(node.labels["a"])'),
    ("W0701", "filter", 'has(node.labels["a"]) and number(node.labels["a"]) < 1'),
    ("W0701", "cases", 'has(node.labels["a"]) → number(node.labels["a"])\nelse → 0'),
    ("W0701", "filter", "number(pod.name) < 1 or node.ready"),
    ("W0701", "filter", 'has(node.zone) and version(node.zone) < version("1.2")'),
    ("W0701", "filter", "sum(node.free.cpu) by node.labels[pod.name] > 1"),
    ("W0701", "filter", "number(node.labels[pod.name]) > 1"),
    ("W0701", "filter", 'number(node.labels[pod.labels["a"]]) > 1'),
    ("W0701", "filter", "avg(metrics.cpu_load) by node.zone < 1"),
    ("W0701", "filter", 'version(node.labels["a"]) > version("1.2")'),
    ("W0703", "cases", "node.ready → 1\ntrue → 2"),
    ("W0703", "filter", '"node.name" == "a"'),
    ("W0703", "filter", 'number("abc") > 3'),
    ("W0703", "filter", "only(false, 3) > 2"),
    ("W0703", "appliesTo", "false"),
    ("W0703", "filter", "1/0 > 2"),
    ("W0703", "score", "node.free.cpu / (1 - 1) / 1000m"),
    ("W0703", "let", "a = cluster.nodes / 0"),
    ("W0703", "filter", 'node.zone == "a" and node.zone == "b"'),
    ("W0703", "appliesTo", "hour() > 23"),
    ("W0703", "cases", "node.allocatable.cpu < 0 → 1\nelse → 20"),
    ("W0703", "cases", "node.free.cpu > 2 → 1\nnode.free.cpu > 4 → 2\nelse → 3"),
    ("W0703", "cases", "node.ready → 1\nnot node.ready → 2\nelse → 3"),
    ("W0703", "filter", 'node.labels["a"] != "x" or node.labels["a"] != "y"'),
    ("W0707", "score", "50 + node.free.cpu / node.allocatable.cpu"),
    ("W0707", "score", "scale(node.free.cpu / node.allocatable.cpu, 0%, 100%) / 100"),
    ("W0707", "score", "normalize(50)"),
    ("W0707", "score", "node.free.cpu / node.allocatable.cpu"),
    ("W0707", "score", "-node.allocatable.pods"),
    ("W0707", "score", "100 + node.allocatable.pods"),
    ("W0707", "cases", "node.ready → 50\nelse → 50"),
    ("E0202", "filter", "pod.requests.nvidia.com/gpu > 0"),
    ("E0202", "filter", "node.allocatable.ephemeral-storage > 1Gi"),
    ("E0202", "filter", 'node.labels.topology.kubernetes.io/zone == "a"'),
    ("E0202", "filter", '"spot" in node.taints'),
    ("E0202", "filter", '"disk" not in node.labels'),
    ("E0202", "filter", "node.allocatable.hugepages-2Mi > 0"),
    ("E0202", "filter", 'has(node.taints["spot"])'),
    ("E0206", "filter", 'has(node.taints, "spot")'),
    ("E0206", "filter", 'has(node.labels, "disk")'),
    ("E0206", "filter", "max(node.free.cpu, 2) > 1"),
    ("E0205", "filter", 'node.name.matches("gpu-.*")'),
    ("E0205", "filter", 'node.name.matches("^gpu-[0-9]+$")'),
    ("E0205", "filter", 'node.name.matches("^gpu-")'),
    ("E0205", "filter", 'node.name.matches("-[a]$")'),
    ("E0205", "filter", 'node.name.matches("-spot$")'),
    ("E0205", "filter", "node.name.matches(pod.name)"),
    ("E0105", "filter", 'node.name.startsWith("g")'),
    ("E0105", "filter", 'node.name.toLowerCase() == "g"'),
    ("E0105", "filter", 'node.name.startsWith(concat("g"))'),
    ("E0301", "filter", "node.age > 5m"),
    ("E0301", "filter", "node.age + 10m > 1h"),
    ("E0301", "filter", "node.age > 5M"),
    ("E0301", "filter", 'node.ready == "true"'),
    ("E0301", "filter", '"false" == node.ready'),
    ("E0302", "filter", '(pod.labels["y"] || "x") == "a"'),
    ("E0301", "filter", 'node.labels["x"] == true'),
    ("E0301", "filter", "node.name == false"),
    ("E0301", "filter", "node.name == node.ready"),
    ("E0305", "filter", "node.cordoned == false"),
    ("E0305", "filter", "(node.ready and node.cordoned) == false"),
    ("E0305", "filter", "node.cordoned and (node.ready or node.cordoned) == true"),
    ("E0305", "filter", "(not node.ready) == false"),
    ("E0305", "filter", '(node.name == "a") != true'),
    ("E0301", "filter", '(node.ready or node.cordoned) == "false"'),
    ("E0301", "filter", "node.age > 1.5m"),
    ("E0301", "filter", "node.age in [5m, 10m]"),
    ("E0301", "filter", "node.age > least(5m, 1h)"),
    ("E0301", "filter", "node.age >= 5m + 1h"),
    ("E0301", "filter", "node.age in [5, 6]"),
    ("E0301", "filter", 'node.age > number(node.labels["5m"])'),
    ("E0302", "filter", '(node.zone ?? "x") == "a" or "b"'),
    ("E0206", "filter", f'max(node.free.cpu, "{"a" * 70}")'),
    ("E0100", "filter", 'number(node.labels["a"]).orElse(0) * 2 > 5'),
    ("E0100", "filter", '(node.zone ?? "a").equals("b")'),
    ("E0205", "filter", 'node.zone.equals("b") == true'),
    ("E0100", "filter", '(node.labels["a"]  # one\n ?? "c").startsWith("x  y")'),
    ("E0202", "filter", '"a\\"b" in node.labels'),
    ("E0305", "filter", "node.ready != true"),
    ("E0305", "filter", "true == node.ready"),
    ("E0305", "filter", "node.ready == node.cordoned"),
    ("E0305", "filter", "node.name in [true]"),
    ("E0100", "filter", 'node.name in "a", "b"'),
    ("E0100", "filter", "hour() in 1, 2, 3, 4, 5, 6"),
    ("E0100", "filter", 'node.name in ("gpu-1", "gpu-2")'),
    ("E0100", "filter", "node.name in (linux, arm)"),
    ("E0100", "filter", 'node.name in {"gpu-1",  "gpu-2"}'),
    ("E0309", "filter", 'node.zone in "eu-a"'),
    ("E0309", "filter", 'node.zone not in "eu-a" or node.ready'),
    ("E0309", "filter", '"gpu" in node.name'),
    ("E0309", "filter", '"a" not in pod.labels["zones"]'),
    ("E0309", "filter", 'node.zone in pod.labels["zones"]'),
    ("E0309", "filter", "node.ready in true"),
    ("E0101", "filter", 'node.zone ?: pod.labels["z"] == "b"'),
    ("E0101", "filter", 'concat("a", pod.labels["z"]) ?: concat("a", "b") == "b"'),
    ("E0101", "filter", "?: 5"),
    ("E0100", "filter", "hour() in [22, 23, 0..5]"),
    ("E0100", "cases", "node.ready 10"),
    ("E0101", "cases", "node.ready = 10"),
    ("E0101", "cases", "node.ready => 10.5"),
    ("E0101", "cases", "node.ready --> 10"),
    ("E0101", "cases", "else = 10"),
    ("E0101", "cases", 'node.labels["a"] = "b" → 10'),
    ("E0100", "cases", "node.ready \u21d2 10"),
    ("E0100", "cases", "node.ready \u2013> 10"),
    ("E0100", "filter", "node.ready \u21d2 10"),
    ("E0100", "cases", "10"),
    ("E0100", "cases", "node.ready"),
    ("E0202", "filter", "pod.requests.nvidia.com/mig-1g.5gb > 0"),
    ("E0102", "filter", "node.free.cpu/2g > 1"),
    ("E0100", "cases", 'node.name in ["a", "b", "c", "d", "e", "f", "g", "h"] 10'),
    ("E0312", "filter", 'clock("22:00", "24:00")'),
    ("E0312", "filter", 'clock("5:00", "06:00")'),
    ("E0201", "filter", "now.hour > 3"),
    ("E0201", "filter", 'object.metadata.name == "a"'),
    ("E0201", "filter", "foo.bar > 1"),
    ("E0101", "filter", 'node.labels["a"] ?: "b" == "b"'),
    ("E0302", "filter", '!pod.labels["y"]'),
    ("E0302", "filter", "not node.free.cpu"),
    ("E0302", "appliesTo", 'pod.labels["y"]'),
    ("E0100", "filter", ""),
    ("E0100", "filter", "# nothing yet"),
    ("E0100", "cases", " "),
    ("E0100", "filter", 'node.labels["a"].contains("x")'),
    ("E0100", "filter", 'not (node.labels["a"] ?? "b").startsWith("x")'),
    ("E0100", "filter", 'concat("a", node.labels["b"]).matches("^a-.*$")'),
    ("E0100", "filter", 'node.labels["a"].exists()'),
    ("E0100", "filter", 'node.labels["a"].equals("x")'),
    ("E0100", "filter", 'node.labels["a"].orElse("x") == "x"'),
    ("E0100", "filter", 'node.labels["a"].toLowerCase() == "x"'),
    ("E0100", "filter", 'node.labels["a"].size() > 1'),
    ("E0100", "filter", '"abc".contain("b")'),
    (
        "E0100",
        "filter",
        'node.labels["app.kubernetes.io/a-name-that-is-very-long-indeed-and-longer"].contains(pod.name)',
    ),
    ("E0100", "filter", 'node.labels["a"].b == "x"'),
    ("E0100", "filter", 'pod.containers[0].image == "nginx"'),
    ("E0100", "filter", "pod.spec.containers[0].cpu > 1"),
    ("E0105", "filter", "node.metadata.creationTimestamp > 1h"),
    ("E0105", "filter", 'pod.spec.nodeName == "a"'),
    ("E0105", "filter", 'spec.nodeName == "a"'),
    ("E0105", "filter", 'nodeName == "a"'),
    ("E0105", "filter", 'instanceType == "a"'),
    ("E0105", "filter", 'object.spec.nodeName == "a"'),
    ("E0105", "filter", 'oldObject.metadata.labels["a"] == "b"'),
    ("E0105", "filter", "object.metadata.creationTimestamp > 1h"),
    ("E0105", "filter", 'object.metadata.name.startsWith("a")'),
    ("E0105", "filter", 'namespaceObject.metadata.labels["env"] == "prod"'),
    ("E0105", "filter", 'request.userInfo.username == "a"'),
    ("E0105", "filter", "variables.isGpu"),
    ("E0105", "filter", "now.getHours() >= 22"),
    ("E0100", "filter", 'object.spec.containers[0].image == "nginx"'),
    ("E0201", "filter", 'object.metadata.labels["a"] == "b"'),
    ("E0201", "appliesTo", 'object.metadata.labels["a"] == "b"'),
    ("E0201", "filter", 'namespace.name == "a"'),
    ("E0201", "filter", "object.spec.unschedulable"),
    ("E0105", "filter", "status.nodeInfo.bootID == pod.name"),
    ("E0202", "filter", 'pod.image == "nginx"'),
    ("E0202", "filter", '"nginx" in node.images'),
    ("E0202", "filter", 'node.pods.any(peer.spec.image == "nginx")'),
    ("E0202", "filter", "pod.init_containers > 1"),
    ("E0202", "filter", "node.created > 1h"),
    ("E0202", "filter", "pod.metadata.creation_timestamp > 1h"),
    ("E0202", "filter", "node.pods.any(peer.created > 1h)"),
    ("E0205", "filter", "node.name.length() > 3"),
    ("W0708", "filter", "node.free.cpu - pod.requests.cpu - 500 > 2"),
    ("W0708", "score", "(node.free.cpu + 1000) / 100m"),
    ("W0708", "score", "scale(node.free.cpu, 0, 1000)"),
    ("E0405", "appliesTo", "group.placed > 1"),
    ("E0405", "group", "pod.priority > 1"),
    ("E0406", "placement", "pod.priority > 1"),
]


def diagnostics(place: str, text: str) -> list[tuple[Diagnostic, str]]:
    """Return what a text gets where it stands, each with the line it is about."""
    environment = Environment(PHASES.get(place, place), metrics={"cpu_load": Unit.NUMBER})  # type: ignore[arg-type]
    if place == "let":
        lets = [tuple(line.split(" = ")) for line in text.split("\n")]
        compiled, _ = compile_lets(lets, environment)  # type: ignore[arg-type]
        names = [(item, let.name) for let in compiled for item in let.name_diagnostics]
        return names + [
            (item, value) for let, (_, value) in zip(compiled, lets, strict=True) for item in let.value.diagnostics
        ]
    if place == "cases":
        lines = text.split("\n")
        return [(item, lines[item.case or 0]) for item in compile_cases(lines, environment).diagnostics]
    want = Want.NUMBER if place == "score" else Want.CONDITION
    return [(item, text) for item in compile_expression(text, environment, want).diagnostics]


EXAMPLES = [(code, entry.place, entry.text) for code, entry in code_table().items() if entry.place != "policy"]


_ABSENT = {"input": "node.zone", "key": "team", "value": "a", "node": "n1"}
_ABSENT_VARIANTS = ("", "value", "namespace", "namespace_value", "metric", "number")
ELSEWHERE: dict[str, tuple[str, list[tuple[str, dict[str, str]]]]] = {
    "W0705": ("node.zone", [(variant, _ABSENT) for variant in _ABSENT_VARIANTS]),
    "W0706": (
        "a",
        [
            ("", {"character": "U+200B (zero width space)", "more": ""}),
            ("space", {"character": "U+00A0 (no-break space)", "more": " and 2 more"}),
        ],
    ),
    **dict.fromkeys(("W0709", "W0710", "W0712", "W0715"), ("a", [("", {"name": "a"})])),
    "W0711": ("0", [("", {}), ("policy", {})]),
    "W0713": ("", [("", {"name": "pod", "key": "team"})]),
}
"""What is not told of one text: the text that is shown, and the sentences with what fills them."""


@pytest.mark.parametrize("code", [*code_table()])
def test_messages_are_these(code: str) -> None:
    texts = [example for example in (*EXAMPLES, *VARIANTS) if example[0] == code]
    shown = [
        render(item, text if len(text) < 200 else text[:20], place)
        for _, place, whole in texts
        for item, text in diagnostics(place, whole)
    ]
    if code == "E0601":
        shown = [
            render(item, "", "policy") for item in (check_cost(Cost(0, 300, 0)), check_cost(Cost(0, 0, 25))) if item
        ]
        size = diagnose(code, "", Span(0, 0), "size", number=65, kind="rules", limit=64)
        limits = (("room", 300, 12000), ("places", 1, 512), ("queries", 3, 256))
        crowded = [diagnose(code, "", Span(0, 0), kind, number=number, limit=limit) for kind, number, limit in limits]
        shown += [render(one, "", "policy") for one in (size, *crowded)]
    if code in ELSEWHERE:
        text, given = ELSEWHERE[code]
        found = [diagnose(code, text, Span(0, len(text)), variant, **values) for variant, values in given]
        shown = [render(one, text, "policy") for one in found]
    if code == "E0100":
        shown += [render(item, "", "cases") for item in compile_cases([], Environment("score")).diagnostics]
    path = FOLDER / f"{code}.txt"
    text = "\n\n".join(shown) + "\n"
    if os.environ.get("UPDATE_MESSAGES"):
        path.write_text(text, "utf-8")
    assert path.read_text("utf-8") == text


@pytest.mark.parametrize(("code", "place", "text"), [*EXAMPLES, *VARIANTS])
def test_an_example_gets_its_code_alone(code: str, place: str, text: str) -> None:
    found = [item.code for item, _ in diagnostics(place, text)]
    assert found == [code]


def test_there_is_a_file_for_each_code() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(code_table())


@pytest.mark.parametrize("code", [*code_table()])
def test_every_sentence_of_a_code_is_shown(code: str) -> None:
    shown = (FOLDER / f"{code}.txt").read_text("utf-8")
    for message, _ in code_table()[code].sentences.values():
        start = message.split("{")[0]
        assert f"[{code}]: {start}" in shown


@pytest.mark.parametrize("code", [*code_table()])
def test_sentences_are_lower_case_without_full_stop(code: str) -> None:
    entry = code_table()[code]
    for sentence in (entry.title, *(text for pair in entry.sentences.values() for text in pair)):
        assert not sentence.endswith(".")
        assert sentence[:1] == sentence[:1].lower()
