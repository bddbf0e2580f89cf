"""The configuration of a process without a configuration file: defaults, and what flags say over them.

With a file only flags of leader election count beside it, as in kube-scheduler; the others are ignored, and named.

Source: cmd/kube-scheduler/app/options/options.go (ApplyDeprecated, ApplyTo), v1.36.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from policysched.app.configuration.election import ElectionFlags, election_without_file
from policysched.app.configuration.model import ClientConnection, Configuration, ProfileConfig, completed

UNLIMITED: Final = -1
"""Without a configuration file nothing bounds how many requests are made, unless a flag does."""
ConfigurationFlags = Mapping[str, Any]
"""What flags say that a file says instead, by their names with `_` for `-`."""
_CONNECTION: Final = {
    "kubeconfig": "kubeconfig",
    "kube_api_qps": "qps",
    "kube_api_burst": "burst",
    "kube_api_content_type": "content_type",
}
_PROFILING: Final = {"profiling": "enable_profiling", "contention_profiling": "enable_contention_profiling"}


def configuration_without_file(
    scheduler_names: Sequence[str], election: ElectionFlags, flags: ConfigurationFlags
) -> Configuration:
    """Return the completed configuration of a process that was given no file.

    Raises:
        UsageError: what the flags say does not go together.
    """
    connection = {"qps": UNLIMITED} | {field: flags[name] for name, field in _CONNECTION.items() if name in flags}
    given = Configuration(
        profiles=tuple(ProfileConfig(scheduler_name=name) for name in scheduler_names),
        client_connection=ClientConnection(**connection),
        leader_election=election_without_file(election),
        **{field: flags[name] for name, field in _PROFILING.items() if name in flags},
    )
    return completed(given)


def ignored_flags(flags: ConfigurationFlags) -> Iterator[str]:
    """Say which flags a configuration file leaves without effect."""
    for name in flags:
        field = f"clientConnection.{_CONNECTION[name]}" if name in _CONNECTION else _PROFILING[name]
        head, *rest = field.split("_")
        counts = head + "".join(map(str.title, rest))
        yield f"--{name.replace('_', '-')} is ignored with --config; set {counts} in the file"
