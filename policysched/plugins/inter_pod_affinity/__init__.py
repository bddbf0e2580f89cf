"""InterPodAffinity: places pods near to or away from other pods.

`plugin` has the extension points and `states` their state for a pod class. `terms` counts the pods that the class's own
terms match, `matching_terms` the placed pods whose terms match the class, `sums` adds both up by topology domain.
`hints` has the queueing hints.
"""
