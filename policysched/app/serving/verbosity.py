"""PUT /debug/flags/v: changes the verbosity of logs.

Source: k8s.io/apiserver/pkg/server/routes/flags.go.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from aiohttp import web

from policysched.app.serving.answers import text_answer
from policysched.app.serving.refused import RefusedError

log = logging.getLogger(__name__)
LONGEST: Final = 64
"""Largest body of a request that changes the verbosity. Units: bytes."""


class VerbosityEndpoint:
    """Answers requests that change the verbosity of logs.

    Args:
        use: Changes the verbosity.
    """

    def __init__(self, use: Callable[[int], None]) -> None:
        self._use = use

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """Change the verbosity for an authorized client.

        Raises:
            RefusedError: 400 if the body is not a verbosity.
        """
        sent = (await request.content.read(LONGEST)).decode("utf-8", "replace").strip()
        if not (sent.isascii() and sent.isdecimal()):
            raise RefusedError(HTTPStatus.BAD_REQUEST, f'"{sent}" is not a verbosity; send a number of 0 or more')
        self._use(int(sent))
        log.info("set the verbosity of the log to %s", sent)
        return text_answer(f"successfully set klog.logging.verbosity to {sent}")
