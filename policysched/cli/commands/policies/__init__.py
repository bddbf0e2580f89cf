"""Commands for authors of policies: check, test, fmt, explain."""
