"""The reference of the configuration file: fields and defaults from the structs, flags without effect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec.structs import FieldInfo, fields

from policysched.app.configuration.model import (
    DEFAULT_SCHEDULER,
    ClientConnection,
    Configuration,
    ExtenderConfig,
    LeaderElection,
    ManagedResource,
    ProfileConfig,
)
from policysched.cli.flags.sections import FLAGS
from policysched.extenders.settings import TlsSettings

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "configuration.md"
HEAD: Final = """---
description: Fields, defaults and effects of the KubeSchedulerConfiguration that policysched reads.
---

# Configuration file

Look up a field of the file of `policysched run --config FILE`, a KubeSchedulerConfiguration of
`kubescheduler.config.k8s.io/v1`. Fields, defaults and validation are those of kube-scheduler v1.37.2
(`tests/oracle/test_completed_configurations.py` compares them). [Configure](../run/configuration.md) shows how to use
the file. `policysched config view --config FILE` prints it with all defaults.

## Fields
"""
FLAGS_HEAD: Final = """## Flags and the file

`policysched run` has every flag of kube-scheduler v1.37.2. [Commands](commands.md) and `policysched run --help` list
them.

- With `--config`, the flags `--kubeconfig`, `--kube-api-qps`, `--kube-api-burst`, `--kube-api-content-type`,
  `--profiling` and `--contention-profiling` are ignored with a warning. `--scheduler-name` is an error, and
  `--kubeconfig` if the file names no kubeconfig.
- `--master` and the flags of leader election override the file.
- Without `--config`, there is one default profile, `policysched` or the names of `--scheduler-name`, and requests are
  not limited.
- `--feature-gates` knows the gates of the followed kube-scheduler. A gate is an error if it requires a behaviour that
  does not exist in policysched.

## Flags without effect

A warning in the log reports each of these flags that is set.

| flag | reason |
|---|---|
"""
NOTES: Final[Mapping[str, str]] = {
    "parallelism": "no effect: one computation covers all nodes",
    "leaderElection.leaderElect": "elect one process, see [High availability](../run/high-availability.md)",
    "leaderElection.leaseDuration": "how long standbys wait for a renewal before they take over",
    "leaderElection.renewDeadline": "how long the leader tries to renew the lease before it exits",
    "leaderElection.retryPeriod": "interval between attempts to acquire or renew the lease",
    "leaderElection.resourceLock": "only `leases` is supported",
    "leaderElection.resourceName": "name of the lease; also the name of this installation in the status of policies",
    "leaderElection.resourceNamespace": "namespace of the lease",
    "clientConnection.kubeconfig": "kubeconfig file; empty: the one that kubectl uses, else the pod's service account",
    "clientConnection.acceptContentTypes": "no effect: requests use JSON",
    "clientConnection.contentType": "no effect: requests use JSON",
    "clientConnection.qps": "requests per second; below 0: no limit. Events have a separate limit of the same size",
    "clientConnection.burst": "requests at once",
    "enableProfiling": "no effect: there is no /debug/pprof",
    "enableContentionProfiling": "no effect: there is no /debug/pprof",
    "percentageOfNodesToScore": "no effect: every node is evaluated",
    "percentageOfPlacementsToScore": "an error: pods are scheduled one by one; a field of 1.38",
    "podInitialBackoffSeconds": "how long a pod waits after its first failed attempt; doubles with each attempt",
    "podMaxBackoffSeconds": "maximum of this wait",
    "profiles": "one default profile if empty",
    "profiles[].schedulerName": "the profile applies to pods with this name; required with several profiles",
    "profiles[].percentageOfNodesToScore": "no effect: every node is evaluated",
    "profiles[].percentageOfPlacementsToScore": "as `percentageOfPlacementsToScore`",
    "profiles[].plugins": "enabled and disabled plugins, see [Plugins of a profile](profiles.md)",
    "profiles[].pluginConfig": "arguments of plugins, see [Plugins of a profile](profiles.md#arguments)",
    "extenders": "HTTP services that filter, score, preempt or bind, see [HTTP extenders](../extend/extenders.md)",
    "extenders[].urlPrefix": "URL of the extender",
    "extenders[].filterVerb": "path of filter calls; empty: not called",
    "extenders[].preemptVerb": "path of preemption calls; empty: not called",
    "extenders[].prioritizeVerb": "path of score calls; empty: not called",
    "extenders[].weight": "factor of the extender's scores",
    "extenders[].bindVerb": "path of bind calls; empty: the scheduler binds",
    "extenders[].enableHTTPS": "use HTTPS",
    "extenders[].tlsConfig": "`insecure`, `serverName`, and certificate, key and CA as files or data",
    "extenders[].httpTimeout": "timeout of a call; 0s: 5s",
    "extenders[].nodeCacheCapable": "send names of nodes in place of nodes",
    "extenders[].managedResources": "call the extender only for pods that request one of these resources",
    "extenders[].managedResources[].name": "name of the resource",
    "extenders[].managedResources[].ignoredByScheduler": "NodeResourcesFit ignores the resource",
    "extenders[].ignorable": "continue without the extender if a call fails",
    "delayCacheUntilActive": "a standby lists and watches nothing until it leads",
}
"""The effect of each field of the configuration, by its path."""
STRUCTS: Final = {"profiles": ProfileConfig, "extenders": ExtenderConfig, "managedResources": ManagedResource}
"""Structs whose fields the page documents as list items, by name of the list."""
DEFAULTS: Final = {
    "enableContentionProfiling": "as `enableProfiling`",
    "profiles[].schedulerName": f"`{DEFAULT_SCHEDULER}` for a single profile",
    "profiles[].plugins": "the default plugins",
    "profiles[].pluginConfig": "defaults of each plugin",
}
"""Texts for defaults that depend on other fields or on the machine, by path of the field."""


def page() -> str:
    """Return the text of the reference page about the configuration file."""
    rows = [f"| `{path}` | {default} | {NOTES[path]} |" for path, default in _rows(Configuration)]
    table = "\n".join(["| field | default | effect |", "|---|---|---|", *rows])
    flags = "\n".join(f"| `--{one.name}` | {one.no_effect} |" for one in FLAGS if one.no_effect)
    return f"{HEAD}\n{table}\n\n{FLAGS_HEAD}{flags}\n"


def _rows(struct: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path and default of each field of a struct."""
    for field in fields(struct):
        name = field.encode_name
        path = prefix + name
        if path in {"apiVersion", "kind"}:
            continue
        if field.type in {LeaderElection, ClientConnection}:
            yield from _rows(field.type, f"{path}.")
            continue
        yield path, DEFAULTS.get(path, _default(field))
        if name in STRUCTS:
            yield from _rows(STRUCTS[name], f"{path}[].")


def _default(field: FieldInfo) -> str:
    value: Any = field.default
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value in {None, "", ()} or isinstance(value, TlsSettings) else str(value)
