"""PodTopologySpread: spreads pods evenly over the values of a node label.

`plugin` has the extension points, `filter` and `score` their states for a pod class. `constraints` compiles the
constraints of a pod, `rows` finds the nodes that a constraint includes. `hints` has the queueing hints.
"""
