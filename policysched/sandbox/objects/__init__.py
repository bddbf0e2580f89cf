"""Objects without a store: kinds and their schemas, defaults, validation, patches, selectors.

In come decoded JSON objects, and for a built-in kind its fields from `fields/*.txt`, for a custom one its definition.
Out come objects that are complete and valid, or a Status that says what is wrong. Nothing here is kept.
"""

from __future__ import annotations

from typing import Any

import msgspec

Json = dict[str, Any]
encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder().decode
