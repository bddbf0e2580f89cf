"""Cached results of rules and policies on nodes.

`rule_rows` has the results of one rule. `pod_independent` shares results between all pod classes, `matrix` evaluates
the policies of a profile for one class, and `blocks` caches their results. `normalized` computes scores over the
feasible nodes.
"""
