"""Implementations of the commands, one package per section of `--help`; modules are imported when they run."""
