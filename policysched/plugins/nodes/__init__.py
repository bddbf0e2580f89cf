"""Plugins that read only the node: its name, labels, taints, ports, features and images.

`node_filters` has the small plugins; `node_selection` evaluates node selectors and node affinity, for volumes too.
"""
