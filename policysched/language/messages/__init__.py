"""Diagnostics: what the language says about a text, with position, code and help.

In comes a code with a span and values for its sentence, out comes a `Diagnostic`; the sentences and the explanations
of all codes are one table. Hints say what a type error or the syntax of another language was meant as.
"""
