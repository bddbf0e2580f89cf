"""A start that fails leaves no connection behind."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml

from policysched.app.clock import SystemClock
from policysched.app.running.run import run_scheduler
from policysched.app.running.run_options import RunOptions
from policysched.errors import UsageError
from policysched.framework.registry import PluginRegistry
from policysched.kube.connection import Connection
from tests.app.configuration.test_reading import HEAD
from tests.leaks import nothing_left_open

KUBECONFIG = {
    "kind": "Config",
    "current-context": "c",
    "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    "users": [{"name": "u", "user": {}}],
}


def test_leaks_are_found() -> None:
    async def leak() -> None:
        assert Connection("http://127.0.0.1:9", SystemClock()).session

    with pytest.raises(AssertionError, match="Unclosed"), nothing_left_open():
        asyncio.run(leak())


@pytest.mark.parametrize(
    "extender", [{"urlPrefix": "nowhere"}, {"urlPrefix": "https://x", "tlsConfig": {"caFile": "/x"}}]
)
def test_start_with_an_extender_that_cannot_be_used_leaves_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extender: dict[str, Any]
) -> None:
    opening = Connection.open

    async def opened(*given: Any, **named: Any) -> Connection:
        connection = await opening(*given, **named)
        assert connection.session, "as a start has it that asked for something already"
        return connection

    monkeypatch.setattr(Connection, "open", opened)
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(KUBECONFIG), "utf-8")
    config = {
        **HEAD,
        "clientConnection": {"kubeconfig": str(tmp_path / "kubeconfig")},
        "leaderElection": {"leaderElect": False},
        "extenders": [{"filterVerb": "filter", **extender}],
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config), "utf-8")

    async def start() -> None:
        await run_scheduler(RunOptions(config=tmp_path / "config.yaml"), asyncio.Event())

    with nothing_left_open(), pytest.raises(UsageError, match="extender"):
        asyncio.run(start())


def test_start_without_the_kubeconfig_that_the_file_names_says_where_that_is(tmp_path: Path) -> None:
    config = {
        **HEAD,
        "clientConnection": {"kubeconfig": str(tmp_path / "none")},
        "leaderElection": {"leaderElect": False},
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config), "utf-8")
    options = RunOptions(config=tmp_path / "config.yaml")
    with pytest.raises(UsageError, match=r"none; set clientConnection\.kubeconfig of .*config\.yaml"):
        asyncio.run(run_scheduler(options, asyncio.Event()))


def test_plugins_are_made_in_the_loop_in_which_they_work(tmp_path: Path) -> None:
    """They may hold what belongs to one thread, or ask for the loop."""
    made: list[object] = []

    class Where:
        name = "Where"

        def __init__(self) -> None:
            made.append((threading.current_thread(), asyncio.get_running_loop().is_running()))

    plugins = PluginRegistry()
    plugins.register("Where", lambda _args, _handle: Where())
    config = {
        **HEAD,
        "clientConnection": {"kubeconfig": str(tmp_path / "none")},
        "leaderElection": {"leaderElect": False},
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "Where"}]}}}],
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config), "utf-8")
    options = RunOptions(config=tmp_path / "config.yaml", plugins=plugins)
    with pytest.raises(UsageError, match="none; set"):
        asyncio.run(run_scheduler(options, asyncio.Event()))
    assert made == [(threading.current_thread(), True)]
