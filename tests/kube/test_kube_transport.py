from __future__ import annotations

import asyncio
import gc
import gzip

import aiohttp
import pytest
from aiohttp import web

from policysched.framework import ApiError
from policysched.kube.connection import Connection
from policysched.kube.transport import LINES_SLICE, SLICE, Transport
from tests.connecting import once_connected
from tests.kube.fake_server import Answer, Kube, Ticking, answer, hang, refuse, reset, status, stream
from tests.turns import turns_of_the_loop


async def test_request_gives_the_body_and_sends_its_own(kube: Kube) -> None:
    kube.server.on("POST", "/a", answer({"x": 1}))
    assert await kube.transport.request("POST", "/a?q=1%2F2", b'{"y": 2}') == b'{"x": 1}'
    asked = kube.server.asked[0]
    assert (asked.body, asked.query) == ({"y": 2}, {"q": "1/2"})
    assert asked.headers["Content-Type"] == "application/json"
    assert asked.headers["User-Agent"] == "policysched"


@pytest.mark.parametrize(
    ("given", "code", "reason", "message", "retry_after"),
    [
        (refuse(409, "Conflict", "pod is bound"), 409, "Conflict", "pod is bound", None),
        (refuse(422, "Invalid", "spec: bad"), 422, "Invalid", "spec: bad", None),
        (refuse(429, "TooManyRequests", "later", Retry_After="7"), 429, "TooManyRequests", "later", 7.0),
        (
            answer(status(429, "TooManyRequests", "later", retryAfterSeconds=3), 429),
            429,
            "TooManyRequests",
            "later",
            3.0,
        ),
        (refuse(500, "InternalError", "boom"), 500, "InternalError", "boom", None),
        (refuse(410, "Expired", "too old"), 410, "Expired", "too old", None),
        (refuse(503, "ServiceUnavailable", "x", Retry_After="Fri, 1 Jan"), 503, "ServiceUnavailable", "x", None),
    ],
)
async def test_status_becomes_an_error(
    kube: Kube, given: Answer, code: int, reason: str, message: str, retry_after: float | None
) -> None:
    kube.server.on("GET", "/a", given)
    with pytest.raises(ApiError) as caught:
        await kube.transport.request("GET", "/a")
    error = caught.value
    assert (error.status, error.reason, error.message, error.retry_after) == (code, reason, message, retry_after)


@pytest.mark.parametrize("body", ["<html>Bad Gateway</html>", "", "{half", '"text"', '{"kind": "Pod"}'])
async def test_page_of_a_proxy_becomes_an_error_that_says_so(kube: Kube, body: str) -> None:
    kube.server.on("GET", "/a", answer(body, 502))
    with pytest.raises(
        ApiError, match="answered 502 Bad Gateway with text/html, which is not a Kubernetes Status"
    ) as caught:
        await kube.transport.request("GET", "/a")
    assert caught.value.status == 502


async def test_plain_refusal_of_an_overloaded_server_is_a_verdict(kube: Kube) -> None:
    async def overloaded(_: web.Request) -> web.Response:
        text = "Too many requests, please try again later.\n"
        return web.Response(status=429, text=text, headers={"Retry-After": "1"})

    kube.server.on("POST", "/a", overloaded, answer("<html>Too Many Requests</html>", 429))
    with pytest.raises(ApiError, match="has received too many requests and asks to try again later") as caught:
        await kube.transport.request("POST", "/a", b"{}")
    assert (caught.value.status, caught.value.retry_after, caught.value.is_verdict) == (429, 1.0, True)
    with pytest.raises(ApiError, match="which is not a Kubernetes Status") as caught:
        await kube.transport.request("POST", "/a", b"{}")
    assert not caught.value.is_verdict


async def test_dropped_connection_is_status_zero(kube: Kube) -> None:
    kube.server.on("GET", "/a", reset)
    with pytest.raises(ApiError) as caught:
        await kube.transport.request("GET", "/a")
    assert (caught.value.status, caught.value.reason) == (0, "Unreachable")
    assert kube.server.url in caught.value.message


@pytest.mark.parametrize("length", [None, 1000])
async def test_answer_that_is_cut_is_told_in_words(kube: Kube, length: int | None) -> None:
    async def cut(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.content_length = length
        await response.prepare(request)
        await response.write(b'{"items":[')
        await asyncio.sleep(0.05)
        return await reset(request)

    kube.server.on("GET", "/a", cut, cut)
    with pytest.raises(ApiError, match="failed: connection closed in the middle of the response"):
        await kube.transport.request("GET", "/a")
    with pytest.raises(ApiError, match="failed: connection closed in the middle of the response"):
        async for _ in kube.transport.lines("/a", 5):
            pass


async def test_silence_is_a_timeout(kube: Kube) -> None:
    kube.server.on("GET", "/a", hang)
    with pytest.raises(ApiError, match=r"no response from .* in time") as caught:
        await Transport(kube.connection, timeout=0.05).request("GET", "/a")
    assert (caught.value.status, caught.value.reason) == (0, "Timeout")


async def test_closed_port_is_named(kube: Kube) -> None:
    nowhere = Connection("http://127.0.0.1:1", Ticking())
    with pytest.raises(ApiError, match=r"cannot connect to http://127\.0\.0\.1:1: ") as caught:
        await Transport(nowhere).request("GET", "/a")
    assert "\n" not in caught.value.message
    await nowhere.close()


async def test_tls_to_a_plain_server_is_named(kube: Kube) -> None:
    wrong = Connection(kube.server.url.replace("http:", "https:"), Ticking())
    with pytest.raises(ApiError) as caught:
        await Transport(wrong).request("GET", "/a")
    assert (caught.value.status, caught.value.reason) == (0, "TLS")
    await wrong.close()


async def test_lines_leave_a_half_line_out_and_join_split_ones(kube: Kube) -> None:
    kube.server.on("WATCH", "/a", stream(b"on", b"e\ntwo\nth", b"ree\nfou"))
    heard = [line async for lines in kube.transport.lines("/a?watch=1", 5) for line in lines]
    assert heard == [b"one", b"two", b"three"]


async def test_lines_say_at_once_that_the_server_answers(kube: Kube) -> None:
    kube.server.on("WATCH", "/a", stream(then="hang"))
    lines = kube.transport.lines("/a?watch=1", 5)
    assert await anext(lines) == []
    await lines.aclose()


async def test_broken_stream_is_an_error_after_its_lines(kube: Kube) -> None:
    kube.server.on("WATCH", "/a", stream(b"one\ntw", then="reset"))
    heard = []
    with pytest.raises(ApiError) as caught:
        async for lines in kube.transport.lines("/a?watch=1", 5):
            heard += lines
    assert heard == [b"one"]
    assert caught.value.status == 0


async def test_refused_stream_is_an_error(kube: Kube) -> None:
    kube.server.on("WATCH", "/a", refuse(410, "Expired", "too old"))
    with pytest.raises(ApiError, match="too old"):
        await anext(kube.transport.lines("/a?watch=1", 5))


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_page_with_a_good_status_is_no_success(kube: Kube, method: str) -> None:
    kube.server.on(method, "/a", answer("<html>Please log in</html>"))
    with pytest.raises(ApiError, match="answered with text/html, which an API server does not do") as caught:
        await kube.transport.request(method, "/a")
    assert caught.value.status == 0


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_redirect_is_a_refusal_and_not_followed(kube: Kube, code: int) -> None:
    for method in ("GET", "POST", "WATCH"):
        kube.server.on(method, "/a", answer("moved", code, Location="/b"))
        kube.server.on(method, "/b", answer({"believed": True}))
    for method in ("GET", "POST"):
        with pytest.raises(ApiError, match=f"answered {code} ") as caught:
            await kube.transport.request(method, "/a")
        assert caught.value.status == code
    with pytest.raises(ApiError, match=f"answered {code} "):
        await anext(kube.transport.lines("/a?watch=1", 5))
    assert {one.path for one in kube.server.asked} == {"/a"}


async def test_cookies_are_not_kept(kube: Kube) -> None:
    connection = Connection(kube.server.url.replace("127.0.0.1", "localhost"), Ticking())
    for _ in range(2):
        kube.server.on("GET", "/a", answer({}, Set_Cookie="sticky=1; Path=/"))
        await Transport(connection).request("GET", "/a")
    assert not any("Cookie" in one.headers for one in kube.server.asked)
    await connection.close()


async def test_answer_that_is_read_may_take_as_long_as_it_keeps_coming(kube: Kube) -> None:
    connection = Connection(kube.server.url, Ticking())
    patient = Transport(connection, timeout=1.0)
    kube.server.on("GET", "/a", stream(*[b"x"] * 250))
    assert await patient.request("GET", "/a") == b"x" * 250
    kube.server.on("PATCH", "/a", stream(*[b"x"] * 250))
    with pytest.raises(ApiError):
        await patient.request("PATCH", "/a", b"{}")
    kube.server.on("GET", "/a", stream(b"x", then="hang"))
    with pytest.raises(ApiError):
        await patient.request("GET", "/a")
    await connection.close()


@pytest.mark.parametrize("body", ['{"message": "\udcff"}', '{"x":' * 2000 + "1" + "}" * 2000])
async def test_error_that_cannot_be_decoded_is_one_all_the_same(kube: Kube, body: str) -> None:
    kube.server.on("GET", "/a", answer(body.encode(errors="surrogateescape"), 502))
    with pytest.raises(ApiError) as caught:
        await kube.transport.request("GET", "/a")
    assert caught.value.status == 502


def packed(size: int) -> bytes:
    """Return zeros compressed to about a thousandth of their size."""
    return gzip.compress(bytes(size))


async def test_answer_is_read_only_as_far_as_an_api_server_writes(kube: Kube, monkeypatch: pytest.MonkeyPatch) -> None:
    for method, write, said in (("GET", packed, {"Content_Encoding": "gzip"}), ("POST", bytes, {})):
        kube.server.on(method, "/a", answer(write(SLICE), 200, **said))
        assert len(await kube.transport.request(method, "/a", b"{}", most=SLICE)) == SLICE
        for code in (200, 500):
            kube.server.on(method, "/a", answer(write(2 * SLICE), code, **said))
            with pytest.raises(
                ApiError, match="answered with more than 1 MiB, which an API server does not do"
            ) as caught:
                await kube.transport.request(method, "/a", b"{}", most=SLICE)
            assert caught.value.status == 0
    monkeypatch.setattr("policysched.kube.transport.MAX_LINE", SLICE)
    kube.server.on("WATCH", "/a", answer(packed(SLICE + 1), 500, Content_Encoding="gzip"))
    with pytest.raises(ApiError, match="more than 1 MiB"):
        _ = [lines async for lines in kube.transport.lines("/a?watch=1", 10)]


async def test_empty_lines_packed_into_a_thousandth_give_the_loop_its_turn(kube: Kube) -> None:
    count = 64
    kube.server.on("WATCH", "/a", answer(gzip.compress(b"\n" * (count * LINES_SLICE)), Content_Encoding="gzip"))
    async with turns_of_the_loop() as turns:
        heard = [line async for lines in kube.transport.lines("/a?watch=1", 10) for line in lines if line]
    assert not heard
    assert turns.count > count


async def test_answer_in_an_encoding_that_was_not_asked_for_is_none(kube: Kube) -> None:
    kube.server.on("POST", "/a", answer(packed(10), Content_Encoding="gzip"))
    with pytest.raises(ApiError, match="failed: an answer in an encoding that was not requested"):
        await kube.transport.request("POST", "/a", b"{}")


async def test_large_answer_gives_the_loop_its_turn(kube: Kube) -> None:
    kube.server.on("GET", "/a", answer(packed(8 * SLICE), Content_Encoding="gzip"))
    async with turns_of_the_loop() as turns:
        assert len(await kube.transport.request("GET", "/a", most=8 * SLICE)) == 8 * SLICE
    assert turns.count >= 8


async def test_server_that_is_away_leaves_no_garbage(kube: Kube) -> None:
    """Failed attempts leave no reference cycles, which would stay in memory until a garbage collection."""
    await kube.server.stop()
    gc.collect()
    gc.disable()
    try:
        before = failures()
        for _ in range(5):
            with pytest.raises(ApiError, match="cannot connect to "):
                await kube.transport.request("GET", "/version")
        assert failures() == before
    finally:
        gc.enable()
    await kube.server.start()


def failures() -> set[int]:
    """Return the ids of the connection errors in memory, including those of other tests."""
    return {id(one) for one in gc.get_objects() if isinstance(one, aiohttp.ClientConnectorError)}


@pytest.fixture(params=["our own", "the library's"])
def ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Send writes over our own connections, or through the HTTP library as with a proxy."""
    if request.param == "the library's":
        monkeypatch.setattr(Connection, "short", None)


@pytest.mark.usefixtures("ways")
async def test_nothing_but_questions_is_sent_by_who_may_not_write(kube: Kube) -> None:
    may = True
    transport = Transport(kube.connection, may_write=lambda: may)
    for method in ("GET", "POST", "DELETE"):
        kube.server.on(method, "/a", answer({"x": 1}), answer({"x": 1}))
    await transport.request("POST", "/a", b'{"y": 1}')
    may = False
    await transport.request("GET", "/a")
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        with pytest.raises(ApiError, match="the lease has expired") as caught:
            await transport.request(method, "/a", b"{}")
        assert (caught.value.status, caught.value.reason) == (0, "NotLeading")
    assert [(one.method, one.body) for one in kube.server.asked] == [("POST", {"y": 1}), ("GET", None)]


@pytest.mark.usefixtures("ways")
async def test_nothing_is_sent_where_the_lease_runs_out_while_a_connection_is_made(kube: Kube) -> None:
    connections: list[str] = []
    transport = Transport(kube.connection, may_write=lambda: not connections)
    kube.server.on("POST", "/a", answer({}))
    with once_connected(lambda: connections.append("one")), pytest.raises(ApiError, match="the lease has expired"):
        await transport.request("POST", "/a", b"{}")
    assert (connections, kube.server.asked) == (["one"], [])
    connections.clear()
    await transport.request("POST", "/a", b"{}")
    assert [one.method for one in kube.server.asked] == ["POST"]
