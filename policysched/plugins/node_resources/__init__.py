"""NodeResourcesFit and NodeResourcesBalancedAllocation: room and utilization of nodes.

`fit` and `balanced_allocation` are the plugins, `allocation` has the scores of the first, `shortages` its reasons.
`answer_cache` shares answers between pod classes with equal requests.
"""
