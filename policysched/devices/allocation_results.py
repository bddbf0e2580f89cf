"""`ResultMaker`: builds the allocation in a claim's status: devices, configurations and node selector.

Source: k8s.io/dynamic-resource-allocation v0.36 and v0.37 structured/internal/incubating/allocator_incubating.go
(Allocate, createNodeSelector).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from policysched.devices.errors import AllocationError
from policysched.devices.inventory.pool_views import SeenPool
from policysched.devices.inventory.tables import DeviceTables
from policysched.devices.outcomes import TakenDevice
from policysched.devices.requests.plans import ClaimPlan, DeviceAsk
from policysched.model.objects import (
    AllocatedConfiguration,
    AllocationResult,
    DeviceAllocation,
    DeviceResult,
    NodeSelector,
    NodeSelectorTerm,
    Requirement,
    ResourceClaim,
)
from policysched.model.objects.devices import FROM_CLAIM, FROM_CLASS


class ResultMaker:
    """Builds the allocations for the statuses of a pod's claims on one node.

    Args:
        node: The node's name.
        pools: The pools that the search read.
        tables: All devices and device classes.
        new_share_id: Makes the ID of a share.
    """

    __slots__ = ("_applies_to_all", "_classes", "_columns", "_new_share_id", "_node", "_pools")

    def __init__(
        self, node: str, pools: Sequence[SeenPool], tables: DeviceTables, new_share_id: Callable[[], str]
    ) -> None:
        self._node, self._pools, self._columns = node, pools, tables.columns
        self._classes, self._new_share_id = tables.classes, new_share_id
        self._applies_to_all = tables.release.configurations_apply_to_all

    def result(
        self, claim: ResourceClaim, plan: ClaimPlan, devices: Sequence[TakenDevice], chosen: Mapping[int, int]
    ) -> AllocationResult:
        """Return the allocation for the status of one claim.

        Args:
            claim: The claim.
            plan: The compiled claim.
            devices: The devices that the search found.
            chosen: The chosen alternatives by the place of their request.

        Raises:
            AllocationError: A slice's node selector has several terms.
        """
        asks = [request.asks[chosen.get(place, 0)] for place, request in enumerate(plan.requests)]
        configurations = (*self._class_configurations(asks), *self._claim_configurations(claim, asks))
        return AllocationResult(
            devices=DeviceAllocation(
                results=tuple([self._device(one) for one in devices]),
                config=configurations,
            ),
            node_selector=self._node_selector(claim, devices),
        )

    def _device(self, taken: TakenDevice) -> DeviceResult:
        ask, view, takes = taken.ask, self._pools[taken.pool].view, taken.consumption
        one, place = view.slice_of(taken.device)
        traits = self._columns.traits_at(one.start + place)
        return DeviceResult(
            request=ask.full_name,
            driver=view.pool.driver,
            pool=view.pool.name,
            device=one.devices[place],
            admin_access=True if ask.is_admin else None,
            tolerations=ask.tolerations,
            binding_conditions=traits.binding_conditions,
            binding_failure_conditions=traits.binding_failure_conditions,
            share_id=self._new_share_id() if takes is not None else None,
            consumed_capacity={name: amount.text() for name, amount in takes.amounts.items()} if takes else {},
        )

    def _class_configurations(self, asks: Sequence[DeviceAsk]) -> list[AllocatedConfiguration]:
        """Return the configurations of all device classes, each with the requests that use the class."""
        users: dict[str, list[str]] = {}
        for ask in asks:
            if self._classes[ask.class_name].spec.config:
                users.setdefault(ask.class_name, []).append(ask.full_name)
        return [
            AllocatedConfiguration(source=FROM_CLASS, requests=self._named(requests, asks), opaque=one.opaque)
            for name, requests in users.items()
            for one in self._classes[name].spec.config
        ]

    def _claim_configurations(
        self, claim: ResourceClaim, asks: Sequence[DeviceAsk]
    ) -> Iterator[AllocatedConfiguration]:
        """Yield the configurations of a claim that apply to the requests which got devices."""
        for one in claim.spec.devices.config:
            times = sum(map(partial(_names, one.requests), asks)) if one.requests else 1
            for _ in range(min(times, 1) if self._applies_to_all else times):
                named = self._named(one.requests, asks)
                yield AllocatedConfiguration(source=FROM_CLAIM, requests=named, opaque=one.opaque)

    def _named(self, requests: Sequence[str], asks: Sequence[DeviceAsk]) -> tuple[str, ...]:
        """Return the request names of an allocated configuration; empty if it applies to all requests with devices."""
        if self._applies_to_all and all(map(partial(_names, requests), asks)):
            return ()
        return tuple(requests)

    def _node_selector(self, claim: ResourceClaim, devices: Sequence[TakenDevice]) -> NodeSelector | None:
        """Return the node selector for all allocated devices of a claim; None if every node can use them."""
        fields: list[Requirement] = []
        labels: list[Requirement] = []
        for taken in devices:
            one, place = self._pools[taken.pool].view.slice_of(taken.device)
            node, selector = one.stated_node, one.stated_selector
            if one.device_nodes is not None:
                node, selector = one.device_nodes.own[place]
            if node is not None or self._columns.traits_at(one.start + place).binds_to_node:
                return _only(self._node)
            terms = selector.node_selector_terms if selector is not None else []
            if len(terms) > 1:
                reason = f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
                raise AllocationError(f"create NodeSelector for claim {claim.metadata.name}: {reason}")
            for term in terms:
                _merge(term.match_fields, fields)
                _merge(term.match_expressions, labels)
        if not fields and not labels:
            return None
        term = NodeSelectorTerm(match_expressions=tuple(labels), match_fields=tuple(fields))
        return NodeSelector(node_selector_terms=[term])


def _only(node: str) -> NodeSelector:
    named = Requirement(key="metadata.name", operator="In", values=(node,))
    return NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=(named,))])


def _merge(added: Sequence[Requirement], into: list[Requirement]) -> None:
    for one in added:
        known = (each for each in into if (each.key, each.operator) == (one.key, one.operator))
        if not any(set(each.values) == set(one.values) for each in known):
            into.append(one)


def _names(requests: Sequence[str], ask: DeviceAsk) -> bool:
    return ask.request in requests or ask.full_name in requests
