"""The functions of the language: its own and those of Kubernetes' libraries, by the names of their overloads.

Comes in: values. Goes out: a value, which may be an error. Overloads are called with arguments of their types only.
"""
