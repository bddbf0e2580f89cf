"""Placed pods: their nodes and requests, and counters of them for affinity, spreading and policies.

Pods that affinity, spreading and policies of other pods cannot distinguish share a signature. A `counter` counts
matching pods per row; `counters` finds it. `signature_values` and `signature_labels` find signatures, `pod_kinds`
groups pods of equal weight, `existing_terms` has affinity terms of placed pods, indexed by `selector_index`.
"""
