"""Kinds of placed pods: pods that weigh the same in a counter are weighed together, and found once for all counters."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from policysched.state.placed.pods import PlacedPod


class Alike(NamedTuple):
    """How many pods are weighed together.

    Args:
        kind: What decides about a pod's weight: pods for which it is equal weigh the same.
        weigh: Weighs pods of several kinds, as a counter's own function does one after the other.
        key: What `kind` means: with equal keys the kinds are found once for all counters, until signatures appear or
            go. None where they are found for each counter.
    """

    kind: Callable[[PlacedPod], Hashable]
    weigh: Callable[[Sequence[PlacedPod]], Sequence[float]]
    key: Hashable = None


class PodKinds(list[PlacedPod]):
    """All kinds of placed pods, one pod of each, as long as no signature appears or goes.

    Args:
        present: A pod of each signature.
        kind: What decides about the kind.
    """

    __slots__ = ("of_signature", "read", "signatures")

    def __init__(self, present: Sequence[PlacedPod | None], kind: Callable[[PlacedPod], Hashable]) -> None:
        places: dict[Hashable, int] = {}
        signatures, of_signature = [], []
        for signature, placed in enumerate(present):
            if placed is not None:
                place = places.setdefault(kind(placed), len(places))
                if place == len(self):
                    self.append(placed)
                signatures.append(signature)
                of_signature.append(place)
        self.signatures = np.array(signatures, np.intp)
        self.of_signature = np.array(of_signature, np.intp)
        """The place of each signature's kind."""
        self.read: dict[Hashable, Any] = {}
        """What those who weigh have read of the pods, kept for the next counter."""


def weigh_by_kind(placed: Sequence[PlacedPod], alike: Alike | None) -> Sequence[float | None]:
    """Weigh many pods, one of a kind; None where pods have to be weighed one by one."""
    if alike is None:
        return [None] * len(placed)
    kinds = [alike.kind(one) for one in placed]
    of_kind = dict(zip(kinds, placed, strict=True))
    weights = dict(zip(of_kind, alike.weigh(list(of_kind.values())), strict=True))
    return [weights[kind] for kind in kinds]
