"""`snapshot`: reduces the objects of a cluster to a List for `policysched record`.

Objects keep only the fields that scheduling reads, and only the annotations that default plugins or a policy reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from policysched.app.admission import IS_DEFAULT
from policysched.app.dry_run.policies import compiled_policies, standing_policies
from policysched.app.recording import entries
from policysched.model.admission_kinds import admission_kind_of
from policysched.model.decode import ObjectError
from policysched.model.defaults import priority_classes
from policysched.model.kinds import POLICIES, fill, kind_of
from policysched.model.policy import LAST_GOOD, Policy, decode_policy

Object = Mapping[str, Any]


def snapshot(objects: Iterable[Object]) -> tuple[dict[str, Any], list[str]]:
    """Return a List of objects with the fields that scheduling reads, and the problems of invalid objects.

    Args:
        objects: The objects of a cluster, as the API server returns them.
    """
    given = [*objects]
    items, broken, classes = [], [], priority_classes(given)
    policies = [one for one in given if kind_of(one) is POLICIES and _reads(one)]
    kept = entries.annotations_read(compiled_policies(standing_policies(policies)).compiled, ())
    kept = None if kept is None else kept | frozenset(IS_DEFAULT)
    for raw in given:
        kind = kind_of(raw) or admission_kind_of(raw)
        if kind is None:
            continue
        try:
            read = decode_policy(raw) if kind is POLICIES else kind.decode(fill(raw, classes))
        except ObjectError as error:
            broken.append(str(error))
            continue
        if not kind.keep(read):
            continue
        if isinstance(read, Policy):
            own = {key: text for key, text in read.metadata.annotations.items() if key == LAST_GOOD}
            read = Policy(metadata=msgspec.structs.replace(read.metadata, annotations=own), spec=read.spec)
        else:
            read = entries.written(read, kept)[1]
        items.append({"apiVersion": kind.api_version, "kind": kind.kind, **msgspec.to_builtins(read)})
    return {"apiVersion": "v1", "kind": "List", "items": items}, broken


def _reads(policy: Object) -> bool:
    try:
        decode_policy(policy)
    except ObjectError:
        return False
    return True
