"""The sub-commands, one package for each section of `--help`.

A command is a module with a function: its parameters are arguments and flags, its docstring is the help.
"""
