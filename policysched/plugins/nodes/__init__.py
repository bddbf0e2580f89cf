"""The plugins that look at what a node says of itself: its name, labels, taints, ports, features and images.

Comes in: a pod and the cluster's columns. Goes out: reason codes and scores a row, and queueing hints. `node_filters`
has the small ones; `node_selection` answers node selectors and node affinity for whoever asks, volumes too.
"""
