"""Tooling for out-of-tree plugins: discover, create, list, measure, scaffold a package.

`discovery` fills a registry, `factories` calls what it finds, `listing` says what is registered, `measuring` what it
costs. `package` writes the files of a new plugin.
"""
