"""`snapshot`: reduces the objects of a cluster to a List for `policysched record`.

Objects keep only the fields that scheduling reads, and only the annotations that default plugins or a policy reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from policysched.app.admission import IS_DEFAULT
from policysched.app.dry_run.policies import compile_alone, compiled_policies, standing_policies
from policysched.app.recording import entries
from policysched.app.recording.kept_annotations import kept_annotations, refuse_missing_annotations
from policysched.model.admission_kinds import admission_kind_of
from policysched.model.decode import ObjectError
from policysched.model.defaults import priority_classes
from policysched.model.kinds import POLICIES, fill, kind_of
from policysched.model.policy import LAST_GOOD, Policy, decode_policy

Object = Mapping[str, Any]


def snapshot(objects: Iterable[Object], tried: Iterable[Object] = ()) -> tuple[dict[str, Any], list[str]]:
    """Return a List of objects with the fields that scheduling reads, and the problems of invalid objects.

    Args:
        objects: The objects of a cluster, as the API server returns them.
        tried: Further policies whose annotations are kept; these policies do not become objects of the List.

    Raises:
        UsageError: a further policy does not compile, or reads an annotation that the objects have lost.
    """
    given = [*objects]
    items, broken, classes = [], [], priority_classes(given)
    policies = [one for one in given if kind_of(one) is POLICIES and _reads(one)]
    compiled = [*compiled_policies(standing_policies(policies)).compiled, *compile_alone(tried)]
    refuse_missing_annotations(given, compiled)
    kept = entries.annotations_read(compiled, ())
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
    note = [] if kept is None else [kept_annotations(kept)]
    return {"apiVersion": "v1", "kind": "List", "items": [*items, *note]}, broken


def _reads(policy: Object) -> bool:
    try:
        decode_policy(policy)
    except ObjectError:
        return False
    return True
