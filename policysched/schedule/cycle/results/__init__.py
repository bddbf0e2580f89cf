"""Cached Filter and Score results of each plugin, shared by pods that are equal for scheduling.

`plugin_results` has results of one plugin, by member if the plugin is a block, `out_of_tree_results` of plugins that
filter one node per call. `rejections` finds the first rejecting filter of each row, `carried_over` reuses results under
the next profile.
"""
