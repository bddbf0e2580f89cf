"""The HTTP library, aiohttp, imported without reading the system's certificate authorities.

It makes two TLS contexts as it is imported, for connections that are given none, and reads all authorities for each,
a tenth of what importing a scheduler takes, which is given the API server's authority and has no use for them. Here
these contexts read them before their first connection, so that whom they trust stays the same.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

__all__ = ["NEEDS_CLEANUP_CLOSED", "aiohttp"]
_READ: Final = "set_default_verify_paths"
_USES: Final = ("wrap_bio", "wrap_socket", "get_ca_certs", "cert_store_stats")
"""What of a context depends on its authorities."""


def _read_late(context: ssl.SSLContext, read: Callable[[ssl.SSLContext], None]) -> None:
    """Have a context read its authorities before anything is done that depends on them."""

    def after_reading(name: str) -> Callable[..., Any]:
        use = getattr(context, name)

        def first_use(*args: Any, **kwargs: Any) -> Any:
            read(context)  # by two threads at once perhaps: reading them again changes nothing
            for one in _USES:
                vars(context).pop(one, None)
            return use(*args, **kwargs)

        return first_use

    vars(context).update({name: after_reading(name) for name in _USES})


@contextmanager
def _without_authorities() -> Iterator[None]:
    """Let contexts that are made meanwhile read the system's authorities late."""
    read: Callable[[ssl.SSLContext], None] = getattr(ssl.SSLContext, _READ)
    setattr(ssl.SSLContext, _READ, lambda context: _read_late(context, read))
    try:
        yield
    finally:
        delattr(ssl.SSLContext, _READ)  # the class has it from its base


with _without_authorities():
    import aiohttp
    from aiohttp.connector import NEEDS_CLEANUP_CLOSED
