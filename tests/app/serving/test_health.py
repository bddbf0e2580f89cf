"""Health checks: what each path says, in the words of Kubernetes' components."""

from __future__ import annotations

import asyncio

import pytest

from policysched.app.serving.health import HEALTHZ, LIVEZ, READYZ, STUCK, Health, Heartbeat


def health(**problems: str) -> Health:
    made = Health()
    for name, problem in problems.items():
        made.add(name, lambda problem=problem: problem, READYZ)  # type: ignore[misc]
    return made


@pytest.mark.parametrize("kind", [HEALTHZ, LIVEZ, READYZ])
def test_health_without_problems_says_ok(kind: str) -> None:
    assert health().answer(f"/{kind}") == (200, "ok")
    assert health().answer(f"/{kind}", verbose=True) == (200, f"[+]ping ok\n{kind} check passed\n")
    assert health().answer(f"/{kind}/ping") == (200, "ok")


def test_failing_check_is_named_and_its_reason_withheld() -> None:
    text = "[+]ping ok\n[-]sync failed: reason withheld\nreadyz check failed\n"
    assert health(sync="three are missing").answer("/readyz") == (500, text)
    assert health(sync="three are missing").answer("/livez") == (200, "ok")


def test_check_asked_by_its_name_gives_the_reason() -> None:
    expected = (500, "internal server error: three are missing\n")
    assert health(sync="three are missing").answer("/readyz/sync") == expected


def test_excluded_check_does_not_count_and_unknown_ones_are_told() -> None:
    answer = health(sync="missing").answer("/readyz", excluded=["sync", "what", "else"], verbose=True)
    warning = 'warn: some health checks cannot be excluded: no matches for "else","what"\n'
    assert answer == (200, f"[+]ping ok\n[+]sync excluded: ok\n{warning}readyz check passed\n")


@pytest.mark.parametrize("path", ["/", "/readyz/", "/readyz/what", "/what", "/readyz/ping/more", "//readyz"])
def test_other_paths_are_unknown(path: str) -> None:
    assert health().answer(path) is None


def test_check_that_raises_fails() -> None:
    made = Health()
    made.add("broken", lambda: str(1 / 0), READYZ)
    code, text = made.answer("/readyz/broken") or (0, "")
    assert (code, text) == (500, "internal server error: ZeroDivisionError('division by zero')\n")


async def test_heartbeat_tells_of_a_loop_that_stands_still() -> None:
    now = 0.0
    heart = Heartbeat(lambda: now)
    assert heart.check() == ""
    beating = asyncio.create_task(heart.run())
    await asyncio.sleep(0)
    now = STUCK
    assert heart.check() == ""
    now = STUCK + 1
    assert heart.check() == "the event loop has been blocked for 31 s"
    beating.cancel()
    await asyncio.gather(beating, return_exceptions=True)
    assert heart.check() == ""
