"""The subcommands, one module each: a function with arguments and flags as parameters and its help as docstring."""
