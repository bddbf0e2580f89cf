"""InterPodAffinity: place pods near or away from other pods.

`plugin` has the extension points, `states` their state for a pod class, `terms` the matching and weights,
`namespaces` the namespaces of terms, `sums` the sums by domain, `hints` the queueing hints.
"""
