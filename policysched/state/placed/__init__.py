"""Placed pods: their nodes and requests, and the numbers of matching pods on nodes for affinity and spreading.

Pods that affinity, spreading and policies of other pods cannot distinguish share a signature. A `counter` counts
matching pods per row; `counters` finds it. `signature_values` and `signature_labels` find signatures, `pod_kinds`
groups pods of equal weight, `existing_terms` has affinity terms of placed pods, indexed by `selector_index`.
"""
