"""The Kubernetes releases that the tests build programs from, side by side.

A Go module of the tests has one go.mod for each release: `go.mod` for the oldest one, `go137.mod` and so on for the
others (`tests.controlplane.modules` writes them). Go files that only a release and its successors compile have the
release's build tag, such as `k137`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

VARIABLE: Final = "POLICYSCHED_KUBE"
"""The environment variable that chooses the release, as a minor: 1.37."""
DEFAULT: Final = "1.37"


class ReleaseError(ValueError):
    """No such release is known, or a module cannot be built for it."""


@dataclass(frozen=True)
class Release:
    """One release of Kubernetes."""

    version: str
    """Kubernetes' version, such as v1.37.2."""
    go: tuple[int, int]
    """The oldest Go that compiles it."""
    is_preview: bool = False
    """Whether only its oracle is built: the module proxy lacks modules of its API server."""
    pins: tuple[tuple[str, str], ...] = ()
    """Dependencies in another version than Kubernetes', which the module proxy lacks: module and version."""

    @property
    def minor(self) -> str:
        """The minor, such as 1.37."""
        return ".".join(self.version.removeprefix("v").split(".")[:2])

    @property
    def number(self) -> str:
        """The minor without its dot, as in the names of go.mod files and build tags: 137."""
        return self.minor.replace(".", "")

    @property
    def is_oldest(self) -> bool:
        """Whether it is the first release of the table: its go.mod has no number, and it has no build tag."""
        return self.minor == next(iter(RELEASES))

    @property
    def tags(self) -> tuple[str, ...]:
        """The build tags: those of all known releases behind the oldest one, up to its own minor."""
        newer = list(RELEASES.values())[1:]
        return tuple(f"k{one.number}" for one in newer if _parts(one.minor) <= _parts(self.minor))

    def mod_file(self, module: Path) -> Path:
        """Return the go.mod of a module for this release; modules without Kubernetes have only one.

        Args:
            module: The module's folder.

        Raises:
            ReleaseError: The module has a go.mod for other releases, but none for this one.
        """
        own = module / f"go{self.number}.mod"
        if own.exists():
            return own
        if not self.is_oldest and any(module.glob("go1*.mod")):
            raise ReleaseError(f"{module.name} cannot be built for {self.version}: it has no {own.name}")
        return module / "go.mod"


RELEASES: Final = {
    release.minor: release
    for release in (
        Release("v1.36.5", (1, 26)),
        Release("v1.37.2", (1, 26)),
        Release("v1.38.0-beta.0", (1, 27), True, (("sigs.k8s.io/structured-merge-diff/v7", "v7.0.0"),)),
    )
}
"""By minor, the oldest first."""
COMPARED: Final = ("1.36", "1.37")
"""The minors that `make test` compares decisions with: they share the cases of a comparison."""


def _parts(minor: str) -> tuple[int, ...]:
    return tuple(map(int, minor.split(".")))


def compared() -> tuple[str, ...]:
    """Return the minors to compare decisions with: the one that the environment chooses, else all of COMPARED.

    Raises:
        ReleaseError: No release of that minor is known.
    """
    return (chosen().minor,) if os.environ.get(VARIABLE) else COMPARED


def chosen() -> Release:
    """Return the release that the environment chooses, else the default one.

    Raises:
        ReleaseError: No release of that minor is known.
    """
    minor = os.environ.get(VARIABLE) or DEFAULT
    if minor not in RELEASES:
        raise ReleaseError(f"{VARIABLE}={minor}: known minors are {', '.join(RELEASES)}")
    return RELEASES[minor]
