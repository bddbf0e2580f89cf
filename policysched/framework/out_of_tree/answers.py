"""Checks and normalizes the results of out-of-tree plugins.

Source: pkg/scheduler/framework/runtime/framework.go (the callers of plugins), v1.36.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from policysched.framework.binding import Wait
from policysched.framework.out_of_tree.methods import PreBindPreFlightResult, PreFilterResult
from policysched.framework.plugin import Scores
from policysched.framework.status import Code, Status

NO_ERROR: Final = "%!w(<nil>)"
"""kube-scheduler's text for an error that is nil, for a plugin that returns Wait or Skip where it is not allowed."""


class AnsweredError(Exception):
    """Raised if a plugin returned a status, such as a failure, where a value is expected."""

    def __init__(self, status: Status) -> None:
        super().__init__(status)
        self.status = status


def error_of(status: Status) -> str:
    """Return the error text of a status, as kube-scheduler writes it."""
    return NO_ERROR if status.code in (Code.SUCCESS, Code.WAIT, Code.SKIP) else status.message


def failing(status: Status) -> Status:
    """Turn a status whose code is not allowed at an extension point into a failure."""
    return status if status.code is Code.ERROR else Status(Code.ERROR, (error_of(status),), status.plugin)


def with_texts(answer: Any) -> Any:
    """Return a status with its reasons as strings; return a result that is not a status unchanged."""
    if not isinstance(answer, Status):
        return answer
    given = answer.reasons if isinstance(answer.reasons, tuple) else (answer.reasons,)
    if all(type(one) is str for one in given):
        return answer if given is answer.reasons else replace(answer, reasons=given)
    return replace(answer, reasons=tuple(map(_text, given)))


def _text(reason: object) -> str:
    try:
        return str(reason)
    except Exception:  # it cannot be told
        return type(reason).__name__


def narrowed(answer: Any) -> Any:
    """Return the names of the nodes in a PreFilterResult; return any other result of PreFilter unchanged."""
    if not isinstance(answer, PreFilterResult):
        return answer
    names = answer.node_names
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"expected node names, got {names!r}")
    return frozenset(names)


def permitted(answer: Any) -> Any:
    """Convert a result of Permit to a status or a Wait."""
    status, timeout = answer if isinstance(answer, tuple) else (answer, 0.0)
    if isinstance(status, Status) and status.code is Code.WAIT:
        status = Wait(timeout)
    if isinstance(status, Wait):
        return Wait(float(status.timeout))
    return status


def pre_flight(answer: Any) -> tuple[bool, Any]:
    """Return whether a result of PreBindPreFlight allows parallel calls, and the status in the result."""
    if isinstance(answer, PreBindPreFlightResult):
        answer = (answer, None)
    result, status = answer if isinstance(answer, tuple) else (None, answer)
    if not isinstance(result, PreBindPreFlightResult | None):
        raise TypeError(f"expected a PreBindPreFlightResult, got {type(result).__name__}")
    return result is not None and bool(result.allow_parallel), status


def whole_scores(given: Any, size: int) -> Scores:
    """Convert the result of a score plugin to an array of `size` integer scores."""
    if isinstance(given, list):
        for score in given:
            if type(score) is not int and not hasattr(score, "__index__"):
                raise TypeError(f"expected an integer score, got {type(score).__name__}")
        given = np.array([int(score) for score in given], np.int64)
    scores = np.asarray(given)
    if scores.dtype.kind not in "iu" or scores.shape != (size,):
        raise TypeError(f"expected integer scores {(size,)}, got {scores.dtype} {scores.shape}")
    return scores.astype(np.int64)
