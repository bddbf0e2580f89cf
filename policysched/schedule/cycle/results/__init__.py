"""Cached Filter and Score results by plugin and pod class.

`plugin_results` has results of one plugin, `joint_results` of plugins that answer together, `out_of_tree_results` of
plugins that answer for one node. `rejections` finds the first rejecting filter of each row, `carried_over` keeps
results when policies change.
"""
