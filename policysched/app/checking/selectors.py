"""Checks of CEL selectors in device classes and claims, with the API server's messages and positions.

This module knows the paths of selectors in these objects, and calls `policysched.cel` for their texts.

Source: k8s.io/api/resource v1, v1beta1 and v1beta2; pkg/apis/resource/validation of kubernetes v1.36.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from policysched.app.checking.findings import Finding, reach
from policysched.language import Diagnostic
from policysched.model.policy import PolicyKey
from policysched.reading.documents import Document

CODE: Final = "CEL"
"""Text in place of an error code in findings about CEL selectors; the messages are those of cel-go."""
_GROUP: Final = "resource.k8s.io/"
_LONGEST: Final = 10 * 1024
_EXPRESSION: Final = ("selectors", "*", "cel", "expression")
_REQUEST: Final = ("devices", "requests", "*")
_REQUESTS: Final = tuple((*_REQUEST, *inside, *_EXPRESSION) for inside in (("exactly",), (), ("firstAvailable", "*")))
_SELECTORS: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    "DeviceClass": (_EXPRESSION,),
    "ResourceClaim": _REQUESTS,
    "ResourceClaimTemplate": tuple(("spec", *steps) for steps in _REQUESTS),
}
"""Paths of the CEL selectors below `spec` of a device class, claim or claim template, by kind."""
KINDS: Final = tuple(_SELECTORS)


def has_selectors(raw: Mapping[str, Any]) -> bool:
    """Return whether an object has a kind with device selectors."""
    return raw.get("kind") in _SELECTORS and str(raw.get("apiVersion")).startswith(_GROUP)


def selector_findings(document: Document) -> Iterator[Finding]:
    """Yield the findings about the selectors of an object."""
    raw = document.object
    metadata = raw.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else ""
    key = PolicyKey(f"{raw['kind']}/{name or ''}")
    for steps in _SELECTORS[str(raw["kind"])]:
        for field, text in reach(raw.get("spec"), steps, "spec"):
            if isinstance(text, str):
                yield from (Finding(key, one, document) for one in _diagnostics(field, text))


def _diagnostics(field: str, text: str) -> Iterator[Diagnostic]:
    from policysched.cel import InvalidDeviceSelectorError, compile_selector  # noqa: PLC0415 - CEL takes 30 of 280 ms

    if len(text.encode(errors="surrogatepass")) > _LONGEST:
        message = f"must be no more than {_LONGEST} bytes"
        yield Diagnostic("error", CODE, message, 1, 1, 2, None, field)
        return
    try:
        compile_selector(text, is_new=True)
    except InvalidDeviceSelectorError as error:
        for issue in error.issues:
            line, column = max(issue.line, 1), max(issue.column, 1)
            yield Diagnostic("error", CODE, issue.message, line, column, column + 1, None, field)
        if not error.issues:
            end = len(text.split("\n", 1)[0]) + 1
            yield Diagnostic("error", CODE, str(error), 1, 1, max(end, 2), None, field)
