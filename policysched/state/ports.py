"""Host ports in use, as one boolean column for each port that a pod asks for.

Whether a wanted port conflicts depends on its address: 0.0.0.0 meets every address, others meet themselves and
0.0.0.0. The column of a wanted (address, protocol, port) says where it would conflict and is kept up to date.

Source: k8s.io/kube-scheduler/framework HostPortInfo.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

import numpy as np

from policysched.state.columns import Column, ColumnSet

ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - a wildcard to compare with, nothing is bound to it
HostPort = tuple[str, str, int]
"""Address (never empty), protocol (never empty) and port number (never 0)."""


class PortTable:
    """Which row uses which host ports."""

    __slots__ = ("_columns", "_used", "_wanted")

    def __init__(self, columns: ColumnSet) -> None:
        self._columns = columns
        self._used: defaultdict[tuple[str, int], defaultdict[int, Counter[str]]] = defaultdict(
            lambda: defaultdict(Counter)
        )
        self._wanted: defaultdict[tuple[str, int], dict[str, Column]] = defaultdict(dict)

    def conflicts(self, wanted: HostPort) -> Column:
        """Give the column of rows where the wanted port is taken.

        Shapes: data (capacity,) bool.
        """
        address, protocol, number = wanted
        by_address = self._wanted[protocol, number]
        column = by_address.get(address)
        if column is None:
            column = by_address[address] = self._columns.new(np.bool_, False)
            for row, addresses in self._used[protocol, number].items():
                column.data[row] = _meets(address, addresses)
        return column

    def add(self, row: int, ports: Iterable[HostPort], count: int = 1) -> None:
        """Take the ports on the row, or give them back with a count of -1."""
        for address, protocol, number in ports:
            rows = self._used[protocol, number]
            addresses = rows[row]
            addresses[address] += count
            if addresses[address] <= 0:
                del addresses[address]
            if not addresses:
                del rows[row]
            for wanted, column in self._wanted[protocol, number].items():
                column.data[row] = _meets(wanted, addresses)


def _meets(wanted: str, used: Counter[str]) -> bool:
    if wanted == ANY_ADDRESS:
        return bool(used)
    return wanted in used or ANY_ADDRESS in used
