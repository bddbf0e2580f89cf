from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import policysched
from tests.cli.conftest import Command, Write

NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: '4', memory: 8Gi, pods: '110'}}\n"
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: a}]}\n"
DRY_RUN = ("dry-run", "--cluster", "node.yaml", "--pod", "pod.yaml")


@pytest.fixture
def files(write: Write, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    write("node.yaml", NODE)
    write("pod.yaml", POD)
    write("pods.yaml", f"{POD}---\n{POD}")
    write("bad.yaml", "kind: A\nb: *x\n")
    write("empty.yaml", "")
    write("nameless.yaml", "kind: Pod\nmetadata: {}\n")
    write("templateless.yaml", "kind: Deployment\nmetadata: {name: a}\nspec: {}\n")
    write("malformed-node.yaml", NODE.replace("8Gi", "8GB"))
    write("malformed-pod.yaml", POD.replace("{name: a}", "{name: a, resources: {requests: {cpu: fast}}}"))
    write(
        "malformed-job.yaml",
        "kind: Job\nmetadata: {name: j}\nspec:\n  template:\n    spec:\n      containers:\n"
        "      - name: a\n        resources: {requests: {cpu: 1x}}\n",
    )
    write("malformed-labels.yaml", "kind: Node\nmetadata:\n  name: n1\n  labels: {a: 5}\n")
    write("classless.yaml", POD.replace("spec: {", "spec: {priorityClassName: gold, "))
    config = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    write("config-unknown.yaml", config + "profiles:\n- schedulerNam: x\n")
    write("config-kind.yaml", "kind: ConfigMap\n")
    write("config-two.yaml", f"{config}---\n{config}")
    write("config-profiles.yaml", config + "profiles: [{schedulerName: a}, {schedulerName: b}]\n")


USAGE = [
    (("--nope",), "error: no such option: --nope"),
    (("nope",), "error: no such command 'nope'"),
    (("check",), "error: missing argument 'FILE'"),
    (("check", "--nope", "a"), "error: no such option: --nope"),
    (("check", "none.yaml"), "error: none.yaml: no such file"),
    (("check", "below"), "error: below: no .yaml, .yml or .json file in the folder"),
    (("check", "bad.yaml"), "error: bad.yaml:2:4: not valid YAML: found undefined alias"),
    (("check", "empty.yaml"), "error: empty.yaml: no objects"),
    (("check", "node.yaml"), "error: no SchedulingPolicy in node.yaml"),
    (("fmt",), "error: missing argument 'FILE'"),
    (("fmt", "--nope", "a"), "error: no such option: --nope"),
    (("explain", "E0300"), 'error: unknown code "E0300"; run `policysched explain` to list all codes'),
    (("explain", "x"), 'error: unknown code "x"; run `policysched explain` to list all codes'),
    (("explain", "scale"), 'error: "scale" is a function of expressions, not a code; see docs/reference/functions.md'),
    (
        ("explain", "node.zone"),
        'error: "node.zone" is a name of expressions, not a code; see docs/reference/functions.md',
    ),
    (("explain", ""), 'error: unknown code ""; run `policysched explain` to list all codes'),
    (("explain", "E0301", "E0302"), "error: got unexpected extra argument"),
    (("dry-run",), "error: missing option '--pod'"),
    (
        ("dry-run", "--pod", "pod.yaml"),
        "error: no kubeconfig at ~/.kube/config; set --kubeconfig or ",
    ),
    (
        ("why", "web"),
        "error: no kubeconfig at ~/.kube/config; set --kubeconfig or ",
    ),
    (("dry-run", "--cluster", "node.yaml"), "error: missing option '--pod'"),
    ((*DRY_RUN, "--nope"), "error: no such option: --nope"),
    (("dry-run", "--cluster", "none.yaml", "--pod", "pod.yaml"), "error: none.yaml: no such file"),
    (
        ("dry-run", "--cluster", "node.yaml", "--pod", "a/web"),
        "error: a/web: no such file; for a pod of the cluster, run `policysched why a/web`",
    ),
    (
        ("dry-run", "--cluster", "bad.yaml", "--pod", "pod.yaml"),
        "error: bad.yaml:2:4: not valid YAML: found undefined alias",
    ),
    (
        ("dry-run", "--cluster", "node.yaml", "--pod", "node.yaml"),
        "error: node.yaml: expected a Pod or a workload with a pod template, got only Node",
    ),
    (
        ("dry-run", "--cluster", "node.yaml", "--pod", "pods.yaml"),
        "error: pods.yaml: expected one pod or workload, got 2: Pod/web (pods.yaml:1:1), Pod/web (pods.yaml:6:1); "
        "choose one, for example pods.yaml#Pod/web",
    ),
    (("dry-run", "--cluster", "node.yaml", "--pod", "nameless.yaml"), "error: nameless.yaml:1:1: Pod has no name"),
    (
        ("dry-run", "--cluster", "node.yaml", "--pod", "templateless.yaml"),
        "error: templateless.yaml:1:1: Deployment has no spec.template",
    ),
    ((*DRY_RUN, "--policy", "node.yaml"), "error: node.yaml:1:1: expected a SchedulingPolicy, got a Node"),
    ((*DRY_RUN, "--seed", "x"), "error: invalid value for '--seed'"),
    ((*DRY_RUN, "-o", "xml"), "error: invalid value for '--output' / '-o'"),
    (
        ("dry-run", "--cluster", "malformed-node.yaml", "--pod", "pod.yaml"),
        'error: malformed-node.yaml:4:42: node "n1": status.allocatable.memory: ',
    ),
    (
        ("dry-run", "--cluster", "node.yaml", "--pod", "malformed-pod.yaml"),
        'error: malformed-pod.yaml:4:59: pod "default/web": spec.containers[0].resources.requests.cpu: ',
    ),
    (
        ("dry-run", "--cluster", "node.yaml", "--pod", "malformed-job.yaml"),
        'error: malformed-job.yaml:8:37: pod "default/j": spec.containers[0].resources.requests.cpu: ',
    ),
    (
        ("dry-run", "--cluster", "malformed-labels.yaml", "--pod", "pod.yaml"),
        'error: malformed-labels.yaml:4:15: node "n1": metadata.labels.a',
    ),
    (
        ("dry-run", "--cluster", "node.yaml", "--pod", "classless.yaml"),
        'error: classless.yaml:4:27: pod "default/web": spec.priorityClassName: no PriorityClass with name "gold"',
    ),
    ((*DRY_RUN, "--config", "none.yaml"), "error: none.yaml: no such file"),
    ((*DRY_RUN, "--config", "config-unknown.yaml"), "error: config-unknown.yaml:4:17: profiles[0].schedulerNam: "),
    (
        (*DRY_RUN, "--config", "config-kind.yaml"),
        "error: config-kind.yaml:1:7: kind: expected an object of kind KubeSchedulerConfiguration",
    ),
    (
        (*DRY_RUN, "--config", "config-two.yaml"),
        "error: config-two.yaml:4:1: expected one KubeSchedulerConfiguration, got several objects",
    ),
    ((*DRY_RUN, "--config", "config-profiles.yaml"), "error: no profile"),
    (("run", "--kubeconfig", "none"), "error: no kubeconfig at none; set --kubeconfig or"),
    (("run", "--v", "x"), 'error: --v "x" is not a whole number'),
    (("sandbox", "--nodes", "-1"), "error: invalid value for '--nodes'"),
    (("sandbox", "--port", "65536"), "error: invalid value for '--port'"),
    (("sandbox", "--load", "none.yaml"), "error: none.yaml: no such file"),
    (("sandbox", "--load", "templateless.yaml"), "error: templateless.yaml:1:1: "),
    (("sandbox", "--load", "bad.yaml"), "error: bad.yaml:2:4: not valid YAML: found undefined alias"),
    (
        ("sandbox", "--kubeconfig-out", "no/such/folder"),
        "error: no/such/folder: cannot write: no such file or directory",
    ),
    (("demo", "extra"), "error: got unexpected extra argument"),
    (("version", "--nope"), "error: no such option: --nope"),
]


@pytest.mark.parametrize(("arguments", "message"), USAGE, ids=[" ".join(case[0]) for case in USAGE])
@pytest.mark.usefixtures("files")
def test_command_explains_what_it_cannot_use(command: Command, arguments: tuple[str, ...], message: str) -> None:
    done = command(*arguments)
    assert done.problem.startswith(message)
    assert done.problem.count("\n") == 1
    assert (done.code, done.out) == (2, "")


def test_version_is_that_of_the_package(command: Command) -> None:
    done = command("version")
    assert (done.code, done.problem) == (0, "")
    assert done.out.startswith(f"policysched {version('policysched')} (Python 3.")
    assert policysched.__version__ == version("policysched")


def test_help_lists_every_subcommand(command: Command) -> None:
    done = command("--help")
    assert done.code == 0
    for name in ("run", "dry-run", "check", "fmt", "explain", "sandbox", "demo", "version"):
        assert name in done.out


@pytest.mark.parametrize("name", ["run", "dry-run", "check", "fmt", "explain", "sandbox", "demo", "version"])
def test_every_subcommand_has_help(command: Command, name: str) -> None:
    assert command(name, "--help").code == 0


def test_run_without_any_kubeconfig_says_what_to_do(command: Command) -> None:
    done = command("run")
    assert done.code == 2
    assert done.problem.splitlines()[-1].startswith("error: ")
    assert "--kubeconfig" in done.problem


def test_reader_that_goes_away_ends_the_command_quietly(tmp_path: Path) -> None:
    policy = tmp_path / "p.yaml"
    head = "apiVersion: policysched.io/v1beta1\nkind: SchedulingPolicy\nmetadata: {name: p}\nspec:\n  filters:\n"
    policy.write_text(
        head + "".join(f"  - {{name: r{n}, require: nod{n}.name}}\n" for n in range(60)), encoding="utf-8"
    )
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    script = (
        f"{sys.executable} -c 'from policysched.cli import main; main()' check {policy} {policy} {policy} | head -1"
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, env=environment)
    assert done.stderr == ""
    assert done.stdout.startswith("error[E0201]")


@pytest.mark.parametrize("arguments", ["version", "explain", "explain E0301 -o json", "--help", "dry-run --help"])
def test_command_that_nobody_reads_ends_as_one_that_a_signal_ends(arguments: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    program = [sys.executable, "-c", "from policysched.cli import main; main()", *arguments.split()]
    done = subprocess.run(program, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_disk_that_is_full_ends_the_command_with_one_line() -> None:
    for arguments in ("version", "explain -o json"):
        script = f"{sys.executable} -c 'from policysched.cli import main; main()' {arguments} > /dev/full"
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
        said = "error: cannot write the output: no space left on device\n"
        assert (done.returncode, done.stderr) == (2, said)


@pytest.mark.parametrize("columns", ["99999999999", "9" * 5000, "²", "0"])
def test_widths_that_no_terminal_has_end_no_command(columns: str) -> None:
    program = [sys.executable, "-c", "from policysched.cli import main; main()", "--help"]
    environment = os.environ | {"COLUMNS": columns, "LINES": columns}
    done = subprocess.run(program, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert max(map(len, done.stdout.splitlines())) < 1000


def test_what_libraries_say_of_a_kubeconfig_is_said_as_an_error(tmp_path: Path) -> None:
    printed = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": 1}}
    plugin = {"apiVersion": printed["apiVersion"], "command": "echo", "args": [json.dumps(printed)]}
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"exec": plugin}}],
    }
    file = tmp_path / "config"
    file.write_text(json.dumps(config))
    program = [sys.executable, "-c", "from policysched.cli import main; main()"]
    done = subprocess.run(
        [*program, "record", "-o", "-", "--kubeconfig", str(file)], capture_output=True, text=True, check=False
    )
    said = done.stderr.splitlines()
    assert done.returncode == 2
    assert "error: exec: the plugin printed no ExecCredential: status.token: expected text, got int: quote it" in said
    assert all(line.startswith("error: ") for line in said)


def test_unknown_name_of_the_package_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        policysched.nothing  # noqa: B018 - asking is the test
