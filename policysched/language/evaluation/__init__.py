"""Evaluates programs: over columns with NumPy, or for one node in plain Python.

Tests compare the kernels with the scalar interpreter, which imports no NumPy.
"""
