"""`PortLists`: the host ports of nominated pods, and how many of them conflict with the host ports of a pod."""

from __future__ import annotations

from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from policysched.state.tables.amounts import PodResources, WantedPorts

NO_PORTS: Final = 0
"""Number of the empty list of host ports, for pods that use no host ports."""


class PortLists:
    """The lists of host ports that nominated pods have; each list has a number."""

    __slots__ = ("_answers", "_by_id", "_lists", "_numbers", "_starts")

    def __init__(self) -> None:
        self._lists: list[PodResources | None] = [None]
        self._by_id: dict[int, int] = {}
        """The number of each list of host ports, by the `id` of a `PodResources` object with the list."""
        self._answers: WeakKeyDictionary[WantedPorts, NDArray[np.int64]] = WeakKeyDictionary()
        """The cached results of `met`, by the wanted ports, as long as the caller keeps these."""
        self._numbers: NDArray[np.int64] = np.zeros(0, np.int64)
        """The port numbers in the lists, joined to one array in the order of the lists."""
        self._starts: NDArray[np.intp] = np.zeros(2, np.intp)
        """For each list, the index of its first port number in the joined array; at last, the array's length."""

    def number(self, resources: PodResources) -> int:
        """Return the number of a pod's list of host ports; equal lists may have different numbers.

        Cost: O(1).
        """
        if not resources.ports:
            return NO_PORTS
        number = self._by_id.setdefault(id(resources), len(self._lists))
        if number == len(self._lists):
            self._lists.append(resources)
        return number

    def met(self, wanted: WantedPorts) -> NDArray[np.int64]:
        """Return for each list of host ports how many of its ports conflict with the wanted host ports.

        Cost: O(host ports of new lists).
        Shapes: (lists,).
        """
        found = self._answers.get(wanted)
        if found is None or found.size < len(self._lists):
            known = np.zeros(1, np.int64) if found is None else found
            found = self._answers[wanted] = np.concatenate((known, self._met_from(wanted, known.size)))
        return found

    def kept(self, used: NDArray[np.bool_]) -> PortLists:
        """Return a copy with only the lists that `used` marks, under new numbers.

        Args:
            used: Whether each list is used, including the empty list.

        Shapes: used (lists,).
        """
        made = PortLists()
        if used.all():
            made._lists, made._by_id, made._answers = self._lists.copy(), self._by_id.copy(), self._answers.copy()
            made._numbers, made._starts = self._numbers, self._starts
            return made
        made._lists = [one for one, is_used in zip(self._lists, used.tolist(), strict=True) if is_used]
        made._by_id = {id(one): number for number, one in enumerate(made._lists) if number}
        read = used[: self._starts.size - 1]
        lengths = np.diff(self._starts)
        made._numbers = self._numbers[np.repeat(read, lengths)]
        made._starts = np.concatenate((np.zeros(1, np.intp), np.cumsum(lengths[read], dtype=np.intp)))
        for wanted, found in [*self._answers.items()]:
            made._answers[wanted] = found[used[: found.size]]
        return made

    def __len__(self) -> int:
        return len(self._lists)

    def _met_from(self, wanted: WantedPorts, first: int) -> NDArray[np.int64]:
        """Return the number of conflicting host ports of each list, beginning with the list number `first`."""
        self._read()
        met: NDArray[np.int64] = np.zeros(len(self._lists) - first, np.int64)
        begin = self._starts[first]
        alike = np.isin(self._numbers[begin:], [number for _, number in wanted.addresses]).nonzero()[0] + begin
        lists = np.searchsorted(self._starts, alike, "right") - 1
        within = alike - self._starts[lists]
        for number, place in zip(lists.tolist(), within.tolist(), strict=True):
            listed = self._lists[number]
            if listed is not None:
                met[number - first] += wanted.count((listed.ports[place],))
        return met

    def _read(self) -> None:
        ports = [one.ports for one in self._lists[self._starts.size - 1 :] if one is not None]
        if ports:
            ends = self._numbers.size + np.cumsum([len(one) for one in ports], dtype=np.intp)
            self._starts = np.concatenate((self._starts, ends))
            numbers = np.array([number for one in ports for _, _, number in one], np.int64)
            self._numbers = np.concatenate((self._numbers, numbers))
