"""Cached Filter and Score results per plugin and pod class; only changed nodes are evaluated again.

Comes in: a plugin with its prepared state, and rows that changed. Goes out: a reason code or a score a row.
`plugin_results` keeps one plugin's, `joint_results` those of plugins that answer together, `out_of_tree_results` those
of plugins that are asked node by node. `rejections` finds each row's first rejecting filter; `carried_over` takes along
what was known under other policies.
"""
