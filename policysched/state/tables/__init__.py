"""Values of nodes as arrays (columns) with one element per node: labels, taints, resources, images, ages, metrics.

Texts are interned codes (`interner`); values of a topology label are dense numbers (`domains`). `label_columns` has
labels of placed pods and namespaces. `sparse` is the rule for renumbering.
"""
