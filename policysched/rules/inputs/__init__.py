"""What rules read: columns over nodes and single values of a pod, each with the change that moves it.

Comes in: an input's name and the cluster. Goes out: its values, and the aspects of a node that change them.
`nodes` reads nodes and metrics, `pods` the pod that is decided about and placed pods.
"""
