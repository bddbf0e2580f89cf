"""Commands for policy authors: check, test, fmt, convert, explain, example, translate."""
