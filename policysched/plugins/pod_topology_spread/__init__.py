"""PodTopologySpread: spread pods evenly over the values of a label, such as zones or host names.

Comes in: a pod's constraints or the configuration's, pod counters and topology domains. Goes out: reason codes and
scores a row, and the rows that a change affects. `plugin` has the extension points, `constraints` compiles, `rows`
counts by domain where nodes are included, `filter` and `score` answer, `hints` says which changes help a waiting pod.
"""
