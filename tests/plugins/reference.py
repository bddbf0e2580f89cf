"""The scores of resources and images, worked out one node at a time from objects.

Written for reading, from kube-scheduler's sources; whole numbers are put into 64 bits by the C library's own type.
"""

from __future__ import annotations

import ctypes
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from policysched.model.objects import Node, Pod
from policysched.model.pod_requirements import container_count, pod_images
from policysched.model.release import DEFAULT
from policysched.model.requests import (
    allocatable,
    amounts_in_use,
    incoming_amounts,
    incoming_nonzero,
    incoming_requests,
    placed_nonzero,
    placed_requests,
)
from policysched.model.selection.name_validation import is_scalar_resource_name
from policysched.plugins.node_resources.fit import by_name
from tests.build import MIB

IN_USE = amounts_in_use(compares_sums=DEFAULT.resizes_compare_sums)
"""The rule for resizes of a cluster whose release is not named."""


def int64(number: int) -> int:
    return ctypes.c_int64(number).value


def divided(number: int, divisor: int) -> int:
    """Go's quotient, towards zero."""
    return int64(math.trunc(Fraction(number, divisor)))


def truncated(value: float) -> int:
    """Go's int64(value), as amd64 has it: what does not fit is the lowest one."""
    return math.trunc(value) if -(2.0**63) <= value < 2.0**63 else -(2**63)


def requested(placed: Iterable[Pod], resource: str) -> int:
    return int64(sum(by_name(placed_requests(one, IN_USE)).get(resource, 0) for one in placed))


def nonzero(placed: Sequence[Pod], resource: str) -> int:
    if resource in {"cpu", "memory"}:
        return int64(sum(placed_nonzero(one, IN_USE)[resource == "memory"] for one in placed))
    return requested(placed, resource)


Used = tuple[int, int, int]
"""The weight of a resource, what a node would have in use of it, and what it has."""


def used(incoming: Pod, node: Node, placed: Sequence[Pod], weights: Mapping[str, int]) -> list[Used]:
    """What NodeResourcesFit looks at on a node."""
    found = []
    for resource, weight in weights.items():
        [wanted] = incoming_nonzero(incoming, [resource])
        capacity = by_name(allocatable(node)).get(resource, 0)
        if capacity and (wanted or not is_scalar_resource_name(resource)):
            found.append((weight, int64(nonzero(placed, resource) + wanted), capacity))
    return found


def least_allocated(found: Sequence[Used]) -> int:
    total = sum(
        weight * (0 if amount > capacity else divided(int64(int64(capacity - amount) * 100), capacity))
        for weight, amount, capacity in found
    )
    return divided(int64(total), sum(weight for weight, _, _ in found)) if found else 0


def most_allocated(found: Sequence[Used]) -> int:
    total = sum(weight * divided(int64(min(amount, capacity) * 100), capacity) for weight, amount, capacity in found)
    return divided(int64(total), sum(weight for weight, _, _ in found)) if found else 0


def requested_to_capacity_ratio(found: Sequence[Used], points: Sequence[tuple[int, int]]) -> int:
    """`points` are utilisations with scores of 0 to 10."""
    total = weights = 0
    for weight, amount, capacity in found:
        score = on_curve(points, 100 if amount > capacity else divided(int64(amount * 100), capacity))
        if score > 0:
            total += score * weight
            weights += weight
    return math.floor(Fraction(total, weights) + Fraction(1, 2)) if weights else 0


def on_curve(points: Sequence[tuple[int, int]], level: int) -> int:
    for (left, low), (right, high) in itertools.pairwise(points):
        if left < level <= right:
            return low * 10 + math.trunc(Fraction((high - low) * 10 * (level - left), right - left))
    return 10 * (points[0][1] if level <= points[0][0] else points[-1][1])


def balanced(incoming: Pod, node: Node, placed: Sequence[Pod], resources: Sequence[str]) -> int:
    without, added, capacities = [], [], []
    for resource in resources:
        [wanted] = incoming_amounts(incoming, [resource], IN_USE)
        capacity = by_name(allocatable(node)).get(resource, 0)
        if capacity == 0 or (wanted == 0 and is_scalar_resource_name(resource)):
            continue
        capacities.append(capacity)
        without.append(requested(placed, resource))
        added.append(int64(without[-1] + wanted))
    return 50 + divided(int64(50 + evenness(added, capacities) - evenness(without, capacities)), 2)


def evenness(used: Sequence[int], capacities: Sequence[int]) -> int:
    fractions = [min(float(amount) / float(capacity), 1.0) for amount, capacity in zip(used, capacities, strict=True)]
    deviation = 0.0
    if len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        mean = 0.0
        for fraction in fractions:
            mean += fraction
        mean /= len(fractions)
        squares = 0.0
        for fraction in fractions:
            squares += (fraction - mean) * (fraction - mean)
        deviation = math.sqrt(squares / len(fractions))
    return truncated((1 - deviation) * 100.0)


def shortages(incoming: Pod, node: Node, placed: Sequence[Pod]) -> list[str]:
    """What a pod finds too little of, in the order in which it is said."""
    room = allocatable(node)
    short = ["Too many pods"] if len(placed) + 1 > room.pods else []
    for resource, wanted in by_name(incoming_requests(incoming)).items():
        if wanted > 0 and wanted > int64(by_name(room).get(resource, 0) - requested(placed, resource)):
            short.append(f"Insufficient {resource}")
    return short


def image_locality(incoming: Pod, node: Node, nodes: Sequence[Node]) -> int:
    """An image is as large as the first of the nodes says."""
    present = 0
    for wanted in pod_images(incoming):
        sizes = [size for one in nodes if (size := size_on(one, wanted)) is not None]
        if size_on(node, wanted) is not None:
            present = int64(present + truncated(float(sizes[0]) * (len(sizes) / len(nodes))))
    least, most = 23 * MIB, 1000 * MIB * container_count(incoming)
    present = least if present < least else min(present, most)
    return 100 * (present - least) // (most - least)


def size_on(node: Node, image: str) -> int | None:
    return next((one.size_bytes for one in node.status.images if image in one.names), None)
