"""What Kubernetes' own package says of selectors and devices, beside what ours says.

A question is a text and the devices that it is asked about; an answer is why the text is refused, or for each device a
verdict or the error of its evaluation.
"""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

from policysched.cel import Device, InvalidDeviceSelectorError, Variables, compile_selector

from .build import binary

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from tests.controlplane.releases import Release

Answer = list[bool | str]


class KubernetesSelectors:
    """A context manager around one process that answers in the name of a release of Kubernetes."""

    def __init__(self, release: Release) -> None:
        self.release = release

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [binary("selectors", self.release)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate(timeout=10)

    def ask(self, text: str, devices: list[dict[str, Any]], *, is_new: bool = False) -> Answer | None:
        """Answer a question about a stored text or a new one; None where Kubernetes' package fails on it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"expression": text, "devices": devices, "new": is_new}) + "\n")
        self._process.stdin.flush()
        said = json.loads(self._process.stdout.readline())
        if "invalid" in said:
            return None
        if "refused" in said:
            return [said["refused"]]
        return [one.get("error", one["matches"]) for one in said["results"]]


def device_of(raw: dict[str, Any], *, cel_0_29: bool) -> Variables:
    """Make a device of what the API says of it; an attribute that is a list has no value for who does not read it."""
    capacity = {name: amount["value"] for name, amount in raw.get("capacity", {}).items()}
    allow = raw.get("allowMultipleAllocations", False)
    known = None if cel_0_29 else ("bool", "int", "string", "version")
    attributes = {
        name: {kind: value for kind, value in one.items() if known is None or kind in known}
        for name, one in raw.get("attributes", {}).items()
    }
    return Variables(Device(raw["driver"], attributes, capacity, allow))


def ours(text: str, devices: list[dict[str, Any]], *, cel_0_29: bool, is_new: bool = False) -> Answer:
    """Answer a question about a stored text or a new one with our package."""
    try:
        selector = compile_selector(text, cel_0_29=cel_0_29, is_new=is_new)
    except InvalidDeviceSelectorError as error:
        return [str(error)]
    return [selector.matches(device_of(one, cel_0_29=cel_0_29)) for one in devices]
