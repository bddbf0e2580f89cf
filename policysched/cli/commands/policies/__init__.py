"""Commands for policy authors: check, test, fmt, explain, example."""
