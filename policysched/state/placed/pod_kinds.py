"""`PodKinds`: placed pods grouped so that all pods of a group have equal weight in a counter, computed once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from policysched.state.placed.pods import PlacedPod


class Alike(NamedTuple):
    """How a pod counter groups pods into kinds of equal weight, so that one weight is computed for each kind.

    Args:
        kind: Returns the kind of a pod: pods of equal kinds have equal weights.
        weigh: Returns the weights of pods of several kinds.
        key: Identifies `kind`: counters with equal keys share the grouping. None disables sharing.
    """

    kind: Callable[[PlacedPod], Hashable]
    weigh: Callable[[Sequence[PlacedPod]], Sequence[float]]
    key: Hashable = None


class PodKinds(list[PlacedPod]):
    """One placed pod of each kind; all pods of a kind have equal weight in a counter.

    Args:
        present: A pod of each signature.
        kind: Returns the kind of a pod.
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
        """The index of the kind of each signature (set of alike pods); its pods are all of one kind."""
        self.read: dict[Hashable, Any] = {}
        """Values that were read from the pods, cached for other counters that group pods in the same way."""


def weigh_by_kind(placed: Sequence[PlacedPod], alike: Alike | None) -> Sequence[float | None]:
    """Return the weights of pods in a counter, computed once for each kind of pod; each None if `alike` is None."""
    if alike is None:
        return [None] * len(placed)
    kinds = [alike.kind(one) for one in placed]
    of_kind = dict(zip(kinds, placed, strict=True))
    weights = dict(zip(of_kind, alike.weigh(list(of_kind.values())), strict=True))
    return [weights[kind] for kind in kinds]
