"""Record what a running scheduler decides, and from what.

Comes in: the changes of the cluster and the decisions of a scheduler. Goes out: files that replay alone.
"""
