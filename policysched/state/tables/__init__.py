"""Nodes as columns: labels, taints, resources, images, host ports, ages and metrics.

Texts are interned codes (`interner`); values of a topology label are dense numbers (`domains`). `label_columns` has
labels of placed pods and namespaces. `sparse` is the rule for renumbering.
"""
