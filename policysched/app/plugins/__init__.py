"""Tools for out-of-tree plugins: discovery, list, measurement, new packages.

`discovery` fills a registry, `factories` creates plugins, `listing` describes them, `measuring` measures them,
`package` writes the files of a new plugin from `templates`.
"""
