"""The Kubernetes client library: a start imports only its loaders, other code imports all of it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from policysched.kube.client_library import _not_run

LEFT_OUT = ("kubernetes.client", "kubernetes.config", "requests", "urllib3", "oauthlib")
ALONE = f"""
import sys
import policysched.app.running.run
print([name for name in {LEFT_OUT} if name in sys.modules])
"""
WHOLE = """
from policysched.kube.client_library import Configuration, ConfigException, config
import kubernetes
import kubernetes.aio.config
from kubernetes.aio import client
assert kubernetes.client.CoreV1Api().api_client
assert kubernetes.config.load_kube_config and kubernetes.aio.watch.Watch
assert client.Configuration is Configuration
assert kubernetes.aio.config.ConfigException is ConfigException
"""
EARLIER = """
import kubernetes.aio
from policysched.kube.client_library import Configuration
assert Configuration is kubernetes.aio.client.Configuration
assert kubernetes.client.CoreV1Api
"""


def _run(text: str) -> str:
    return subprocess.run([sys.executable, "-c", text], check=True, timeout=60, capture_output=True, text=True).stdout


def test_start_of_the_scheduler_imports_no_synchronous_client() -> None:
    assert _run(ALONE) == "[]\n"


@pytest.mark.parametrize("text", [WHOLE, EARLIER])
def test_client_is_whole_for_who_imports_it(text: str) -> None:
    _run(text)


def test_a_client_that_is_not_there_is_said() -> None:
    with (
        pytest.raises(ModuleNotFoundError, match="No module named 'kubernetes_of_nobody'"),
        _not_run("kubernetes_of_nobody"),
    ):
        raise AssertionError
    assert "kubernetes_of_nobody" not in sys.modules
