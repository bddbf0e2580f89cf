"""Compile a SchedulingPolicy object, field by field, with the expression compiler of the language.

Comes in: the object. Goes out: a `CompiledPolicy` or diagnostics. `compiler` works through the fields, `policy` is what
comes of it with the metrics that it declares; `graphs` says what a compiled expression reads and which parts of
it are the same for all nodes, all pods or a whole domain.
"""
