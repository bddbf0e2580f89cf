"""`RunOptions`: options of a scheduler process, and the configuration that results from them."""

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
from policysched.model.release import Release
from policysched.model.release_choice import AUTO

NOT_SERVED: Final = ServingOptions(port=0)
RECORD_LIMIT: Final = 256 * 1024 * 1024
"""Default limit of a record's total size. Units: bytes."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of a scheduler process."""

    kubeconfig: Path | None = None
    context: str | None = None
    master: str | None = None
    """Address of the API server; empty uses the address in the kubeconfig."""
    scheduler_names: tuple[str, ...] = (DEFAULT_NAME,)
    """Names of the default profiles if the process has no configuration file."""
    config: Path | None = None
    """Path of a KubeSchedulerConfiguration file, which can also name the kubeconfig."""
    plugins: PluginRegistry = NO_PLUGINS
    """Out-of-tree plugins that the configuration can enable."""
    leader_election: ElectionFlags = field(default_factory=dict)
    """Leader election flags; other leader election settings come from the configuration file."""
    configuration_flags: ConfigurationFlags = field(default_factory=dict)
    """Flags that set configuration fields besides leader election; ignored with a configuration file."""
    max_unschedulable: float | None = None
    """Time after which an unschedulable pod is retried without an event. Units: seconds."""
    set_verbosity: Callable[[int], None] = Verbosity().use
    """Function that changes the verbosity of logs."""
    kube_version: str = AUTO
    """The Kubernetes minor whose kube-scheduler decides; `auto` follows the API server."""
    apply_gates: Callable[[Release], Release] = lambda release: release
    """Function that returns a release with feature gates applied; raises UsageError if the release lacks a gate."""
    metrics: MetricOptions = NO_METRICS
    serving: ServingOptions = NOT_SERVED
    record: Path | None = None
    """Folder of the record of decisions; None records nothing."""
    record_limit: int = RECORD_LIMIT
    """Largest total size of the record. Units: bytes."""
    seed: int | None = None
    """Seed of the draw among equally good nodes if nothing is recorded; None for a random seed."""


def completed_configuration(
    options: RunOptions, configuration: ConfigurationFile | None, release: Release
) -> Configuration:
    """Return the initial configuration from the file, or from flags with the defaults of a release."""
    if configuration is not None:
        return configuration.completed
    given = {} if options.kubeconfig is None else {"kubeconfig": str(options.kubeconfig)}
    return configuration_without_file(
        options.scheduler_names, options.leader_election, given | dict(options.configuration_flags), release
    )
