"""Plugins of others: found in installed distributions and by `--plugin`, and made with their arguments.

`discovery` fills a registry, `factories` calls what it finds, `listing` says what is registered, `measuring` what it
costs. `package` writes the files of a new plugin.
"""
