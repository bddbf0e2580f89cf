"""The exceptions that reach the edge, as a tree: which of them is which exit code, and what ends the process.

    PolicyschedError            anything of ours that reaches the edge
    ├── UsageError              a wrong flag, file or object given by the user: exit code 2
    ├── ConnectionProblemError  the API server or its credentials cannot be used
    ├── KubeconfigError         both: the kubeconfig or the context that the user gave
    ├── LeadershipLostError     another process may lead now: this one ends, exit code 1
    ├── OutOfMemoryError        no memory is left for what the cluster holds: the process ends, exit code 1
    └── NotConnectedError       a plugin asked for what is not there, such as the queue in a dry-run

Rejections and diagnostics are values, never exceptions. This module is a leaf: every layer may import it.
"""

from __future__ import annotations

__all__ = [
    "ConnectionProblemError",
    "KubeconfigError",
    "LeadershipLostError",
    "NotConnectedError",
    "OutOfMemoryError",
    "PolicyschedError",
    "UsageError",
]


class PolicyschedError(Exception):
    """An error of ours whose text is meant for the user: one line, what and what to do."""


class UsageError(PolicyschedError):
    """What the user gave cannot be used: a file, a flag, an object."""


class ConnectionProblemError(PolicyschedError):
    """The API server cannot be reached or refuses the credentials."""


class KubeconfigError(UsageError, ConnectionProblemError):
    """The kubeconfig that the user gave, or the context in it, cannot be used."""


class LeadershipLostError(PolicyschedError):
    """The lease was not renewed in time or is held by another process: this one may not act any more."""


class OutOfMemoryError(PolicyschedError):
    """No memory was left to take an object in: without it decisions would be wrong, so the process ends."""


class NotConnectedError(PolicyschedError):
    """A plugin asked for what is not there: no scheduler runs, or it has not started."""
