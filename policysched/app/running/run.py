"""Run of a scheduler process from its start to a clean end: configuration, credentials, port and leadership.

Problems with the server are logged in one line and retried forever; only an invalid kubeconfig ends the start.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from prometheus_client import CollectorRegistry, Gauge

from policysched.app.clock import LeaseClock, SystemClock
from policysched.app.configuration.command_line import ignored_flags
from policysched.app.configuration.election import lease_of
from policysched.app.configuration.model import Configuration, LeaderElection
from policysched.app.configuration.printing import to_yaml
from policysched.app.daemon_threads import unless
from policysched.app.recording.writer import RecordWriter
from policysched.app.running.configuration_file import ConfigurationFile, without_secrets
from policysched.app.running.extenders import RunningExtenders
from policysched.app.running.leadership import END_WITHIN, ElectionThread, Leadership, new_identity
from policysched.app.running.metric_clients import make_source
from policysched.app.running.process import Process
from policysched.app.running.run_options import RunOptions, completed_configuration
from policysched.app.running.served_process import ServedProcess
from policysched.app.running.server_version import SkewWatch, release_to_follow, wait_for_version
from policysched.app.running.thread_turns import short_turns
from policysched.app.serving.served import Connect
from policysched.app.serving.thread import secure_port
from policysched.errors import OutOfMemoryError, UsageError
from policysched.framework import MetricSource
from policysched.klog import V2, Block
from policysched.kube.connection import Connection
from policysched.kube.election.presence import LeasePlaces, Place, PresenceWatch
from policysched.kube.transport import Pacing, Transport
from policysched.metric_sources.counters import SourceCounters
from policysched.model.release import Release
from policysched.model.release_choice import first_accepted
from policysched.reading.files import read_bytes

log = logging.getLogger(__name__)
T = TypeVar("T")
PLACE_LEFT_WITHIN: Final = 2.0
"""Longest wait at the end for freeing this process's presence Lease. Units: seconds."""


async def run_scheduler(options: RunOptions, stop: asyncio.Event) -> None:
    """Run a scheduler until `stop` is set.

    Raises:
        ConnectionProblemError: the kubeconfig cannot be used.
        UsageError: the configuration or the metrics source is invalid.
    """
    registry = CollectorRegistry()
    data = None if options.config is None else await unless(stop, asyncio.to_thread(read_bytes, str(options.config)))
    if stop.is_set():
        return
    configuration = _file(options, registry, data)  # plugins are created in the thread and loop in which they run
    _check_extenders(configuration)
    writer = None if options.record is None else RecordWriter(options.record, options.record_limit)
    reading = asyncio.to_thread(make_source, options.metrics, SystemClock(), SourceCounters(registry))
    source = await unless(stop, reading)
    connect = _connecting(options, configuration)
    connection = await unless(stop, connect())
    if source is None or connection is None:
        return
    names = tuple(options.scheduler_names if configuration is None else configuration.profiles)
    log.info("starting the scheduler for schedulerName %s at %s", ", ".join(names), connection.url)
    inputs = StartInputs(options, configuration, connection, connect, source, registry, writer, names)
    try:
        await _serve(inputs, stop)
    finally:
        await connection.close()
    log.info("the scheduler stopped")


@dataclass(frozen=True, slots=True)
class StartInputs:
    """Options, configuration and connection of a process, which are known before the API server answers."""

    options: RunOptions
    configuration: ConfigurationFile | None
    connection: Connection
    connect: Connect
    """Function that opens another connection to the API server, with separately read credentials."""
    source: MetricSource
    registry: CollectorRegistry
    writer: RecordWriter | None
    names: tuple[str, ...]
    """The scheduler names whose pods the process schedules."""


async def _serve(inputs: StartInputs, stop: asyncio.Event) -> None:
    """Serve the port, create the process when the API server has answered, and run the process until `stop` is set.

    Raises:
        UsageError: the port cannot be used, or an input is invalid for the API server's release.
    """
    options, connection, registry = inputs.options, inputs.connection, inputs.registry
    transport, served = Transport(connection), ServedProcess(stop)
    port = served.served(registry, options.set_verbosity)
    with short_turns():
        async with secure_port(options.serving.near(connection.url), port, inputs.connect):
            version = await unless(stop, wait_for_version(transport, Pacing(random.random)))
            if version is None:
                return
            release = release_to_follow(options.kube_version, version)
            process, completed = _process(inputs, release)
            served.show(process)
            presence = _presence(inputs.names, completed.leader_election, process, transport)
            skew = SkewWatch(transport, options.kube_version, release, version, registry)
            async with presence.published(PLACE_LEFT_WITHIN), skew.active():
                await _work_until(stop, process)


def _process(inputs: StartInputs, release: Release) -> tuple[Process, Configuration]:
    """Return a process whose decisions follow a Kubernetes release, with its completed configuration.

    Raises:
        UsageError: the configuration or a feature gate is invalid for the release.
    """
    options, configuration = inputs.options, inputs.configuration
    release = options.apply_gates(release)
    if configuration is not None:
        configuration.follow(release)
    completed = completed_configuration(options, configuration, release)
    if log.isEnabledFor(V2):
        log.log(V2, "Using component config", {"config": Block(to_yaml(without_secrets(completed)))})
    else:
        log.info("placed pods are logged at --v=2 and above")
    process = Process(options, inputs.connection, inputs.source, inputs.registry, configuration, release, inputs.writer)
    if completed.leader_election.leader_elect:
        election = ElectionThread(inputs.connect, LeaseClock(), Pacing(random.random), inputs.names[0])
        process.leadership = Leadership(completed.leader_election, election, inputs.registry)
    return process, completed


def _check_extenders(configuration: ConfigurationFile | None) -> None:
    """Check the extenders before the API server answers.

    Raises:
        UsageError: an extender's URL or certificate is invalid.
    """
    if configuration is not None:
        RunningExtenders(configuration.completed)


def _connecting(
    options: RunOptions, configuration: ConfigurationFile | None
) -> Callable[[], Coroutine[Any, Any, Connection]]:
    """Return a function that opens a connection to the API server; each connection reads the credentials separately."""
    return partial(
        Connection.open,
        SystemClock(),
        kubeconfig=_kubeconfig(options, configuration),
        context=options.context,
        named_by=f"clientConnection.kubeconfig of {options.config}" if options.config else "--kubeconfig",
        master=options.master,
    )


async def _work_until(stop: asyncio.Event, process: Process) -> None:
    """Run a process until `stop` is set, or until the process loses its lease."""
    work = asyncio.create_task(process.run())
    ends: list[asyncio.Task[Any]] = [asyncio.create_task(stop.wait())]
    if process.leadership is not None:
        ends.append(asyncio.create_task(process.leadership.lost()))
    await asyncio.wait((work, *ends), return_when=asyncio.FIRST_COMPLETED)
    if process.leadership is not None and process.leadership.is_lost:
        process.scheduler.last_words = END_WITHIN
    for task in (work, *ends):
        task.cancel()
    await asyncio.gather(work, *ends, return_exceptions=True)
    for task in (*ends, work):
        if not task.cancelled() and (error := task.exception()) is not None:
            raise _error_to_report(error)


def _error_to_report(error: BaseException) -> BaseException:
    """Return the error to report: the error about missing memory if an exception group contains one."""
    found: BaseException | None = None
    if isinstance(error, BaseExceptionGroup):
        found = error.subgroup(OutOfMemoryError)
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found or error


def _presence(names: Sequence[str], election: LeaderElection, process: Process, transport: Transport) -> PresenceWatch:
    """Create the watch that publishes this process's presence and counts competing processes."""
    identity = process.leadership.identity if process.leadership is not None else new_identity()
    lease = lease_of(election) if election.leader_elect else ""
    own = Place(0, holder=identity, scheduler_names=frozenset(names), election=lease)
    places = LeasePlaces(transport, election.resource_namespace)
    presence = PresenceWatch(places, own, SystemClock(), Pacing(random.random))
    competing_gauge(process.registry).set_function(lambda: len(presence.competing))
    return presence


def competing_gauge(registry: CollectorRegistry) -> Gauge:
    """Register the gauge with the number of processes that compete with this process for the same pods."""
    text = "Other processes that schedule for the same scheduler names without a common leader election."
    return Gauge("policysched_presence_competing", text, registry=registry)


def _file(options: RunOptions, registry: CollectorRegistry, data: bytes | None = None) -> ConfigurationFile | None:
    if options.config is None:
        return None
    return ConfigurationFile(
        options.config, options.plugins, registry, options.leader_election, data, options.kube_version
    )


def _kubeconfig(options: RunOptions, configuration: ConfigurationFile | None) -> str | None:
    """Return the kubeconfig's path: from a configuration file, as in kube-scheduler, or else from the flag.

    Raises:
        UsageError: only the ignored flag names a kubeconfig, so the process would act on another cluster.
    """
    if configuration is None:
        return str(options.kubeconfig) if options.kubeconfig else None
    configuration.log_warnings()
    named = configuration.completed.client_connection.kubeconfig
    if options.kubeconfig is not None and not named:
        raise UsageError(
            f"--kubeconfig is ignored with --config, and {options.config} names no kubeconfig; "
            "set clientConnection.kubeconfig in the file or remove --kubeconfig"
        )
    given = {} if options.kubeconfig is None else {"kubeconfig": str(options.kubeconfig)}
    for warning in ignored_flags(given | dict(options.configuration_flags)):
        log.warning("%s", warning)
    return named or None


def write_configuration(options: RunOptions, path: Path) -> None:
    """Write the completed configuration to a file; the file decodes to the same configuration.

    Raises:
        UsageError: the configuration is invalid, or the file cannot be written.
    """
    configuration = _file(options, CollectorRegistry())
    release = first_accepted(options.kube_version, options.apply_gates)
    if configuration is not None:
        configuration.follow(release)
    text = to_yaml(completed_configuration(options, configuration, release))
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise UsageError(f'--write-config-to: cannot write "{path}": {error.strerror}') from error
    log.info('wrote the configuration to "%s"', path)
