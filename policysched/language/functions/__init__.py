"""The functions of the language: names, numbers of arguments, and how calls are checked.

In comes a call as a syntax tree, out comes its typed graph or a diagnostic. One module a subject; what functions
compute is in `evaluation`, once over columns and once for plain values.
"""
