"""`DelegatedAccess`: authentication and authorization of clients through the API server.

A client is identified by its certificate, by headers of a front proxy, by a token that a TokenReview accepts, or as
anonymous. A SubjectAccessReview decides whether it may read a path. Answers are cached as long as in kube-scheduler, in
a bounded number. A failed review rejects the request.

Source: k8s.io/apiserver/pkg/authentication/authenticatorfactory/delegating.go, pkg/authorization/path,
pkg/server/options/authorization.go.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec
from aiohttp import web
from cachetools import TLRUCache, TTLCache

from policysched.app.serving.options import ServingOptions
from policysched.app.serving.refused import RefusedError
from policysched.app.serving.users import ANONYMOUS, CertificateUsers, User
from policysched.errors import ConnectionProblemError
from policysched.framework import ApiError, Clock
from policysched.reading.lenient_json import UNREADABLE

log = logging.getLogger(__name__)
MOST_CACHED: Final = 1024
"""Largest number of cached results of each kind of review."""
AT_ONCE: Final = 8
"""Largest number of concurrent TokenReviews and SubjectAccessReviews; further reviews wait."""
REVIEWED_WITHIN: Final = 10.0
"""Longest duration of a review, including its wait for other reviews. Units: seconds."""
TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - a path
ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
ALL_POWERFUL: Final = "system:masters"
"""Group whose members may do everything on every API server."""
T = TypeVar("T")


class Sender(Protocol):
    """Interface of an object that sends requests to the API server."""

    async def request(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """Send a request and return the body of its answer."""


class _TokenStatus(msgspec.Struct):
    authenticated: bool = False
    user: User = User()
    error: str = ""


class _TokenReview(msgspec.Struct):
    status: _TokenStatus


class _AccessStatus(msgspec.Struct):
    allowed: bool = False
    denied: bool = False
    reason: str = ""


class _AccessReview(msgspec.Struct):
    status: _AccessStatus


@dataclass(frozen=True, slots=True)
class AccessVerdict:
    """Result of a SubjectAccessReview."""

    allowed: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Cached(Generic[T]):
    answer: T


Answers = MutableMapping[bytes, _Cached[T]]
"""Cached results of reviews, by digest of the request."""


class DelegatedAccess:
    """Authenticates and authorizes clients by sending reviews to the API server; caches the results.

    Args:
        options: Paths that anyone may read, and lifetimes of answers.
        sender: Sends TokenReviews.
        clock: Clock of the cache.
        rights: Sends SubjectAccessReviews; default: `sender`.
        known: Returns the users by client certificate.
    """

    def __init__(
        self,
        options: ServingOptions,
        sender: Sender,
        clock: Clock,
        rights: Sender | None = None,
        known: Callable[[], CertificateUsers] = CertificateUsers,
    ) -> None:
        self._options = options
        self._known = known
        self._senders = {TOKEN_REVIEWS: sender, ACCESS_REVIEWS: rights or sender}
        self._users: Answers[User | None] = TTLCache(MOST_CACHED, options.reviews.token_ttl, clock.monotonic)
        self._verdicts: Answers[AccessVerdict] = TLRUCache(MOST_CACHED, self._cached_until, clock.monotonic)
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._failing: set[str] = set()
        """Kinds of reviews that are failing; their failure was logged."""

    async def check(self, request: web.BaseRequest) -> None:
        """Check that a client may make a request; raise an error if not.

        Raises:
            RefusedError: 401 if the credentials are wrong or cannot be checked, 403 if the path is not allowed or the
                review fails.
        """
        user = await self._user_of(request)
        verb, path = request.method.lower(), request.path
        if self._options.allows(path) or ALL_POWERFUL in user.groups:
            return
        verdict = await self._verdict(user, verb, path)
        if not verdict.allowed:
            why = f": {verdict.reason}" if verdict.reason else ""
            raise RefusedError(403, f'forbidden: User "{user.username}" cannot {verb} path "{path}"{why}')

    async def _user_of(self, request: web.BaseRequest) -> User:
        certificate = request.get_extra_info("peercert")
        if certificate and (known := self._known().user_of(certificate, request)) is not None:
            return known
        scheme, _, token = request.headers.get("Authorization", "").strip().partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            if certificate:
                raise RefusedError(401, "Unauthorized")
            return ANONYMOUS
        user = await self._cached(self._users, token, lambda: self._review_token(token))
        if user is None:
            raise RefusedError(401, "Unauthorized")
        return user

    def _cached_until(self, _: bytes, cached: _Cached[AccessVerdict], now: float) -> float:
        """Return the time until which a review's verdict is cached."""
        reviews = self._options.reviews
        return now + (reviews.allowed_ttl if cached.answer.allowed else reviews.refused_ttl)

    async def _review_token(self, token: str) -> User | None:
        """Return the user of a token; None if the token is invalid."""
        try:
            status = (await self._review(TOKEN_REVIEWS, "TokenReview", {"token": token}, _TokenReview)).status
        except _FAILURES as error:
            self._log_failure("TokenReview", error, "requests with a token get 401")
            raise RefusedError(401, "Unauthorized") from error
        self._failing.discard("TokenReview")
        return status.user if status.authenticated and not status.error else None

    async def _verdict(self, user: User, verb: str, path: str) -> AccessVerdict:
        spec = {
            "user": user.username,
            "uid": user.uid,
            "groups": list(user.groups),
            "extra": user.extra,
            "nonResourceAttributes": {"path": path, "verb": verb},
        }
        return await self._cached(self._verdicts, msgspec.json.encode(spec).decode(), lambda: self._review_access(spec))

    async def _review_access(self, spec: Mapping[str, Any]) -> AccessVerdict:
        try:
            status = (await self._review(ACCESS_REVIEWS, "SubjectAccessReview", spec, _AccessReview)).status
        except _FAILURES as error:
            self._log_failure(
                "SubjectAccessReview", error, "requests get 403, except for paths that are always allowed"
            )
            path = spec["nonResourceAttributes"]["path"]
            verb = spec["nonResourceAttributes"]["verb"]
            why = "the API server did not answer the SubjectAccessReview"
            text = f'forbidden: User "{spec["user"]}" cannot {verb} path "{path}": {why}'
            raise RefusedError(403, text) from error
        self._failing.discard("SubjectAccessReview")
        return AccessVerdict(status.allowed and not status.denied, status.reason)

    async def _cached(self, cache: Answers[T], text: str, review: Callable[[], Awaitable[T]]) -> T:
        """Return a cached result of a review, or send the review; failures are not cached."""
        key = hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
        if (known := cache.get(key)) is not None:
            return known.answer
        try:
            async with asyncio.timeout(REVIEWED_WITHIN), self._slots:
                known = cache.get(key)  # another request can have sent the review meanwhile
                if known is None:
                    known = cache[key] = _Cached(await review())
                return known.answer
        except TimeoutError:
            raise RefusedError(503, "the API server did not authorize the request in time") from None

    async def _review(self, path: str, kind: str, spec: Mapping[str, Any], shape: type[T]) -> T:
        group = path.split("/")[2]
        body = msgspec.json.encode({"apiVersion": f"{group}/v1", "kind": kind, "spec": spec})
        return msgspec.json.decode(await self._senders[path].request("POST", path, body), type=shape)

    def _log_failure(self, kind: str, error: Exception, effect: str) -> None:
        if isinstance(error, UnicodeEncodeError):  # caused by the client's own text; no review was sent
            return
        if kind not in self._failing:
            log.warning("secure port: %s failed, %s: %s", kind, effect, error)
        self._failing.add(kind)


_FAILURES: Final = (ApiError, ConnectionProblemError, *UNREADABLE)
