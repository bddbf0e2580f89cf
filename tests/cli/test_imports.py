"""What commands import: nobody waits for a client of Kubernetes to see what is wrong with a file."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.meta.markdown import ROOT

SERVERS = {"aiohttp", "asyncio", "kubernetes", "prometheus_client"}
ENGINE = {"policysched.schedule", "policysched.state", "policysched.plugins", "policysched.kube", "cachetools"}
ARRAYS = {"numpy"}
LANGUAGE = ARRAYS | {"lark", "policysched.language", "policysched.model"}
POLICY = "examples/01-tonodename/policy.yaml"
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
