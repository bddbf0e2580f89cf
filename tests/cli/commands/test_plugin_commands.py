from __future__ import annotations

import json
from pathlib import Path

from tests.app.plugins.distributions import CLOSED
from tests.cli.conftest import Command, Write


def test_plugins_lists_names_points_and_origins(command: Command, write: Write) -> None:
    write("closed.py", CLOSED)
    done = command("plugins", "--plugin", "closed.py:Closed")
    assert (done.code, done.problem) == (0, "")
    assert ["Closed", "permit", "--plugin", "closed.py:Closed"] in [line.split() for line in done.out.splitlines()]


def test_plugins_are_listed_as_json(command: Command, write: Write) -> None:
    write("closed.py", CLOSED)
    done = command("plugins", "--plugin", "x=closed.py:Closed", "-o", "json")
    last = json.loads(done.out)["items"][-1]
    assert last == {"name": "x", "points": ["permit"], "origin": "--plugin closed.py:Closed"}


def test_plugins_names_what_cannot_be_enabled(command: Command, write: Write) -> None:
    write("wrong.py", "from __future__ import annotations\ndef wrong(args, handle) -> Missing: ...\n")
    done = command("plugins", "--plugin", "wrong.py:wrong")
    assert done.code == 1
    assert done.problem == "error: plugin wrong: cannot resolve the annotation Missing: name 'Missing' is not defined\n"
    assert "NodeName" in done.out


def test_misspelt_method_of_a_plugin_is_named_by_all_commands(command: Command, write: Write) -> None:
    write("wrong.py", "class Slow:\n  def score(self, state, pod, node): return 1\n  def filtre(self, s, p, n): pass\n")
    write("config.yaml", CONFIG)
    flags = ("--plugin", "wrong.py:Slow")
    for arguments in (("plugins",), ("plugins", "--config", "config.yaml", "--measure", "1")):
        done = command(*arguments, *flags)
        assert done.code in (1, 2)
        assert 'plugin Slow: unknown method "filtre"; did you mean "filter"?' in done.problem


def test_plugins_refuses_a_flag_that_cannot_be_used(command: Command) -> None:
    done = command("plugins", "--plugin", "nothing")
    assert (done.code, done.out) == (2, "")
    assert done.problem.startswith("error: --plugin nothing: expected ")


def test_new_plugin_is_written_and_the_next_steps_are_said(command: Command, tmp_path: Path) -> None:
    done = command("plugin", "new", "node-group", "--points", "filter, permit")
    assert (done.code, done.problem) == (0, "")
    assert done.out.startswith("node-group: pyproject.toml, README.md, node_group.py, ")
    assert "\n  cd node-group\n" in done.out
    assert "def permit(" in (tmp_path / "node-group" / "node_group.py").read_text()


def test_new_plugin_is_not_written_over_another(command: Command) -> None:
    assert command("plugin", "new", "mine", "--in", "there").code == 0
    done = command("plugin", "new", "mine", "--in", "there")
    assert (done.code, done.problem) == (2, "error: there/mine already exists; nothing was written\n")


CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: Slow}]}}
"""
SLOW = """\
import time

class Slow:
    def filter(self, state, pod, node):
        end = time.thread_time() + 0.0005
        while time.thread_time() < end: pass
"""


def test_plugins_are_measured_as_a_configuration_enables_them(command: Command, write: Write) -> None:
    write("slow.py", SLOW + CLOSED)
    write("config.yaml", CONFIG)
    flags = ("--plugin", "slow.py:Slow", "--plugin", "slow.py:Closed", "--config", "config.yaml", "--measure")
    done = command("plugins", *flags, "4", "-o", "json")
    rows = {row["name"]: row for row in json.loads(done.out)["items"]}
    assert 4 * 500 <= rows["Slow"]["microseconds"] < 4 * 500 * 20
    assert "microseconds" not in rows["Closed"]
    assert "µs per decision" in command("plugins", *flags, "1").out


def test_plugins_are_measured_with_a_configuration_alone(command: Command, write: Write) -> None:
    write("config.yaml", CONFIG)
    for flags in (("--measure", "5"), ("--config", "config.yaml")):
        done = command("plugins", *flags)
        assert (done.code, done.out) == (2, "")
        assert done.problem.startswith("error: --measure needs --config, and --config needs --measure")
    done = command("plugins", "--config", "config.yaml", "--measure", "5")
    assert done.code == 2
    assert 'unknown plugin "Slow"' in done.problem
