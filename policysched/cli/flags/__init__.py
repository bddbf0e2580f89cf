"""The flags of `policysched run`: those of kube-scheduler v1.36.2, and some of our own.

`sections` declares each flag once, as a field; `declaring` makes options of them and reads what was given, `values` has
the forms of values, `feature_gates` what `--feature-gates` may ask for. Nothing here knows what a flag does.
"""
