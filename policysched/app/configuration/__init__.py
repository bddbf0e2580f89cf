"""Read KubeSchedulerConfiguration files and build profiles.

`reading` decodes strictly, `model` has fields and defaults, `validation` the checks. `plugin_lists` computes the
plugins of each extension point, `profiles` builds them. `printing` writes the completed configuration.
"""
