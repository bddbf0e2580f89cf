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
    """Error with a one-line message for the user; base of policysched's exceptions."""


class UsageError(PolicyschedError):
    """Error: a file, flag or object of the user is invalid."""


class SeveralProblemsError(UsageError):
    """Error: several files, flags or objects of the user are invalid.

    Args:
        problems: One line for each.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


class ConnectionProblemError(PolicyschedError):
    """Error: the API server is unreachable or rejects the credentials."""


class KubeconfigError(UsageError, ConnectionProblemError):
    """Error: the kubeconfig or its context is invalid."""


class NoKubeconfigError(KubeconfigError):
    """Error: no kubeconfig file exists at the configured or default path."""


class LeadershipLostError(PolicyschedError):
    """Error: the lease was not renewed in time, or another process holds the lease; this process must stop."""


class OutOfMemoryError(PolicyschedError):
    """Error: no memory is left to store an object; the process ends, because decisions would be wrong."""


class NotConnectedError(PolicyschedError):
    """Error: a plugin used its handle without a running scheduler."""
