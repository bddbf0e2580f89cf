"""A policy as a framework plugin: Filter, Score and queueing hints, all read from the same results.

Comes in: compiled policies and a cluster. Goes out: `PolicyPlugin`, which the engine asks like any other plugin, and
its part of the decision record. `policy_plugin` says which rules speak for a pod and reads their results,
`hints` says when a pod that was rejected is worth another attempt, `record` what is told to people.
"""
