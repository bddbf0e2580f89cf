"""Diagnostics of the language: code, position, text and help.

One table has the texts and explanations of all codes. Hints recognize mistakes and syntax of other languages.
"""
