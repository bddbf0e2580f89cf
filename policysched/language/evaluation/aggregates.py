"""Compute aggregates over all nodes, and counts and sums over the pods of each node, with numpy.

Programs ask their frame for these; the frame's owner computes them here, on a frame of those other rows, and keeps
them for as long as what they read stays the same. Sums are exact and rounded once, whatever the order of rows: row
order never shows, and what is kept by adding and taking off whole numbers stays equal to what is counted anew.
"""

from __future__ import annotations

import enum
import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from policysched.language.evaluation.columns import evaluate_columns
from policysched.language.evaluation.frames import Floats, Frame, Mask
from policysched.language.evaluation.number_kernels import bounded
from policysched.language.ir.graph import AGGREGATES, POD_AGGREGATES, Op, Typed

_EXACT_BITS: Final = 53
_EXACT: Final = math.ldexp(1.0, _EXACT_BITS)
# Codes this many times the number of rows are still cheaper to count in one array than to number anew.
_SPARSE: Final = 4
_FEW_CODES: Final = 1024
Ids = npt.NDArray[np.int64]


class Depends(enum.IntEnum):
    """What decides how much a placed pod counts in an aggregate over pods, beside its row."""

    PEER = 0
    """The placed pod alone: one counter serves all, and a pod's weight is found once a kind."""
    POD = 1
    """Also values of the incoming pod: one counter for each set of them."""
    ROW = 2
    """Also the node it is on, the cluster, an aggregate or the time: counted when it is asked for."""


def depends(node: Typed) -> Depends:
    """Return what an aggregate over pods (`node.pods.*`) reads."""
    [inner] = node.inner
    roots = {item.root for item in inner.inputs}
    if not inner.local or not roots <= {"peer", "pod"} or any(item.path[0] == "age" for item in inner.inputs):
        return Depends.ROW
    return Depends.POD if "pod" in roots else Depends.PEER


def aggregate_over(node: Typed, frame: Frame) -> Floats | float:
    """Compute an aggregate.

    Args:
        node: A node of a program's graph whose operation is one of `AGGREGATES`.
        frame: All nodes that exist, in any order.

    Shapes: a number, or (N,) where the aggregate has a domain: each row gets its domain's value.
    Missing: NaN; rows without a value are left out, rows without a domain get NaN.
    Cost: O(N); a sum of fractions costs more than one of whole numbers.
    """
    if node.op not in AGGREGATES:
        raise ValueError(f"{node!r} is no aggregate")
    values, present = _inner(node, frame)
    if not node.args:
        return float(_reduced(node, np.zeros(frame.rows, np.int64), 1, values, present)[0])
    ids, size = _domains(node.args[0], frame)
    by_domain = _reduced(node, ids, size, values, present)
    by_domain[0] = math.nan
    spread: Floats = by_domain[ids]
    return spread


def pod_aggregate_over(node: Typed, frame: Frame, rows: npt.NDArray[np.integer], size: int) -> Floats:
    """Count or sum over the placed pods of each row.

    Args:
        node: A node of a program's graph whose operation is one of `POD_AGGREGATES`.
        frame: The placed pods; it answers inputs of peers, and those of nodes by each pod's row.
        rows: The row of each pod, below `size`; one below 0 is no pod and counts nowhere.
        size: How many rows there are.

    Shapes: rows (P,) -> (size,).
    Missing: nothing is; pods without a value are left out.
    Cost: O(P).
    """
    if node.op not in POD_AGGREGATES:
        raise ValueError(f"{node!r} is no aggregate over pods")
    values, present = _inner(node, frame)
    # What is no pod is counted in a place of its own, before the rows.
    ids = np.maximum(rows, -1).astype(np.int64) + 1
    return _reduced(node, ids, size + 1, values, present)[1:]


def _inner(node: Typed, frame: Frame) -> tuple[Floats | None, Mask]:
    """Return what is reduced, and where it is there: where a condition is true, where a quantity is not missing."""
    value: Any = evaluate_columns(node.inner[0], frame)
    if node.op in {Op.COUNT_NODES, Op.COUNT_PODS}:
        return None, np.broadcast_to(value[0], (frame.rows,))
    values = np.broadcast_to(value, (frame.rows,))
    return values, ~np.isnan(values)


def _domains(key: Typed, frame: Frame) -> tuple[Ids, int]:
    """Number the domains from 1; 0 is for rows without one. Shapes: (N,)."""
    value: Any = evaluate_columns(key, frame)
    if not isinstance(value, np.ndarray):
        value = np.full(frame.rows, -1 if value is None else frame.strings.code(value))
    ids = value.astype(np.int64) + 1
    size = int(ids.max(initial=0)) + 1
    if size > _SPARSE * frame.rows + _FEW_CODES:
        known, dense = np.unique(ids, return_inverse=True)
        ids = dense + (known[0] > 0)
        size = len(known) + 1
    return ids, size


def _reduced(node: Typed, ids: Ids, size: int, values: Floats | None, present: Mask) -> Floats:
    """Reduce the rows of each id. Shapes: ids, values and present (R,) -> (size,)."""
    if not present.all():
        ids, values = ids[present], None if values is None else values[present]
    if values is None:
        return np.bincount(ids, minlength=size).astype(np.float64)
    if node.op in {Op.MIN_NODES, Op.MAX_NODES}:
        return _extremes(node.op, ids, size, values)
    sums = _sums(ids, size, values)
    if node.op == Op.AVG_NODES:
        with np.errstate(all="ignore"):
            sums = sums / np.bincount(ids, minlength=size)
    return np.asarray(bounded(node, sums), np.float64)


def _extremes(op: str, ids: Ids, size: int, values: Floats) -> Floats:
    combine, start = (np.minimum, math.inf) if op == Op.MIN_NODES else (np.maximum, -math.inf)
    found = np.full(size, start)
    combine.at(found, ids, values)
    found[found == start] = math.nan
    return found


def _sums(ids: Ids, size: int, values: Floats) -> Floats:
    """Sum exactly and round once, so that no order of rows shows.

    Whole numbers are exact in any order while all partial sums are. Others are split into whole multiples of two units
    where that is possible, because `fsum` takes a row at a time.
    """
    if np.abs(values).sum() < _EXACT and (values == np.rint(values)).all():
        return np.bincount(ids, values, size).astype(np.float64, copy=False)
    split = _split(values)
    if split is None:
        return _slow_sums(ids, size, values)
    (high, coarse), (low, fine) = split
    # Both products are exact, so this rounds once.
    return np.asarray(np.bincount(ids, high, size) * coarse + np.bincount(ids, low, size) * fine, np.float64)


def _split(values: Floats) -> tuple[tuple[Floats, float], tuple[Floats, float]] | None:
    """Split values into multiples of a coarse and a fine unit, few enough to be summed exactly.

    Returns:
        The multiples of each unit, whole numbers, and the unit; None where magnitudes are too far apart.
    """
    bits = _EXACT_BITS - 1 - len(values).bit_length()
    _, exponent = math.frexp(float(np.abs(values).max()))
    coarse, fine = math.ldexp(1.0, exponent - bits), math.ldexp(1.0, exponent - 2 * bits)
    with np.errstate(all="ignore"):
        high = np.rint(values / coarse)
        rest = values - high * coarse
        low = rest / fine
        # The second holds where nothing was too small to be there at all.
        exact = (low == np.rint(low)) & (low * fine == rest)
    return ((high, coarse), (low, fine)) if exact.all() else None


def _slow_sums(ids: Ids, size: int, values: Floats) -> Floats:
    order = np.argsort(ids, kind="stable")
    sorted_ids, sorted_values = ids[order], values[order].tolist()
    starts = np.flatnonzero(np.diff(sorted_ids, prepend=-1))
    ends = [*starts[1:].tolist(), len(sorted_values)]
    sums = np.zeros(size)
    for start, end in zip(starts.tolist(), ends, strict=True):
        sums[sorted_ids[start]] = math.fsum(sorted_values[start:end])
    return sums
