"""Fields and values that an API server refuses, in the pod of a dry-run and in the pods of tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from policysched.model.kinds import KINDS

from .conftest import Command

POD = """kind: Pod
metadata: {name: web}
spec:
  containers:
  - {name: c, image: i, resources: {requests: {cpu: 1}}}
"""
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PROBLEMS = [
    'c04-typos.yaml:5:3: pod "default/web": spec.nodeselector: unknown field; did you mean `nodeSelector`?',
    'c04-typos.yaml:6:3: pod "default/web": spec.toleration: unknown field; did you mean `tolerations`?',
    'c04-typos.yaml:7:36: pod "default/web": spec.containers[0].resource: unknown field; did you mean `resources`?',
]


def test_each_misspelt_field_of_a_pod_is_named_with_the_nearest_name(command: Command) -> None:
    done = command("dry-run", "--cluster", "nodes3.yaml", "--pod", "c04-typos.yaml")
    assert (done.code, done.out) == (2, "")
    assert done.problem.splitlines() == [f"error: {one}" for one in PROBLEMS]


def test_misspelt_fields_of_pods_of_tests_are_errors(command: Command) -> None:
    done = command("test", "c34-tests.yaml")
    assert done.code == 2
    said = " ".join(done.out.split())
    assert '6:16: pod "new": spec.nodeselector: unknown field; did you mean `nodeSelector`?' in said
    assert '9:49: pod "new": spec.containers[0].resource: unknown field; did you mean `resources`?' in said


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("cpu: 1", "cpu: -1", '5:53: .*: spec.containers[0].resources.requests.cpu: invalid value: "-1"'),
        ("cpu: 1", "gpu: 0.5", "5:53: .*must be a standard resource for containers"),
        ("cpu: 1", "example.com/gpu: 0.5", "5:65: .*must be an integer"),
        ("cpu: 1}", "cpu: 2}, limits: {cpu: 1}", "must be less than or equal to cpu limit of 1"),
        ("cpu: 1}", "example.com/gpu: 2}, limits: {example.com/gpu: 3}", "must be equal to example.com/gpu limit of 3"),
        ("cpu: 1", "example.com/gpu: 1", "resources.limits.example.com/gpu: required value"),
        ("cpu: 1", "cpu: 1x", "5:53: .*quantities must match"),
        ("name: c, ", "ports: [{containerPort: 99999}], name: c, ", "5:30: .*must be between 1 and 65535"),
        ("name: c, ", "ports: [{hostPort: 1}], name: c, ", "containerPort: required value"),
        ("name: c, ", "", "containers[0].name: required value"),
        ("name: c, ", "name: C, ", "a lowercase RFC 1123 label"),
        ("  containers", "  tolerations: [{key: a, effect: NoSchedul}]\n  containers", "4:34: .*unsupported value"),
        ("  containers", f"  affinity: {{podAffinity: {{{REQUIRED}: [{{}}]}}}}\n  containers",
         "topologyKey: required value"),
        ("  containers", "  restartPolicy: Sometimes\n  containers", "4:18: .*unsupported value"),
        ("name: web", "name: web, labels: {a: b c}", "a valid label must be"),
        ("  containers", "  tolerations: [{key: a, operator: Equals}]\n  containers",
         '4:36: .*unsupported value: "Equals"'),
        ("  containers", "  tolerations: [{key: a, operator: Lt, value: '1'}]\n  containers",
         'unsupported value: "Lt"'),
        ("  containers", "  tolerations: [{key: a, effect: NoSchedule, tolerationSeconds: 9}]\n  containers",
         "4:34: .*effect must be 'NoExecute' when `tolerationSeconds` is set"),
        ("  containers", "  preemptionPolicy: never\n  containers", '4:21: .*unsupported value: "never"'),
        ("  containers", "  initContainers: [{name: a, image: i, restartPolicy: always}]\n  containers",
         'initContainers[0].restartPolicy: unsupported value: "always"'),
        ("image: i", "image: i, restartPolicy: never", 'containers[0].restartPolicy: unsupported value: "never"'),
        ("  containers", "  resources: {requests: {cpu: 2}, limits: {cpu: 1}}\n  containers",
         "spec.resources.requests.cpu: invalid value.*must be less than or equal to cpu limit of 1"),
        ("  containers", "  resources: {requests: {cpu: 500m}}\n  containers",
         "must be greater than or equal to aggregate container requests of 1"),
        ("  containers", "  resources: {requests: {nvidia.com/gpu: 1}}\n  containers",
         'unsupported value: "nvidia.com/gpu'),
        ("requests: {cpu: 1}", "limits: {cpu: 3}}}\n  resources: {limits: {cpu: 2",
         '5:51: .*limits.cpu: invalid value: "3": must be less than or equal to pod limits of 2'),
        ("image: i", "image: i, ports: [{containerPort: 80, hostPort: 80}, {containerPort: 81, hostPort: 80}]",
         'containers[0].ports[1].hostPort: duplicate value: "TCP//80"'),
        ("  containers", "  nodeSelector: {'a b': c}\n  containers",
         'spec.nodeSelector: invalid value: "a b": name part must consist of'),
        ("  containers", "  nodeSelector: {disk: s s d}\n  containers",
         'spec.nodeSelector: invalid value: "s s d": a valid label must be'),
        ("  containers", "  schedulingGates: [{name: a b}]\n  containers",
         'spec.schedulingGates[0]: invalid value: "a b": name part must consist of'),
        ("  containers", "  schedulingGates: [{name: a}, {name: a}]\n  containers",
         '4:32: .*spec.schedulingGates[1]: duplicate value: "a"'),
        ("  containers", "  os: {name: linus}\n  containers",
         '4:14: .*spec.os.name: unsupported value: "linus": supported values: "linux", "windows"'),
        ("  containers", "  os: {}\n  containers", "spec.os.name: required value"),
        ("image: i", "image: i, imagePullPolicy: always",
         'containers[0].imagePullPolicy: unsupported value: "always": supported values: "Always", "IfNotPresent"'),
        ("image: i", "image: i, volumeMounts: [{name: data, mountPath: /d}]",
         'containers[0].volumeMounts[0].name: not found: "data"'),
        ("  containers", "  initContainers: [{name: a, image: i, volumeDevices: [{name: raw}]}]\n  containers",
         'initContainers[0].volumeDevices[0].name: not found: "raw"'),
        ("cpu: 1}", "cpu: 0.5}, limits: {cpu: 100m}",
         'requests.cpu: invalid value: "500m": must be less than or equal to cpu limit of 100m'),
        ("cpu: 1}", "memory: 2G}, limits: {memory: 1e9}",
         'requests.memory: invalid value: "2G": must be less than or equal to memory limit of 1G'),
        ("cpu: 1}", "memory: 1.5Gi}, limits: {memory: 1Gi}",
         'requests.memory: invalid value: "1536Mi": must be less than or equal to memory limit of 1Gi'),
        ("image: i", "image: i, command: sleep", "5:34: .*spec.containers[0].command: expected a list, got str"),
    ],
)  # fmt: skip
def test_values_that_an_api_server_refuses_are_errors(
    command: Command, tmp_path: Path, before: str, after: str, problem: str
) -> None:
    pod = tmp_path / "pod.yaml"
    pod.write_text(POD.replace(before, after))
    done = command("dry-run", "--cluster", "nodes3.yaml", "--pod", str(pod))
    assert (done.code, done.out) == (2, "")
    assert all(part in done.problem for part in problem.split(".*"))


@pytest.mark.parametrize(
    ("constraint", "problem"),
    [
        ("maxSkew: 0, topologyKey: zone, whenUnsatisfiable: DoNotSchedule", "maxSkew: invalid value: 0"),
        ("maxSkew: 1, topologyKey: zone, whenUnsatisfiable: Never", 'unsupported value: "Never"'),
        ("maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, minDomains: 0", "must be greater than zero"),
        ("maxSkew: 1, whenUnsatisfiable: DoNotSchedule", "topologyKey: required value"),
        ("maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, nodeTaintsPolicy: honor",
         'nodeTaintsPolicy: unsupported value: "honor"'),
        ("maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, nodeAffinityPolicy: ignore",
         'nodeAffinityPolicy: unsupported value: "ignore"'),
        ("maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule}, "
         "{maxSkew: 2, topologyKey: z, whenUnsatisfiable: DoNotSchedule",
         'topologySpreadConstraints[1].topologyKey: duplicate value: "{z, DoNotSchedule}"'),
        ("maxSkew: 1, topology: zone, whenUnsatisfiable: DoNotSchedule", "did you mean `topologyKey`?"),
    ],
)  # fmt: skip
def test_values_of_constraints_are_checked_in_workloads_too(
    command: Command, tmp_path: Path, constraint: str, problem: str
) -> None:
    pod = tmp_path / "workload.yaml"
    pod.write_text(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
        "spec:\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n"
        "      containers: [{name: c, image: i}]\n"
        f"      topologySpreadConstraints: [{{{constraint}}}]\n"
    )
    done = command("dry-run", "--cluster", "nodes3.yaml", "--pod", str(pod))
    assert done.code == 2
    assert f"{pod}:10:" in done.problem
    assert problem in done.problem
    assert len(done.problem.splitlines()) == 1


def test_claim_templates_of_a_stateful_set_are_volumes_of_its_pods(command: Command, tmp_path: Path) -> None:
    pod = tmp_path / "set.yaml"
    text = (
        "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\n"
        "spec:\n  selector: {matchLabels: {app: db}}\n  template:\n    metadata: {labels: {app: db}}\n    spec:\n"
        "      volumes: [{name: tmp, emptyDir: {}}]\n"
        "      containers:\n      - name: c\n        image: i\n"
        "        volumeMounts: [{name: data, mountPath: /d}, {name: tmp, mountPath: /t}]\n"
        "  volumeClaimTemplates:\n  - metadata: {name: data}\n"
        "    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
    )
    pod.write_text(text)
    assert "not found" not in command("dry-run", "--cluster", "nodes3.yaml", "--pod", str(pod)).problem
    pod.write_text(text.replace("{name: data}", "{name: date}"))
    done = command("dry-run", "--cluster", "nodes3.yaml", "--pod", str(pod))
    assert f'{pod}:13:31: pod "default/db": ' in done.problem
    assert 'volumeMounts[0].name: not found: "data"' in done.problem


def test_a_misspelt_field_of_a_workload_is_named(command: Command, tmp_path: Path) -> None:
    pod = tmp_path / "workload.yaml"
    pod.write_text(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replica: 3\n"
        "  template:\n    spec:\n      containers: [{name: c, image: i}]\n"
    )
    done = command("dry-run", "--cluster", "nodes3.yaml", "--pod", str(pod))
    problem = 'deployment "default/web": spec.replica: unknown field; did you mean `replicas`?'
    assert (done.code, done.problem) == (2, f"error: {pod}:5:3: {problem}\n")


def test_a_pod_without_containers_is_an_error(command: Command, tmp_path: Path) -> None:
    pod = tmp_path / "pod.yaml"
    pod.write_text("kind: Pod\nmetadata: {name: web}\nspec: {nodeSelector: {a: b}}\n")
    done = command("dry-run", "--cluster", "nodes3.yaml", "--pod", str(pod))
    assert (done.code, "spec.containers: required value" in done.problem) == (2, True)
    # The containers are there, under another name.
    pod.write_text("kind: Pod\nmetadata: {name: web}\nspec: {container: [{name: c, image: i}]}\n")
    done = command("dry-run", "--cluster", "nodes3.yaml", "--pod", str(pod))
    assert "spec.container: unknown field; did you mean `containers`?" in done.problem
    assert len(done.problem.splitlines()) == 1


def test_values_of_placed_pods_of_tests_are_checked(command: Command, tmp_path: Path) -> None:
    tests = tmp_path / "tests.yaml"
    tests.write_text(
        "policies: []\ncluster:\n  nodes: [{name: a}]\n  pods:\n"
        "  - {name: p, node: a, count: 3, spec: {hostnetwork: true}}\n"
        "tests: [{given: x, pod: {}, expect: {best: [a]}}]\n"
    )
    done = command("test", str(tests))
    assert done.code == 2
    assert done.problem.count("did you mean `hostNetwork`?") == 1


CLUSTER = """kind: Node
metadata: {name: n1, label: {zone: a}}
spec: {taint: [], taints: [{key: a, effect: NoSchedul}]}
status: {allocatable: {cpu: 4, pods: 10}, futureField: 1}
---
kind: Pod
metadata: {name: p}
spec: {nodename: n1, containers: [{name: c, resources: {request: {cpu: 1}}, volumeMount: []}]}
---
apiVersion: v1
kind: LimitRange
metadata: {name: l}
spec: {limits: [{type: Container, defaultRequests: {cpu: 1}}]}
"""
WARNINGS = [
    '2:22: node "n1": metadata.label: unknown field; did you mean `labels`?',
    '3:8: node "n1": spec.taint: unknown field; did you mean `taints`?',
    '3:45: node "n1": spec.taints[0].effect: unsupported value: supported values: '
    '"NoSchedule", "PreferNoSchedule", "NoExecute"',
    '8:8: pod "p": spec.nodename: unknown field; did you mean `nodeName`?',
    '8:57: pod "p": spec.containers[0].resources.request: unknown field; did you mean `requests`?',
    '8:77: pod "p": spec.containers[0].volumeMount: unknown field; did you mean `volumeMounts`?',
    '13:35: limit range "l": spec.limits[0].defaultRequests: unknown field; did you mean `defaultRequest`?',
]


@pytest.mark.parametrize(
    "arguments",
    [("dry-run", "--pod", "c15-pod.yaml"), ("why", "p"), ("plan", "--policy", "pol.yaml"), ("check", "pol.yaml")],
)
def test_misspelt_fields_of_a_cluster_that_scheduling_reads_are_warnings(
    command: Command, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(CLUSTER)
    done = command(*arguments, "--cluster", str(cluster))
    assert done.code in {0, 1}
    found = [line for line in done.problem.splitlines() if line.startswith(f"note: {cluster}:")]
    assert found == [f"note: {cluster}:{one}" for one in WARNINGS]


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"SchedulingPolicy"}))
def test_a_misspelt_field_of_any_kind_is_a_warning(command: Command, tmp_path: Path, kind: str) -> None:
    cluster = tmp_path / "cluster.yaml"
    version = KINDS[kind].api_version
    cluster.write_text(f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: x, lables: {{a: b}}}}\n")
    done = command("plan", "--cluster", str(cluster), "--cluster", "nodes3.yaml", "--cluster", "c15-pod.yaml")
    assert (done.code, "did you mean `labels`?" in done.problem) == (0, True)


def test_objects_that_an_api_server_has_checked_have_no_warnings(command: Command, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(CLUSTER.partition("---")[0].replace("name: n1", "name: n1, uid: a"))
    assert command("dry-run", "--pod", "c15-pod.yaml", "--cluster", str(cluster)).problem == ""


@pytest.mark.parametrize(
    ("gang", "column"), [("{minCount: 0}", 44), ("{minCount: -1}", 44), ("{}", 33), ("{minCount: 1}", 0)]
)
def test_a_gang_without_a_minimum_is_a_warning(command: Command, tmp_path: Path, gang: str, column: int) -> None:
    file = tmp_path / "gang.yaml"
    file.write_text(
        "apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {name: g}\n"
        f"spec: {{schedulingPolicy: {{gang: {gang}}}}}\n---\n"
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n"
        "spec: {schedulingGroup: {podGroupName: g}, containers: [{name: c, image: i}]}\n"
    )
    problem = 'pod group "g": spec.schedulingPolicy.gang.minCount: must be greater than or equal to 1'
    for arguments in (("dry-run", "--pod", str(file)), ("plan", "--policy", "pol.yaml", "--cluster", str(file))):
        done = command(*arguments, "--cluster", "nodes3.yaml")
        found = [line for line in done.problem.splitlines() if line.startswith(f"note: {file}:")]
        assert found == ([f"note: {file}:4:{column}: {problem}"] if column else [])
