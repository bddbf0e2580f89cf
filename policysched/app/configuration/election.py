"""Leader election as a file and flags ask for it: what flags say counts before the file, as in kube-scheduler.

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
from policysched.plugins.arguments import nanoseconds

LEASE: Final = "policysched"
"""The name of the lease where no configuration file says another."""
OF_KUBE_SCHEDULER: Final = "kube-scheduler"
"""The name of kube-scheduler's own lease, which a file has by default."""
ElectionFlags = Mapping[str, Any]
"""Fields of `LeaderElection` that flags say, by their names there."""
NO_FLAGS: Final[ElectionFlags] = MappingProxyType({})
NO_ELECTION: Final[ElectionFlags] = MappingProxyType({"leader_elect": False})
_LENGTHS: Final = ("lease_duration", "renew_deadline", "retry_period")


def read_flags(given: Mapping[str, Any]) -> ElectionFlags:
    """Read what flags say; those that are absent are None.

    Raises:
        UsageError: a value cannot be used.
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
    """Put what flags say over what a file says."""
    return replace(configuration, leader_election=replace(configuration.leader_election, **flags))


def election_without_file(flags: ElectionFlags) -> LeaderElection:
    """Return how leaders are elected where there is no file.

    Raises:
        UsageError: what the flags say does not go together.
    """
    made = replace(LeaderElection(resource_name=LEASE), **flags)
    found = [f"{field}: {why}" for field, why in election_faults(made)] if made.leader_elect else []
    if found:
        raise UsageError("; ".join(found))
    return made


def election_timing(given: LeaderElection) -> ElectionTiming:
    """Return how long what takes.

    Raises:
        UsageError: nobody could keep the lease like that.
    """
    timing = ElectionTiming(*((nanoseconds(getattr(given, name)) or 0) / 1e9 for name in _LENGTHS))
    for fault in timing.faults():
        raise UsageError(f"leaderElection: {fault}")
    return timing


def lease_of(election: LeaderElection) -> str:
    """Return the namespace and the name of the lease, under which an installation is known."""
    return f"{election.resource_namespace}/{election.resource_name}"


def election_warnings(election: LeaderElection, scheduler_names: Iterable[str]) -> Iterator[str]:
    """Say what of an election is likely to be a mistake."""
    if (
        election.leader_elect
        and election.resource_name == OF_KUBE_SCHEDULER
        and DEFAULT_SCHEDULER not in scheduler_names
    ):
        yield f"leaderElection.resourceName: {OF_KUBE_SCHEDULER} is the Lease of kube-scheduler"
