"""`HttpExtender`: the HTTP client of one extender, which sends a JSON POST request per verb and pod.

Every failure of a server (slow, broken, large or invalid answers) raises an ExtenderError within the configured
timeout.

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

ANSWER_ALLOWANCE: Final = 4 << 20
"""Allowed size of an answer beyond twice the request's size; a larger answer is an error. Units: bytes.

Answers repeat nodes with reasons.
"""
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_READ_CHUNK: Final = 1 << 16
SEND_CHUNK: Final = 1 << 20
"""Part of a request that is sent before yielding to the event loop. Units: bytes.

Requests with whole nodes can have 100 MB.
"""
BINDS_AT_ONCE: Final = 256
"""Maximum number of concurrent bind requests to one extender; further bind requests wait.

Requests of scheduling cycles do not wait for bind requests.
"""
_SCALE: Final = MAX_NODE_SCORE // wire.MAX_PRIORITY


class ObjectTexts(Protocol):
    """Interface of a store with the JSON of pods and nodes as the API server sent it; the methods never wait."""

    def pod(self, pod: Pod) -> bytes | None:
        """Return the JSON of a pod; None if the pod was deleted."""

    def node(self, name: str) -> bytes | None:
        """Return the JSON of a node; None if the node was deleted."""


@dataclass(frozen=True, slots=True)
class NeededObjects:
    """Flags for pending pods, victims and nodes: whether an extender gets the whole objects instead of names."""

    pods: bool
    """Whether the extender gets the pending pod as a whole object."""
    victims: bool
    nodes: bool


class HttpExtender:
    """The HTTP client of one extender: sends requests for its verbs and decodes the answers."""

    def __init__(
        self,
        settings: ExtenderSettings,
        texts: ObjectTexts,
        environment: Mapping[str, str] = NOTHING,
        *,
        may_bind: Callable[[], bool] = lambda: True,
    ) -> None:
        """Check the settings of the extender; no request is sent.

        Args:
            settings: Address and verbs of the extender.
            texts: Source of the objects to send.
            environment: Environment variables, for the proxy.
            may_bind: Whether a bind request may be sent; called when the connection is open, just before sending.

        Raises:
            UsageError: the URL or a certificate is invalid.
        """
        self._settings, self._texts, self._may_bind = settings, texts, may_bind
        url = _checked(settings)
        self._url = settings.url_prefix.rstrip("/") + "/"
        self._tls = make_tls(settings) if url.scheme == "https" else None
        self._proxy = _proxy(url, environment)
        self._timeout = aiohttp.ClientTimeout(total=settings.timeout)
        self._session: aiohttp.ClientSession | None = None
        self._in_flight, self._retired = 0, False
        self._binds = asyncio.Semaphore(BINDS_AT_ONCE)
        self.name = shown_url(settings.url_prefix)
        self.ignorable = settings.ignorable
        self.filters, self.prioritizes = bool(settings.filter_verb), bool(settings.prioritize_verb)
        self.preempts, self.binds = bool(settings.preempt_verb), bool(settings.bind_verb)

    @property
    def needed_objects(self) -> NeededObjects:
        """The kinds of objects that the extender gets as whole objects instead of names."""
        whole, evaluates = not self._settings.node_cache_capable, self.filters or self.prioritizes
        return NeededObjects(
            pods=evaluates or self.preempts, victims=whole and self.preempts, nodes=whole and evaluates
        )

    def is_interested(self, pod: Pod) -> bool:
        """Return whether the extender manages all pods, or a container of the pod requests a managed resource."""
        managed = self._settings.managed_resources
        return not managed or any(_names(one, managed) for one in (*pod.spec.containers, *pod.spec.init_containers))

    async def filter(self, pod: Pod, nodes: Sequence[str]) -> FilterAnswer:
        """Send a filter request for a pod and nodes; return the nodes that the extender accepts for the pod."""
        body = await self._post(self._settings.filter_verb, self._arguments(pod, nodes))
        return wire.read_filter(body, nodes, by_name=self._settings.node_cache_capable, extender=self.name)

    async def prioritize(self, pod: Pod, nodes: Sequence[str]) -> dict[str, int]:
        """Send a prioritize request; return the scores, scaled from 0–10 to 0–100 and multiplied by the weight."""
        body = await self._post(self._settings.prioritize_verb, self._arguments(pod, nodes))
        factor = self._settings.weight * _SCALE
        return {node: score * factor for node, score in wire.read_scores(body, len(nodes)).items()}

    async def preempt(self, pod: Pod, candidates: Mapping[str, NodeVictims]) -> dict[str, NamedVictims]:
        """Send a preempt request; return the candidate nodes that the extender keeps, with the victims on each."""
        body = await self._post(self._settings.preempt_verb, self._candidates(pod, candidates))
        return wire.read_victims(body, len(candidates), sum(len(one.pods) for one in candidates.values()))

    async def bind(self, pod: Pod, node: str) -> None:
        """Send a bind request; the extender binds the pod."""
        metadata = pod.metadata
        sent = wire.binding_arguments(metadata.name, metadata.namespace, metadata.uid, node)
        async with self._binds:  # the timeout starts when the request is sent
            wire.read_binding(await self._post(self._settings.bind_verb, sent, before=self._check_may_bind))

    def _check_may_bind(self) -> None:
        if not self._may_bind():
            raise ExtenderError("the lease has expired and another process may lead; the pod is not bound")

    async def retire(self) -> None:
        """Close the connections as soon as no request is in flight."""
        self._retired = True
        await self._close_idle()

    async def _close_idle(self) -> None:
        session = self._session
        if self._retired and not self._in_flight and session is not None:
            self._session = None
            await session.close()

    def _arguments(self, pod: Pod, nodes: Sequence[str]) -> bytes:
        """Encode the body of a filter or prioritize request, without nodes that were deleted meanwhile."""
        text = self._text(pod)
        if self._settings.node_cache_capable:
            return wire.named_arguments(text, nodes)
        return wire.filter_arguments(text, [one for name in nodes if (one := self._texts.node(name)) is not None])

    def _candidates(self, pod: Pod, candidates: Mapping[str, NodeVictims]) -> bytes:
        """Encode the body of a preempt request, without victims that were deleted meanwhile."""
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
        """Send a request and return the body of the answer.

        Args:
            verb: Verb of the extender's URL.
            body: JSON of the request.
            before: Called when the connection is open, just before sending; if it raises, nothing is sent.

        Raises:
            ExtenderError: there is no answer, or its status is not 200.
        """
        url, shown = self._url + verb, shown_url(self._url) + verb
        headers = {
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "Accept-Encoding": "identity",
        }
        self._in_flight += 1
        try:
            async with self._opened().post(
                URL(url, encoded=True),
                data=_chunks(body, before),
                headers=headers,
                timeout=self._timeout,
                allow_redirects=False,
                proxy=self._proxy,
                server_hostname=self._settings.tls.server_name or None,
            ) as response:
                if response.status != HTTPStatus.OK:
                    raise ExtenderError(f"failed {verb} with extender at URL {shown}, code {response.status}")
                return await _read(response, shown, 2 * len(body) + ANSWER_ALLOWANCE)
        except LOST as error:
            if isinstance(error.__cause__, ExtenderError):  # aiohttp wraps the exception that `before` raised
                raise error.__cause__ from None
            raise ExtenderError(f"failed {verb} with extender: {describe(error, shown)[1]}") from error
        finally:
            self._in_flight -= 1
            await self._close_idle()

    def _opened(self) -> aiohttp.ClientSession:
        """Return the HTTP session; it is created at the first use, as it belongs to the running event loop."""
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
    """Validate the extender's URL and return it in the form to which verbs are appended.

    Raises:
        UsageError: the prefix is not an http or https URL.
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


async def _chunks(body: bytes, before: Callable[[], None]) -> AsyncIterator[bytes]:
    """Yield the body of a request in chunks; between two chunks, the event loop runs other tasks."""
    before()
    for start in range(0, len(body), SEND_CHUNK):
        yield body[start : start + SEND_CHUNK]
        await asyncio.sleep(0)


async def _read(response: aiohttp.ClientResponse, url: str, most: int) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_chunked(_READ_CHUNK):
        body += chunk
        if len(body) > most:
            response.close()
            raise ExtenderError(f"the answer of {url} has more than {most >> 20} MiB")
    return bytes(body)
