"""Imports the only part of the Kubernetes client library in use: the loaders of kubeconfigs and service accounts.

The import omits the code of the packages around the loaders, which costs the most time: a synchronous client with HTTP
and OAuth libraries, and the API client with its models. A later import of these packages loads them completely.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["ConfigException", "ConfigNode", "Configuration", "ExecProvider", "KubeConfigMerger", "config"]
_CLIENT = "kubernetes.aio.client"


def _api_client(*args: Any, **kwargs: Any) -> Any:
    """Create the client library's `ApiClient`; the loaders import this name, but never call it."""
    return importlib.import_module(_CLIENT).ApiClient(*args, **kwargs)


@contextmanager
def _not_run(*packages: str) -> Iterator[None]:
    """Inside this context, import modules of packages without running the packages' `__init__.py`."""
    bare = [name for name in packages if name not in sys.modules]
    try:
        for name in bare:
            spec = importlib.util.find_spec(name)
            if spec is None:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            sys.modules[name] = importlib.util.module_from_spec(spec)
        yield
    finally:
        for name in bare:
            sys.modules.pop(name, None)


with _not_run("kubernetes", "kubernetes.aio", _CLIENT):
    from kubernetes.aio.client.configuration import Configuration

    if not hasattr(sys.modules[_CLIENT], "__all__"):
        vars(sys.modules[_CLIENT]).update(Configuration=Configuration, ApiClient=_api_client)
    from kubernetes.aio import config
    from kubernetes.aio.config import ConfigException
    from kubernetes.aio.config.exec_provider import ExecProvider
    from kubernetes.aio.config.kube_config import ConfigNode, KubeConfigMerger
