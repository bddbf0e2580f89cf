"""Choice of the scheduler names whose pods a command evaluates, by the same order of precedence in all commands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from policysched.app.configuration.reading import ReadConfiguration
from policysched.errors import UsageError
from policysched.language.messages.suggestions import did_you_mean
from policysched.model.policy import KIND

FLAG: Final = "--scheduler-name"


@dataclass(frozen=True, slots=True)
class SchedulerNames:
    """The scheduler names whose pods a command evaluates."""

    names: tuple[str, ...]
    source: str
    """Where the names are from: `--scheduler-name`, `the configuration`, `the policies` or `the pods`."""

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __str__(self) -> str:
        return f"{', '.join(self.names)} (from {self.source})"


def choose_scheduler_names(
    given: str | Collection[str],
    configurations: Collection[ReadConfiguration],
    policies: Iterable[Sequence[str]],
    of_pods: Counter[str],
) -> SchedulerNames:
    """Return the names of the flag, else of the configurations, else of the policies, else of the pods.

    Args:
        given: The names of the flag.
        configurations: The configurations that the command takes.
        policies: The `schedulerNames` of each policy; they are used only if every policy has some.
        of_pods: The number of pods by scheduler name.

    Raises:
        UsageError: a name of the flag is empty or is in no configuration.
    """
    given = [given] if isinstance(given, str) and given else given
    if any(not one.strip() for one in given):
        raise UsageError("--scheduler-name: name is empty")
    profiles = [one.scheduler_name or "" for read in configurations for one in read.completed.profiles]
    if given:
        _refuse_unknown(given, profiles)
        return SchedulerNames(tuple(dict.fromkeys(given)), FLAG)
    if profiles:
        return SchedulerNames(tuple(dict.fromkeys(profiles)), "the configuration")
    of_policies = [*policies]
    if of_policies and all(of_policies):
        return SchedulerNames(tuple(dict.fromkeys(name for names in of_policies for name in names)), "the policies")
    return SchedulerNames(tuple(name for name, _ in of_pods.most_common()), "the pods")


def names_of_policies(objects: Iterable[Mapping[str, Any]]) -> list[Sequence[str]]:
    """Return the `schedulerNames` of each policy among some objects, which may be malformed."""
    specs = [one.get("spec") for one in objects if one.get("kind") == KIND]
    names = [one.get("schedulerNames") if isinstance(one, Mapping) else None for one in specs]
    return [[name for name in one if isinstance(name, str)] if isinstance(one, list) else [] for one in names]


def counts_by_name(of_pods: Counter[str]) -> str:
    """Format the number of pods by scheduler name, the largest first: `schedulerName is a (2 pods) or b (1 pod)`."""
    named = (f"{name} ({number:,} {'pod' if number == 1 else 'pods'})" for name, number in of_pods.most_common())
    return f"schedulerName is {' or '.join(named)}"


def _refuse_unknown(given: Iterable[str], profiles: Collection[str]) -> None:
    for name in given:
        if profiles and name not in profiles:
            meant = did_you_mean(name, profiles) or f"the profiles are {', '.join(dict.fromkeys(profiles))}"
            raise UsageError(f'--scheduler-name: no profile "{name}" in the configuration; {meant}')
