"""Choice of the release that decisions follow, from `--kube-version` or from the version of an API server."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

from policysched.errors import UsageError
from policysched.model.release import DEFAULT, RELEASES, Release, minor_of

T = TypeVar("T")
AUTO: Final = "auto"
"""The value of `--kube-version` that means the minor of the server, or without a server the default release."""
SUPPORTED_SKEW: Final = (0, 1)
"""Number of minors by which an API server may be newer than a kube-scheduler."""
KUBE_VERSIONS: Final = (AUTO, *RELEASES)
"""The possible values of `--kube-version`."""


def release_named(minor: str) -> Release:
    """Return the release of a minor, or the default release for `auto`.

    Args:
        minor: The value of `--kube-version`.

    Raises:
        UsageError: the minor is not known.
    """
    if minor == AUTO:
        return DEFAULT
    if minor not in RELEASES:
        raise UsageError(f'Kubernetes version "{minor}" is not one of {", ".join(KUBE_VERSIONS)}')
    return RELEASES[minor]


def first_accepted(kube_version: str, read: Callable[[Release], T]) -> T:
    """Return the result of `read` for the stated minor; if none is stated, for the first minor that `read` accepts.

    Before the server answers, its minor is not known. If no minor is accepted, the error is that of the default one.

    Args:
        kube_version: The value of `--kube-version`.
        read: Reads an input as the kube-scheduler of a release; raises UsageError if that kube-scheduler rejects it.

    Raises:
        UsageError: no release accepts the input.
    """
    release = release_named(kube_version)
    try:
        return read(release)
    except UsageError:
        for other in RELEASES.values() if kube_version == AUTO else ():
            with suppress(UsageError):
                return read(other)
        raise


def release_of_server(version: str) -> tuple[Release, str]:
    """Return the release for an API server, with a warning if the server's minor is not known.

    Args:
        version: The server's `gitVersion`.
    """
    minor = minor_of(version)
    if minor in RELEASES:
        return RELEASES[minor], ""
    if not minor:
        return DEFAULT, f"the API server reports no version; decisions follow Kubernetes {DEFAULT.minor}"
    nearest = min(RELEASES.values(), key=lambda one: abs(one.skew(version)))
    why = f"the API server has version {version}; decisions follow Kubernetes {nearest.minor}, the nearest known"
    return nearest, why


def skew_warning(release: Release, version: str) -> str:
    """Return a warning if the kube-scheduler of a release does not support an API server; empty if it does.

    Source: kubernetes.io/releases/version-skew-policy.

    Args:
        release: The release.
        version: The server's `gitVersion`.
    """
    if release.skew(version) in SUPPORTED_SKEW:
        return ""
    follow = f"decisions follow Kubernetes {release.minor}, which supports API servers of this minor and the next"
    return f"the API server has version {version}; {follow}"
