"""Placed pods: where they are, what they take, and what rules about other pods read of them.

Comes in: pods on nodes. Goes out: counts per row of the pods that a selector means. Each is a `counter`, kept up to
date by each placement and found by `counters`. Pods that such rules cannot tell apart share a signature, and
`pod_kinds` are those that weigh the same. `signature_values` finds signatures by a value that a counter asks for,
`signature_labels` those that a selector selects. `existing_terms` are the affinity terms of placed pods, found by the
pods that they mean (`selector_index`).
"""
