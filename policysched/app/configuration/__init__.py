"""KubeSchedulerConfiguration files, and the profiles that they make.

Comes in: a file of v1 or an older version. Goes out: profiles. `file` reads it and applies what a profile
enables and disables to the default plugins, `profiles` puts the plugins at their points.
"""
