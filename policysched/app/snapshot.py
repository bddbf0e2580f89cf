"""Write a running cluster as a file that all commands read in place of the cluster.

Objects keep the fields that scheduling reads. Annotations may hold copies of anything, so of these only those are kept
that the default plugins or a policy of the cluster reads. What is not read may be anything of JSON: an object with what
no file may hold is left out, because none of the file could be read then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from policysched.app.dry_run.dry_run import compile_policies, decode_policies
from policysched.app.recording import entries
from policysched.bounded_yaml import MAX_DEPTH
from policysched.model.decode import ObjectError
from policysched.model.defaults import priority_classes
from policysched.model.kinds import POLICIES, fill, kind_of
from policysched.model.lenient_json import UNREADABLE, is_deeper
from policysched.model.policy import LAST_GOOD, Policy, decode_policy

MOST_DEPTH: Final = MAX_DEPTH - 2
"""How deeply an object may be nested: the list and what holds it are around it."""
Object = Mapping[str, Any]


def snapshot(objects: Iterable[Object]) -> tuple[dict[str, Any], list[str]]:
    """Return a List of what scheduling reads of objects, and what of them cannot be read.

    Args:
        objects: The objects of a cluster, as its API server gives them.
    """
    given = [*objects]
    items, broken, classes = [], [], priority_classes(given)
    policies = [one for one in given if kind_of(one) is POLICIES and _reads(one)]
    compiled, _, _ = compile_policies(decode_policies(policies, ()))
    kept = entries.annotations_read(compiled, ())
    for raw in given:
        kind = kind_of(raw)
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
        try:
            items.append({"apiVersion": kind.api_version, "kind": kind.kind, **_written(read)})
        except UNREADABLE as error:
            broken.append(str(ObjectError(kind.kind, kind.key(read), f"no file can hold it: {error}")))
    return {"apiVersion": "v1", "kind": "List", "items": items}, broken


def _written(read: Any) -> dict[str, Any]:
    """Return the fields of an object as plain values.

    Raises:
        ValidationError: it is nested too deeply.
        DecodeError, UnicodeError, RecursionError: JSON in it that nobody read until now cannot be read.
    """
    made: dict[str, Any] = msgspec.to_builtins(read, enc_hook=_plain)
    if is_deeper(msgspec.json.encode(made), MOST_DEPTH):
        raise msgspec.ValidationError(f"it is nested deeper than {MOST_DEPTH} levels")
    return made


def _plain(text: Any) -> Any:
    """Read JSON that is kept as it is written."""
    return msgspec.json.decode(text) if bytes(text) else None


def _reads(policy: Object) -> bool:
    try:
        decode_policy(policy)
    except ObjectError:
        return False
    return True
