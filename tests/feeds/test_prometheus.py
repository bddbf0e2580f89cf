"""Asking a Prometheus server: what is asked how often, and what every kind of nonsense comes to."""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path

import pytest

from policysched.feeds.prometheus import AT_ONCE, by_query
from policysched.feeds.server import LARGEST, PrometheusServer, ServerSettings
from policysched.framework import MetricKey, Sample
from tests.feeds.fake_prometheus import (
    Answer,
    Held,
    after,
    cut_after,
    fake_prometheus,
    flood,
    given,
    hang_up,
    nodes,
    result,
    series,
    vector,
)
from tests.feeds.following import LOAD, Counted, answers, prometheus, running, wanting

SCALAR = result("scalar", [time.time(), "1"])
MATRIX = result("matrix", [{"metric": {"node": "n1"}, "values": [[1, "2"]]}])
HTML = given("<html><body>Sign in</body></html>", content_type="text/html")
ERROR = given({"status": "error", "errorType": "bad_data", "error": "1:5: parse error:\n no"}, 400)
EVERY_NONSENSE: dict[str, tuple[Answer, str, str]] = {
    "hangs up": (hang_up, "unreachable", "closed the connection without an answer"),
    "half a body": (cut_after(b'{"status":"success","data":', 5000), "unreachable", "broke"),
    "half a body that ends well": (given('{"status":"success","da'), "malformed", "is no answer of Prometheus"),
    "a page": (HTML, "malformed", "text/html that is no answer of Prometheus: check --prometheus-url"),
    "a page as an error": (given("<html>", 502, "text/html"), "refused", "answers 502 Bad Gateway with text/html"),
    "nothing": (given(""), "malformed", "is no answer of Prometheus"),
    "another object": (given({"kind": "Status"}), "malformed", "is no answer of Prometheus"),
    "a list": (given([1, 2]), "malformed", "is no answer of Prometheus"),
    "deep brackets": (given("[" * 100_000), "malformed", "is no answer of Prometheus"),
    "deep brackets inside": (
        given('{"status":"success","data":{"resultType":"vector","result":' + "[" * 100_000),
        "malformed",
        "is no answer of Prometheus",
    ),
    "bytes that are no text": (given(b'{"status":"\xff"}'), "malformed", "is no answer of Prometheus"),
    "a label that is no text": (
        given(b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{"node":"\xff"}}]}}'),
        "malformed",
        "no vector as Prometheus writes it",
    ),
    "a refusal": (ERROR, "refused", "the server refuses the query (bad_data: 1:5: parse error: no)"),
    "an error as success": (given({"status": "error", "error": "no"}), "refused", "refuses the query"),
    "no result": (given({"status": "success"}), "malformed", 'has status "success" and no result'),
    "another status": (given({"status": "fine", "data": {}}), "malformed", 'has status "fine" and no result'),
    "401": (given("", 401), "credentials", "refuses the credentials (401 Unauthorized): check --prometheus-token-file"),
    "403": (given("", 403), "credentials", "refuses the credentials (403 Forbidden)"),
    "404": (given("", 404), "refused", "has no /api/v1/query (404 Not Found): check the path of --prometheus-url"),
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
    "a scalar": (SCALAR, "malformed", "has to give one number for each node, but gives a scalar"),
    "a matrix": (MATRIX, "malformed", "leave the [range] out"),
    "a string": (result("string", [1, "x"]), "malformed", "but gives a string"),
    "another type": (result("cube\n", []), "malformed", 'but gives a "cube"'),
    "a vector of numbers": (result("vector", [1, 2]), "malformed", "no vector as Prometheus writes it"),
    "a vector of nulls": (result("vector", [None]), "malformed", "no vector as Prometheus writes it"),
    "a vector that is an object": (result("vector", {}), "malformed", "no vector as Prometheus writes it"),
    "a number as number": (result("vector", [{"metric": {}, "value": [1, 2]}]), "malformed", "no vector"),
    "a time as text": (result("vector", [{"metric": {}, "value": ["1", "2"]}]), "malformed", "no vector"),
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
    assert found.problem() == f"{fake.url} cannot be reached: Connect call failed ('127.0.0.1', {fake.url[17:]})"
    assert counted.outcomes() == {"unreachable": 1}


async def test_a_server_that_is_slow_is_given_up() -> None:
    counted = Counted()
    async with fake_prometheus() as fake:
        fake.otherwise = after(5, nodes(n1=1))
        began = time.monotonic()
        found = await answers(prometheus(fake, counted, timeout=0.2))
    assert time.monotonic() - began < 3
    assert found.problem() == f"{fake.url} did not answer in time"
    assert counted.outcomes() == {"timeout": 1}
    assert fake.asked[0]["timeout"] == "0.2s"


async def test_a_huge_answer_is_not_read_to_its_end() -> None:
    counted = Counted()
    sent: list[int] = []
    async with fake_prometheus() as fake:
        fake.otherwise = flood(100, sent)
        found = await answers(prometheus(fake, counted))
    assert found.problem() == "the answer is more than 32 MiB: aggregate by the node's label in the query"
    assert sum(sent) < LARGEST + (8 << 20)
    assert counted.outcomes() == {"too_large": 1}


async def test_a_compressed_answer_is_not_asked_for() -> None:
    async with fake_prometheus() as fake:
        await answers(prometheus(fake))
    assert fake.headers[0]["Accept-Encoding"] == "identity"


async def test_what_never_was_foreseen_is_a_problem_too(caplog: pytest.LogCaptureFixture) -> None:
    counted = Counted()
    async with fake_prometheus() as fake:
        source = prometheus(fake, counted)

        class Broken(Held):
            def now(self) -> None:  # type: ignore[override]
                raise ZeroDivisionError

        source._clock = Broken()
        found = await answers(source)
    assert found.problem() == "the refresh failed: ZeroDivisionError()"
    assert counted.outcomes() == {"failed": 1}
    assert "the refresh of query=load failed" in caplog.text


async def test_the_path_of_the_url_stays() -> None:
    async with fake_prometheus(path="/prometheus/api/v1/query") as fake:
        fake.otherwise = nodes(n1=1)
        for behind in ("/prometheus", "/prometheus/"):
            fake.url = fake.url.split("/prometheus")[0] + behind
            assert (await answers(prometheus(fake))).values() == {"n1": 1.0}


async def test_a_query_of_many_metrics_is_asked_once() -> None:
    other = MetricKey("load", "instance")
    async with fake_prometheus() as fake:
        fake.otherwise = vector(series("n1", 1, instance="i1"))
        found = await answers(prometheus(fake), (LOAD, other))
        assert fake.queries == ["load"]
    assert found.values(LOAD) == {"n1": 1.0}
    assert found.values(other) == {"i1": 1.0}


def test_metrics_are_grouped_by_query() -> None:
    one, two, three = MetricKey("a", "x"), MetricKey("a", "y"), MetricKey("b", "x")
    assert by_query((one, two, three)) == {"a": {one, two}, "b": {three}}


async def test_queries_reach_the_server_as_they_are_written() -> None:
    query = 'sum by (node) (rate(x{mode!="idle",a=~"b+|ü"}[5m])) > 1 & 2%'
    async with fake_prometheus() as fake:
        fake.answers[query] = nodes(n1=2)
        key = MetricKey(query, "node")
        assert (await answers(prometheus(fake), (key,))).values(key) == {"n1": 2.0}


async def test_values_are_refreshed_again_and_again() -> None:
    counted = Counted()
    async with fake_prometheus() as fake:
        fake.otherwise = nodes(n1=1)
        source = prometheus(fake, counted, interval=0.05)
        source.follow(wanting(LOAD))
        async with running(source) as kept:
            await kept.reaches(2)
            assert kept.values() == {"n1": 1.0}
            fake.otherwise = nodes(n1=2, n2=3)
            await kept.reaches(len(kept.all) + 2)
            assert kept.values() == {"n1": 2.0, "n2": 3.0}
            assert counted.outcomes()["answered"] >= 4


async def test_the_interval_is_kept() -> None:
    async with fake_prometheus() as fake:
        source = prometheus(fake, interval=0.4)
        source.follow(wanting(LOAD))
        async with running(source) as kept:
            began = time.monotonic()
            await kept.reaches(3)
            assert time.monotonic() - began >= 0.7


async def test_the_queries_follow_what_is_wanted() -> None:
    first, second = MetricKey("a", "node"), MetricKey("b", "node")
    async with fake_prometheus() as fake:
        source = prometheus(fake, interval=0.02)
        source.follow(wanting(first))
        async with running(source) as kept:
            await kept.reaches(2)
            assert set(kept.answers) == {first}
            source.follow(wanting(first, second))
            await source.settled()
            assert set(kept.answers) == {first, second}
            source.follow(wanting(second))
            await asyncio.sleep(0.05)
            kept.answers.clear()
            before = len(fake.queries)
            await kept.reaches(len(kept.all) + 3)
            assert set(kept.answers) == {second}
            assert set(fake.queries[before + 1 :]) == {"b"}


async def test_a_new_label_is_joined_at_once() -> None:
    other = MetricKey("load", "instance")
    async with fake_prometheus() as fake:
        fake.otherwise = vector(series("n1", 1, instance="i1"))
        source = prometheus(fake)
        source.follow(wanting(LOAD))
        async with running(source) as kept:
            await kept.reaches(1)
            source.follow(wanting(LOAD, other))
            await source.settled()
            assert kept.values(other) == {"i1": 1.0}


async def test_following_the_same_again_asks_nothing() -> None:
    async with fake_prometheus() as fake:
        source = prometheus(fake)
        source.follow(wanting(LOAD))
        async with running(source) as kept:
            await kept.reaches(1)
            source.follow(wanting(LOAD))
            await source.settled()
            await asyncio.sleep(0.05)
            assert fake.queries == ["load"]


async def test_it_is_settled_when_everything_was_asked_once_whatever_came_of_it() -> None:
    slow = MetricKey("slow", "node")
    async with fake_prometheus() as fake:
        fake.answers["slow"] = after(0.3, HTML)
        source = prometheus(fake)
        await source.settled()
        source.follow(wanting(LOAD, slow))
        async with running(source) as kept:
            await kept.reaches(1)
            assert set(kept.answers) == {LOAD}
            await source.settled()
            assert set(kept.answers) == {LOAD, slow}


async def test_a_query_that_is_dropped_before_its_answer_says_nothing() -> None:
    slow = MetricKey("slow", "node")
    async with fake_prometheus() as fake:
        fake.answers["slow"] = after(0.2, nodes(n1=1))
        source = prometheus(fake)
        source.follow(wanting(LOAD, slow))
        async with running(source) as kept:
            await kept.reaches(1)
            source.follow(wanting(LOAD))
            await source.settled()
            await asyncio.sleep(0.4)
            assert set(kept.answers) == {LOAD}


async def test_a_slow_query_delays_no_other() -> None:
    slow = MetricKey("slow", "node")
    async with fake_prometheus() as fake:
        fake.answers["slow"] = after(30, nodes(n1=1))
        source = prometheus(fake, interval=0.02, timeout=30)
        source.follow(wanting(LOAD, slow))
        async with running(source) as kept:
            await kept.reaches(5)
            assert set(kept.answers) == {LOAD}


async def test_only_so_many_queries_are_under_way() -> None:
    under_way = most = 0
    answer = nodes(n1=1)

    async def counting(request):  # type: ignore[no-untyped-def]
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.02)
        under_way -= 1
        return await answer(request)

    async with fake_prometheus() as fake:
        fake.otherwise = counting
        keys = [MetricKey(f"q{number}", "node") for number in range(3 * AT_ONCE)]
        found = await answers(prometheus(fake), keys)
    assert len(found.answers) == 3 * AT_ONCE
    assert most == AT_ONCE


async def test_values_outlive_an_outage_and_trouble_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "policysched")
    other = MetricKey("other", "node")
    async with fake_prometheus() as fake:
        fake.otherwise = nodes(n1=1)
        source = prometheus(fake, interval=0.02)
        source.follow(wanting(LOAD, other))
        async with running(source) as kept:
            await kept.reaches(2)
            fake.otherwise = HTML
            await kept.reaches(len(kept.all) + 8)
            assert (kept.values(), kept.values(other)) == (None, None)
            fake.otherwise = nodes(n1=2)
            await kept.reaches(len(kept.all) + 8)
            assert kept.values() == {"n1": 2.0}
    told = [record for record in caplog.records if record.name.startswith("policysched.feeds")]
    assert [record.levelname for record in told] == ["WARNING", "INFO"]
    assert "is no answer of Prometheus" in told[0].getMessage()
    assert told[1].getMessage().startswith("metrics: no longer so: ")


async def test_the_time_of_a_sample_is_the_servers() -> None:
    clock = Held()
    async with fake_prometheus() as fake:
        fake.otherwise = vector(series("n1", 1, clock.at - 7), series("n2", 1, clock.at + 7))
        found = await answers(prometheus(fake, clock=clock))
    assert found.answers[LOAD].samples == {"n1": Sample(1.0, clock.at - 7), "n2": Sample(1.0, clock.at)}


async def test_a_rotated_token_is_used_at_once(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    async with fake_prometheus() as fake:
        server = PrometheusServer(ServerSettings(fake.url, token))
        await server.ask("a")
        token.write_text("second")
        await server.ask("a")
        await server.close()
    assert [headers["Authorization"] for headers in fake.headers] == ["Bearer first", "Bearer second"]


async def test_a_token_is_sent_nowhere_else(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret")
    async with fake_prometheus() as other, fake_prometheus() as fake:
        fake.otherwise = given("", 307, Location=f"{other.url}/api/v1/query")
        server = PrometheusServer(ServerSettings(fake.url, token))
        with pytest.raises(Exception, match="redirects to"):
            await server.ask("a")
        await server.close()
        assert other.headers == []


async def test_a_token_that_goes_is_a_problem_until_it_is_back(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one")
    async with fake_prometheus() as fake:
        fake.otherwise = nodes(n1=1)
        source = prometheus(fake)
        source._server = PrometheusServer(ServerSettings(fake.url, token))
        token.unlink()
        assert (await answers(source)).problem() == f"{token} cannot be read: no such file or directory"
        token.write_text("")
        assert (await answers(source)).problem() == f"{token} holds no token: it is empty"
        token.write_text("two")
        assert (await answers(source)).values() == {"n1": 1.0}
        assert fake.queries == ["load"]


async def test_the_form_is_what_the_api_takes() -> None:
    async with fake_prometheus() as fake:
        await answers(prometheus(fake))
    assert fake.asked == [{"query": "load", "timeout": "5s"}]
    assert fake.headers[0]["Content-Type"] == "application/x-www-form-urlencoded"
    assert "Authorization" not in fake.headers[0]
