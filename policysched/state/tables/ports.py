"""Host ports in use, by port and row: a port that no pod uses takes nothing, however many pods ask for it.

Whether a wanted port conflicts depends on its address: 0.0.0.0 meets every address, others meet themselves and
0.0.0.0.

Source: k8s.io/kube-scheduler/framework HostPortInfo.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from policysched.state.tables.columns import Rows

ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - a wildcard to compare with, nothing is bound to it
HostPort = tuple[str, str, int]
"""Address (never empty), protocol (never empty) and port number (never 0)."""
FEW = 8
"""How many rows are looked at one by one."""


class PortTable:
    """Which row uses which host ports."""

    __slots__ = ("_used",)

    def __init__(self) -> None:
        self._used: dict[tuple[str, int], dict[int, dict[str, int]]] = {}

    def taken(self, wanted: Collection[HostPort], rows: Rows, size: int) -> NDArray[np.bool_]:
        """Tell where any of the wanted ports is taken, of so many rows that are in use.

        Shapes: (R,).
        Cost: O(wanted ports + rows that use one of them), for a few rows O(wanted ports) each.
        """
        if not isinstance(rows, slice) and rows.size <= FEW:
            return np.array([self._is_taken(wanted, row) for row in rows.tolist()], np.bool_)
        found = np.zeros(size, np.bool_)
        for address, protocol, number in wanted:
            for row, addresses in self._used.get((protocol, number), {}).items():
                if _meets(address, addresses):
                    found[row] = True
        return found[rows]

    def would_be_taken(self, wanted: Collection[HostPort], row: int, more: Mapping[HostPort, int]) -> bool:
        """Tell whether any of the wanted ports would be taken on a row where ports were used so much more, or less."""
        if not more:
            return self._is_taken(wanted, row)
        for address, protocol, number in wanted:
            used = dict(self._used.get((protocol, number), {}).get(row, {}))
            for (other, other_protocol, other_number), count in more.items():
                if (other_protocol, other_number) == (protocol, number):
                    used[other] = used.get(other, 0) + count
            if _meets(address, {other: count for other, count in used.items() if count > 0}):
                return True
        return False

    def _is_taken(self, wanted: Iterable[HostPort], row: int) -> bool:
        used = self._used
        return any(
            row in rows and _meets(address, rows[row])
            for address, protocol, number in wanted
            if (rows := used.get((protocol, number)))
        )

    def add(self, row: int, ports: Iterable[HostPort], count: int = 1) -> None:
        """Take the ports on the row, or give them back with a count of -1."""
        for address, protocol, number in ports:
            rows = self._used.setdefault((protocol, number), {})
            addresses = rows.setdefault(row, {})
            left = addresses[address] = addresses.get(address, 0) + count
            if left <= 0:
                self._give_back(address, (protocol, number), row)

    def _give_back(self, address: str, port: tuple[str, int], row: int) -> None:
        rows = self._used[port]
        del rows[row][address]
        if not rows[row]:
            del rows[row]
        if not rows:
            del self._used[port]

    def __len__(self) -> int:
        """Count the ports that some row uses."""
        return len(self._used)


def _meets(wanted: str, used: Mapping[str, int]) -> bool:
    if wanted == ANY_ADDRESS:
        return bool(used)
    return wanted in used or ANY_ADDRESS in used
