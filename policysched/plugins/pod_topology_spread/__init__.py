"""PodTopologySpread: spread pods evenly over the values of a node label.

`plugin` has the extension points, `constraints` compiles, `rows` counts by domain, `filter` and `score` answer, `hints`
has the queueing hints.
"""
