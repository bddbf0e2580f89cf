"""Configuration of a process without a configuration file: defaults, changed by flags.

With a file, only flags of leader election apply, as in kube-scheduler; other flags are ignored with a warning.

Source: cmd/kube-scheduler/app/options/options.go (ApplyDeprecated, ApplyTo), v1.36.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from policysched.app.configuration.election import ElectionFlags, election_without_file
from policysched.app.configuration.model import ClientConnection, Configuration, ProfileConfig, completed
from policysched.model.release import DEFAULT, Release

UNLIMITED: Final = -1
"""QPS value for unlimited requests; the default if neither a configuration file nor a flag sets QPS."""
ConfigurationFlags = Mapping[str, Any]
"""Values of flags that replace settings of a configuration file, by flag name with `_` for `-`."""
_CONNECTION: Final = {
    "kubeconfig": "kubeconfig",
    "kube_api_qps": "qps",
    "kube_api_burst": "burst",
    "kube_api_content_type": "content_type",
}
_PROFILING: Final = {"profiling": "enable_profiling", "contention_profiling": "enable_contention_profiling"}


def configuration_without_file(
    scheduler_names: Sequence[str], election: ElectionFlags, flags: ConfigurationFlags, release: Release = DEFAULT
) -> Configuration:
    """Return the completed configuration of a process that has no configuration file.

    Raises:
        UsageError: flags contradict each other.
    """
    connection = {"qps": UNLIMITED} | {field: flags[name] for name, field in _CONNECTION.items() if name in flags}
    given = Configuration(
        profiles=tuple(ProfileConfig(scheduler_name=name) for name in scheduler_names),
        client_connection=ClientConnection(**connection),
        leader_election=election_without_file(election),
        **{field: flags[name] for name, field in _PROFILING.items() if name in flags},
    )
    return completed(given, release)


def ignored_flags(flags: ConfigurationFlags) -> Iterator[str]:
    """Yield the warnings about flags that have no effect because of a configuration file."""
    for name in flags:
        field = f"clientConnection.{_CONNECTION[name]}" if name in _CONNECTION else _PROFILING[name]
        head, *rest = field.split("_")
        counts = head + "".join(map(str.title, rest))
        yield f"--{name.replace('_', '-')} is ignored with --config; set {counts} in the file"
