"""Placed pods: nodes, resources, and values for rules about other pods.

Pods that such rules cannot distinguish share a signature. A `counter` counts matching pods per row; `counters`
finds it. `signature_values` and `signature_labels` find signatures, `pod_kinds` groups pods of equal weight,
`existing_terms` has affinity terms of placed pods, indexed by `selector_index`.
"""
