"""Compiles a SchedulingPolicy object, field by field.

`compiler` compiles the fields, `policy` has the `CompiledPolicy`, `graphs` finds the inputs of an expression and its
parts that are equal for all nodes, all pods or a domain.
"""
