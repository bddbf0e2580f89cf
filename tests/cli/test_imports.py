"""What commands import: nobody waits for a client of Kubernetes to see what is wrong with a file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.documents.markdown import ROOT

SERVERS = {"aiohttp", "asyncio", "kubernetes", "prometheus_client"}
ENGINE = {"policysched.schedule", "policysched.state", "policysched.plugins", "policysched.kube", "cachetools"}
ARRAYS = {"numpy"}
LANGUAGE = ARRAYS | {"lark", "policysched.language", "policysched.model.objects"}
POLICY = "examples/tour/01-tonodename/policy.yaml"
CLUSTER = "examples/cookbook/pin-a-node/cluster.yaml"
POD = "examples/cookbook/pin-a-node/pod.yaml"
PROGRAM = """
import json, sys
from policysched.cli import execute
code = execute(sys.argv[1:])
print(json.dumps([code, sorted(sys.modules)]))
"""


def imported(*arguments: str) -> set[str]:
    """Run a command in a fresh interpreter and give the modules that it imported."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    )
    code, modules = json.loads(ran.stdout.splitlines()[-1])
    assert code == 0
    return set(modules)


@pytest.mark.parametrize(
    ("arguments", "without"),
    [
        (("--help",), SERVERS | ENGINE | LANGUAGE),
        (("dry-run", "--help"), SERVERS | ENGINE | LANGUAGE),
        (("version",), SERVERS | ENGINE | LANGUAGE),
        (
            ("dry-run", "--cluster", CLUSTER, "--pod", POD, "--policy", POLICY),
            {
                "aiohttp",
                "kubernetes",
                "prometheus_client",
                "numpy.ma",
                "pydantic",
                "policysched.kube",
            },
        ),
        (("check", POLICY), SERVERS | ENGINE | ARRAYS),
        (("fmt", "--check", POLICY), SERVERS | ENGINE | ARRAYS),
        (("explain",), SERVERS | ENGINE | ARRAYS),
        (("explain", "E0301"), SERVERS | ENGINE | ARRAYS),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, tuple) else "",
)
def test_a_command_imports_only_what_it_needs(arguments: tuple[str, ...], without: set[str]) -> None:
    found = imported(*arguments) & without
    assert not found


THREADS = """
import sys
sys.argv = ["policysched", "version"]
from policysched.cli import main
try:
    main()
except SystemExit:
    import os, numpy
    print(len(os.listdir("/proc/self/task")))
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="the system does not say")
@pytest.mark.parametrize("stated", [None, "2"], ids=["by itself", "asked for"])
def test_arrays_have_no_threads_that_nobody_asked_for(stated: str | None) -> None:
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
    given = {name: value for name, value in os.environ.items() if name not in names}
    if stated is not None:
        given["OPENBLAS_NUM_THREADS"] = stated
    ran = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, check=True, env=given)
    assert int(ran.stdout.splitlines()[-1]) == min(int(stated or 1), os.cpu_count() or 1)


NOT_TO_START = {
    *("aiohttp.web", "cryptography", "dateutil", "pydantic", "rich"),
    *("policysched.app.checking", "policysched.app.demo", "policysched.app.dry_run", "policysched.app.plan"),
    *("policysched.app.policy_tests", "policysched.app.webhook", "policysched.app.why"),
    "policysched.sandbox",
}
"""What is imported once it is needed: by the port, by other commands."""
BELOW = "policysched.cli.commands."
MOST_MODULES = 1100
"""How many modules a scheduler may import before it asks for the first list, those of the interpreter among them."""


def test_scheduler_imports_nothing_that_its_first_decision_does_not_need(tmp_path: Path) -> None:
    found = imported("run", "--write-config-to", str(tmp_path / "configuration.yaml"))
    assert "policysched.schedule.scheduler" in found
    assert not found & NOT_TO_START
    assert len(found) < MOST_MODULES


def commands_of(*arguments: str) -> set[str]:
    """Modules of commands that a command imports."""
    return {
        one.removeprefix(BELOW)
        for one in imported(*arguments)
        if one.startswith(BELOW) and one.count(".") > BELOW.count(".")
    }


@pytest.mark.parametrize(
    ("arguments", "module"),
    [(("check", POLICY), "policies.check"), (("crd",), "settings.crd"), (("explain", "E0301"), "policies.explain")],
)
def test_a_command_imports_no_other_one(arguments: tuple[str, ...], module: str) -> None:
    assert commands_of(*arguments) == {module}


@pytest.mark.parametrize("command", ["run", "check", "plan"])
def test_help_imports_no_command(command: str) -> None:
    assert not commands_of(command, "--help")
