"""Who may read what: the reviews that are asked for, how long answers are kept, and that failures refuse."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from policysched.app.serving.access import ACCESS_REVIEWS, AT_ONCE, MOST_CACHED, TOKEN_REVIEWS, DelegatedAccess
from policysched.app.serving.options import TTL, ReviewOptions, ServingOptions
from policysched.app.serving.refused import RefusedError
from policysched.errors import UsageError
from policysched.framework import ApiError
from tests.schedule.queue_parts import StandingClock

PROMETHEUS = {"username": "system:serviceaccount:monitoring:prometheus", "groups": ["system:authenticated"]}


class Reviews:
    """An API server that knows one token and lets its owner get /metrics."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.fails: set[str] = set()
        self.under_way = self.most = 0

    async def request(self, method: str, path: str, body: bytes | None = None) -> bytes:
        assert method == "POST"
        spec = msgspec.json.decode(body or b"")["spec"]
        self.asked.append((path, spec))
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        if path in self.fails:
            raise ApiError(403, "Forbidden", "not for you")
        if path == TOKEN_REVIEWS:
            known = "good" == spec["token"]  # noqa: SIM300
            status: dict[str, Any] = {"authenticated": known, "user": PROMETHEUS if known else {}}
        else:
            asked = (spec["user"], spec["nonResourceAttributes"])
            allowed = asked == (PROMETHEUS["username"], {"path": "/metrics", "verb": "get"})
            status = {"allowed": allowed, "reason": "RBAC says so" if allowed else ""}
        return msgspec.json.encode({"kind": "Review", "status": status})

    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]


class Request:
    """What is looked at of a request."""

    def __init__(self, path: str, authorization: str = "", method: str = "GET", certificate: Any = None) -> None:
        self.path, self.method = path, method
        self.headers = {"Authorization": authorization} if authorization else {}
        self._certificate = certificate

    def get_extra_info(self, name: str) -> Any:
        assert name == "peercert"
        return self._certificate


Ask = Callable[..., Any]


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock()


@pytest.fixture
def reviews() -> Reviews:
    return Reviews()


@pytest.fixture
def ask(reviews: Reviews, clock: StandingClock) -> Ask:
    access = DelegatedAccess(ServingOptions(), reviews, clock)

    async def asked(*args: Any, **more: Any) -> str:
        request: web.BaseRequest = Request(*args, **more)  # type: ignore[assignment]
        try:
            await access.check(request)
        except RefusedError as error:
            return f"{error.code} {error}"
        return "passes"

    return asked


async def test_allowed_token_passes_and_its_reviews_are_kept_for_a_while(
    ask: Ask, reviews: Reviews, clock: StandingClock
) -> None:
    for _ in range(3):
        assert await ask("/metrics", "Bearer good") == "passes"
    assert reviews.paths() == [TOKEN_REVIEWS, ACCESS_REVIEWS]
    clock.at += TTL + 1
    assert await ask("/metrics", "bearer  good") == "passes"
    assert len(reviews.asked) == 4


async def test_a_token_that_no_review_can_hold_is_refused_and_no_failure_of_reviews(
    ask: Ask, reviews: Reviews, caplog: pytest.LogCaptureFixture
) -> None:
    assert await ask("/metrics", "Bearer \udcff\udcfe") == "401 Unauthorized"
    assert not reviews.asked
    assert not caplog.text
    reviews.fails.add(TOKEN_REVIEWS)
    assert await ask("/metrics", "Bearer good") == "401 Unauthorized"
    assert "TokenReview failed, requests with a token get 401" in caplog.text


async def test_refusals_are_kept_too(ask: Ask, reviews: Reviews) -> None:
    for _ in range(3):
        assert await ask("/metrics", "Bearer bad") == "401 Unauthorized"
        assert await ask("/configz", "Bearer good") == (
            f'403 forbidden: User "{PROMETHEUS["username"]}" cannot get path "/configz"'
        )
    assert reviews.paths() == [TOKEN_REVIEWS, TOKEN_REVIEWS, ACCESS_REVIEWS]


@pytest.mark.parametrize("authorization", ["", "Basic YTpi", "Bearer", "Bearer  "])
async def test_who_says_nothing_of_himself_is_anonymous(ask: Ask, reviews: Reviews, authorization: str) -> None:
    assert await ask("/metrics", authorization) == '403 forbidden: User "system:anonymous" cannot get path "/metrics"'
    [(_, spec)] = reviews.asked
    assert (spec["user"], spec["groups"]) == ("system:anonymous", ["system:unauthenticated"])


async def test_health_is_for_anybody_but_wrong_credentials(ask: Ask, reviews: Reviews) -> None:
    assert await ask("/healthz") == "passes"
    assert await ask("/healthz/ping") == '403 forbidden: User "system:anonymous" cannot get path "/healthz/ping"'
    assert await ask("/healthz", "Bearer bad") == "401 Unauthorized"


async def test_method_is_the_verb(ask: Ask) -> None:
    text = f'403 forbidden: User "{PROMETHEUS["username"]}" cannot post path "/metrics"'
    assert await ask("/metrics", "Bearer good", "POST") == text


async def test_certificate_says_who_asks(ask: Ask, reviews: Reviews) -> None:
    def subject(*pairs: tuple[str, str]) -> Any:
        return {"subject": tuple((pair,) for pair in pairs)}

    masters = subject(("organizationName", "system:masters"), ("commonName", "admin"))
    assert await ask("/metrics", certificate=masters) == "passes"
    assert reviews.asked == []
    ops = subject(("organizationName", "ops"), ("commonName", "jane"))
    assert await ask("/metrics", certificate=ops) == '403 forbidden: User "jane" cannot get path "/metrics"'
    assert reviews.asked[0][1]["groups"] == ["ops", "system:authenticated"]
    several = subject(("commonName", "first"), ("commonName", "last"))
    assert await ask("/metrics", certificate=several) == '403 forbidden: User "last" cannot get path "/metrics"'
    nobody = subject(("organizationName", "system:masters"), ("commonName", ""))
    for unnamed in (nobody, subject(("countryName", "CH"))):
        assert await ask("/metrics", certificate=unnamed) == (
            '403 forbidden: User "system:anonymous" cannot get path "/metrics"'
        )


async def test_failing_reviews_refuse_are_said_once_and_are_not_kept(
    ask: Ask, reviews: Reviews, caplog: pytest.LogCaptureFixture
) -> None:
    reviews.fails = {TOKEN_REVIEWS, ACCESS_REVIEWS}
    for _ in range(3):
        assert await ask("/metrics", "Bearer good") == "401 Unauthorized"
        assert await ask("/metrics") == (
            '403 forbidden: User "system:anonymous" cannot get path "/metrics": '
            "the API server did not answer the SubjectAccessReview"
        )
        assert await ask("/livez") == "passes"
    assert len(reviews.asked) == 6
    assert len(caplog.messages) == 2
    reviews.fails = set()
    assert await ask("/metrics", "Bearer good") == "passes"


async def test_reviews_and_what_is_kept_of_them_are_bounded(ask: Ask, reviews: Reviews) -> None:
    answers = await asyncio.gather(*(ask("/metrics", f"Bearer {number}") for number in range(2 * MOST_CACHED)))
    assert set(answers) == {"401 Unauthorized"}
    assert reviews.most == AT_ONCE
    before = len(reviews.asked)
    await ask("/metrics", "Bearer 0")
    assert len(reviews.asked) == before + 1


@pytest.mark.parametrize(
    "answer",
    [b'{"status": 7}', b"\xff", b'{"status": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"],
    ids=["of another shape", "no text", "deep"],
)
async def test_answer_that_is_no_review_refuses(
    ask: Ask, reviews: Reviews, monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    async def nonsense(*_: Any) -> bytes:
        return answer

    monkeypatch.setattr(reviews, "request", nonsense)
    assert await ask("/metrics", "Bearer good") == "401 Unauthorized"
    assert (await ask("/metrics")).startswith("403 ")


async def test_permissions_and_refusals_are_kept_as_long_as_flags_say(clock: StandingClock, reviews: Reviews) -> None:
    options = ServingOptions(reviews=ReviewOptions(token_ttl=100, allowed_ttl=30, refused_ttl=5))
    access = DelegatedAccess(options, reviews, clock)

    async def ask(path: str) -> None:
        with contextlib.suppress(RefusedError):
            await access.check(Request(path, "Bearer good"))  # type: ignore[arg-type]

    for path in ("/metrics", "/configz"):
        await ask(path)
    for seconds, anew in ((4, 0), (2, 1), (3, 0), (28, 2)):
        clock.at += seconds
        reviews.asked.clear()
        for path in ("/metrics", "/configz"):
            await ask(path)
        assert reviews.paths() == [ACCESS_REVIEWS] * anew, clock.at
    clock.at += 100
    await ask("/metrics")
    assert TOKEN_REVIEWS in reviews.paths()


async def test_rights_may_be_asked_for_elsewhere(clock: StandingClock, reviews: Reviews) -> None:
    elsewhere = Reviews()
    access = DelegatedAccess(ServingOptions(), reviews, clock, elsewhere)
    await access.check(Request("/metrics", "Bearer good"))  # type: ignore[arg-type]
    assert (reviews.paths(), elsewhere.paths()) == ([TOKEN_REVIEWS], [ACCESS_REVIEWS])


@pytest.mark.parametrize("name", ["authentication", "authorization"])
def test_a_kubeconfig_for_reviews_that_is_not_there_ends_the_start(tmp_path: Path, name: str) -> None:
    given: dict[str, Any] = {f"{name}_kubeconfig": tmp_path / "none"}
    with pytest.raises(UsageError, match=f"--{name}-kubeconfig: no kubeconfig at "):
        ServingOptions(reviews=ReviewOptions(**given)).check()
