"""Leader election settings from file and flags; as in kube-scheduler, flags override the file.

Source: cmd/kube-scheduler/app/options/options.go (ApplyLeaderElectionTo), v1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec.structs import replace

from policysched.app.configuration.model import DEFAULT_SCHEDULER, Configuration, LeaderElection
from policysched.app.configuration.validation import election_faults
from policysched.errors import UsageError
from policysched.kube.election.elector import ElectionTiming
from policysched.reading.durations import nanoseconds

LEASE: Final = "policysched"
"""Default name of the lease if the process has no configuration file."""
OF_KUBE_SCHEDULER: Final = "kube-scheduler"
"""Name of kube-scheduler's lease; this name is the default in a configuration file."""
ElectionFlags = Mapping[str, Any]
"""Values of flags that set leader election, by field of `LeaderElection`."""
NO_FLAGS: Final[ElectionFlags] = MappingProxyType({})
NO_ELECTION: Final[ElectionFlags] = MappingProxyType({"leader_elect": False})
_LENGTHS: Final = ("lease_duration", "renew_deadline", "retry_period")


def read_flags(given: Mapping[str, Any]) -> ElectionFlags:
    """Return the values of the leader election flags; the value of an absent flag is None.

    Raises:
        UsageError: a value is invalid.
    """
    stated = {name: value for name, value in given.items() if value is not None}
    for name, value in stated.items():
        flag = f"--leader-elect-{name.replace('_', '-')}"
        if name in _LENGTHS:
            _check_length(flag, value)
        if value == "":
            raise UsageError(f"{flag}: name is empty")
    return stated


def _check_length(flag: str, value: str) -> None:
    length = nanoseconds(value)
    if length is None:
        raise UsageError(f'{flag} "{value}" is not a duration; write it as 15s or 1m30s')
    if length <= 0:
        raise UsageError(f'{flag} "{value}" is not greater than 0')


def with_flags(configuration: Configuration, flags: ElectionFlags) -> Configuration:
    """Return a configuration in which flags override the leader election settings."""
    return replace(configuration, leader_election=replace(configuration.leader_election, **flags))


def election_without_file(flags: ElectionFlags) -> LeaderElection:
    """Return the leader election settings of a process that has no configuration file.

    Raises:
        UsageError: flags contradict each other.
    """
    made = replace(LeaderElection(resource_name=LEASE), **flags)
    found = [f"{field}: {why}" for field, why in election_faults(made)] if made.leader_elect else []
    if found:
        raise UsageError("; ".join(found))
    return made


def election_timing(given: LeaderElection) -> ElectionTiming:
    """Return the durations in leader election settings: lease, renewal and retry.

    Raises:
        UsageError: no process could keep the lease with these durations.
    """
    timing = ElectionTiming(*((nanoseconds(getattr(given, name)) or 0) / 1e9 for name in _LENGTHS))
    for fault in timing.faults():
        raise UsageError(f"leaderElection: {fault}")
    return timing


def lease_of(election: LeaderElection) -> str:
    """Return namespace and name of the lease, which identify an installation."""
    return f"{election.resource_namespace}/{election.resource_name}"


def election_warnings(election: LeaderElection, scheduler_names: Iterable[str]) -> Iterator[str]:
    """Yield warnings about election settings that are probably a mistake."""
    if (
        election.leader_elect
        and election.resource_name == OF_KUBE_SCHEDULER
        and DEFAULT_SCHEDULER not in scheduler_names
    ):
        yield f"leaderElection.resourceName: {OF_KUBE_SCHEDULER} is the Lease of kube-scheduler"
