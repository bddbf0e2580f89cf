"""NodeResourcesFit and NodeResourcesBalancedAllocation: filter and score nodes by their resources.

`fit` and `balanced_allocation` are the plugins, `allocation` has the scores of the first, `shortages` its reasons.
`answer_cache` shares answers between pod classes with equal requests.
"""
