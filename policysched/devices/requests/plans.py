"""`Plans`: the compiled claims of a pod: how many devices each request needs, or the error of the request.

Source: k8s.io/dynamic-resource-allocation v0.36.5 structured/internal/incubating/allocator_incubating.go (Allocate,
validateDeviceRequest).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from policysched.devices.requests.constraints import attribute_of
from policysched.devices.requests.failures import AllocationFailure
from policysched.devices.requests.requirements import DeviceRequirement
from policysched.model.objects import (
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)
from policysched.model.objects.devices import ALL, EXACT_COUNT
from policysched.model.release import Release

MOST_RESULTS: Final = 32
"""Maximum number of devices of a claim; more devices are an error."""
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")
Asked = ExactDeviceRequest | DeviceSubRequest


@dataclass(eq=False, slots=True)
class DeviceAsk:
    """A compiled request, or one of its alternatives: a number of devices that meet one requirement.

    Attributes:
        claim: The claim's place among those of the pod.
        place: The place of the request in the claim.
        alternative: The name of the alternative, empty if the request has none.
        failure: The error of the request on every node, None if it has none.
        requirement: The place of its requirement among those of all claims, -1 with a failure.
        count: Number of devices, 0 for all devices.
        class_name: The name of the device class.
    """

    claim: int
    place: int
    request: str
    alternative: str
    failure: AllocationFailure | None
    requirement: int
    count: int
    is_all: bool
    is_admin: bool
    class_name: str
    tolerations: tuple[DeviceToleration, ...]
    admin_access: bool | None

    @property
    def full_name(self) -> str:
        """Name of the request, or `request/alternative` for an alternative."""
        return f"{self.request}/{self.alternative}" if self.alternative else self.request

    @property
    def own_name(self) -> str:
        """Name in messages: the alternative's name if it is an alternative, otherwise the request's name."""
        return self.alternative or self.request


@dataclass(eq=False, slots=True)
class RequestPlan:
    """A compiled request with its alternatives, of which the first that can be allocated is used."""

    asks: tuple[DeviceAsk, ...]
    has_alternatives: bool


@dataclass(eq=False, slots=True)
class ClaimPlan:
    """A compiled claim with its requests and constraints.

    Attributes:
        requests: Its requests, in order.
        constraints: Its constraints, each with the full name of its attribute.
        failure: The error of the constraints, None if they have none.
    """

    requests: tuple[RequestPlan, ...]
    constraints: tuple[tuple[DeviceConstraint, str], ...]
    failure: AllocationFailure | None

    def asks(self) -> Iterator[DeviceAsk]:
        """Yield all requests of the claim, with each alternative separately."""
        for request in self.requests:
            yield from request.asks


def selectors_of(claims: Iterable[ResourceClaim], classes: Mapping[str, DeviceClass]) -> Iterator[str]:
    """Yield the text of each selector of claims and of their device classes."""
    for claim in claims:
        for request in claim.spec.devices.requests:
            for asked in request.first_available or (request.exactly or ExactDeviceRequest(),):
                device_class = classes.get(asked.device_class_name)
                of_class = () if device_class is None else device_class.spec.selectors
                for one in (*of_class, *asked.selectors):
                    if one.cel is not None:
                        yield one.cel.expression


class Plans:
    """The compiled claims of a pod.

    Args:
        claims: The claims, in the order of the pod.
        classes: The device classes by name.
        release: The Kubernetes release whose allocator is reproduced.

    Attributes:
        release: The Kubernetes release whose allocator is reproduced.
        requirements: The different requirements of all requests.
        classes: The device classes that requests name.
        claims: The compiled claims.
        is_regular: Whether equal devices are interchangeable in every step of a search.
        failure: The error on every node, None if there is none.
        wanted: Number of devices by requirement, for claims that want nothing but enough devices of some kinds.
    """

    def __init__(self, claims: Sequence[ResourceClaim], classes: Mapping[str, DeviceClass], release: Release) -> None:
        self.release = release
        self._classes = classes
        self._required: dict[bytes, int] = {}
        self.requirements: list[DeviceRequirement] = []
        self.classes: dict[str, DeviceClass | None] = {}
        self.claims = [self._claim(place, one) for place, one in enumerate(claims)]
        asks = [ask for claim in self.claims for ask in claim.asks()]
        constraints = [one for claim in self.claims for one, _ in claim.constraints]
        self.asks_for_all = any(one.is_all for one in asks)
        self.asks_for_admin = any(one.is_admin for one in asks)
        self.has_alternatives = any(one.has_alternatives for claim in self.claims for one in claim.requests)
        self.is_regular = not any(one.is_all or one.is_admin for one in asks) and all(
            one.match_attribute is not None for one in constraints
        )
        self.failure = None if self.asks_for_all else self.check(lambda ask: ask.count)
        self.wanted: Counter[int] = Counter()
        if not constraints and not any(one.is_all or one.is_admin or one.alternative or one.failure for one in asks):
            for ask in asks:
                self.wanted[ask.requirement] += ask.count

    def is_current(self, classes: Mapping[str, DeviceClass]) -> bool:
        """Return whether the device classes that the claims use have not changed."""
        return all(classes.get(name) is one for name, one in self.classes.items())

    def check(self, size: Callable[[DeviceAsk], int | AllocationFailure]) -> AllocationFailure | None:
        """Return the first error in the requests and constraints; None if all are valid.

        Args:
            size: Returns the number of devices of an ask, or its error.
        """
        for place, claim in enumerate(self.claims):
            total = 0
            for request in claim.requests:
                least = _least(request, size)
                if isinstance(least, AllocationFailure):
                    return least
                if total + least > MOST_RESULTS:
                    limit = f"exceeds the claim limit of {MOST_RESULTS}, with {total} already accounted for"
                    text = f", request {request.asks[0].request}: adding {least} devices {limit}"
                    return AllocationFailure.of_claim(text, place)
                total += least
            if claim.failure is not None:
                return claim.failure
        return None

    def names_read(self) -> list[str] | None:
        """Return the names of the attributes that selectors and constraints read; None for all attributes."""
        names: set[str] = set()
        for requirement in self.requirements:
            read = requirement.reads()
            if read is None:
                return None
            names |= read
        for claim in self.claims:
            for _, name in claim.constraints:
                names.update((name, name.partition("/")[2]))
        return sorted(names)

    def _claim(self, place: int, claim: ResourceClaim) -> ClaimPlan:
        devices = claim.spec.devices
        requests = tuple(self._request(place, number, one) for number, one in enumerate(devices.requests))
        constraints, failure = [], None
        for number, one in enumerate(devices.constraints):
            name = attribute_of(one)
            if name is None:
                text = f", constraint #{number}: empty constraint (unsupported constraint type?)"
                failure = failure or AllocationFailure.of_claim(text, place)
            else:
                constraints.append((one, name))
        return ClaimPlan(requests, tuple(constraints), failure)

    def _request(self, claim: int, place: int, one: DeviceRequest) -> RequestPlan:
        if one.first_available:
            asks = tuple(self._ask(claim, place, one.name, each) for each in one.first_available)
            return RequestPlan(asks, has_alternatives=True)
        return RequestPlan((self._ask(claim, place, one.name, one.exactly or ExactDeviceRequest()),), False)

    def _ask(self, claim: int, place: int, request: str, asked: Asked) -> DeviceAsk:
        alternative = asked.name if isinstance(asked, DeviceSubRequest) else ""
        admin_access = asked.admin_access if isinstance(asked, ExactDeviceRequest) else None
        reason = self._fault(asked)
        failure = None
        if reason is not None:
            failure = AllocationFailure.of_claim(f", request {alternative or request}{reason}", claim)
        return DeviceAsk(
            claim=claim,
            place=place,
            request=request,
            alternative=alternative,
            failure=failure,
            requirement=-1 if failure is not None else self._requirement(asked),
            count=asked.count if asked.allocation_mode == EXACT_COUNT else 0,
            is_all=asked.allocation_mode == ALL,
            is_admin=bool(admin_access),
            class_name=asked.device_class_name,
            tolerations=asked.tolerations,
            admin_access=admin_access,
        )

    def _fault(self, asked: Asked) -> str | None:
        if asked.derived_attributes and self.release.refuses_derived_attributes:
            return ": cannot handle request with derived attributes, the feature is disabled"
        for number, selector in enumerate(asked.selectors):
            if selector.cel is None:
                return f", selector #{number}: CEL expression empty (unsupported selector type?)"
        name = asked.device_class_name
        if not name:
            return ": missing device class name (unsupported request type?)"
        self.classes[name] = self._classes.get(name)
        if self.classes[name] is None:
            return f': could not retrieve device class {name}: deviceclass.resource.k8s.io "{name}" not found'
        if asked.allocation_mode not in (EXACT_COUNT, ALL):
            return f": unsupported count mode {asked.allocation_mode}"
        return None

    def _requirement(self, asked: Asked) -> int:
        parts = (asked.device_class_name, asked.selectors, asked.tolerations, asked.capacity)
        key = _ENCODER.encode(parts)
        found = self._required.get(key)
        if found is None:
            found = self._required[key] = len(self.requirements)
            device_class = self._classes[asked.device_class_name]
            self.requirements.append(
                DeviceRequirement(device_class, asked.selectors, asked.tolerations, asked.capacity, self.release)
            )
        return found


def _least(request: RequestPlan, size: Callable[[DeviceAsk], int | AllocationFailure]) -> int | AllocationFailure:
    """Return the smallest number of devices among a request's alternatives, or its first error."""
    smallest = None
    for ask in request.asks:
        number = ask.failure or size(ask)
        if isinstance(number, AllocationFailure):
            return number
        smallest = number if smallest is None else min(smallest, number)
    return smallest or 0
