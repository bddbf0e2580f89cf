"""Which pods a pod belongs together with, where it does not say so itself: by its services and its controller.

A pod's services are those whose labels it has; all of their labels count together, and so do the demands of its
controller. It knows nothing of what is then done with the selector.

Source: plugins/helper/spread.go, v1.36.
"""

from __future__ import annotations

from policysched.model.objects import LabelSelector, Pod, workload_owner
from policysched.model.selection.selectors import LabelMatcher, SelectorError, compile_selector, match_labels
from policysched.state.workloads import Workloads


def default_selector(pod: Pod, workloads: Workloads) -> LabelMatcher:
    """Give the selector of the pods that are like this one; it looks at no label where nothing is known of them.

    Cost: O(services of the namespace).
    """
    labels: dict[str, str] = {}
    own = pod.metadata.labels
    for selector in workloads.services(pod.metadata.namespace):
        if all(own.get(key) == value for key, value in selector.items()):
            labels |= selector
    owner = workload_owner(pod)
    demanded = None if owner is None else workloads.controller(owner[0], pod.metadata.namespace, owner[1])
    if demanded is None:
        return match_labels(labels)
    if isinstance(demanded, LabelSelector):
        return match_labels(labels).joined(_lenient(demanded))
    return match_labels(labels | dict(demanded))


def _lenient(selector: LabelSelector) -> LabelMatcher:
    """Compile a controller's selector; one that is not valid has no demands."""
    try:
        return compile_selector(selector)
    except SelectorError:
        return compile_selector(None)
