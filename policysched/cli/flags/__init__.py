"""Flags of `policysched run`: those of kube-scheduler v1.36.2 and our own.

`sections` declares each flag as a field, `declaring` turns fields into options, `values` parses values,
`feature_gates` lists the gates. This package does not use the values.
"""
