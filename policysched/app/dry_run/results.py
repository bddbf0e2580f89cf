"""`Report` and `GroupReport`: the results of dry-runs of a pod and of a pod group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from policysched.framework import PostFilterResult
from policysched.language.messages.diagnostics import Diagnostic
from policysched.model.policy import PolicyKey
from policysched.schedule.cycle.record import Record


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a dry-run."""

    record: Record
    diagnostics: tuple[Diagnostic, ...]
    """Errors and warnings of the policies. A policy with errors was left out."""
    metric_problems: tuple[str, ...] = ()
    """Problems of metrics that the policies read, one line each."""
    notes: tuple[str, ...] = ()
    """Notes about adjusted inputs, one line each."""
    outcome: PostFilterResult | None = None
    """The result of PostFilter if no node was feasible, with all candidates of a preemption."""
    admission_notes: tuple[str, ...] = ()
    """Notes about objects that admission plugins need and the cluster does not have."""

    @property
    def pod(self) -> str:
        """The pod: `namespace/name`."""
        return str(self.record["pod"])

    @property
    def scheduler_name(self) -> str:
        """The name of the profile."""
        return str(self.record["schedulerName"])

    @property
    def result(self) -> str:
        """`Scheduled`, `Unschedulable` or `Error`."""
        return str(self.record["result"])

    @property
    def summary(self) -> str:
        """The result in one sentence."""
        if self.selected:
            return f"pod {self.pod} would go to {self.selected}"
        if self.result == "Error":
            return f"pod {self.pod}: scheduling failed: {self.record['error']}"
        return f"pod {self.pod} fits no node: {self.record['fitError']}"

    @property
    def selected(self) -> str:
        """The selected node; empty if no node was selected."""
        return str(self.record.get("selected", ""))

    @property
    def best(self) -> tuple[str, ...]:
        """The equally good nodes from which `selected` is drawn."""
        return tuple(self.record.get("best", ()))

    @property
    def scores(self) -> Mapping[str, Mapping[str, int]]:
        """The weighted scores by feasible node and plugin."""
        return dict(self.record.get("scores", {}))

    @property
    def total(self) -> Mapping[str, int]:
        """The sum of the scores of tier 0, the tier of the default plugins, by feasible node."""
        return dict(self.record.get("total", {}))

    @property
    def rejected(self) -> Mapping[str, Mapping[str, Any]]:
        """The `plugin`, `code` and `reasons` by rejected node."""
        return dict(self.record.get("rejected", {}))

    @property
    def not_applied(self) -> Mapping[str, str]:
        """The policies that had no part in the decision, each with the reason."""
        return dict(self.record.get("notApplied", {}))

    def to_dict(self) -> Record:
        """Return the decision record, see docs/reference/decision-record.md."""
        return self.record

    def with_not_applied(self, policies: Mapping[PolicyKey, str]) -> Report:
        """Add policies that had no part in the decision, each with the reason."""
        return replace(self, record=_with_not_applied(self.record, policies))


@dataclass(frozen=True, slots=True)
class GroupReport:
    """The result of the dry-run of a pod group."""

    record: Record
    diagnostics: tuple[Diagnostic, ...]
    """Errors and warnings of the policies. A policy with errors was left out."""
    metric_problems: tuple[str, ...] = ()
    """Problems of metrics that the policies read, one line each."""
    notes: tuple[str, ...] = ()
    """Notes about adjusted inputs, one line each."""

    @property
    def pod_group(self) -> str:
        """The pod group: `namespace/name`."""
        return str(self.record["podGroup"])

    @property
    def members(self) -> Sequence[Mapping[str, Any]]:
        """The `pod`, `node` and `message` of each member that was to be scheduled."""
        return tuple(self.record["members"])

    @property
    def nodes(self) -> Mapping[str, str]:
        """The nodes that members would get, by pod; empty if the group does not fit."""
        return {one["pod"]: one["node"] for one in self.members if "node" in one and "message" not in one}

    @property
    def placed(self) -> int:
        """Number of members that would get nodes."""
        return len(self.nodes)

    @property
    def fitting(self) -> int:
        """Number of members that fit at the same time, even if too few for the group."""
        return int(self.record.get("fitting", self.placed))

    @property
    def message(self) -> str:
        """Why the pod group does not fit; empty if the group fits."""
        return str(self.record.get("message", ""))

    @property
    def summary(self) -> str:
        """The result in one sentence."""
        count = f"{self.fitting} of {len(self.members)} pods"
        if self.result == "Scheduled":
            return f"pod group {self.pod_group} fits: {count} get nodes"
        if self.result == "Error":
            return f"pod group {self.pod_group}: scheduling failed: {self.message}"
        return f"pod group {self.pod_group} does not fit: {count} fit at the same time: {self.message}"

    @property
    def result(self) -> str:
        """`Scheduled`, `Unschedulable` or `Error`."""
        return str(self.record["result"])

    def to_dict(self) -> Record:
        """Return the decision record of the group, see docs/reference/decision-record.md."""
        return self.record

    def with_not_applied(self, policies: Mapping[PolicyKey, str]) -> GroupReport:
        """Add policies that had no part in the decision, each with the reason."""
        return replace(self, record=_with_not_applied(self.record, policies))


def _with_not_applied(record: Record, policies: Mapping[PolicyKey, str]) -> Record:
    """Return a record with policies that had no part in the decision, each with the reason."""
    said = {**record.get("notApplied", {}), **policies}
    return record | {"notApplied": dict(sorted(said.items()))} if said else record
