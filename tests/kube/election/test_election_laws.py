"""Leader election with failing servers, networks and clocks: never two leaders, and one leader in the end."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st

from policysched.framework import ApiError
from policysched.kube.election.elector import Elector
from tests.kube.election.simulated import Fault, LeaseServer, SkewedClock, candidate, simulate

TROUBLE = 300.0
"""Time during which requests can fail. Units: seconds."""
OUTAGE = 30.0
"""Longest time for which one candidate's requests all fail. Units: seconds."""
CALM = 90.0
"""Time at the end without failures. Units: seconds."""


@dataclass
class World:
    """The state of one run: the candidates' faults, and the candidates that act as leader."""

    random: random.Random
    failing: float
    """Probability that a request fails."""
    server: LeaseServer = field(default_factory=LeaseServer)
    acting: set[str] = field(default_factory=set)
    terms: int = 0
    cut_off: dict[str, float] = field(default_factory=dict)
    """Time until which all requests of a candidate fail, by candidate."""

    def fate(self, name: str) -> tuple[Fault, float, float]:
        """Return a random outcome and random latencies of a request.

        After a failure, later requests may all fail as well.
        """
        draw, now = self.random, asyncio.get_running_loop().time()
        calm = now > TROUBLE or (now > self.cut_off.get(name, 0.0) and draw.random() > self.failing)
        if not calm and now > self.cut_off.get(name, 0.0) and draw.random() < 0.3:
            self.cut_off[name] = now + draw.random() * OUTAGE
        fault = Fault.NONE if calm else draw.choice([one for one in Fault if one is not Fault.NONE])
        slow = 0.05 if calm else 6.0
        return fault, draw.random() * slow, draw.random() * slow

    def begins(self, name: str) -> None:
        self.acting.add(name)
        self.terms += 1
        assert self.acting == {name}, f"several act as leader: {self.acting}"


async def process(world: World, name: str, clock: SkewedClock, *, ends: Callable[[], float | None]) -> None:
    """Run a candidate again and again, as a scheduler that restarts after a loss of the lease, SIGTERM or SIGKILL."""
    life = 0
    while True:
        life += 1
        own = f"{name}-{life}"
        elector, lock = candidate(world.server, own, clock=clock, seed=world.random.randrange(1 << 30))
        lock.faults = partial(world.fate, name)

        async def lead(elector: Elector = elector, own: str = own) -> None:
            await elector.acquire()
            world.begins(own)
            await elector.hold()

        leading = asyncio.ensure_future(lead())
        await asyncio.wait({leading}, timeout=ends())
        killed = not leading.done()
        leading.cancel()
        await asyncio.gather(leading, return_exceptions=True)
        world.acting.discard(own)
        if not leading.cancelled() and leading.exception() is not None:
            raise leading.exception() or AssertionError
        if killed and world.random.random() < 0.5:
            with contextlib.suppress(ApiError):
                await elector.release()
        await asyncio.sleep(world.random.random() * 3)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    seed=st.integers(0, 2**32),
    rates=st.lists(st.floats(0.95, 1.1), min_size=2, max_size=3),
    offsets=st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3),
    failing=st.sampled_from([0.0, 0.1, 0.4, 0.8]),
    lives=st.floats(5.0, 200.0),
)
def test_never_two_leaders_and_somebody_leads_in_the_end(
    seed: int, rates: list[float], offsets: list[float], failing: float, lives: float
) -> None:
    world = World(random.Random(seed), failing)

    def ends() -> float | None:
        now = asyncio.get_running_loop().time()
        length = world.random.random() * lives
        return length if now + length < TROUBLE else None

    async def run() -> None:
        clocks = [SkewedClock(offset, rate) for offset, rate in zip(offsets, rates, strict=False)]
        lives = [
            asyncio.ensure_future(process(world, f"p{index}", clock, ends=ends)) for index, clock in enumerate(clocks)
        ]
        done, _ = await asyncio.wait(lives, timeout=TROUBLE + CALM, return_when=asyncio.FIRST_EXCEPTION)
        for one in lives:
            one.cancel()
        acting = set(world.acting)
        await asyncio.gather(*lives, return_exceptions=True)
        for one in done:
            one.result()
        assert len(acting) == 1

    simulate(run())
    assert world.terms >= 1


@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    seed=st.integers(0, 2**32),
    clocks=st.tuples(st.floats(0.95, 1.1), st.floats(0.95, 1.1), st.just(10.0))
    | st.tuples(st.just(1.0), st.just(1.0), st.floats(10.0, 14.9)),
    renewals=st.floats(0.0, 10.0),
    fault=st.sampled_from([Fault.LOST, Fault.REFUSED, Fault.SILENT]),
)
def test_leader_that_is_cut_off_stops_before_anybody_takes_over(
    seed: int, clocks: tuple[float, float, float], renewals: float, fault: Fault
) -> None:
    """The other candidate tries constantly; the renew deadline or the rates of the clocks vary by up to a seventh."""
    own_rate, other_rate, renew_deadline = clocks

    async def run() -> None:
        server = LeaseServer()
        leader, lock = candidate(server, "me", clock=SkewedClock(0.0, own_rate), renew_deadline=renew_deadline)
        other, _ = candidate(server, "you", clock=SkewedClock(5.0, other_rate), seed=seed, retry_period=0.05)
        await leader.acquire()
        holding = asyncio.ensure_future(leader.hold())
        taking = asyncio.ensure_future(other.acquire())
        await asyncio.sleep(renewals)
        lock.faults = lambda: (fault, 0.01, 0.01)
        await asyncio.wait((holding, taking), return_when=asyncio.FIRST_COMPLETED)
        assert holding.done()
        assert not taking.done()
        await asyncio.wait_for(taking, 30)

    simulate(run())
