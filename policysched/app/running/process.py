"""`Process`: a scheduler with one connection: reflectors, handlers, engine, reload and metrics connected.

Scheduling starts when everything that decisions read is listed and the policies are compiled. Reflectors pass objects
to the scheduler, policies to the reloader. An object whose processing fails is left out.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

from prometheus_client import CollectorRegistry

from policysched.app.clock import SystemClock
from policysched.app.configuration.election import lease_of
from policysched.app.configuration.model import Configuration
from policysched.app.configuration.printing import to_dict
from policysched.app.configuration.profiles import default_profile
from policysched.app.recording.recorder import Recorder
from policysched.app.recording.writer import RecordWriter
from policysched.app.running.configuration_file import ConfigurationFile, NotNowError, Reloaded, without_secrets
from policysched.app.running.documents import configuration_document, policies_document
from policysched.app.running.extenders import RunningExtenders, with_extenders
from policysched.app.running.freed_memory import return_freed_memory
from policysched.app.running.garbage_collection import collect_all, short_collections, taking_lists
from policysched.app.running.leadership import Leadership
from policysched.app.running.metrics.process_metrics import ProcessMetrics
from policysched.app.running.node_metrics import MetricFeed
from policysched.app.running.object_handlers import MalformedPods, ObjectHandler, PolicyHandler
from policysched.app.running.port_dry_runs import LiveDryRuns
from policysched.app.running.profile_nodes import profiles_without_nodes
from policysched.app.running.run_options import RunOptions, completed_configuration
from policysched.app.running.watchdog import Watchdog
from policysched.app.serving.health import HEALTHZ, READYZ, Health
from policysched.app.serving.thread import wait_until_idle
from policysched.errors import ConnectionProblemError
from policysched.framework import ApiError, MetricSource
from policysched.framework.profile import Profile
from policysched.kube.client import KubeClient
from policysched.kube.connection import Connection
from policysched.kube.events.writer import EventWriter
from policysched.kube.object_cache import LeftOutObjects
from policysched.kube.object_texts import KeptTexts
from policysched.kube.reflector import Reflector
from policysched.kube.request_limits import RateLimit
from policysched.kube.transport import Pacing, Transport
from policysched.language import load_grammar
from policysched.model.custom_objects import custom_kind
from policysched.model.kinds import KINDS, NODES, PODS, POLICIES, ApiKind, CustomResource
from policysched.model.objects import Pod
from policysched.model.policy import KIND
from policysched.model.release import DEFAULT, Release
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.observer import LOG_LINES
from policysched.schedule.reload import Reloader
from policysched.schedule.scheduler import Scheduler
from policysched.state.cluster import Cluster

log = logging.getLogger(__name__)
LISTED_WITHIN: Final = 60.0
"""Longest time for which a changed configuration waits for lists of newly watched kinds. Units: seconds."""
GRAMMAR_AFTER: Final = 2.0
"""Time after which the grammar of policy expressions is loaded although no policy exists. Units: seconds."""
PODS_FIRST: Final = 8.0
"""Additional time for which loading the grammar waits for pending pods and events. Units: seconds."""
EVENTS_DEADLINE: Final = 5.0
"""Longest time for writing waiting events after the scheduler has stopped. Units: seconds."""
LISTED: Final = "informer-sync"
"""Name of the health check that fails until all objects are listed."""
COMPILED: Final = "policies-sync"
"""Name of the health check that fails until the listed policies are compiled."""
CONFIGURATION: Final = "/configz"
DOCUMENTS: Final = (CONFIGURATION, "/debug/policies")
"""Paths of the HTTPS port at which the process serves JSON documents."""


class Process:
    """One scheduler with one connection: creates and starts reflectors, handlers, engine and reload in order.

    Args:
        options: Options of the process.
        connection: The connection to the API server.
        source: The source of node metrics.
        registry: Registry of the process's metrics.
        configuration: The configuration file; None without one.
        release: The Kubernetes release that decisions follow; that of the configuration file.
        writer: Writes the record of decisions; None records nothing.

    Raises:
        UsageError: an extender is invalid.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - dependencies are passed in
        self,
        options: RunOptions,
        connection: Connection,
        source: MetricSource,
        registry: CollectorRegistry,
        configuration: ConfigurationFile | None = None,
        release: Release = DEFAULT,
        writer: RecordWriter | None = None,
    ) -> None:
        clock = SystemClock()
        self.registry = registry
        self.left_out = LeftOutObjects(clock.monotonic, registry)
        self._pacing = pacing = Pacing(random.random)
        self._seed = options.seed
        self._configuration = configuration
        self._at_start = completed = completed_configuration(options, configuration, release)
        self.leadership: Leadership | None = None
        """Leader election; None if disabled: then the process schedules once all objects are listed."""
        self._transport = transport = Transport(connection, limit=_limit(completed), may_write=self._may_write)
        self.events = EventWriter(Transport(connection, limit=_limit(completed)), pacing, socket.gethostname())
        client = KubeClient(transport, self.events, pacing)
        self._extenders = RunningExtenders(None if configuration is None else configuration.completed, self._may_write)
        self._profiles = with_extenders(_profiles(options, configuration, release), self._extenders.present)
        self.metrics = metrics = ProcessMetrics(clock, registry, release)
        metrics.requests.count(connection)
        self.recorder = None if writer is None else Recorder(writer, _recorded(completed), self._profiles, release)
        self.scheduler = self._make_scheduler(client, clock, release)
        self._set_up_queue(options)
        self.watchdog = Watchdog(self.scheduler.plugin_watches)
        self.reloader = Reloader(self.scheduler, client, clock, lease_of(completed.leader_election))
        self.reloader.on_failure = partial(self.left_out.failed, KIND)
        self.feed = MetricFeed(source, self.scheduler, options.metrics.interval, self.reloader.check_soon, clock)
        metrics.show(self.scheduler, self.reloader.store, self.feed.ages)
        self.reloader.on_swap = self._swapped
        self._policies = PolicyHandler(self.reloader)
        self._objects = ObjectHandler(self.scheduler, self.left_out)
        self._malformed = MalformedPods(client, clock, frozenset(self._profiles), self.left_out)
        self._texts: dict[ApiKind[Any], KeptTexts[Any]] = {NODES: self._extenders.nodes, PODS: self._extenders.pods}
        self._acting = asyncio.Event()
        self.reflectors: list[Reflector[Any]] = []
        self._watch_more()
        self.dry_runs = LiveDryRuns(self.scheduler, self.reloader, self._extenders, self.not_ready, self._acting.is_set)

    def _may_write(self) -> bool:
        return self.leadership is None or self.leadership.may_act()

    def _make_scheduler(self, client: KubeClient, clock: SystemClock, release: Release) -> Scheduler:
        """Create the scheduler; if decisions are recorded, on a cluster that reports changes to the recorder."""
        observers, timing, recorder = (*LOG_LINES, *self.metrics.observers), self.metrics.timing, self.recorder
        if recorder is None:
            rng = random.Random(self._seed)  # noqa: S311 - draws among equals
            return Scheduler(self._profiles, client, clock, rng, observers, timing, Cluster(release=release))
        with_recorder = (*observers, recorder)
        rng, cluster = recorder.rng, recorder.cluster
        return Scheduler(self._profiles, client, clock, rng, with_recorder, timing, cluster)

    def add_checks(self, health: Health) -> None:
        """Add the health checks of the process."""
        health.add(LISTED, self._unlisted, READYZ)
        health.add(COMPILED, self._policies.problem, READYZ)
        if self.leadership is not None:
            health.add("leaderElection", self.leadership.problem, HEALTHZ, READYZ)

    def _set_up_queue(self, options: RunOptions) -> None:
        queue = self.scheduler.queue
        if self._configuration is not None:
            queue.use_backoff(self._configuration.backoff)
        if options.max_unschedulable is not None:
            queue.max_unschedulable = options.max_unschedulable

    def _swapped(self, policies: PolicySet) -> None:
        """Request the metrics that the policies in force read, and drop the metric series of deleted policies."""
        self.feed.use(policies)
        self.metrics.keep_policies(self.reloader.store.listed())

    def _watch_more(self) -> list[Reflector[Any]]:
        """Create and return reflectors for kinds that plugins read and that are not watched yet."""
        watched = {one.watched for one in self.reflectors}
        made = [
            Reflector(
                self._transport,
                kind,
                self._policies if kind is POLICIES else self._objects,
                self._pacing,
                on_broken=self._malformed if kind is PODS else self.left_out.malformed,
                texts=self._texts.get(kind),
            )
            for kind in self._kinds()
            if kind not in watched
        ]
        self.reflectors += made
        return made

    def _kinds(self) -> list[ApiKind[Any]]:
        """Return the kinds that the plugins of the profiles read."""
        profiles, release = self._profiles.values(), self.scheduler.cluster.release
        plugins = frozenset[str]().union(*(profile.plugin_names for profile in profiles))
        hints = (hint for profile in profiles for several in profile.hints.values() for hint in several)
        custom = dict.fromkeys(hint.resource for hint in hints if isinstance(hint.resource, CustomResource))
        return [*map(custom_kind, custom), *(kind for kind in KINDS.values() if kind.is_read(plugins, release))]

    def _unlisted(self) -> str:
        """Return how many kinds of objects are not listed yet, as a message; empty if none. Thread-safe."""
        reflectors = tuple(self.reflectors)
        missing = sum(not one.synced.is_set() for one in reflectors)
        return f"{missing} of {len(reflectors)} kinds of objects are not listed yet" if missing else ""

    def not_ready(self) -> str:
        """Return why no decision is possible yet; empty if decisions are possible. Thread-safe."""
        return self._unlisted() or self._policies.problem()

    def is_busy(self) -> bool:
        """Return whether the process is starting, or pods or events wait; thread-safe."""
        return bool(self.not_ready() or self.scheduler.is_busy or self.events.counts.waiting)

    def pods(self) -> Iterable[Pod]:
        """Return the pods of the cluster that are not finished; thread-safe."""
        return next((one.objects() for one in tuple(self.reflectors) if one.watched is PODS), ())

    def document(self, path: str) -> Any:
        """Return the JSON document of a path of the HTTPS port."""
        if path == CONFIGURATION:
            return configuration_document(self._completed())
        return policies_document(self.reloader.store, self.scheduler.profiles_in_force())

    def _completed(self) -> Configuration:
        return self._at_start if self._configuration is None else self._configuration.completed

    async def run(self) -> None:
        """Run the scheduler until cancelled, then write waiting events."""
        if self.leadership is None:
            self.events.start()
        self.watchdog.start()
        try:
            with short_collections():
                await self._work()
        finally:
            if self.recorder is not None:
                await asyncio.to_thread(self.recorder.close)

    async def _work(self) -> None:
        try:
            if self._is_delayed:
                await self._lead()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(collect_all())
                tasks.create_task(return_freed_memory())
                tasks.create_task(self._load_grammar())
                with taking_lists():
                    for reflector in self.reflectors:
                        tasks.create_task(reflector.run())
                    for reflector in self.reflectors:
                        await reflector.synced.wait()
                await self._policies.start()
                tasks.create_task(self.feed.run())
                await self.feed.wait_for_first_values()
                tasks.create_task(self.reloader.run(self._acting))
                if self._configuration is not None:
                    tasks.create_task(self._configuration.watch(partial(self._reload, tasks)))
                self._warn_about_nodes(self._profiles)
                await self._lead()
                log.info("scheduling")
                await self.scheduler.run()
        finally:
            self.watchdog.stop()
            if self.leadership is not None:
                await self.leadership.stop()
            await self._extenders.close()
            if self.leadership is None or self._acting.is_set():
                await self.events.close(EVENTS_DEADLINE)

    async def _load_grammar(self) -> None:
        """Load the grammar of expressions before the first policy needs it, when no pod waits for the process.

        Otherwise decisions would wait for it when the first policy is created.
        """
        received = self._policies.received
        with suppress(TimeoutError):
            async with asyncio.timeout(GRAMMAR_AFTER):
                await received.wait()
        await wait_until_idle(lambda: not received.is_set() and self.is_busy(), PODS_FIRST)
        await asyncio.to_thread(load_grammar)

    @property
    def _is_delayed(self) -> bool:
        """Whether the process lists objects only after it has become the leader."""
        return self._configuration is not None and self._configuration.completed.delay_cache_until_active

    async def _lead(self) -> None:
        """Wait until this process may act; before that, the process writes no status and no event."""
        if self.leadership is not None and not self._acting.is_set():
            await self.leadership.acquire()
            self.events.start()
        self._acting.set()

    async def _reload(self, tasks: asyncio.TaskGroup, reloaded: Reloaded) -> int:
        """Put a changed configuration in force when all kinds that it needs are listed; return the retried pods.

        Raises:
            UsageError: an extender is invalid.
            NotNowError: an object kind is not listed in time.
        """
        async with self._extenders.changed_to(reloaded.configuration) as extenders:
            profiles = with_extenders(reloaded.profiles, extenders)
            before, self._profiles = self._profiles, {**self._profiles, **profiles}
            recorded = self._record_configuration(reloaded.configuration)
            try:
                await self._list_more(tasks)
                moved = self.reloader.use_profiles(profiles, reloaded.changed, policies=reloaded.concerns_policies)
            except BaseException:
                self._profiles = before
                if self.recorder is not None:
                    self.recorder.configuration = recorded
                raise
        self.scheduler.queue.use_backoff(reloaded.backoff)
        self._warn_about_nodes(profiles)
        return moved

    def _warn_about_nodes(self, profiles: Mapping[str, Profile]) -> None:
        """Log a warning about each profile whose pods can use no node."""
        for text in profiles_without_nodes(profiles.values(), self.scheduler.cluster.nodes.nodes):
            log.warning("configuration: %s", text)

    def _record_configuration(self, configuration: Configuration) -> dict[str, Any]:
        """Set the configuration that the recorder writes at the next reload; return the previous configuration."""
        if self.recorder is None:
            return {}
        before, self.recorder.configuration = self.recorder.configuration, _recorded(configuration)
        return before

    async def _list_more(self, tasks: asyncio.TaskGroup) -> None:
        """List the kinds that plugins and extenders read since a configuration change and that are not listed yet."""
        try:
            async with asyncio.timeout(LISTED_WITHIN):
                for reflector in self._watch_more():
                    tasks.create_task(reflector.run())
                read = self._kinds()
                for reflector in self.reflectors:
                    if reflector.watched in read:
                        await reflector.synced.wait()
                        await reflector.list_texts()
        except TimeoutError as error:
            raise NotNowError(
                f"the objects that its plugins read are not listed within {LISTED_WITHIN:.0f} s"
            ) from error
        except (ApiError, ConnectionProblemError) as error:
            raise NotNowError(f"the objects that its extenders need cannot be listed: {error}") from error


def _profiles(options: RunOptions, configuration: ConfigurationFile | None, release: Release) -> dict[str, Profile]:
    if configuration is not None:
        return configuration.profiles
    return {name: default_profile(name, release=release) for name in options.scheduler_names}


def _recorded(configuration: Configuration) -> dict[str, Any]:
    return to_dict(without_secrets(configuration))


def _limit(completed: Configuration) -> RateLimit:
    return RateLimit(completed.client_connection.qps, completed.client_connection.burst)
