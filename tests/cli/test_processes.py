from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from policysched.app.demo.sandbox_setup import SandboxOptions, serve_sandbox
from policysched.errors import PolicyschedError
from tests.cli.processes import COMMAND, SECONDS, environment, on_a_terminal, started


def _get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=SECONDS) as answer:  # noqa: S310 - our own sandbox
        return json.load(answer)


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_sandbox_serves_what_was_asked_until_a_signal(tmp_path: Path, ending: signal.Signals) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    with started("sandbox", "--nodes", "2", "--kube-version=1.37", "--kubeconfig-out", str(kubeconfig)) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        found = re.fullmatch(
            r"sandbox listens on (http://127\.0\.0\.1:\d+) \(this machine only\); Ctrl-C stops it\n", first
        )
        assert found is not None, first
        assert process.stdout.readline() == f"  kubectl --kubeconfig {kubeconfig} get nodes\n"
        assert process.stdout.readline() == f"  policysched run --kubeconfig {kubeconfig}\n"
        url = found[1]
        assert [one["metadata"]["name"] for one in _get(f"{url}/api/v1/nodes")["items"]] == ["node-1", "node-2"]
        assert _get(f"{url}/version")["minor"] == "37"
        assert _get(f"{url}/apis/policysched.io/v1beta1/schedulingpolicies")["items"] == []
        assert yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))["clusters"][0]["cluster"]["server"] == url
        assert kubeconfig.stat().st_mode & 0o077 == 0
        process.send_signal(ending)
        out, problem = process.communicate(timeout=SECONDS)
    assert (process.returncode, out, problem) == (0, "", "")


def test_sandbox_without_a_place_for_the_kubeconfig_takes_a_temporary_one() -> None:
    with started("sandbox") as process:
        assert process.stdout is not None
        process.stdout.readline()
        kubeconfig = Path(process.stdout.readline().split()[2])
        assert kubeconfig.is_file()
        process.terminate()
        process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    assert not kubeconfig.exists()


async def _listing(options: SandboxOptions, path: str) -> list[str]:
    stop, told = asyncio.Event(), asyncio.get_running_loop().create_future()
    serving = asyncio.ensure_future(serve_sandbox(options, stop, lambda url, _: told.set_result(url)))
    await asyncio.wait({serving, told}, return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        serving.result()
    found = await asyncio.to_thread(_get, f"{await told}{path}")
    stop.set()
    await serving
    return [one["metadata"]["name"] for one in found["items"]]


async def test_sandbox_loads_policies_whatever_the_order_of_files(tmp_path: Path) -> None:
    policy = {"apiVersion": "policysched.io/v1beta1", "kind": "SchedulingPolicy", "metadata": {"name": "p"}}
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "w", "namespace": "far"}}
    pod |= {"spec": {"containers": [{"name": "a", "image": "a"}]}}
    namespace = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "far", "labels": {"a": "b"}}}
    (tmp_path / "all.yaml").write_text(yaml.dump_all([pod, policy | {"spec": {}}, namespace]), encoding="utf-8")
    options = SandboxOptions(files=(str(tmp_path),))
    assert await _listing(options, "/apis/policysched.io/v1beta1/schedulingpolicies") == ["p"]
    assert await _listing(options, "/api/v1/namespaces?labelSelector=a%3Db") == ["far"]
    assert await _listing(options, "/api/v1/nodes") == []


async def test_sandbox_makes_three_nodes_where_nothing_is_loaded() -> None:
    assert await _listing(SandboxOptions(), "/api/v1/nodes") == ["node-1", "node-2", "node-3"]


async def test_sandbox_says_that_a_port_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(PolicyschedError, match=rf"^port {port} is in use; --port 0 selects a free port$"):
            await _listing(SandboxOptions(port=port), "/")


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_run_schedules_and_ends_cleanly_on_a_signal(tmp_path: Path, ending: signal.Signals) -> None:
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "w"}}
    pod |= {"spec": {"schedulerName": "mine", "containers": [{"name": "a", "image": "a"}]}}
    objects = tmp_path / "pod.json"
    objects.write_text(json.dumps(pod), encoding="utf-8")
    kubeconfig = tmp_path / "kubeconfig"
    with started("sandbox", "--nodes", "1", "--load", str(objects), "--kubeconfig-out", str(kubeconfig)) as sandbox:
        assert sandbox.stdout is not None
        url = sandbox.stdout.readline().split()[3]
        with started("run", "--kubeconfig", str(kubeconfig), "--scheduler-name", "mine", "--v", "3") as process:
            assert process.stderr is not None
            for line in process.stderr:
                assert re.match(r"[IW]\d{4} \d\d:\d\d:\d\d\.\d{6} [ \d]{7} \w+\.py:\d+\] |\t| >$", line), line
                if '"Attempting to bind pod to node" pod="default/w" node="node-1"' in line:
                    break
            process.send_signal(ending)
            out, problem = process.communicate(timeout=SECONDS)
        found = _get(f"{url}/api/v1/namespaces/default/pods/w")
    assert (process.returncode, out) == (0, "")
    assert "Traceback" not in problem
    assert found["spec"]["nodeName"] == "node-1"


def test_run_keeps_trying_while_the_server_is_away(tmp_path: Path) -> None:
    cluster = {"name": "a", "cluster": {"server": "http://127.0.0.1:9"}}
    context = {"name": "a", "context": {"cluster": "a", "user": "a"}}
    content = {"apiVersion": "v1", "kind": "Config", "current-context": "a", "clusters": [cluster]}
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.dump(content | {"contexts": [context], "users": [{"name": "a", "user": {}}]}))
    with started("run", "--kubeconfig", str(kubeconfig)) as process:
        assert process.stderr is not None
        said = ""
        while "cannot connect to" not in said:
            said = process.stderr.readline()
            assert said, "the process ended"
        assert process.poll() is None
        process.terminate()
        _, problem = process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    assert "Traceback" not in problem


DEMO = [
    r"An in-memory API server has 4 nodes: .*",
    r"1\. Create a policy: .*",
    r"status: Active True, generation 1 is in force",
    r"web-1 piworknode001 .*",
    r"equal in all rows: .*SchedulingPolicy/web-on-ssd 80",
    r"rule ssd rejects master, piworknode003",
    r"rule favourite gives piworknode001 80",
    r"2\. Edit the policy .*",
    r"status: Active True, generation 2 is in force",
    r"web-5 piworknode002 .*",
    r"equal in all rows: .*SchedulingPolicy/web-on-ssd 80",
    r"rule ssd rejects master, piworknode003",
    r"rule favourite gives piworknode002 80",
    r"3\. Make a mistake .*",
    r"status: error\[E0101\] spec\.filters\[0\]\.require: `=` is not an operator",
    r"status: Active True, generation 2 stays in force",
    r"web-8 piworknode002 .*",
    r"4\. Create a web pod .*",
    r"web-hdd: FailedScheduling: 0/4 nodes are available: 1 node\(s\) had untolerated taint\(s\), "
    r"1 policy web-on-ssd/ssd: no SSD, 2 node\(s\) didn't match Pod's node affinity/selector\..*",
    r"5\. Delete the policy: .*",
    r"web-hdd runs on piworknode003",
    r"Next steps:",
    r"Tutorial: .*",
    r"First policy in a cluster: .*",
    r"Documentation: .*",
]


def test_demo_tells_its_story_in_plain_lines() -> None:
    done = subprocess.run(
        [*COMMAND, "demo"], capture_output=True, text=True, timeout=SECONDS, env=environment(), check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    lines = iter([" ".join(line.split()) for line in done.stdout.splitlines()])
    for expected in DEMO:
        assert any(re.fullmatch(expected, line) for line in lines), expected


def test_demo_of_devices_tells_who_gets_which() -> None:
    command = [*COMMAND, "demo", "--devices"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=environment(), check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "train-2 runs on gpu-2, its claim holds gpu.example.com/gpu-2/gpu-0" in done.stdout


def test_demo_of_a_gang_tells_when_all_members_fit() -> None:
    command = [*COMMAND, "demo", "--gang"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=environment(), check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "train: PodGroupInitiallyScheduled True, Scheduled" in done.stdout


def test_demo_plays_one_story() -> None:
    command = [*COMMAND, "demo", "--gang", "--devices"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=environment(), check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--devices and --gang cannot be combined" in done.stderr


def test_demo_on_a_narrow_terminal_shows_progress_and_puts_the_rules_below() -> None:
    said = on_a_terminal("demo")
    assert "waiting for pod web-" in said
    assert "rule ssd rejects master, piworknode003" in said
    assert max(len(re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", line)) for line in re.split(r"[\r\n]+", said)) <= 80


def test_no_color_is_heededon_a_terminal() -> None:
    colour = re.compile(r"\x1b\[[0-9;]*3[0-7]m")
    assert colour.search(on_a_terminal("--help"))
    assert not colour.search(on_a_terminal("--help", NO_COLOR="1"))


def test_demo_ends_quietly_on_ctrl_c() -> None:
    with started("demo", PYTHONUNBUFFERED="1") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, problem = process.communicate(timeout=SECONDS)
    assert (process.returncode, problem) == (130, "")
