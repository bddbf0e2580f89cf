"""The flags of metrics: what they do in a dry-run, and how the commands end where they cannot be used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from policysched.app.running.metric_options import NO_METRICS, read_interval
from policysched.cli.flags.sections import FLAGS
from policysched.metric_sources import INTERVAL
from tests.cli.conftest import Command, Write
from tests.cli.test_usage import DRY_RUN, NODE, POD
from tests.controlplane.programs import free_port

POLICY = """
apiVersion: policysched.io/v1beta1
kind: SchedulingPolicy
metadata: {name: cool}
spec:
  metrics: [{name: load, query: up}]
  filters:
  - name: not-too-hot
    require: (metrics.load < 80%) ?? false
    message: too hot
"""
MEASURED = (*DRY_RUN, "--policy", "policy.yaml")


@pytest.fixture(autouse=True)
def files(write: Write, tmp_path: Path) -> None:
    write("node.yaml", NODE)
    write("pod.yaml", POD)
    write("policy.yaml", POLICY)
    write("metrics.yaml", "load: {n1: 0.9}")
    write("text.yaml", "load: {n1: hot}")
    write("empty", "")
    write("token", "secret")


@pytest.mark.parametrize("start", [MEASURED, ("run",)])
@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (
            ("--prometheus-url", "prometheus:9090"),
            '--prometheus-url "prometheus:9090" is not an http or https URL; ',
        ),
        (
            ("--prometheus-url", "http://u:secret@a"),
            "--prometheus-url contains a user name or password; use --prometheus-tok",
        ),
        (
            ("--prometheus-url", "http://a", "--prometheus-token-file", "none"),
            "--prometheus-token-file: none cannot be read: no such file or directory",
        ),
        (
            ("--prometheus-url", "http://a", "--prometheus-token-file", "empty"),
            "--prometheus-token-file: empty contains no token: it is empty",
        ),
        (
            ("--prometheus-url", "https://a", "--prometheus-ca-file", "token"),
            "--prometheus-ca-file: token contains no certificate in PEM format",
        ),
        (("--prometheus-token-file", "token"), "--prometheus-token-file needs --prometheus-url"),
        (("--metrics-file", "text.yaml"), 'text.yaml:1:12: expected a plain number for node n1, got "hot"'),
        (
            ("--metrics-file", "metrics.yaml", "--prometheus-url", "http://a"),
            "--prometheus-url and --metrics-file cannot be used together",
        ),
    ],
)
def test_what_cannot_be_used_ends_the_command(
    command: Command, start: tuple[str, ...], flags: tuple[str, ...], problem: str
) -> None:
    done = command(*start, *flags)
    assert (done.code, done.out) == (2, "")
    assert done.problem.startswith(f"error: {problem}")
    assert done.problem.count("\n") == 1
    assert "secret" not in done.problem


def test_a_dry_run_needs_the_metrics_file_and_run_waits_for_it(command: Command) -> None:
    done = command(*MEASURED, "--metrics-file", "none.yaml")
    assert (done.code, done.problem) == (2, "error: none.yaml cannot be read: no such file or directory\n")
    done = command("run", "--metrics-file", "none.yaml", "--kubeconfig", "none")
    assert done.problem.startswith("error: no kubeconfig at none;")


def test_values_that_are_all_nan_are_reported(command: Command, write: Write) -> None:
    for number in (".nan", ".inf", "-.inf"):
        write("metrics.yaml", f"load: {{n1: {number}}}")
        done = command(*MEASURED, "--metrics-file", "metrics.yaml")
        assert "metrics.load: metrics.yaml: load: no value is a finite number" in done.problem


def test_an_interval_that_is_none_ends_the_command(command: Command) -> None:
    done = command("run", "--metrics-interval", "15")
    assert (done.code, done.problem) == (
        2,
        'error: --metrics-interval "15" is not a duration; write it as 15s or 1min\n',
    )


def test_the_interval_is_the_sources_own_where_none_is_given() -> None:
    told = next(one.default for one in FLAGS if one.name == "metrics-interval")
    assert read_interval(told) == INTERVAL == NO_METRICS.interval


def test_a_dry_run_reads_a_metrics_file(command: Command, write: Write) -> None:
    done = command(*MEASURED, "--metrics-file", "metrics.yaml", "-o", "json")
    assert (done.code, done.problem) == (0, "")
    assert json.loads(done.out)["rejected"]["n1"]["reasons"] == ["policy cool/not-too-hot: too hot"]
    write("metrics.yaml", "load: {n1: 0.1}")
    done = command(*MEASURED, "--metrics-file", "metrics.yaml", "-o", "json")
    assert json.loads(done.out)["selected"] == "n1"


def test_a_dry_run_without_values_says_what_to_give(command: Command) -> None:
    done = command(*MEASURED, "-o", "json")
    assert done.code == 0
    assert done.problem == ("note: metrics.load: no metric source; set --metrics-file or --prometheus-url\n")
    done = command(*MEASURED, "--metrics-file", "empty", "-o", "json")
    assert done.problem == 'note: metrics.load: empty has no values for "load"\n'


def test_a_dry_run_with_a_server_that_is_down_says_so(command: Command) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    done = command(*MEASURED, "--prometheus-url", url, "-o", "json")
    assert done.code == 0
    assert done.problem.startswith(f"note: metrics.load: cannot connect to {url}: ")
