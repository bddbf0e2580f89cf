"""Cached results of claims with equal specs: the nodes on which they can be allocated, and reasons for other nodes.

`prepared` finds the nodes to evaluate again. `device_counts` evaluates all nodes by counting free devices,
`group_search` evaluates the nodes of one group by a search. `row_outcomes` stores the answer of each node.
"""
