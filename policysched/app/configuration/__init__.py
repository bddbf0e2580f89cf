"""KubeSchedulerConfiguration files, and the profiles that they make.

Comes in: a file of v1 or an older version. Goes out: the completed configuration, and profiles. `model` has its fields
and defaults, `reading` reads a file strictly and `validation` says what is not valid in it; `plugin_lists` works out
which plugins act where, and `profiles` makes them. `printing` writes the completed form.
"""
