"""Calls of plugins from Reserve to PostBind: exceptions and invalid results become statuses that name the plugin.

`reserve`, `unreserve` and `pre_bind_groups` call all plugins of a point, the other functions one plugin.

Source: pkg/scheduler/framework/runtime/framework.go (RunReservePluginsUnreserve, RunPreBindPreFlights and others).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from policysched.framework import AssumedPod, Code, Plugin, PreBindPlugin, PreFlight, ReservePlugin, Status
from policysched.framework.binding import Undo
from policysched.framework.extender import EXTENDER, Extender, ExtenderError
from policysched.framework.out_of_tree.answers import error_of
from policysched.framework.profile import Profile
from policysched.schedule.timing import RESERVE

log = logging.getLogger(__name__)


def unreserve(assumed: AssumedPod, profile: Profile) -> tuple[Undo, ...]:
    """Call Unreserve of all Reserve plugins in reverse order, even of plugins whose Reserve was not called.

    Returns:
        The requests that undo what plugins wrote to the API server, in order.
    """
    outside: list[Undo] = []
    for plugin in reversed(profile.reserving(assumed.pod, assumed.cluster)):
        try:
            undo = plugin.unreserve(assumed)
        except Exception:
            log.exception('Unreserve plugin "%s" failed for pod "%s"', plugin.name, assumed.pod.key)
        else:
            outside += [undo] if undo is not None else []
    return tuple(outside)


def pre_bind_groups(assumed: AssumedPod, profile: Profile) -> Sequence[Sequence[PreBindPlugin]] | Status:
    """Return the plugins with work at PreBind in groups that run in parallel, or a failure; cached in `assumed`."""
    if assumed.pre_binds is None:
        assumed.pre_binds = _pre_flights(assumed, profile)
    return assumed.pre_binds


def _pre_flights(assumed: AssumedPod, profile: Profile) -> Sequence[Sequence[PreBindPlugin]] | Status:
    flights: list[tuple[PreBindPlugin, PreFlight]] = []
    for plugin in profile.pre_binds:
        try:
            flight = plugin.pre_bind_pre_flight(assumed)
        except Exception as error:
            return _failed("PreBindPreFlight", plugin, error)
        if isinstance(flight, Status):
            return _unprepared(plugin, flight)
        flights.append((plugin, flight))
    assumed.state.skip_pre_bind_plugins = frozenset(plugin.name for plugin, flight in flights if not flight.works)
    assumed.state.parallel_pre_bind_plugins = frozenset(plugin.name for plugin, flight in flights if flight.parallel)
    return _grouped(flights)


def _grouped(flights: Iterable[tuple[PreBindPlugin, PreFlight]]) -> Sequence[Sequence[PreBindPlugin]]:
    """Put adjacent PreBind plugins that allow parallel calls into one group, each other plugin into a group alone."""
    groups: list[list[PreBindPlugin]] = []
    for parallel, some in groupby(flights, lambda one: one[1].parallel):
        working = [plugin for plugin, flight in some if flight.works]
        groups += [working] if parallel else [[plugin] for plugin in working]
    return [group for group in groups if group]


def _unprepared(plugin: Plugin, status: Status) -> Status:
    if status.code is Code.ERROR:
        why = f'running PreBindPreFlight "{plugin.name}": {status.message}'
    else:
        why = (
            f'PreBindPreFlight {plugin.name} returned "{status.code.text}", which is unsupported. '
            "It is supposed to return Success, Skip, or Error status"
        )
    return Status(Code.ERROR, (why,), plugin.name)


def answer_of(point: str, plugin: Plugin, ask: Callable[[], Any], *others: type) -> Any:
    """Call a plugin's synchronous method; return None for success, or the failure with the plugin's name."""
    try:
        answer = ask()
    except Exception as error:
        return _failed(point, plugin, error)
    return answer if isinstance(answer, others) else _checked(point, plugin, answer)


def reserve(
    assumed: AssumedPod, plugins: Iterable[ReservePlugin], ask: Callable[..., Any] = answer_of
) -> Status | None:
    """Call Reserve plugins until a plugin fails; return the failed plugin's status.

    Args:
        assumed: The pod, which is assumed.
        plugins: The plugins.
        ask: Calls a plugin like `answer_of`.
    """
    for plugin in plugins:
        answer = ask(RESERVE, plugin, partial(plugin.reserve, assumed))
        if isinstance(answer, Status):
            return answer
    return None


async def awaited_answer(point: str, plugin: Plugin, ask: Callable[[], Awaitable[Any]]) -> Status | None:
    """Await a plugin's method; return None for success, or the failure with the plugin's name."""
    try:
        answer = await ask()
    except Exception as error:
        return _failed(point, plugin, error)
    return _checked(point, plugin, answer)


async def bound_by(extender: Extender, assumed: AssumedPod) -> Status | None:
    """Send a pod's binding to an extender; return None if the extender failed and is ignorable."""
    try:
        await extender.bind(assumed.pod, assumed.node)
    except ExtenderError as error:
        if not extender.ignorable:
            return Status(Code.ERROR, (str(error),), EXTENDER)
        log.warning('extender "%s" failed to bind pod "%s" and is ignored: %s', extender.name, assumed.pod.key, error)
        return None
    return Status(Code.SUCCESS)


def _failed(point: str, plugin: Plugin, error: Exception) -> Status:
    log.error('%s plugin "%s" failed', point, plugin.name, exc_info=error)
    return Status(Code.ERROR, (f'running {point} plugin "{plugin.name}": {error!r}',), plugin.name)


def _checked(point: str, plugin: Plugin, answer: Any) -> Status | None:
    if answer is None or (isinstance(answer, Status) and answer.code is Code.SUCCESS):
        return None
    if not isinstance(answer, Status):
        return _failed(point, plugin, TypeError(f"expected a Status, got {type(answer).__name__}"))
    if answer.rejects or (point == "Bind" and answer.code is Code.SKIP):
        return answer.by(plugin.name)
    return Status(Code.ERROR, (f'running {point} plugin "{plugin.name}": {error_of(answer)}',), plugin.name)
