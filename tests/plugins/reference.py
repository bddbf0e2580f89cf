"""The scores of resources and images, worked out one node at a time from objects.

Written for reading, from kube-scheduler's sources, with Python's unbounded integers and its doubles.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from policysched.model.images import container_count, pod_images
from policysched.model.names import is_scalar_resource_name
from policysched.model.objects import Node, Pod
from policysched.model.requests import allocatable, incoming_amount, placed_nonzero, placed_requests
from policysched.plugins.resource_names import by_name
from tests.build import MIB


def requested(placed: Iterable[Pod], resource: str) -> int:
    return sum(by_name(placed_requests(one)).get(resource, 0) for one in placed)


def nonzero(placed: Sequence[Pod], resource: str) -> int:
    if resource in {"cpu", "memory"}:
        return sum(placed_nonzero(one)[resource == "memory"] for one in placed)
    return requested(placed, resource)


def least_allocated(incoming: Pod, node: Node, placed: Sequence[Pod], weights: Mapping[str, int]) -> int:
    total = weight_sum = 0
    for resource, weight in weights.items():
        wanted = incoming_amount(incoming, resource, nonzero=True)
        capacity = by_name(allocatable(node)).get(resource, 0)
        if capacity == 0 or (wanted == 0 and is_scalar_resource_name(resource)):
            continue
        used = nonzero(placed, resource) + wanted
        total += weight * (0 if used > capacity else (capacity - used) * 100 // capacity)
        weight_sum += weight
    return total // weight_sum if weight_sum else 0


def balanced(incoming: Pod, node: Node, placed: Sequence[Pod], resources: Sequence[str]) -> int:
    without, added, capacities = [], [], []
    for resource in resources:
        wanted = incoming_amount(incoming, resource)
        capacity = by_name(allocatable(node)).get(resource, 0)
        if capacity == 0 or (wanted == 0 and is_scalar_resource_name(resource)):
            continue
        capacities.append(capacity)
        without.append(requested(placed, resource))
        added.append(without[-1] + wanted)
    return 50 + (50 + evenness(added, capacities) - evenness(without, capacities)) // 2


def evenness(used: Sequence[int], capacities: Sequence[int]) -> int:
    fractions = [min(amount / capacity, 1.0) for amount, capacity in zip(used, capacities, strict=True)]
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
    return int((1 - deviation) * 100.0)


def image_locality(incoming: Pod, node: Node, nodes: Sequence[Node]) -> int:
    """An image is as large as the first of the nodes says."""
    present = 0
    for wanted in pod_images(incoming):
        sizes = [size for one in nodes if (size := size_on(one, wanted)) is not None]
        if size_on(node, wanted) is not None:
            present += int(float(sizes[0]) * (len(sizes) / len(nodes)))
    least, most = 23 * MIB, 1000 * MIB * container_count(incoming)
    present = least if present < least else min(present, most)
    return 100 * (present - least) // (most - least)


def size_on(node: Node, image: str) -> int | None:
    return next((one.size_bytes for one in node.status.images if image in one.names), None)
