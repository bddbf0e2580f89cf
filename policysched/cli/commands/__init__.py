"""The subcommands, in packages that are the sections of `--help`: processes, decisions, policies, settings.

Each is a module: a function with arguments and flags as parameters and its help as docstring.
"""
