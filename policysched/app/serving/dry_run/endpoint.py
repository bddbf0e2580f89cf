"""POST /dry-run (`DryRunEndpoint`): decision records of pods on the live state, for autoscalers and pipelines.

Bodies are parsed in a separate thread, one at a time, because 1 MiB of YAML takes seconds and must not block health
checks. Answers are encoded in the port's thread. The scheduler's loop decides about one pod at a time. Few requests may
wait for it, so many clients cost the scheduler no more than one persistent client.

Source: kubernetes/autoscaler issue 6407.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from aiohttp import web

from policysched.app.daemon_threads import Threads
from policysched.app.serving.answers import JSON, text_answer
from policysched.app.serving.dry_run.interface import Decide, DryRunPod, LiveDecision
from policysched.app.serving.dry_run.pod_requests import LARGEST_BODY, DryRunRequest, Options, read_options, read_pods
from policysched.app.serving.dry_run.record_answers import encoded, shortened
from policysched.app.serving.refused import RefusedError
from policysched.app.serving.request_bodies import AGAIN, Bodies
from policysched.model.release import Release
from policysched.visible import visible

MOST_REQUESTS: Final = 8
"""Largest number of concurrent requests: one is decided, others are parsed or wait. Further requests are rejected."""
DECIDED_WITHIN: Final = 20.0
"""Longest duration of waiting and deciding for one request. Units: seconds."""
LARGEST_ANSWER: Final = 32 << 20
"""Largest answer; more is an error. Units: bytes."""
ROLE: Final = "Policysched-Role"
"""Header that states whether the answering process is the leader or a standby."""


class DryRunEndpoint:
    """Answers dry-run requests.

    Args:
        decide: Decides about a pod in the scheduler's loop.
        release: Returns the Kubernetes release that decisions follow.
        loop: The scheduler's event loop.
    """

    def __init__(self, decide: Decide, release: Callable[[], Release], loop: asyncio.AbstractEventLoop) -> None:
        self._decide, self._release, self._loop = decide, release, loop
        self._bodies = Bodies("dry-runs", MOST_REQUESTS, LARGEST_BODY)
        self._turn = asyncio.Lock()
        self._reader = Threads(1)

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """Answer an authorized request.

        Raises:
            RefusedError: 400 if malformed, 413 if too large, 422 if it cannot be decided, 429 with too many requests,
                503 if not ready.
        """
        options = read_options(request.query)
        async with self._bodies.read(request) as body:
            if not body:
                raise RefusedError(HTTPStatus.BAD_REQUEST, "the body is empty; send a Pod as JSON or YAML")
            dry_run = await self._reader.call(read_pods, body, options, self._release())
            try:
                async with asyncio.timeout(DECIDED_WITHIN):
                    return await self._decided(dry_run, options)
            except TimeoutError:
                text = "the scheduler is too busy for a dry-run; retry later"
                raise RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, text, AGAIN) from None

    async def _decided(self, dry_run: DryRunRequest, options: Options) -> web.Response:
        texts: list[bytes] = []
        leads = True
        for pod in dry_run.pods:
            async with self._turn:
                made = await self._in_loop(pod)
            leads = leads and made.leads
            texts.append(encoded(shortened(made.record, options.nodes, options.limit)))
            if sum(map(len, texts)) > LARGEST_ANSWER:
                why = f"the answer is larger than {LARGEST_ANSWER >> 20} MiB; set limit= or node=, or send fewer pods"
                raise RefusedError(HTTPStatus.UNPROCESSABLE_ENTITY, why)
        body = b'{"items":[' + b",".join(texts) + b"]}" if dry_run.is_list else texts[0]
        answer = text_answer(body.decode() + "\n", media=JSON)
        answer.headers[ROLE] = "leader" if leads else "standby"
        for note in dry_run.notes:
            text = visible(note).encode("ascii", "replace").decode().replace("\\", "\\\\").replace('"', '\\"')
            answer.headers.add("Warning", f'299 - "{text}"')
        return answer

    async def _in_loop(self, pod: DryRunPod) -> LiveDecision:
        async def decided() -> LiveDecision:
            return await self._decide(pod)

        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(decided(), self._loop))
