"""A policy as a framework plugin: Filter, Score and queueing hints.

`policy_plugin` selects the rules for a pod and reads their results, `hints` has the queueing hints, `record` the part
of the decision record.
"""
