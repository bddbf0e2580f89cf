"""The webhook's port: what it takes, and a certificate that changes while it serves."""

from __future__ import annotations

import asyncio
import io
import json
import queue
import ssl
import threading
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest
from cryptography import x509

from policysched.app.webhook.authority import Material, renewed
from policysched.app.webhook.review import answer
from policysched.app.webhook.serving import AT_ONCE, LARGEST, KeptCertificate, Webhook
from tests.app.dry_runs import policy, requiring
from tests.app.serving.ports import Port, open_port

NOW = datetime.now(UTC)
REVIEW = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {"uid": "u", "operation": "CREATE", "object": policy(**requiring("node.ready"))},
}


async def asked(port: Port, method: str = "POST", path: str = "/validate", body: Any = b"") -> tuple[int, Any]:
    url = f"https://127.0.0.1:{port.port}{path}"
    async with aiohttp.ClientSession() as session, session.request(method, url, data=body, ssl=False) as answer:
        text = await answer.text()
        return answer.status, json.loads(text) if text.startswith("{") else text


async def test_port_answers_reviews_and_health_and_refuses_all_else() -> None:
    async with open_port(Webhook().answer) as port:
        code, said = await asked(port, body=json.dumps(REVIEW).encode())
        assert (code, said["response"]) == (200, {"uid": "u", "allowed": True})
        assert await asked(port, "GET", "/readyz") == (200, "ok")
        assert (await asked(port, "GET"))[0] == 405
        assert (await asked(port, "POST", "/other"))[0] == 404
        assert (await asked(port, body=b"{"))[0] == 400
        assert (await asked(port, body=io.BytesIO(b" " * (LARGEST + 1))))[0] == 413


async def test_failing_review_is_an_error_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: bytes) -> bytes:
        raise RuntimeError("broken")

    monkeypatch.setattr("policysched.app.webhook.serving.answer", fail)
    async with open_port(Webhook().answer) as port:
        assert (await asked(port, body=b"{}"))[0] == 500
        monkeypatch.undo()
        assert (await asked(port, body=json.dumps(REVIEW).encode()))[0] == 200


async def test_reviews_of_those_who_hang_up_are_checked_as_few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, release = queue.SimpleQueue[bytes](), threading.Event()

    def slow(raw: bytes) -> bytes:
        begun.put(raw)
        assert release.wait(60)
        return answer(raw)

    monkeypatch.setattr("policysched.app.webhook.serving.answer", slow)
    async with open_port(Webhook().answer) as port:
        for _ in range(AT_ONCE):
            gone = asyncio.create_task(asked(port, body=b"gone"))
            await asyncio.to_thread(begun.get, timeout=60)
            gone.cancel()
            await asyncio.gather(gone, return_exceptions=True)
        waiting = asyncio.create_task(asked(port, body=json.dumps(REVIEW).encode()))
        assert (await asked(port, "GET", "/readyz")) == (200, "ok")
        assert begun.empty()
        release.set()
        assert (await waiting)[0] == 200


def test_new_certificate_is_served_from_the_next_connection_on() -> None:
    first, second = (renewed(None, ("a",), NOW, trusted=False) for _ in range(2))
    kept = KeptCertificate(first)
    before = kept.context
    kept.use(first)
    kept.refresh()
    assert kept.context is before
    kept.use(second)
    assert kept.context is not before
    assert served_by(kept.context, second)


def served_by(context: ssl.SSLContext, material: Material) -> bool:
    """Shake hands in memory, trusting the material's authority alone."""
    client = ssl.create_default_context(cadata=material.bundle[0].decode())
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = client.wrap_bio(to_client, to_server, server_hostname="a")
    other = context.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for each in (one, other):
            try:
                each.do_handshake()
            except ssl.SSLWantReadError:
                continue
    der = one.getpeercert(binary_form=True) or b""
    return x509.load_der_x509_certificate(der) == x509.load_pem_x509_certificate(material.certificate)
