"""Kinds of the sandbox: schemas, defaults, validation, patches, selectors.

Input: decoded JSON. Output: complete and valid objects, or a Status with the errors. Fields of built-in kinds are in
`fields/*.txt`. Nothing is stored.
"""

from __future__ import annotations

from typing import Any

import msgspec

Json = dict[str, Any]
encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder().decode
