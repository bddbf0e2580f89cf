"""Declarations of the flags and arguments of the commands, without the code that acts on their values.

`decisions`, `policies`, `processes` and `settings` have a class for each command of a section of `--help`. The
docstring of the class is the help, its fields are the flags. `base` has the base of these classes, `shared` the flags
of several commands, `formats` their output formats.

`policysched run` has the flags of kube-scheduler v1.37.2 and our own: `sections` declares each flag as a field,
`declaring` turns fields into options, `values` parses values, `feature_gates` lists the gates.
"""
