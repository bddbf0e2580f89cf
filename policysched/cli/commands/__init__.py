"""The work of the commands, in one package for each section of `--help`. A module is imported when its command runs."""
