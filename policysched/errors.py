"""The exceptions of policysched, as a tree with exit codes.

    PolicyschedError            base class of all: exit code 1
    ├── UsageError              an invalid flag, file or object of the user: exit code 2
    ├── ConnectionProblemError  the API server is unreachable or rejects the credentials: exit code 2
    ├── KubeconfigError         both: an invalid kubeconfig or context: exit code 2
    ├── LeadershipLostError     the lease was lost, the process ends: exit code 1
    ├── OutOfMemoryError        the memory does not suffice for the cluster, the process ends: exit code 1
    └── NotConnectedError       a plugin called a handle that is not available, such as the queue in a dry-run

Rejections and diagnostics are values, not exceptions. Every package can import this module.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = [
    "ConnectionProblemError",
    "KubeconfigError",
    "LeadershipLostError",
    "NotConnectedError",
    "OutOfMemoryError",
    "PolicyschedError",
    "SeveralProblemsError",
    "UsageError",
]


class PolicyschedError(Exception):
    """An error with a one-line message for the user."""


class UsageError(PolicyschedError):
    """A file, flag or object of the user is invalid."""


class SeveralProblemsError(UsageError):
    """Several files, flags or objects of the user are invalid.

    Args:
        problems: One line for each.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


class ConnectionProblemError(PolicyschedError):
    """The API server is unreachable or rejects the credentials."""


class KubeconfigError(UsageError, ConnectionProblemError):
    """The kubeconfig or its context is invalid."""


class NoKubeconfigError(KubeconfigError):
    """No kubeconfig file is at the configured or default path."""


class LeadershipLostError(PolicyschedError):
    """The lease was not renewed in time or another process holds it; this process must stop."""


class OutOfMemoryError(PolicyschedError):
    """No memory is left to store an object; the process ends, because decisions without the object are wrong."""


class NotConnectedError(PolicyschedError):
    """A plugin used its handle without a running scheduler."""
