"""What every kind of nonsense that a Prometheus server may answer comes to, and no answer at all."""

from __future__ import annotations

import time
from typing import cast

import pytest

from policysched.framework.client import Clock
from policysched.metric_sources.prometheus_http import LARGEST
from tests.fake_server import Answer
from tests.metric_sources.fake_prometheus import (
    PAGE,
    Held,
    after,
    cut_after,
    fake_prometheus,
    flood,
    given,
    hang_up,
    nodes,
    result,
)
from tests.metric_sources.following import Counted, answers, prometheus

SCALAR = result("scalar", [time.time(), "1"])
MATRIX = result("matrix", [{"metric": {"node": "n1"}, "values": [[1, "2"]]}])
ERROR = given({"status": "error", "errorType": "bad_data", "error": "1:5: parse error:\n no"}, 400)
EVERY_NONSENSE: dict[str, tuple[Answer, str, str]] = {
    "hangs up": (hang_up, "unreachable", "closed the connection without a response"),
    "half a body": (cut_after(b'{"status":"success","data":', 5000), "unreachable", "failed"),
    "half a body that ends well": (given('{"status":"success","da'), "malformed", "not an answer of Prometheus"),
    "a page": (PAGE, "malformed", "text/html, not an answer of Prometheus; check --prometheus-url"),
    "a page as an error": (given("<html>", 502, "text/html"), "refused", "answers 502 Bad Gateway with text/html"),
    "nothing": (given(""), "malformed", "not an answer of Prometheus"),
    "another object": (given({"kind": "Status"}), "malformed", "not an answer of Prometheus"),
    "a list": (given([1, 2]), "malformed", "not an answer of Prometheus"),
    "deep brackets": (given("[" * 100_000), "malformed", "not an answer of Prometheus"),
    "deep brackets inside": (
        given('{"status":"success","data":{"resultType":"vector","result":' + "[" * 100_000),
        "malformed",
        "not an answer of Prometheus",
    ),
    "bytes that are no text": (given(b'{"status":"\xff"}'), "malformed", "not an answer of Prometheus"),
    "a label that is no text": (
        given(b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{"node":"\xff"}}]}}'),
        "malformed",
        "not a valid vector of Prometheus",
    ),
    "a refusal": (ERROR, "refused", "the server refuses the query (bad_data: 1:5: parse error: no)"),
    "an error as success": (given({"status": "error", "error": "no"}), "refused", "refuses the query"),
    "no result": (given({"status": "success"}), "malformed", 'has status "success" and no result'),
    "another status": (given({"status": "fine", "data": {}}), "malformed", 'has status "fine" and no result'),
    "401": (given("", 401), "credentials", "refuses the credentials (401 Unauthorized); check --prometheus-token-file"),
    "403": (given("", 403), "credentials", "refuses the credentials (403 Forbidden)"),
    "404": (given("", 404), "refused", "has no /api/v1/query (404 Not Found); check the path of --prometheus-url"),
    "405": (given("", 405), "refused", "has no /api/v1/query"),
    "500": (given("", 500), "refused", "answers 500 Internal Server Error"),
    "503 of a busy server": (
        given({"status": "error", "errorType": "timeout", "error": "query timed out"}, 503),
        "refused",
        "the server refuses the query (timeout: query timed out)",
    ),
    "a redirect": (
        given("", 302, Location="http://127.0.0.1:1/login"),
        "refused",
        "redirects to http://127.0.0.1:1/login",
    ),
    "a scalar": (SCALAR, "malformed", "must return one number per node, but returns a scalar"),
    "a matrix": (MATRIX, "malformed", "remove the [range]"),
    "a string": (result("string", [1, "x"]), "malformed", "but returns a string"),
    "another type": (result("cube\n", []), "malformed", 'but returns a "cube"'),
    "a vector of numbers": (result("vector", [1, 2]), "malformed", "not a valid vector of Prometheus"),
    "a vector of nulls": (result("vector", [None]), "malformed", "not a valid vector of Prometheus"),
    "a vector that is an object": (result("vector", {}), "malformed", "not a valid vector of Prometheus"),
    "a number as number": (result("vector", [{"metric": {}, "value": [1, 2]}]), "malformed", "not a valid vector"),
    "a time as text": (result("vector", [{"metric": {}, "value": ["1", "2"]}]), "malformed", "not a valid vector"),
}


@pytest.mark.parametrize("name", EVERY_NONSENSE)
async def test_nonsense_is_told_and_counted_and_moves_nothing(name: str) -> None:
    answer, outcome, problem = EVERY_NONSENSE[name]
    counted = Counted()
    async with fake_prometheus() as fake:
        fake.otherwise = answer
        found = await answers(prometheus(fake, counted))
    assert found.values() is None
    assert problem in found.problem()
    assert found.problem().isprintable()
    assert counted.outcomes() == {outcome: 1}


async def test_a_server_that_is_down_is_told() -> None:
    counted = Counted()
    async with fake_prometheus() as fake:
        pass
    found = await answers(prometheus(fake, counted))
    assert found.values() is None
    assert found.problem() == f"cannot connect to {fake.url}: connection refused by {fake.url[7:]}"
    assert counted.outcomes() == {"unreachable": 1}


async def test_a_server_that_is_slow_is_given_up() -> None:
    counted = Counted()
    async with fake_prometheus() as fake:
        fake.otherwise = after(60, nodes(n1=1))
        began = time.monotonic()
        found = await answers(prometheus(fake, counted, timeout=0.2))
    assert time.monotonic() - began < 30
    assert found.problem() == f"no response from {fake.url} in time"
    assert counted.outcomes() == {"timeout": 1}
    assert fake.asked[0]["timeout"] == "0.2s"


async def test_a_huge_answer_is_not_read_to_its_end() -> None:
    counted = Counted()
    sent: list[int] = []
    async with fake_prometheus() as fake:
        fake.otherwise = flood(100, sent)
        found = await answers(prometheus(fake, counted))
    assert found.problem() == "the answer has more than 32 MiB; aggregate by the node's label in the query"
    assert sum(sent) < LARGEST + (8 << 20)
    assert counted.outcomes() == {"too_large": 1}


async def test_what_never_was_foreseen_is_a_problem_too(caplog: pytest.LogCaptureFixture) -> None:
    counted = Counted()
    async with fake_prometheus() as fake:
        source = prometheus(fake, counted)

        class Broken(Held):
            def now(self) -> None:  # type: ignore[override]
                raise ZeroDivisionError

        source._clock = cast("Clock", Broken())
        found = await answers(source)
    assert found.problem() == "the refresh failed: ZeroDivisionError()"
    assert counted.outcomes() == {"failed": 1}
    assert 'the refresh of query "load" failed' in caplog.text
