"""Host ports in use, as one boolean column for each port that somebody asks about.

Whether a wanted port conflicts depends on its address: 0.0.0.0 meets every address, others meet themselves and
0.0.0.0. The column of a wanted (address, protocol, port) says where it would conflict and is kept up to date as long as
it is held.

Source: k8s.io/kube-scheduler/framework HostPortInfo.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from policysched.state.columns import Column, ColumnSet

ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - a wildcard to compare with, nothing is bound to it
HostPort = tuple[str, str, int]
"""Address (never empty), protocol (never empty) and port number (never 0)."""
_Port = tuple[str, int]
NOBODY: Final[Mapping[str, weakref.ref[Column]]] = MappingProxyType({})


class PortTable:
    """Which row uses which host ports."""

    __slots__ = ("_columns", "_used", "_wanted")

    def __init__(self, columns: ColumnSet) -> None:
        self._columns = columns
        self._used: dict[_Port, dict[int, Counter[str]]] = {}
        self._wanted: dict[_Port, dict[str, weakref.ref[Column]]] = {}

    def conflicts(self, wanted: HostPort) -> Column:
        """Give the column of rows where the wanted port is taken.

        Shapes: data (capacity,) bool.
        """
        address, protocol, number = wanted
        held = self._wanted.get((protocol, number), NOBODY).get(address)
        column = held() if held is not None else None
        return column if column is not None else self._make(address, (protocol, number))

    def add(self, row: int, ports: Iterable[HostPort], count: int = 1) -> None:
        """Take the ports on the row, or give them back with a count of -1."""
        for address, protocol, number in ports:
            port = (protocol, number)
            rows = self._used.setdefault(port, {})
            addresses = rows.setdefault(row, Counter())
            addresses[address] += count
            if addresses[address] <= 0:
                del addresses[address]
            if not addresses:
                del rows[row]
            if not rows:
                del self._used[port]
            for wanted, held in tuple(self._wanted.get(port, NOBODY).items()):
                column = held()
                if column is not None:
                    column.data[row] = _meets(wanted, addresses)

    def _make(self, address: str, port: _Port) -> Column:
        column = self._columns.new(np.bool_, False)
        for row, addresses in self._used.get(port, {}).items():
            column.data[row] = _meets(address, addresses)
        held = self._wanted.setdefault(port, {})[address] = weakref.ref(column)
        weakref.finalize(column, self._forget, address, port, held).atexit = False
        return column

    def _forget(self, address: str, port: _Port, held: weakref.ref[Column]) -> None:
        wanted = self._wanted.get(port, {})
        if wanted.get(address) is held:
            del wanted[address]
            if not wanted:
                del self._wanted[port]


def _meets(wanted: str, used: Counter[str]) -> bool:
    if wanted == ANY_ADDRESS:
        return bool(used)
    return wanted in used or ANY_ADDRESS in used
