"""DynamicResources, only for pods that need no devices: it scores them 0 and has nothing to give back.

Knows claims by their presence and which extended resources have a device class. Pods that do need devices are
turned away before any node is looked at; a resource that has a device class needs them on every node, since which
nodes provide it themselves is not known before filtering.

Source: plugins/dynamicresources/dynamicresources.go, extendeddynamicresources.go,
pkg/scheduler/apis/config/validation/validation_pluginargs.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
from msgspec.structs import force_setattr

from policysched.framework import (
    SKIP,
    Action,
    Aspect,
    Change,
    Cluster,
    Code,
    Codes,
    FailedDecision,
    Hint,
    PostFilterResult,
    Resource,
    Rows,
    Scores,
    Status,
    unresolvable,
    unschedulable,
)
from policysched.model.objects import Pod
from policysched.model.requests import incoming_requests
from policysched.model.selection.name_validation import is_device_resource_name
from policysched.plugins.arguments import SECOND, Duration, Fault, PluginArguments, go_duration, nanoseconds
from policysched.plugins.helper import FinalScores, HintTable, row_count
from policysched.state.tables.nodes import NodeTable

CLAIMS = "policysched does not support resource claims yet"
MAPPED = "policysched does not support extended resources of a device class yet"
NO_STATE = "not found"
NOTHING_TO_DEALLOCATE = "no new claims to deallocate"


class DynamicResourcesArguments(PluginArguments, frozen=True):
    """The arguments of DynamicResources."""

    filter_timeout: Duration = "10s"
    binding_timeout: Duration = "10m"

    def __post_init__(self) -> None:
        """Write durations as Go does."""
        for field in ("filter_timeout", "binding_timeout"):
            force_setattr(self, field, go_duration(getattr(self, field)))

    def faults(self) -> Iterator[Fault]:
        """Name fields that are not valid, and why."""
        for field, text, least in (
            ("filterTimeout", self.filter_timeout, 0),
            ("bindingTimeout", self.binding_timeout, SECOND),
        ):
            if (nanoseconds(text) or 0) < least:
                yield field, f'"{text}" is shorter than {least // SECOND}s'


def _missing(pod: Pod, cluster: Cluster) -> str:
    if pod.spec.resource_claims:
        return CLAIMS
    if not cluster.mapped_resources:
        return ""
    for name, amount in incoming_requests(pod).scalars:
        if amount > 0 and is_device_resource_name(name) and name in cluster.mapped_resources:
            return f"{MAPPED}: {name} is one of device class {cluster.mapped_resources[name]}"
    return ""


def _device_class_helps(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    return not _missing(pod, cluster)


class DynamicResources(FinalScores, HintTable):
    """The plugin: it turns away, before any node is looked at, the pods whose devices it could not allocate."""

    name = "DynamicResources"
    filter_reads = score_reads = Aspect.NONE
    scores_after_pre_filter = True
    hints = (Hint(Resource.DEVICE_CLASS, Action.ALL, _device_class_helps),)

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> Any:
        """Reject the pod if it needs devices, else skip it."""
        missing = _missing(pod, cluster)
        return unresolvable(missing) if missing else SKIP

    def filter(self, state: Any, rows: Rows) -> Codes:
        """Refuse: no pod gets this far.

        Raises:
            RuntimeError: always, because no state is prepared that could be asked.
        """
        raise RuntimeError(f"{self.name} prepared no state, and was asked about {rows} with {state!r}")

    def reason(self, state: Any, code: int) -> Status:
        """Refuse: there are no codes.

        Raises:
            RuntimeError: always, as for `filter`.
        """
        raise RuntimeError(f"{self.name} gave no reason codes, and was asked for {code} of {state!r}")

    def generation(self, cluster: Cluster) -> Hashable:
        """Return the device classes of extended resources."""
        return tuple(cluster.mapped_resources.items())

    def prepare_score(self, pod: Pod, cluster: Cluster) -> Any:  # noqa: ARG002 - the protocol's signature
        """Take part with every pod."""
        return cluster.nodes

    def score(self, state: NodeTable, rows: Rows) -> Scores:
        """Score every row 0."""
        return np.zeros(row_count(state, rows), np.int64)

    def post_filter(self, pod: Pod, failed: FailedDecision) -> PostFilterResult:  # noqa: ARG002 - the protocol's
        """Find no claim to take back; without what PreFilter finds out it fails, as in kube-scheduler."""
        if not failed.pre_filtered(self.name):
            return PostFilterResult(Status(Code.ERROR, (NO_STATE,)))
        return PostFilterResult(unschedulable(NOTHING_TO_DEALLOCATE))
