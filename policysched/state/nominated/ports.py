"""The host ports of nominated pods, as lists that pods which state the same share, and how many keep a pod out."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from policysched.state.tables.amounts import PodResources, WantedPorts

NO_PORTS: Final = 0
"""The list of pods without host ports."""
MOST_ANSWERS = 64
"""For how many sets of wanted ports the answers are kept."""
MOST_WANTED = 1000
"""Up to how many ports may be wanted for the answers to be kept: they keep what is wanted."""


class PortLists:
    """Lists of host ports by number; a list stays as long as this does."""

    __slots__ = ("_answers", "_by_id", "_lists", "_numbers", "_starts")

    def __init__(self) -> None:
        self._lists: list[PodResources | None] = [None]
        self._by_id: dict[int, int] = {}
        """The lists by the address of what states them, which is there as long as its list."""
        self._answers: dict[WantedPorts, NDArray[np.int64]] = {}
        self._numbers: NDArray[np.int64] = np.zeros(0, np.int64)
        """The numbers of the ports of all lists that were read, one list's after the other's."""
        self._starts: NDArray[np.intp] = np.zeros(2, np.intp)
        """Where those of each list begin, and where the last one's end."""

    def number(self, resources: PodResources) -> int:
        """Return the list of pods that state the same; equal ones may be listed twice.

        Cost: O(1).
        """
        if not resources.ports:
            return NO_PORTS
        number = self._by_id.setdefault(id(resources), len(self._lists))
        if number == len(self._lists):
            self._lists.append(resources)
        return number

    def met(self, wanted: WantedPorts) -> NDArray[np.int64]:
        """Return how many host ports of each list keep a pod out that wants some.

        Cost: O(host ports of the lists that came since anything was asked last), and array work over those that came
            since this was asked last.
        Shapes: (lists,).
        """
        found = self._answers.get(wanted)
        if found is None or found.size < len(self._lists):
            if found is None:
                if len(self._answers) >= MOST_ANSWERS:
                    self._answers.clear()
                found = np.zeros(1, np.int64)
            found = np.concatenate((found, self._met_from(wanted, found.size)))
            if len(wanted) <= MOST_WANTED:
                self._answers[wanted] = found
        return found

    def kept(self, used: NDArray[np.bool_]) -> PortLists:
        """Return those lists alone that are used; their numbers close up.

        Args:
            used: Whether each is, that of none included.

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
        made._answers = {wanted: found[used[: found.size]] for wanted, found in self._answers.items()}
        return made

    def __len__(self) -> int:
        return len(self._lists)

    def _met_from(self, wanted: WantedPorts, first: int) -> NDArray[np.int64]:
        """Count the host ports that meet some in the lists from one on."""
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
