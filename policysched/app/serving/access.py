"""`DelegatedAccess`: who asks and what he may read, as the API server says.

A client is known by his certificate, by what a front proxy says, by a token that a TokenReview accepts, or as
anonymous; a SubjectAccessReview says whether he may read a path. Answers are kept as long as kube-scheduler keeps
them, in a bounded number. A review that fails refuses: no request passes that nobody allowed.

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

from policysched.app.serving.answers import RefusedError
from policysched.app.serving.options import ServingOptions
from policysched.app.serving.users import ANONYMOUS, CertificateUsers, User
from policysched.errors import ConnectionProblemError
from policysched.framework import ApiError, Clock
from policysched.reading.lenient_json import UNREADABLE

log = logging.getLogger(__name__)
KEPT: Final = 1024
"""How many answers of each kind are kept."""
AT_ONCE: Final = 8
"""How many reviews are under way at once."""
REVIEWED_WITHIN: Final = 10.0
"""How long a review may take, with the wait for its turn. Units: seconds."""
TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - a path
ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
ALL_POWERFUL: Final = "system:masters"
"""The group that every API server lets do everything."""
T = TypeVar("T")


class Sender(Protocol):
    """Sends requests to the API server."""

    async def request(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """Send one and return the body of its answer."""


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
    """What a SubjectAccessReview said."""

    allowed: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Kept(Generic[T]):
    answer: T


Answers = MutableMapping[bytes, _Kept[T]]
"""Answers by the digest of what was asked."""


class DelegatedAccess:
    """Asks the API server, and keeps its answers for a while.

    Args:
        options: What anybody may read.
        sender: The way to the API server.
        clock: Says how old an answer is.
        rights: The way to it for SubjectAccessReviews; absent, the same.
        known: Says who is known by which certificates now.
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
        self._users: Answers[User | None] = TTLCache(KEPT, options.reviews.token_ttl, clock.monotonic)
        self._verdicts: Answers[AccessVerdict] = TLRUCache(KEPT, self._kept_until, clock.monotonic)
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._failing: set[str] = set()
        """The kinds of reviews whose failure was said."""

    async def check(self, request: web.BaseRequest) -> None:
        """Let a request pass.

        Raises:
            RefusedError: 401 where the credentials are wrong or cannot be looked at, 403 where the path is not
                allowed, or nobody can say whether it is.
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
        user = await self._kept(self._users, token, lambda: self._review_token(token))
        if user is None:
            raise RefusedError(401, "Unauthorized")
        return user

    def _kept_until(self, _: bytes, kept: _Kept[AccessVerdict], now: float) -> float:
        """Return how long a verdict is kept."""
        reviews = self._options.reviews
        return now + (reviews.allowed_ttl if kept.answer.allowed else reviews.refused_ttl)

    async def _review_token(self, token: str) -> User | None:
        """Ask whose token it is; None where it is nobody's."""
        try:
            status = (await self._review(TOKEN_REVIEWS, "TokenReview", {"token": token}, _TokenReview)).status
        except _FAILURES as error:
            self._say_failure("TokenReview", error, "requests with a token get 401")
            raise RefusedError(401, "Unauthorized") from error
        self._failing.discard("TokenReview")
        return status.user if status.authenticated and not status.error else None

    async def _verdict(self, user: User, verb: str, path: str) -> AccessVerdict:
        asked = {
            "user": user.username,
            "uid": user.uid,
            "groups": list(user.groups),
            "extra": user.extra,
            "nonResourceAttributes": {"path": path, "verb": verb},
        }
        return await self._kept(self._verdicts, msgspec.json.encode(asked).decode(), lambda: self._review_access(asked))

    async def _review_access(self, asked: Mapping[str, Any]) -> AccessVerdict:
        try:
            status = (await self._review(ACCESS_REVIEWS, "SubjectAccessReview", asked, _AccessReview)).status
        except _FAILURES as error:
            self._say_failure(
                "SubjectAccessReview", error, "requests get 403, except for paths that are always allowed"
            )
            path = asked["nonResourceAttributes"]["path"]
            verb = asked["nonResourceAttributes"]["verb"]
            why = "the API server did not answer the SubjectAccessReview"
            text = f'forbidden: User "{asked["user"]}" cannot {verb} path "{path}": {why}'
            raise RefusedError(403, text) from error
        self._failing.discard("SubjectAccessReview")
        return AccessVerdict(status.allowed and not status.denied, status.reason)

    async def _kept(self, cache: Answers[T], text: str, ask: Callable[[], Awaitable[T]]) -> T:
        """Return an answer that is known, or ask for it; a failure is not kept."""
        key = hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
        if (known := cache.get(key)) is not None:
            return known.answer
        try:
            async with asyncio.timeout(REVIEWED_WITHIN), self._turns:
                known = cache.get(key)  # another request may have asked meanwhile
                if known is None:
                    known = cache[key] = _Kept(await ask())
                return known.answer
        except TimeoutError:
            raise RefusedError(503, "the API server did not authorize the request in time") from None

    async def _review(self, path: str, kind: str, spec: Mapping[str, Any], shape: type[T]) -> T:
        group = path.split("/")[2]
        body = msgspec.json.encode({"apiVersion": f"{group}/v1", "kind": kind, "spec": spec})
        return msgspec.json.decode(await self._senders[path].request("POST", path, body), type=shape)

    def _say_failure(self, kind: str, error: Exception, effect: str) -> None:
        if isinstance(error, UnicodeEncodeError):  # of what the client says, which nobody was asked about
            return
        if kind not in self._failing:
            log.warning("secure port: %s failed, %s: %s", kind, effect, error)
        self._failing.add(kind)


_FAILURES: Final = (ApiError, ConnectionProblemError, *UNREADABLE)
