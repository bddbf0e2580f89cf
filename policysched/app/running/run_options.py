"""`RunOptions`: what a process of the scheduler was asked to do, and the configuration that this makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from policysched.app.configuration.command_line import ConfigurationFlags, configuration_without_file
from policysched.app.configuration.election import ElectionFlags
from policysched.app.configuration.model import Configuration
from policysched.app.configuration.profiles import DEFAULT_NAME, NO_PLUGINS
from policysched.app.running.configuration_file import ConfigurationFile
from policysched.app.running.metric_options import NO_METRICS, MetricOptions
from policysched.app.serving.options import ServingOptions
from policysched.framework.registry import PluginRegistry
from policysched.klog import Verbosity

NOT_SERVED: Final = ServingOptions(port=0)
RECORD_LIMIT: Final = 256 * 1024 * 1024
"""How long the files of a record may be together. Units: bytes."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What a process was asked to do."""

    kubeconfig: Path | None = None
    context: str | None = None
    master: str | None = None
    """The server's address where it is not the kubeconfig's."""
    scheduler_names: tuple[str, ...] = (DEFAULT_NAME,)
    """The names of default profiles, where there is no configuration."""
    config: Path | None = None
    """A KubeSchedulerConfiguration; it says where the kubeconfig is, too."""
    plugins: PluginRegistry = NO_PLUGINS
    """What it may enable beside the default plugins."""
    leader_election: ElectionFlags = field(default_factory=dict)
    """What flags say of leader election; the rest is the configuration's."""
    configuration_flags: ConfigurationFlags = field(default_factory=dict)
    """What flags say of the rest of the configuration, where there is no file."""
    max_unschedulable: float | None = None
    """After how long a pod that nothing woke is tried again. Units: seconds."""
    set_verbosity: Callable[[int], None] = Verbosity().use
    """Changes how much is logged."""
    metrics: MetricOptions = NO_METRICS
    serving: ServingOptions = NOT_SERVED
    record: Path | None = None
    """The folder in which every decision is recorded."""
    record_limit: int = RECORD_LIMIT
    """How long the files there may be together. Units: bytes."""
    seed: int | None = None
    """Draws among equally good nodes where nothing is recorded; absent, anew in each process."""


def completed_configuration(options: RunOptions, configuration: ConfigurationFile | None) -> Configuration:
    """Return the configuration at the start: the file's, or what flags say."""
    if configuration is not None:
        return configuration.completed
    given = {} if options.kubeconfig is None else {"kubeconfig": str(options.kubeconfig)}
    return configuration_without_file(
        options.scheduler_names, options.leader_election, given | dict(options.configuration_flags)
    )
