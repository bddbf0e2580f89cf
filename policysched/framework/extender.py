"""`Extender`, a service outside of the process that filters, scores, preempts or binds beside the plugins.

Extenders come after all plugins of a point: what every filter let pass is asked about, and what an extender scores is
added to the plugins' scores. A pod none of whose extenders is interested in it never waits for one. Pods that an
extender rejected are tried again after any change, because it cannot say which one helps.

Source: k8s.io/kube-scheduler/framework/extender.go; pkg/scheduler/schedule_one.go (findNodesThatPassExtenders,
prioritizeNodes, extendersBinding), v1.36.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Final, Protocol

from policysched.errors import PolicyschedError
from policysched.late_dataclass import dataclass
from policysched.model.objects import Pod

EXTENDER: Final = "Extender"
"""The plugin name under which pods wait that an extender rejected."""


class ExtenderError(PolicyschedError):
    """An extender did not answer, or not with sense."""


@dataclass(frozen=True, slots=True)
class FilterAnswer:
    """What an extender lets pass of the nodes that it was asked about."""

    nodes: frozenset[str]
    failed: Mapping[str, str] = field(default_factory=dict)
    """Why others fail, by name, where removing pods might help."""
    unresolvable: Mapping[str, str] = field(default_factory=dict)
    """Why others fail, by name, where it would not; who is in both is here."""


@dataclass(frozen=True, slots=True)
class NodeVictims:
    """The pods that would have to leave a node."""

    pods: tuple[Pod, ...]
    pdb_violations: int = 0
    """How many of them a disruption budget would keep."""

    def named(self) -> NamedVictims:
        """Return the same with the UIDs of the pods."""
        return NamedVictims(tuple(one.metadata.uid for one in self.pods), self.pdb_violations)


@dataclass(frozen=True, slots=True)
class NamedVictims:
    """Pods that would have to leave a node, by their UIDs."""

    uids: tuple[str, ...]
    pdb_violations: int = 0
    """How many of them a disruption budget would keep."""


class Extender(Protocol):
    """A service outside."""

    @property
    def name(self) -> str:
        """How logs, records and messages call it: its URL."""

    @property
    def ignorable(self) -> bool:
        """Whether pods are scheduled without it while it fails."""

    @property
    def filters(self) -> bool:
        """Whether it filters nodes."""

    @property
    def prioritizes(self) -> bool:
        """Whether it scores nodes."""

    @property
    def binds(self) -> bool:
        """Whether it binds pods in place of the Bind plugins."""

    @property
    def preempts(self) -> bool:
        """Whether it has a say in which pods have to leave."""

    def is_interested(self, pod: Pod) -> bool:
        """Return whether it has to do with a pod."""

    async def filter(self, pod: Pod, nodes: Sequence[str]) -> FilterAnswer:
        """Return which of some nodes the pod may go to.

        Raises:
            ExtenderError: there is no answer that can be used.
        """

    async def prioritize(self, pod: Pod, nodes: Sequence[str]) -> Mapping[str, int]:
        """Return what is added to the nodes' total scores.

        Raises:
            ExtenderError: there is no answer that can be used.
        """

    async def preempt(self, pod: Pod, candidates: Mapping[str, NodeVictims]) -> Mapping[str, NamedVictims]:
        """Return the nodes that are left of some candidates, with the pods that have to leave each of them.

        These may be other pods of the node than those of the candidate.

        Raises:
            ExtenderError: there is no answer that can be used.
        """

    async def bind(self, pod: Pod, node: str) -> None:
        """Bind a pod.

        Raises:
            ExtenderError: it is not bound, as far as is known.
        """
