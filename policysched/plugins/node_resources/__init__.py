"""NodeResourcesFit and NodeResourcesBalancedAllocation: what fits on a node, and how full that leaves it.

Comes in: what a pod requests, columns of what nodes have and what placed pods take. Goes out: reason codes and scores.
`fit` and `balanced_allocation` are the plugins, `allocation` the scores of the first one, `shortages` its reasons.
`answer_cache` holds answers that all pod classes share which ask for the same amounts.
"""
