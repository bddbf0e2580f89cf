"""The list of annotations in a recorded cluster, and the check that policies read no other annotations.

`policysched record` leaves out annotations that no policy reads. Without the check, such an annotation would look as if
no object had it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from policysched.app.recording import entries
from policysched.errors import UsageError
from policysched.model.policy import API_GROUP
from policysched.rules.compile.policy import CompiledPolicy

Object = Mapping[str, Any]
KIND: Final = "RecordedAnnotations"
"""Kind of the item that lists, in a recorded cluster, the annotations which the cluster's objects kept."""


def kept_annotations(keys: Collection[str]) -> dict[str, Any]:
    """Return the item that lists, in a recorded cluster, the annotations which the cluster's objects kept."""
    name = {"name": "recorded-annotations"}
    return {"apiVersion": f"{API_GROUP}/v1beta1", "kind": KIND, "metadata": name, "keys": sorted(keys)}


def refuse_missing_annotations(
    objects: Iterable[Object], policies: Collection[CompiledPolicy], *, pod_is_given: bool = False
) -> None:
    """Reject policies that read annotations which a recorded cluster among the objects does not have.

    Args:
        objects: The objects of the cluster.
        policies: The policies that decide.
        pod_is_given: Whether the pod to schedule is not from the cluster, so that it has all its annotations.

    Raises:
        UsageError: an annotation is missing.
    """
    for one in objects:
        if one.get("kind") != KIND:
            continue
        keys = one.get("keys")
        kept = [str(key) for key in keys] if isinstance(keys, list) else []
        missing = entries.missing_annotations(kept, policies, without="pod" if pod_is_given else "")
        if missing:
            raise UsageError(
                f"policies read annotations that are not in the recorded cluster: {', '.join(missing)}; "
                "record the cluster again with `policysched record --policy FILE`"
            )
