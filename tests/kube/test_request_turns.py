"""Order of requests: by the start of their binding cycle; a cancelled request uses no turn."""

from __future__ import annotations

import asyncio

from policysched.framework import BINDING_CYCLE
from policysched.kube.request_limits import RequestTurns


class Requests:
    """Requests that record their order."""

    def __init__(self, at_once: int) -> None:
        self.turns = RequestTurns(at_once)
        self.made: list[tuple[int, str]] = []
        self.under_way = self.most = 0

    async def make(self, cycle: int, *names: str) -> None:
        """Send requests one after another in a binding cycle."""
        BINDING_CYCLE.set(cycle)
        for name in names:
            async with self.turns:
                self.made.append((cycle, name))
                self.under_way += 1
                self.most = max(self.most, self.under_way)
                await asyncio.sleep(0)
                self.under_way -= 1

    def start(self, cycle: int, *names: str) -> asyncio.Task[None]:
        return asyncio.create_task(self.make(cycle, *names))


async def test_the_last_request_of_a_cycle_goes_before_the_first_of_later_ones() -> None:
    requests = Requests(2)
    await asyncio.gather(*(requests.start(cycle, "nominate", "allocate", "bind") for cycle in range(1, 7)))
    assert [cycle for cycle, name in requests.made if name == "bind"] == [1, 2, 3, 4, 5, 6]
    assert requests.made.index((1, "bind")) < requests.made.index((4, "nominate"))
    assert requests.made.index((3, "bind")) < requests.made.index((6, "nominate"))
    assert requests.most == 2


async def test_requests_of_no_cycle_wait_for_the_cycles_that_began_before() -> None:
    requests = Requests(1)
    tasks = [requests.start(1, "a", "b"), requests.start(2, "a", "b"), requests.start(0, "condition")]
    await asyncio.sleep(0)
    tasks.append(requests.start(3, "a"))
    await asyncio.gather(*tasks)
    assert requests.made == [(1, "a"), (2, "a"), (1, "b"), (2, "b"), (0, "condition"), (3, "a")]


async def test_requests_of_no_cycle_go_in_their_order() -> None:
    requests = Requests(1)
    await asyncio.gather(*(requests.start(0, name) for name in "abcd"))
    assert [name for _, name in requests.made] == ["a", "b", "c", "d"]


async def test_who_is_cancelled_takes_nobodys_turn() -> None:
    requests = Requests(1)
    async with requests.turns:
        waiting = [requests.start(cycle, "a") for cycle in (1, 2, 3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
    waiting[1].cancel()  # directly after it got its turn
    await asyncio.gather(*waiting, return_exceptions=True)
    assert requests.made == [(3, "a")]
    async with asyncio.timeout(1), requests.turns:
        pass
