"""`HttpExtender`, an extender that is asked by HTTP POST with JSON, one request for each verb and pod.

Whatever a server does, slow, broken, large or nonsense, comes out as an ExtenderError within the configured time.

Source: pkg/scheduler/extender.go, v1.36.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from types import MappingProxyType
from typing import Final, Protocol

import aiohttp
from aiohttp.connector import NEEDS_CLEANUP_CLOSED
from yarl import URL

from policysched.connection_errors import LOST, describe
from policysched.errors import ConnectionProblemError, UsageError
from policysched.extenders import wire
from policysched.extenders.settings import ExtenderSettings, make_tls, shown_url
from policysched.framework.extender import ExtenderError, FilterAnswer, NamedVictims, NodeVictims
from policysched.framework.plugin import MAX_NODE_SCORE
from policysched.model.objects import Container, Pod
from policysched.proxies import proxy_for

BEYOND: Final = 4 << 20
"""How much more an answer may have than twice the question: it repeats nodes, with a reason each. Units: bytes."""
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_PIECE: Final = 1 << 16
SLICE: Final = 1 << 20
"""How much of a question is sent before the loop gets its turn: whole nodes may be 100 MB. Units: bytes."""
BINDS_AT_ONCE: Final = 256
"""How many pods it is asked to bind at once; what cycles ask it waits for none of these."""
_SCALE: Final = MAX_NODE_SCORE // wire.MAX_PRIORITY


class ObjectTexts(Protocol):
    """Objects as the API server wrote them; nobody waits for them."""

    def pod(self, pod: Pod) -> bytes | None:
        """Return a pod as JSON, None where it is gone."""

    def node(self, name: str) -> bytes | None:
        """Return a node as JSON, None where it is gone."""


@dataclass(frozen=True, slots=True)
class ToldOf:
    """Which objects an extender is sent whole."""

    pods: bool
    """The pods that are decided about."""
    victims: bool
    nodes: bool


class HttpExtender:
    """One extender, and one HTTP session with it."""

    def __init__(
        self,
        settings: ExtenderSettings,
        texts: ObjectTexts,
        environment: Mapping[str, str] = NOTHING,
        *,
        may_bind: Callable[[], bool] = lambda: True,
    ) -> None:
        """Look at the settings; no request is made yet.

        Args:
            settings: Where it is and what it does.
            texts: What it is sent.
            environment: Says which proxy there is.
            may_bind: Whether it may be asked to bind; asked last before it is, with a connection at hand.

        Raises:
            UsageError: the URL or a certificate cannot be used.
        """
        self._settings, self._texts, self._may_bind = settings, texts, may_bind
        url = _checked(settings)
        self._url = settings.url_prefix.rstrip("/") + "/"
        self._tls = make_tls(settings) if url.scheme == "https" else None
        self._proxy = _proxy(url, environment)
        self._timeout = aiohttp.ClientTimeout(total=settings.timeout)
        self._session: aiohttp.ClientSession | None = None
        self._under_way, self._retired = 0, False
        self._binds = asyncio.Semaphore(BINDS_AT_ONCE)
        self.name = shown_url(settings.url_prefix)
        self.ignorable = settings.ignorable
        self.filters, self.prioritizes = bool(settings.filter_verb), bool(settings.prioritize_verb)
        self.preempts, self.binds = bool(settings.preempt_verb), bool(settings.bind_verb)

    @property
    def told_of(self) -> ToldOf:
        """Which objects it is sent whole."""
        whole, asked = not self._settings.node_cache_capable, self.filters or self.prioritizes
        return ToldOf(pods=asked or self.preempts, victims=whole and self.preempts, nodes=whole and asked)

    def is_interested(self, pod: Pod) -> bool:
        """Return whether a container of the pod names a resource that the extender manages, or it manages all pods."""
        managed = self._settings.managed_resources
        return not managed or any(_names(one, managed) for one in (*pod.spec.containers, *pod.spec.init_containers))

    async def filter(self, pod: Pod, nodes: Sequence[str]) -> FilterAnswer:
        """Ask which of some nodes the pod may go to."""
        body = await self._post(self._settings.filter_verb, self._arguments(pod, nodes))
        return wire.read_filter(body, nodes, by_name=self._settings.node_cache_capable, extender=self.name)

    async def prioritize(self, pod: Pod, nodes: Sequence[str]) -> dict[str, int]:
        """Ask for scores; they count by the extender's weight, ten for ten of a plugin's hundred."""
        body = await self._post(self._settings.prioritize_verb, self._arguments(pod, nodes))
        factor = self._settings.weight * _SCALE
        return {node: score * factor for node, score in wire.read_scores(body, len(nodes)).items()}

    async def preempt(self, pod: Pod, candidates: Mapping[str, NodeVictims]) -> dict[str, NamedVictims]:
        """Ask which candidates are left, and which pods have to leave them."""
        body = await self._post(self._settings.preempt_verb, self._candidates(pod, candidates))
        return wire.read_victims(body, len(candidates), sum(len(one.pods) for one in candidates.values()))

    async def bind(self, pod: Pod, node: str) -> None:
        """Ask the extender to bind a pod."""
        metadata = pod.metadata
        sent = wire.binding_arguments(metadata.name, metadata.namespace, metadata.uid, node)
        async with self._binds:  # the time that is allowed begins when it is asked
            wire.read_binding(await self._post(self._settings.bind_verb, sent, before=self._check_may_bind))

    def _check_may_bind(self) -> None:
        if not self._may_bind():
            raise ExtenderError("the lease has expired and another process may lead; the pod is not bound")

    async def retire(self) -> None:
        """Close its connections as soon as no request is under way, and those of later ones after each."""
        self._retired = True
        await self._close_idle()

    async def _close_idle(self) -> None:
        session = self._session
        if self._retired and not self._under_way and session is not None:
            self._session = None
            await session.close()

    def _arguments(self, pod: Pod, nodes: Sequence[str]) -> bytes:
        """Write a question about nodes; what is gone meanwhile is none of them any more."""
        text = self._text(pod)
        if self._settings.node_cache_capable:
            return wire.named_arguments(text, nodes)
        return wire.filter_arguments(text, [one for name in nodes if (one := self._texts.node(name)) is not None])

    def _candidates(self, pod: Pod, candidates: Mapping[str, NodeVictims]) -> bytes:
        """Write the question about candidates; a victim that is gone is none any more."""
        text = self._text(pod)
        if self._settings.node_cache_capable:
            return wire.named_preemption_arguments(text, {node: one.named() for node, one in candidates.items()})
        whole = {
            node: ([one for victim in victims.pods if (one := self._texts.pod(victim)) is not None], victims)
            for node, victims in candidates.items()
        }
        left = {node: (texts, victims.pdb_violations) for node, (texts, victims) in whole.items() if texts}
        return wire.preemption_arguments(text, left)

    def _text(self, pod: Pod) -> bytes:
        text = self._texts.pod(pod)
        if text is None:
            raise ExtenderError(f'pod "{pod.key}" is deleted')
        return text

    async def _post(self, verb: str, body: bytes, *, before: Callable[[], None] = lambda: None) -> bytes:
        """Ask.

        Args:
            verb: What is asked.
            body: The question.
            before: What is done last before it is sent, once there is a connection; if it raises, it is not sent.

        Raises:
            ExtenderError: there is no answer, or none with status 200.
        """
        url, shown = self._url + verb, shown_url(self._url) + verb
        headers = {
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "Accept-Encoding": "identity",
        }
        self._under_way += 1
        try:
            async with self._opened().post(
                URL(url, encoded=True),
                data=_slices(body, before),
                headers=headers,
                timeout=self._timeout,
                allow_redirects=False,
                proxy=self._proxy,
                server_hostname=self._settings.tls.server_name or None,
            ) as response:
                if response.status != HTTPStatus.OK:
                    raise ExtenderError(f"failed {verb} with extender at URL {shown}, code {response.status}")
                return await _read(response, shown, 2 * len(body) + BEYOND)
        except LOST as error:
            if isinstance(error.__cause__, ExtenderError):  # the library's own error lies around what `before` raised
                raise error.__cause__ from None
            raise ExtenderError(f"failed {verb} with extender: {describe(error, shown)[1]}") from error
        finally:
            self._under_way -= 1
            await self._close_idle()

    def _opened(self) -> aiohttp.ClientSession:
        """Return the session; made at first use, because it belongs to the running loop."""
        if self._session is None:
            connector = aiohttp.TCPConnector(
                ssl=self._tls or True, limit=0, keepalive_timeout=60, enable_cleanup_closed=NEEDS_CLEANUP_CLOSED
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                headers={"User-Agent": "policysched", "Accept": "application/json"},
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session


def _checked(settings: ExtenderSettings) -> URL:
    """Return the URL in front of verbs.

    Raises:
        UsageError: it is none that can be asked.
    """
    prefix = shown_url(settings.url_prefix)
    try:
        url = URL(settings.url_prefix)
    except ValueError as error:
        raise UsageError(f'extender "{prefix}": urlPrefix is not a URL: {error}') from error
    if url.scheme not in ("http", "https") or not url.host:
        raise UsageError(f'extender "{prefix}": urlPrefix is not an http or https URL')
    return url


def _proxy(url: URL, environment: Mapping[str, str]) -> str | None:
    try:
        return proxy_for(url, environment)
    except ConnectionProblemError as error:
        raise UsageError(f'extender "{shown_url(str(url))}": {error}') from error


def _names(container: Container, managed: frozenset[str]) -> bool:
    given = container.resources
    return not managed.isdisjoint(given.requests) or not managed.isdisjoint(given.limits)


async def _slices(body: bytes, before: Callable[[], None]) -> AsyncIterator[bytes]:
    """Give a question slice by slice; the loop has its turn between them, whether or not the connection is slower."""
    before()
    for start in range(0, len(body), SLICE):
        yield body[start : start + SLICE]
        await asyncio.sleep(0)


async def _read(response: aiohttp.ClientResponse, url: str, most: int) -> bytes:
    body = bytearray()
    async for piece in response.content.iter_chunked(_PIECE):
        body += piece
        if len(body) > most:
            response.close()
            raise ExtenderError(f"the answer of {url} has more than {most >> 20} MiB")
    return bytes(body)
