"""The HTTP library is imported without certificate authorities, and trusts whom it would have."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from tests.controlplane.certificates import Authority
from tests.kube.test_bad_certificates import served

IMPORTED = """
import ssl
from policysched.http_library import aiohttp
from aiohttp import connector
contexts = connector._SSL_CONTEXT_VERIFIED, connector._SSL_CONTEXT_UNVERIFIED
assert "set_default_verify_paths" not in vars(ssl.SSLContext)
assert all("wrap_bio" in vars(one) for one in contexts)
assert all(super(ssl.SSLContext, one).cert_store_stats()["x509"] == 0 for one in contexts)
made = ssl.create_default_context()
assert made.cert_store_stats() == contexts[0].cert_store_stats() == contexts[1].cert_store_stats()
assert not any("wrap_bio" in vars(one) for one in contexts)
"""
ASKED = """
import asyncio, sys
from policysched.http_library import aiohttp

async def ask():
    async with aiohttp.ClientSession() as session:
        try:
            async with session.get(sys.argv[1]) as answer:
                print(answer.status)
        except aiohttp.ClientConnectorCertificateError:
            print("not trusted")

asyncio.run(ask())
"""


def test_authorities_are_read_before_they_are_asked_for_and_not_with_the_import() -> None:
    subprocess.run([sys.executable, "-c", IMPORTED], check=True)


async def asked(url: str, authority: Authority) -> str:
    """Ask a server in a process for which an authority is the system's."""
    variables = os.environ | {"SSL_CERT_FILE": str(authority.certificate)}
    line = sys.executable, "-c", ASKED, url
    process = await asyncio.create_subprocess_exec(*line, env=variables, stdout=asyncio.subprocess.PIPE)
    told, _ = await process.communicate()
    return told.decode().strip()


async def test_who_is_trusted_is_what_the_system_says(tmp_path: Path) -> None:
    made = []
    for name in ("ours", "other"):
        (tmp_path / name).mkdir()
        made.append(Authority(tmp_path / name))
    async with served(made[0]) as url:
        assert await asked(url, made[0]) == "200"
        assert await asked(url, made[1]) == "not trusted"
