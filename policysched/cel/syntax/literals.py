"""Values of CEL literals: 64-bit numbers, strings and bytes with their escapes.

Source: cel-go v0.26 parser/unescape.go, parser/parser.go (visitInt and its like).
"""

from __future__ import annotations

import re
from typing import Final

from policysched.cel.values.scalars import INT_MAX, INT_MIN, UINT_MAX, Uint, float_of

_PLAIN: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ESCAPE: Final = re.compile(r"\\(?:([xX])(..)|([uU])((?<=u)....|(?<=U)........)|([0-3][0-7][0-7])|([\s\S]))")
_CANNOT: Final = "unable to unescape string"
_NO_CHARACTER: Final = "invalid unicode code point"


class LiteralError(ValueError):
    """Raised if a literal is invalid; has the message of cel-go."""


def int_of(text: str, sign: str = "") -> int:
    """Return the value of an int literal.

    Raises:
        LiteralError: the value needs more than 64 bits.
    """
    value = int(sign + text, 16 if text.startswith("0x") else 10) if len(text) < 400 else INT_MAX + 1
    if not INT_MIN <= value <= INT_MAX:
        raise LiteralError("invalid int literal")
    return value


def uint_of(text: str) -> Uint:
    """Return the value of a uint literal.

    Raises:
        LiteralError: the value needs more than 64 bits.
    """
    digits = text[:-1]
    value = int(digits, 16 if digits.startswith("0x") else 10) if len(text) < 400 else UINT_MAX + 1
    if value > UINT_MAX:
        raise LiteralError("invalid uint literal")
    return Uint(value)


def double_of(text: str) -> float:
    """Return the value of a double literal.

    Raises:
        LiteralError: the value is too large.
    """
    value = float_of(text)
    if value is None:
        raise LiteralError("invalid double literal")
    return value


def string_of(text: str) -> str:
    """Return the value of a string literal.

    Raises:
        LiteralError: an escape is invalid.
    """
    raw, body = _body(text)
    return body if raw else _ESCAPE.sub(_character, body)


def bytes_of(text: str) -> bytes:
    """Return the value of a bytes literal.

    Raises:
        LiteralError: an escape is not allowed in bytes.
    """
    raw, body = _body(text[1:])
    if raw:
        return body.encode(errors="surrogatepass")
    parts, end = [], 0
    for match in _ESCAPE.finditer(body):
        parts.append(body[end : match.start()].encode(errors="surrogatepass"))
        parts.append(_byte(match))
        end = match.end()
    return b"".join([*parts, body[end:].encode(errors="surrogatepass")])


def _body(text: str) -> tuple[bool, str]:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    raw = text[0] in "rR"
    text = text[raw:]
    marks = 3 if len(text) >= 6 and text[:3] in {"'''", '"""'} else 1
    return raw, text[marks:-marks]


def _character(match: re.Match[str]) -> str:
    if match[6]:
        return _PLAIN.get(match[6], match[6])
    number = int(match[5], 8) if match[5] else int(match[2] or match[4], 16)
    if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
        raise LiteralError(_NO_CHARACTER)
    return chr(number)


def _byte(match: re.Match[str]) -> bytes:
    if match[3]:
        raise LiteralError(_CANNOT)
    if match[6]:
        return _PLAIN.get(match[6], match[6]).encode(errors="surrogatepass")
    return bytes([int(match[5], 8) if match[5] else int(match[2], 16)])
