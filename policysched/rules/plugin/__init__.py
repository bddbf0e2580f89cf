"""Policies in force, and the plugins of a profile that evaluate them.

`active_policy` is one policy, `selection` its pods, `policies` the plugins, `hints` has the queueing hints, `guard` the
condition on victims, `record` the part of the decision record.
"""
