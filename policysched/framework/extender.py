"""`Extender`: a webhook that filters, scores, preempts or binds in addition to the plugins.

Extenders run after all plugins of an extension point: they receive the nodes that passed all filters, and their scores
are added to the scores of plugins. A pod is never delayed by extenders that are not interested in the pod. Pods that an
extender rejected are retried after every change, because extenders have no queueing hints.

Source: k8s.io/kube-scheduler/framework/extender.go; pkg/scheduler/schedule_one.go (findNodesThatPassExtenders,
prioritizeNodes, extendersBinding), v1.36.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from policysched.errors import PolicyschedError
from policysched.model.objects import Pod

EXTENDER: Final = "Extender"
"""The plugin name in statuses with which extenders reject nodes."""


class ExtenderError(PolicyschedError):
    """Raised if an extender did not return a valid answer."""


@dataclass(frozen=True, slots=True)
class FilterAnswer:
    """The result of an extender's filter call: the nodes that passed, and the reasons why others did not."""

    nodes: frozenset[str]
    failed: Mapping[str, str] = field(default_factory=dict)
    """The reasons of rejected nodes by node name, if preemption may help."""
    unresolvable: Mapping[str, str] = field(default_factory=dict)
    """The reasons of rejected nodes by node name, if preemption cannot help; takes precedence over `failed`."""


@dataclass(frozen=True, slots=True)
class NodeVictims:
    """The pods that preemption would evict from one node."""

    pods: tuple[Pod, ...]
    pdb_violations: int = 0
    """The number of victims whose eviction violates a PodDisruptionBudget."""

    def named(self) -> NamedVictims:
        """Return the victims by UID instead of as Pod objects."""
        return NamedVictims(tuple(one.metadata.uid for one in self.pods), self.pdb_violations)


@dataclass(frozen=True, slots=True)
class NamedVictims:
    """The pods that preemption would evict from one node, by UID."""

    uids: tuple[str, ...]
    pdb_violations: int = 0
    """The number of victims whose eviction violates a PodDisruptionBudget."""


class Extender(Protocol):
    """The client of one HTTP extender."""

    @property
    def name(self) -> str:
        """The extender's name in logs, records and messages: its URL."""

    @property
    def ignorable(self) -> bool:
        """Whether scheduling continues without the extender if a call fails."""

    @property
    def filters(self) -> bool:
        """Whether the extender has a filter verb."""

    @property
    def prioritizes(self) -> bool:
        """Whether the extender has a prioritize verb, which scores nodes."""

    @property
    def binds(self) -> bool:
        """Whether the extender has a bind verb, which replaces the Bind plugins."""

    @property
    def preempts(self) -> bool:
        """Whether the extender has a preempt verb."""

    def is_interested(self, pod: Pod) -> bool:
        """Return whether the extender processes a pod, according to its configuration."""

    async def filter(self, pod: Pod, nodes: Sequence[str]) -> FilterAnswer:
        """Return the nodes that the extender accepts for the pod, and why it rejects the other nodes.

        Raises:
            ExtenderError: there is no usable answer.
        """

    async def prioritize(self, pod: Pod, nodes: Sequence[str]) -> Mapping[str, int]:
        """Return the scores to add to the total scores of nodes, by node name.

        Raises:
            ExtenderError: there is no usable answer.
        """

    async def preempt(self, pod: Pod, candidates: Mapping[str, NodeVictims]) -> Mapping[str, NamedVictims]:
        """Return the remaining candidate nodes of a preemption, each with its victims.

        The victims may differ from the victims of the candidate.

        Raises:
            ExtenderError: there is no usable answer.
        """

    async def bind(self, pod: Pod, node: str) -> None:
        """Let the extender bind the pod to a node.

        Raises:
            ExtenderError: the pod is not bound, as far as is known.
        """
