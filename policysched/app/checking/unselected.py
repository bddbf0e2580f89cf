"""Notes about policies whose selection matches no pod of a cluster, often because of a misspelt label or name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from policysched.app.amounts import counted
from policysched.model.decode import ObjectError
from policysched.model.policy import PolicySpec, decode_policy
from policysched.model.selection.selectors import SelectorError, compile_selector
from policysched.reading.documents import Document, metadata_of

Object = Mapping[str, Any]
DEFAULT_SCHEDULER = "default-scheduler"


def unselected(policies: Iterable[Document], pods: Sequence[Object]) -> Iterator[str]:
    """Yield a note for each policy whose `schedulerNames` or `podSelector` match no pod.

    Args:
        policies: The policies; malformed ones are ignored.
        pods: The pods of the cluster; without pods there are no notes.
    """
    if not pods:
        return
    labels = [_texts(metadata_of(one).get("labels")) for one in pods]
    names = {_scheduler_name(one) for one in pods}
    for one in policies:
        try:
            policy = decode_policy(one.object)
            field = _unmatched(policy.spec, labels, names)
        except (ObjectError, SelectorError):
            continue
        if field:
            yield f"policy {policy.metadata.name}: no pod matches {field} ({counted(len(pods), 'pod')} in --cluster)"


def _unmatched(spec: PolicySpec, labels: Iterable[Mapping[str, str]], names: set[str]) -> str:
    if spec.scheduler_names and names.isdisjoint(spec.scheduler_names):
        return "schedulerNames"
    if spec.pod_selector is None:
        return ""
    matcher = compile_selector(spec.pod_selector)
    return "" if any(matcher.matches(one) for one in labels) else "podSelector"


def _scheduler_name(pod: Object) -> str:
    spec = pod.get("spec")
    name = spec.get("schedulerName") if isinstance(spec, Mapping) else None
    return name if isinstance(name, str) and name else DEFAULT_SCHEDULER


def _texts(value: Any) -> Mapping[str, str]:
    return {str(key): str(text) for key, text in value.items()} if isinstance(value, Mapping) else {}
