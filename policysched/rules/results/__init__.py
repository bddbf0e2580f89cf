"""Cached results by rule and node.

`rule_rows` has the results of one rule. `pod_independent` shares results between all pod classes, `matrix` has the
policies of a profile for one class. `normalized` computes scores over the feasible nodes.
"""
