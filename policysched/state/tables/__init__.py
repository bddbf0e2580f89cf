"""Nodes as columns: labels, taints, resources, images, ports, ages and metrics, one element a row.

Comes in: nodes and what placed pods take. Goes out: arrays. Texts are interned codes (`interner`); the
values of a topology label are dense numbers (`domains`). `label_columns` are those of other objects' labels, of which
selectors are asked: those of placed pods and of namespaces.
"""
