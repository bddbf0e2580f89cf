"""The diagnostics of the language: code, position, message and help.

One table has the texts and explanations of all codes. Suggestions recognize mistakes and syntax of other languages.
"""
